//! What the eBPF programs and user space share: the records of the ring, the values of the maps, and the globals that are
//! set at load time.
//!
//! Invariant: every type is `repr(C)` without implicit padding, so that both sides see the same bytes and no memory of the
//! kernel leaks through a gap. Assertions beside each type check this at compile time.
#![no_std]

mod call;
mod counter;
mod end;
mod filter;
mod member;
mod name;
mod offsets;
mod record;
mod share;
mod task;

pub use call::{CALLERS_OF_A_PORT, Call, CallKey, CallRecord, Caller, LATELY, PARENTS};
pub use counter::{Counter, Counters};
pub use end::{EndRecord, end_flags, wanted};
pub use filter::{FILTER_SLOTS, Filter, filter_slot};
pub use member::{Anchor, COMM_LEN, Candidate, Member, State};
pub use name::{contains_mcp, is_shell};
pub use offsets::{CallOffsets, EndOffsets, Offsets, SignalOffsets, TaskOffsets, Tuning, WAYS};
pub use record::{
    ARGV_MAX, EXE_MAX, ExecRecord, ForkRecord, Header, Kind, SenderKind, SignalRecord, StreamRecord,
    TAIL_MAX, ValueRecord, flags,
};
pub use share::{SHARE_SLOTS, Shares, ring_cost, share_slot, share_user};
pub use task::{TaskRecord, task_flags};

#[cfg(feature = "user")]
mod user;
#[cfg(feature = "user")]
pub use user::{SharedCounts, descriptors_of, forget_code, record, share_heap, trim_heap};
