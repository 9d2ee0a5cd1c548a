//! Maps and globals, and the counters' one writer.

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_F_NO_PREALLOC},
    macros::map,
    maps::{Array, HashMap, LruHashMap, PerCpuArray, RingBuf},
};
use monitor_common::{
    Anchor, CALLERS_OF_A_PORT, COMM_LEN, CallKey, CallOffsets, CallRecord, Caller, Counter, Counters,
    EndOffsets, ExecRecord, Filter, Member, Offsets, Shares, SignalOffsets, TAIL_MAX, TaskOffsets, Tuning,
    share_slot,
};

/// The records, in causal order. User space sets the size.
#[map]
pub static RECORDS: RingBuf = RingBuf::with_byte_size(1 << 20, 0);

/// tgid -> how it is followed. User space sets the size.
#[map]
pub static MEMBERS: HashMap<u32, Member> = HashMap::with_max_entries(1 << 15, 0);

/// One entry: the filter before MEMBERS, see `monitor_common::filter`. Both sides count in the same memory.
#[map]
pub static FILTER: Array<Filter> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// One entry: how many entries of MEMBERS each user has, by `monitor_common::share_slot()`. Both sides count in it.
#[map]
pub static SHARES: Array<Shares> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// One entry: how many bytes of the ring each user has, by `monitor_common::share_slot()`. User space subtracts what it has
/// read.
#[map]
pub static RING_SHARES: Array<Shares> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// User -> nothing: the users whose processes found no room in MEMBERS or in the ring, one of each share: whoever has thousands of
/// numbers must not evict others. User space removes what it has read.
#[map]
pub static REFUSED: LruHashMap<u32, u32> = LruHashMap::with_max_entries(1 << 10, 0);

/// tgid of a candidate -> `Anchor`. The least recently used ones are evicted: what is pending below an evicted one has no
/// budget any more, only its user's share.
#[map]
pub static ANCHORS: LruHashMap<u32, Anchor> = LruHashMap::with_max_entries(1 << 12, 0);

/// comm padded with NULs -> `Candidate`.
#[map]
pub static CANDIDATES: HashMap<[u8; COMM_LEN], u32> = HashMap::with_max_entries(1 << 10, 0);

/// Number of a thread -> its tgid: threads that made a server, entered by user space, which sets
/// the size. The hook removes those that end.
#[map]
pub static THREADS: HashMap<u32, u32> = HashMap::with_max_entries(1 << 12, 0);

/// Port -> who calls followed processes there: at most one entry a port. Its memory is there from the start: a hook cannot wait for
/// memory, and a user could have none be left in the daemon's control group.
#[map]
pub static CALLED: HashMap<u32, CallRecord> = HashMap::with_max_entries(1 << 16, 0);

/// One entry: who stands for each of the callers of a port, while that is found out.
#[map]
pub static STANDING: PerCpuArray<[u32; CALLERS_OF_A_PORT]> = PerCpuArray::with_max_entries(1, 0);

/// One entry: when a call could not be written down last, as [`CallRecord`] has times.
#[map]
pub static CALL_LOST: Array<u64> = Array::with_max_entries(1, 0);

/// Address of a `struct sock` -> the followed process that began this connection. An evicted one looks like a call to its port,
/// which nobody listens at.
#[map]
pub static CALLERS: LruHashMap<u64, Caller> = LruHashMap::with_max_entries(1 << 12, 0);

/// Connection within a host -> the followed process that began it. Of an evicted one only the beginning is known, which was
/// written down in CALLED.
#[map]
pub static OUTGOING: LruHashMap<CallKey, Caller> = LruHashMap::with_max_entries(1 << 12, 0);

/// Inode number, or another key of `monitor_common::wanted` -> a device, of a mapped file: what a pass reports the descriptors of.
/// Empty between passes.
#[map]
pub static WANTED: HashMap<u64, u32> = HashMap::with_max_entries(1 << 13, BPF_F_NO_PREALLOC);

/// One entry: 1 while the reader sleeps without a timer and wants to be woken by the next record.
#[map]
pub static READER_IDLE: Array<u32> = Array::with_max_entries(1, 0);

/// One entry: when an exec on this CPU woke the reader last, in nanoseconds since boot.
#[map]
pub static WOKEN: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);

/// One entry: see `Counter`.
#[map]
pub static COUNTERS: PerCpuArray<Counters> = PerCpuArray::with_max_entries(1, 0);

/// An exec record in the making: too big for the 512 bytes of stack.
#[repr(C)]
pub struct Scratch {
    pub record: ExecRecord,
    pub tail: [u8; TAIL_MAX],
}

/// One entry. The kernel does not run a program on a CPU where it is already running (`prog->active`), so
/// the exec hook has it for itself.
#[map]
pub static SCRATCH: PerCpuArray<Scratch> = PerCpuArray::with_max_entries(1, 0);

/// A global of integers that user space sets; zeroes where the kernel lacks a field.
macro_rules! set_by_user_space {
    ($($name:ident: $kind:ty),+ $(,)?) => {$(
        #[unsafe(no_mangle)]
        pub static $name: $kind = {
            const UNSET: $kind = {
                // SAFETY: zeroes are valid for a structure of integers.
                unsafe { core::mem::zeroed() }
            };
            UNSET
        };
    )+};
}

set_by_user_space! {
    OFFSETS: Offsets,
    END_OFFSETS: EndOffsets,
    SIGNAL_OFFSETS: SignalOffsets,
    CALL_OFFSETS: CallOffsets,
    TASK_OFFSETS: TaskOffsets,
    TUNING: Tuning,
}

/// One field of a global. Volatile, because the value in the object is not the one at run time.
macro_rules! global {
    ($name:ident . $field:ident) => {
        // SAFETY: a reference to a static is valid for reads.
        unsafe { core::ptr::read_volatile(&$crate::maps::$name.$field) }
    };
}
pub(crate) use global;

/// The slot of a user in `SHARES` and `RING_SHARES`.
#[inline(always)]
pub fn share_slot_of(uid: u32) -> usize {
    share_slot(uid, global!(TUNING.seed))
}

#[inline(always)]
pub fn count(what: Counter) {
    if let Some(counters) = COUNTERS.get_ptr_mut(0) {
        // SAFETY: the index is below Counter::COUNT by construction, the pointer came from the map.
        let counter = unsafe { counters.cast::<u64>().add(what as usize) };
        // SAFETY: as above; only this CPU writes here.
        unsafe { *counter += 1 };
    }
}

/// Adds to a count in a map that other CPUs, or user space, change as well. Without the result of the addition: kernels before
/// 5.12 do not have that.
#[cfg(target_arch = "bpf")]
#[inline(always)]
pub fn add(to: *mut u32, number: i32) {
    // SAFETY: the pointer came from a map and is aligned; the instruction is atomic.
    unsafe {
        core::arch::asm!("lock *(u32 *)({to} + 0) += {number}", to = in(reg) to, number = in(reg) i64::from(number));
    }
}

#[cfg(not(target_arch = "bpf"))]
pub fn add(_: *mut u32, _: i32) {}
