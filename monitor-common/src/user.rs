//! What only user space needs, and all of its unsafe code: these types as bytes, counts as memory that both sides share,
//! the heap, passes of the kernel over one process.

extern crate std;

use core::{
    ffi::{c_int, c_long},
    ptr::{self, NonNull},
    sync::atomic::{AtomicU32, Ordering, fence},
};
use std::{
    fs, io,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// Types that aya may copy as bytes.
macro_rules! plain {
    ($($name:ident),+ $(,)?) => {$(
        // SAFETY: repr(C), without padding and pointers, every bit pattern valid.
        unsafe impl aya::Pod for crate::$name {}
    )+};
}

plain! {
    Anchor, CallOffsets, CallRecord, Caller, Counters, EndOffsets, EndRecord, ExecRecord, ForkRecord, Header, Member,
    Offsets, SignalOffsets, SignalRecord, TaskOffsets, TaskRecord, Tuning, ValueRecord,
}

/// The record at the beginning of these bytes.
pub fn record<T: aya::Pod>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.get(..size_of::<T>())?;
    // SAFETY: there are as many bytes as the type has, and every bit pattern is valid.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

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

/// Has all threads share one heap, from now on (mallopt(3), `M_ARENA_MAX`): what a thread for the start has freed would stay in a
/// heap of its own.
pub fn share_heap() {
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            fn mallopt(parameter: core::ffi::c_int, value: core::ffi::c_int) -> core::ffi::c_int;
        }
        const M_ARENA_MAX: core::ffi::c_int = -8;
        // SAFETY: mallopt(3) has no precondition.
        unsafe { mallopt(M_ARENA_MAX, 1) };
    }
}

/// Forgets the pages of programs' code that this process has mapped: most of what the start ran is never run again. What is run
/// comes back from the page cache. Only code: its pages are never changed, so nothing is lost.
pub fn forget_code() {
    for line in fs::read_to_string("/proc/self/maps").unwrap_or_default().lines() {
        let mut fields = line.split_ascii_whitespace();
        let (Some(range), Some("r-xp")) = (fields.next(), fields.next()) else { continue };
        let Some((from, to)) = range.split_once('-') else { continue };
        let address = |hex| usize::from_str_radix(hex, 16).unwrap_or(0);
        let (from, to) = (address(from), address(to));
        if from != 0 && fields.nth(3).is_some_and(|path| path.starts_with('/')) {
            // SAFETY: a private mapping of a file that cannot be written: the kernel reads again what is needed.
            let _ = unsafe {
                madvise(
                    ptr::with_exposed_provenance_mut(from),
                    to.saturating_sub(from),
                    Advice::LinuxDontNeed,
                )
            };
        }
    }
}

/// Begins a pass of this iterator over the descriptors of one process (`struct bpf_iter_link_info`, include/uapi/linux/bpf.h; since
/// Linux 6.1). An older kernel refuses it, or passes over all.
///
/// # Errors
/// Those of bpf(2).
pub fn descriptors_of(program: BorrowedFd<'_>, process: u32) -> io::Result<fs::File> {
    const LINK_CREATE: c_int = 28;
    const ITER_CREATE: c_int = 33;
    const TRACE_ITER: u64 = 28;
    let number = |fd: BorrowedFd<'_>| u64::try_from(fd.as_raw_fd()).unwrap_or(u64::MAX);
    // Thread, process, descriptor of a process.
    let whose: [u32; 3] = [0, process, 0];
    // `program` and `target`, `type` and `flags`, and where `whose` is, with its size.
    let address = ptr::from_ref(&whose).expose_provenance() as u64;
    let link = bpf(LINK_CREATE, &[number(program), TRACE_ITER, address, size_of_val(&whose) as u64])?;
    bpf(ITER_CREATE, &[number(link.as_fd())]).map(fs::File::from)
}

/// bpf(2), for commands that give a descriptor.
fn bpf(command: c_int, attributes: &[u64]) -> io::Result<OwnedFd> {
    #[cfg(target_arch = "x86_64")]
    const BPF: c_long = 321;
    #[cfg(target_arch = "aarch64")]
    const BPF: c_long = 280;
    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }
    // SAFETY: the attributes are valid for their size, and so is what they point to.
    let fd = unsafe { syscall(BPF, command, attributes.as_ptr(), size_of_val(attributes)) };
    let fd = c_int::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
