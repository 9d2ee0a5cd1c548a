//! The only writer of the ring. It counts the records that it makes and those that it loses, keeps each user to a share of
//! the ring, and wakes the reader only when it has to.

use aya_ebpf::{
    bindings::{BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP},
    helpers::generated::{bpf_ktime_get_boot_ns, bpf_ringbuf_output},
};
use monitor_common::{Counter, Header, Kind, ring_cost};

use crate::{
    maps::{self, READER_IDLE, RECORDS, global},
    shares,
};

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

/// Room in the ring for a record of one kind about a process of one user.
#[derive(Clone, Copy)]
pub struct Room {
    kind: Kind,
    slot: usize,
    waiting: u64,
}

impl Room {
    /// None: the user has as much of the ring as is left, which is reported.
    #[inline(always)]
    pub fn of(kind: Kind, uid: u32) -> Option<Self> {
        let room = Self::if_any(kind, uid);
        if room.is_none() {
            shares::report_refused(uid);
        }
        room
    }

    /// Likewise, for a record that nothing depends on: that there is no room is not reported.
    #[inline(always)]
    pub fn if_any(kind: Kind, uid: u32) -> Option<Self> {
        let slot = maps::share_slot_of(uid);
        let waiting = RECORDS.query(u64::from(BPF_RB_AVAIL_DATA));
        let free = u64::from(global!(TUNING.ring_bytes)).saturating_sub(waiting);
        shares::has_ring_room(slot, free).then_some(Self { kind, slot, waiting })
    }

    /// Of a record that is made now.
    #[inline(always)]
    pub fn header(self, tgid: u32, start: u64) -> Header {
        // SAFETY: no precondition.
        let at = unsafe { bpf_ktime_get_boot_ns() };
        Header { kind: self.kind as u16, slot: self.slot as u16, tgid, at, start }
    }

    /// Writes `record`, whose type has no padding.
    #[inline(always)]
    pub fn emit<T>(self, record: &T, urgency: Urgency) {
        self.emit_bytes(core::ptr::from_ref(record).cast(), size_of::<T>() as u32, urgency);
    }

    #[inline(always)]
    pub fn emit_bytes(self, bytes: *const u8, len: u32, urgency: Urgency) {
        let (produced, dropped) = counters(self.kind);
        maps::count(produced);
        let flags = if wakes(urgency, self.waiting) { BPF_RB_FORCE_WAKEUP } else { BPF_RB_NO_WAKEUP };
        let ring = core::ptr::from_ref(&RECORDS).cast_mut().cast();
        let cost = ring_cost(len).cast_signed();
        // Before user space can read the record and subtract it.
        shares::count_ring(self.slot, cost);
        // SAFETY: `bytes` is valid for `len` bytes.
        if unsafe { bpf_ringbuf_output(ring, bytes.cast_mut().cast(), u64::from(len), u64::from(flags)) } != 0
        {
            shares::count_ring(self.slot, -cost);
            maps::count(dropped);
        }
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
        Kind::Signal => (Counter::SignalProduced, Counter::SignalDropped),
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
fn wakes(urgency: Urgency, waiting: u64) -> bool {
    if end_idle() || urgency == Urgency::AtOnce {
        return true;
    }
    let quarter = u64::from(global!(TUNING.ring_bytes)) / 4;
    // `quarter` is a power of two.
    waiting >= quarter && (waiting & (quarter - 1)) < WAKE_WINDOW
}
