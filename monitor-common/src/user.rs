//! What only user space needs, and all of its unsafe code: these types in aya's maps and globals, counts as memory that
//! both sides share, the heap.

extern crate std;

use core::{
    ptr::{self, NonNull},
    sync::atomic::{AtomicU32, Ordering, fence},
};
use std::{io, os::fd::BorrowedFd};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::{
    Anchor, CallOffsets, CallRecord, Counters, EndOffsets, Member, Offsets, SignalOffsets, TaskOffsets,
    Tuning,
};

// SAFETY: repr(C), without padding and pointers, every bit pattern valid.
unsafe impl aya::Pod for Member {}
// SAFETY: as above.
unsafe impl aya::Pod for Anchor {}
// SAFETY: as above.
unsafe impl aya::Pod for Counters {}
// SAFETY: as above.
unsafe impl aya::Pod for Offsets {}
// SAFETY: as above.
unsafe impl aya::Pod for EndOffsets {}
// SAFETY: as above.
unsafe impl aya::Pod for TaskOffsets {}
// SAFETY: as above.
unsafe impl aya::Pod for SignalOffsets {}
// SAFETY: as above.
unsafe impl aya::Pod for Tuning {}
// SAFETY: as above.
unsafe impl aya::Pod for CallRecord {}
// SAFETY: as above.
unsafe impl aya::Pod for CallOffsets {}
/// A map whose only value is an array of counts: the kernel's own memory, so that both sides count with atomic instructions.
pub struct SharedCounts<const N: usize> {
    counts: NonNull<[AtomicU32; N]>,
}

// SAFETY: the memory belongs to the process, not to a thread, and is used through atomics only.
unsafe impl<const N: usize> Send for SharedCounts<N> {}

impl<const N: usize> SharedCounts<N> {
    const BYTES: usize = N * size_of::<u32>();

    /// Maps the memory of the map that `map` is a descriptor of.
    pub fn new(map: BorrowedFd<'_>) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the address: nothing that is mapped already is replaced.
        let memory = unsafe { mmap(ptr::null_mut(), Self::BYTES, access, MapFlags::SHARED, map, 0) }?;
        let counts = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { counts })
    }

    /// Before something is counted that the other side looks for only where there is a count.
    pub fn add(&self, slot: usize, number: u32) {
        if let Some(count) = self.all().get(slot) {
            count.fetch_add(number, Ordering::SeqCst);
            // If the process is still alive when it is looked at afterwards, its exit will see this count.
            fence(Ordering::SeqCst);
        }
    }

    /// After it has gone, or has not come.
    pub fn subtract(&self, slot: usize, number: u32) {
        if let Some(count) = self.all().get(slot) {
            count.fetch_sub(number, Ordering::SeqCst);
        }
    }

    /// What a slot counts; none beyond the last one.
    pub fn count(&self, slot: usize) -> u32 {
        self.all().get(slot).map_or(0, |count| count.load(Ordering::SeqCst))
    }

    /// What each slot counts.
    pub fn counts(&self) -> impl Iterator<Item = u32> {
        self.all().iter().map(|count| count.load(Ordering::SeqCst))
    }

    const fn all(&self) -> &[AtomicU32; N] {
        // SAFETY: the memory is mapped until this is dropped, aligned to a page and as long as the map's value.
        unsafe { self.counts.as_ref() }
    }
}

impl<const N: usize> Drop for SharedCounts<N> {
    fn drop(&mut self) {
        // SAFETY: it is what `new()` has mapped, and every reference to it ends with `self`.
        let unmapped = unsafe { munmap(self.counts.as_ptr().cast(), Self::BYTES) };
        debug_assert!(unmapped.is_ok(), "a mapping of our own: {unmapped:?}");
    }
}

/// Gives memory that was freed back to the system. glibc keeps some 15 MB after aya has read the kernel's type information, since
/// freeing large blocks raises its own threshold for giving back (mallopt(3), `M_TRIM_THRESHOLD`).
pub fn trim_heap() {
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> core::ffi::c_int;
        }
        // SAFETY: malloc_trim(3) has no precondition.
        unsafe { malloc_trim(0) };
    }
}
