//! The threads that made a server: the map THREADS, which user space fills.
//!
//! Invariant: an entry is gone when its thread has ended. A number that another process got meanwhile is no hit.

use crate::{maps::THREADS, task::current_thread};

/// Removes the current thread, of this thread group. Whether it was there.
#[inline(always)]
pub fn remove(tgid: u32) -> bool {
    let thread = current_thread();
    let Some(of) = THREADS.get_ptr(thread) else { return false };
    // SAFETY: the pointer came from the map; a single aligned load.
    let hit = unsafe { core::ptr::read_volatile(of) } == tgid;
    THREADS.remove(thread).is_ok() && hit
}
