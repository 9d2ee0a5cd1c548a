//! What a user may choose about the kernel side. The file and the flags use the same words and limits.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How setsid(2) is seen. The session id in fork and exec records suffices for verdicts; the hook adds the
/// moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetsidHook {
    /// By [`SetsidHook::Fentry`] where it loads, else by [`SetsidHook::Tracepoint`].
    #[default]
    Auto,
    /// At the kernel's function `ksys_setsid`: costs nobody else anything.
    Fentry,
    /// `syscalls:sys_exit_setsid`: puts every system call of the host on the slow path.
    Tracepoint,
    /// Not at all.
    None,
}

/// Size in bytes of the ring between kernel and daemon: a power of two (`BPF_MAP_TYPE_RINGBUF` takes no
/// other), from one page to 1 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct RingSize(u32);

/// A size that no ring can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no size for a ring: give a power of two from 4096 (4 KiB) to 1073741824 (1 GiB)")]
pub struct RingSizeError;

impl RingSize {
    /// 2 MiB: half a second of a two-core machine's full fork storm below an agent (40,000 a second, 96 bytes
    /// each), drained every 20 ms. Not more: the ring is mapped twice and counts as resident.
    pub const DEFAULT: Self = Self(2 << 20);

    /// The number of bytes.
    pub const fn bytes(self) -> u32 {
        self.0
    }
}

impl Default for RingSize {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl TryFrom<u32> for RingSize {
    type Error = RingSizeError;
    fn try_from(bytes: u32) -> Result<Self, RingSizeError> {
        let fits = bytes.is_power_of_two() && (4 << 10..=1 << 30).contains(&bytes);
        fits.then_some(Self(bytes)).ok_or(RingSizeError)
    }
}

impl From<RingSize> for u32 {
    fn from(size: RingSize) -> Self {
        size.0
    }
}

/// A number of bytes, or one of KiB, MiB or GiB: `65536`, `256K`, `4M`, `1G`.
impl FromStr for RingSize {
    type Err = RingSizeError;
    fn from_str(text: &str) -> Result<Self, RingSizeError> {
        let units = [('K', 1 << 10), ('M', 1 << 20), ('G', 1 << 30)];
        let unit = units.iter().find_map(|(unit, factor)| {
            text.strip_suffix([*unit, unit.to_ascii_lowercase()]).map(|digits| (digits, *factor))
        });
        let (digits, factor) = unit.unwrap_or((text, 1));
        let bytes = digits.parse::<u32>().ok().and_then(|number| number.checked_mul(factor));
        bytes.ok_or(RingSizeError)?.try_into()
    }
}

/// A process name, as the kernel keeps it, whose exec is worth a report.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Candidate {
    /// The base name of the executed file, cut to 15 bytes (`TASK_COMM_LEN` - 1).
    pub comm: String,
    /// Whether it matters only if its standard input is a pipe or a socket.
    pub needs_wire: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_rings() {
        for (text, bytes) in
            [("4096", 4096), ("4k", 4096), ("256K", 262_144), ("4M", 4 << 20), ("1g", 1 << 30)]
        {
            assert_eq!(text.parse::<RingSize>().map(RingSize::bytes), Ok(bytes), "{text}");
        }
        for text in ["5000", "2048", "2K", "0", "2G", "8G", "", "K", "-4096", "1M1", "4 M", "4MB"] {
            assert_eq!(text.parse::<RingSize>(), Err(RingSizeError), "{text}");
        }
    }
}
