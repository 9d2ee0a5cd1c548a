//! Settings of the eBPF programs, and numbers of their records by kind.

use std::ops::{AddAssign, RangeInclusive};

use serde::{Deserialize, Serialize};

use super::alert::parse_size;

/// How setsid(2) is observed. Fork and exec records carry the session id, which suffices for verdicts; the
/// hook adds the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetsidHook {
    /// [`SetsidHook::Fentry`] if it loads, otherwise [`SetsidHook::Tracepoint`].
    #[default]
    Auto,
    /// At the kernel function `ksys_setsid`. It costs other processes nothing.
    Fentry,
    /// At the tracepoint `syscalls:sys_exit_setsid`. It puts every system call of the host on the slow path.
    Tracepoint,
    None,
}

/// Size in bytes of the ring buffer between kernel and daemon, if nobody asks for another one. 2 MiB holds half a second of
/// the fork rate that two cores reach below an agent (40,000 a second, 96 bytes each); it is drained every 20 ms. A larger
/// ring costs twice its size: it is mapped twice and counts as resident memory.
pub const RING_BYTES: u32 = 2 << 20;

/// Parses a size of the ring: a number of bytes, or one of KiB, MiB or GiB: `65536`, `256K`, `4M`, `1G`. It is a power of two
/// (`BPF_MAP_TYPE_RINGBUF` accepts no other), from one page to 1 GiB.
pub fn parse_ring_size(text: &str) -> Result<u32, &'static str> {
    let bytes = parse_size(text).and_then(|bytes| u32::try_from(bytes).ok());
    bytes
        .filter(|bytes| bytes.is_power_of_two() && (4 << 10..=1 << 30).contains(bytes))
        .ok_or("not a valid ring size: give a power of two from 4096 (4 KiB) to 1073741824 (1 GiB)")
}

/// How many processes can be followed at once: up to the largest number of processes that a kernel allows.
pub const MEMBERS: RangeInclusive<i64> = 64..=1 << 22;
/// The largest number that nobody has to ask for: 20 MB of kernel memory.
const MOST_UNASKED: u32 = 1 << 18;

/// How many processes can be followed if nobody asks for a number: as many as these limits of the kernel on processes and
/// threads let live.
pub fn members_for(limits: impl IntoIterator<Item = u32>) -> u32 {
    limits.into_iter().min().unwrap_or(MOST_UNASKED).clamp(64, MOST_UNASKED)
}

/// A process name, as the kernel keeps it, whose exec is reported.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Candidate {
    /// The base name of the executed file, cut to 15 bytes (`TASK_COMM_LEN` - 1).
    pub comm: String,
    /// Whether the exec is reported only if standard input is a pipe or a socket.
    pub needs_wire: bool,
}

/// Kernel records by kind: those that could not be delivered, or those that were received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// Forks.
    pub fork: u64,
    /// Execs.
    pub exec: u64,
    /// Exits.
    pub exit: u64,
    /// Setsids.
    pub setsid: u64,
    /// What did not fit into a user's share: processes into the map of followed processes, records into the ring.
    pub member: u64,
}

impl Losses {
    pub const fn kinds(self) -> [(&'static str, u64); 5] {
        let Self { fork, exec, exit, setsid, member } = self;
        [("fork", fork), ("exec", exec), ("exit", exit), ("setsid", setsid), ("member", member)]
    }
}

impl AddAssign for Losses {
    fn add_assign(&mut self, more: Self) {
        let Self { fork, exec, exit, setsid, member } = self;
        for (sum, (_, more)) in [fork, exec, exit, setsid, member].into_iter().zip(more.kinds()) {
            *sum = sum.saturating_add(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_followed_as_can_live_within_bounds() {
        for (limits, members) in [
            (vec![32_768, 192_730], 32_768),
            (vec![4_194_304, 31_000], 31_000),
            (vec![4_194_304, 1_000_000], 1 << 18),
            (vec![4_194_304], 1 << 18),
            (vec![], 1 << 18),
            (vec![10], 64),
        ] {
            assert_eq!(members_for(limits.clone()), members, "{limits:?}");
        }
    }

    #[test]
    fn sizes_of_rings() {
        for (text, bytes) in
            [("4096", 4096), ("4k", 4096), ("256K", 262_144), ("4M", 4 << 20), ("1g", 1 << 30)]
        {
            assert_eq!(parse_ring_size(text), Ok(bytes), "{text}");
        }
        for text in ["5000", "2048", "2K", "0", "2G", "8G", "", "K", "-4096", "1M1", "4 M", "4MB"] {
            assert!(parse_ring_size(text).is_err(), "{text}");
        }
    }
}
