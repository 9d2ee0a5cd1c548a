//! Who calls followed processes over TCP, and the fields that the hook on connections reads.

/// For how long a call counts, in nanoseconds: who calls a service every few minutes uses it. A call of long ago, for instance
/// of a browser at a login, is none any more.
pub const LATELY: u64 = 10 * 60 * 1_000_000_000;

/// The calls to a port that followed processes have ended, or that were cut off; the value of the map CALLED. Times are nanoseconds of
/// `CLOCK_BOOTTIME`, 0 if there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CallRecord {
    /// The last call of anybody but `caller`: of a process that is not followed, from another host or network namespace.
    pub by_anybody: u64,
    /// The last call of `caller`.
    pub by_caller: u64,
    /// A followed process that calls from the same address.
    pub caller: Caller,
}

/// A followed process that began a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Caller {
    /// `group_leader->start_boottime`, in nanoseconds.
    pub start: u64,
    /// Its thread group; 0 if there is none.
    pub tgid: u32,
    /// The port from which it calls; 0 until the connection is there.
    pub port: u32,
}

/// A connection within a host; the key of the map OUTGOING.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CallKey {
    /// The address of both sides as IPv6 has it, each word in network byte order; an IPv4 address is mapped (RFC 4291).
    pub address: [u32; 4],
    /// The port of the caller.
    pub near: u16,
    /// The port that was called.
    pub far: u16,
}

/// Where the fields are that only the hook on connections reads, in bytes like [`crate::Offsets`]. A kernel may lack some: then
/// there is no such hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CallOffsets {
    /// `sock::__sk_common.skc_family`, 2 bytes.
    pub sock_family: u32,
    /// `skc_daddr`, the other side's IPv4 address, 4 bytes.
    pub sock_far: u32,
    /// `skc_rcv_saddr`, its own, 4 bytes.
    pub sock_near: u32,
    /// `skc_v6_daddr`, the other side's IPv6 address, 16 bytes.
    pub sock_far6: u32,
    /// `skc_v6_rcv_saddr`, its own, 16 bytes.
    pub sock_near6: u32,
    /// `skc_dport`, the other side's port in network byte order, 2 bytes.
    pub sock_far_port: u32,
    /// `inet_sock::inet_sport`, its own port in network byte order, 2 bytes. `skc_num` is gone when a connection is cut.
    pub sock_near_port: u32,
}

const _: () = assert!(size_of::<CallRecord>() == 4 * 8);
const _: () = assert!(size_of::<CallKey>() == 4 * 4 + 2 * 2);
const _: () = assert!(size_of::<CallOffsets>() == 7 * 4);
