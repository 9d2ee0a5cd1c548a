//! What crosses the border between the eBPF programs and user space: the records of the ring, the values of
//! the maps, and the globals set at load time.
//!
//! Invariant: every type is `repr(C)` without implicit padding, so that both sides see the same bytes and
//! none of the kernel's memory leaks through a gap. The assertions beside each type hold it at compile time.
#![no_std]

mod counter;
mod end;
mod member;
mod offsets;
mod record;

pub use counter::{Counter, Counters};
pub use end::{EndOffsets, EndRecord, end_flags};
pub use member::{Anchor, COMM_LEN, Candidate, Member, SLOTS, State, slot};
pub use offsets::{Offsets, Tuning};
pub use record::{
    ARGV_MAX, EXE_MAX, ExecRecord, ExitRecord, ForkRecord, Header, Kind, SetsidRecord, StreamRecord,
    TAIL_MAX, flags,
};

#[cfg(feature = "user")]
mod user;
#[cfg(feature = "user")]
pub use user::trim_heap;
