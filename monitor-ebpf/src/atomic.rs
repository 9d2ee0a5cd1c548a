//! Counts that other CPUs, or user space, change as well.

/// Adds to a count in a map. Without the result of the addition: kernels before 5.12 do not have that.
#[cfg(target_arch = "bpf")]
#[inline(always)]
pub fn add(to: *mut u32, number: i32) {
    // SAFETY: the pointer came from a map and is aligned; the instruction is atomic.
    unsafe {
        core::arch::asm!("lock *(u32 *)({to} + 0) += {number}", to = in(reg) to, number = in(reg) i64::from(number));
    }
}

/// On the host there is nothing to run.
#[cfg(not(target_arch = "bpf"))]
pub fn add(_: *mut u32, _: i32) {}
