//! What the eBPF programs and user space share: the records of the ring, the values of the maps, and the globals that are
//! set at load time.
//!
//! Invariant: every type is `repr(C)` without implicit padding, so that both sides see the same bytes and no memory of the
//! kernel leaks through a gap. Assertions beside each type check this at compile time.
#![no_std]

mod counter;
mod end;
mod filter;
mod member;
mod name;
mod offsets;
mod record;

pub use counter::{Counter, Counters};
pub use end::{EndOffsets, EndRecord, end_flags};
pub use filter::{FILTER_SLOTS, Filter, filter_slot};
pub use member::{Anchor, COMM_LEN, Candidate, Member, SHARE_SLOTS, State, share_slot};
pub use name::{contains_mcp, is_shell};
pub use offsets::{Offsets, Tuning};
pub use record::{
    ARGV_MAX, EXE_MAX, ExecRecord, ExitRecord, ForkRecord, Header, Kind, SetsidRecord, StreamRecord,
    TAIL_MAX, ThreadExitRecord, flags,
};

#[cfg(feature = "user")]
mod user;
#[cfg(feature = "user")]
pub use user::{SharedFilter, trim_heap};
