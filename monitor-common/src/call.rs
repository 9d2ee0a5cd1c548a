//! Who calls followed processes over TCP.

/// For how long a call counts, in nanoseconds: who calls a service every few minutes uses it. A call of long ago, for instance
/// of a browser at a login, is none any more.
pub const LATELY: u64 = 10 * 60 * 1_000_000_000;

/// Of how many callers of a port that live it is kept who they are.
pub const CALLERS_OF_A_PORT: usize = 4;

/// Of how many processes next above a caller it is kept who they are: a script asks by `x=$(curl | jq)`.
pub const PARENTS: usize = 3;

/// The calls to a port that followed processes have ended, or that were cut off; the value of the map CALLED. Times are nanoseconds of
/// `CLOCK_MONOTONIC`, 0 if there was none: while the host is asleep nobody can call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "user", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct CallRecord {
    /// The last call of anybody but those of `by`: of a process that is not followed, from another host or network namespace. First
    /// in the host's own network, then in any other: there a user may have every port.
    pub by_anybody: [u64; 2],
    /// The last call of a followed process that found no place among `by`, or of a job of which the uppermost process is not known:
    /// it may live, and call again. As `by_anybody` has it.
    pub without_place: [u64; 2],
    /// Followed processes that call from the same host. The place of one is another's when it and those above it have ended, or
    /// that one's of the same job when all are taken; then who calls in the host's own network has that of one in another.
    pub by: [Call; CALLERS_OF_A_PORT],
}

/// The last call of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "user", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct Call {
    /// 0: there is none.
    pub at: u64,
    pub caller: Caller,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "user", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct Caller {
    /// `group_leader->start_boottime`, in nanoseconds.
    pub start: u64,
    /// Its thread group; 0 if there is none.
    pub tgid: u32,
    /// The followed processes next above it, its agent among them, the nearest first; the uppermost one that is below its agent;
    /// and that agent. Each 0 if there is none; the last two as well if they are too far above it. When the caller has ended, its
    /// call is that of the first of them that lives. Who has the number now was there then if it is older than the caller. An agent
    /// asks for itself.
    pub parents: [u32; PARENTS],
    pub head: u32,
    pub agent: u32,
    /// The number of the network namespace in which it called: the inode number of /proc/PID/ns/net.
    pub network: u32,
    /// The ports of this side and of the other one; 0 until the connection is there. Both are 0 in the record of a port that it
    /// wanted for itself.
    pub near: u16,
    pub far: u16,
}

/// A connection within a host; the key of the map OUTGOING.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CallKey {
    /// As [`Caller::network`]: in one of his own a user may give a connection any ends.
    pub network: u32,
    /// The addresses of the side that began it and of the other one, as IPv6 has them, each word in network byte order; an IPv4
    /// address is mapped (RFC 4291).
    pub own: [u32; 4],
    pub other: [u32; 4],
    pub near: u16,
    pub far: u16,
}

const _: () = assert!(size_of::<CallRecord>() == (4 + 6 * CALLERS_OF_A_PORT) * 8);
const _: () = assert!(size_of::<CallKey>() == (1 + 4 + 4) * 4 + 2 * 2);
