//! User space puts these types into aya's maps and globals. And the one unsafe call it needs.

use crate::{Counters, EndOffsets, Member, Offsets, Tuning};

// SAFETY: repr(C), without padding and pointers, every bit pattern valid.
unsafe impl aya::Pod for Member {}
// SAFETY: as above.
unsafe impl aya::Pod for Counters {}
// SAFETY: as above.
unsafe impl aya::Pod for Offsets {}
// SAFETY: as above.
unsafe impl aya::Pod for EndOffsets {}
// SAFETY: as above.
unsafe impl aya::Pod for Tuning {}

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
