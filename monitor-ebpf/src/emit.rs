//! The only writer of the ring. It counts the records that it makes and those that it loses, and wakes the reader only
//! when it has to.

use aya_ebpf::{
    bindings::{BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP},
    helpers::generated::bpf_ringbuf_output,
};
use monitor_common::{Counter, Kind};

use crate::maps::{self, READER_IDLE, RECORDS};

/// When the reader has to see a record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// When its timer fires.
    Ordinary,
    /// At once: an agent may have ended.
    AtOnce,
}

/// The records that begin in this many bytes after each quarter of the ring wake the reader. That is more than one
/// record, so that CPUs that write at the same time cannot all miss it; and less than a quarter, so that not every record
/// wakes the reader when the ring is full.
const WAKE_WINDOW: u64 = 4096;

/// Writes `record`, whose type has no padding.
#[inline(always)]
pub fn emit<T>(kind: Kind, record: &T, urgency: Urgency) {
    emit_bytes(kind, core::ptr::from_ref(record).cast(), size_of::<T>() as u64, urgency);
}

/// Writes `len` bytes.
#[inline(always)]
pub fn emit_bytes(kind: Kind, bytes: *const u8, len: u64, urgency: Urgency) {
    let (produced, dropped) = counters(kind);
    maps::count(produced);
    let flags = if wakes(urgency) { BPF_RB_FORCE_WAKEUP } else { BPF_RB_NO_WAKEUP };
    let ring = core::ptr::from_ref(&RECORDS).cast_mut().cast();
    // SAFETY: `bytes` is valid for `len` bytes.
    if unsafe { bpf_ringbuf_output(ring, bytes.cast_mut().cast(), len, u64::from(flags)) } != 0 {
        maps::count(dropped);
    }
}

/// Counts a record that could not be made, like one that found the ring full.
#[inline(always)]
pub fn count_lost(kind: Kind) {
    let (produced, dropped) = counters(kind);
    maps::count(produced);
    maps::count(dropped);
}

/// Wakes a reader that sleeps without a timer. There is no record: a counter or a map has changed.
#[inline(always)]
pub fn wake() {
    if end_idle()
        && let Some(nothing) = RECORDS.reserve::<u64>(0)
    {
        nothing.discard(u64::from(BPF_RB_FORCE_WAKEUP));
    }
}

#[inline(always)]
const fn counters(kind: Kind) -> (Counter, Counter) {
    match kind {
        Kind::Fork => (Counter::ForkProduced, Counter::ForkDropped),
        Kind::Exec => (Counter::ExecProduced, Counter::ExecDropped),
        Kind::Exit | Kind::ThreadExit => (Counter::ExitProduced, Counter::ExitDropped),
        Kind::Setsid => (Counter::SetsidProduced, Counter::SetsidDropped),
    }
}

/// Whether the reader sleeps without a timer. The next call answers false: one wake-up is enough.
#[inline(always)]
fn end_idle() -> bool {
    if let Some(idle) = READER_IDLE.get_ptr_mut(0) {
        // SAFETY: the pointer came from the map. Two CPUs that both see 1 wake the reader twice, which does no harm.
        if unsafe { *idle } != 0 {
            // SAFETY: as above. The reader sets it again before it sleeps.
            unsafe { *idle = 0 };
            return true;
        }
    }
    false
}

#[inline(always)]
fn wakes(urgency: Urgency) -> bool {
    if end_idle() || urgency == Urgency::AtOnce {
        return true;
    }
    let quarter = maps::ring_quarter();
    let waiting = RECORDS.query(u64::from(BPF_RB_AVAIL_DATA));
    // `quarter` is a power of two.
    waiting >= quarter && (waiting & (quarter - 1)) < WAKE_WINDOW
}
