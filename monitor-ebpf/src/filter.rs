//! The filter before MEMBERS, see `monitor_common::filter`: a process that is no member costs one load.
//!
//! A reader that could find an entry finds its count. On this side the insertion publishes the entry with release
//! semantics (`rcu_assign_pointer()` below the lock of the bucket, kernel/bpf/hashtab.c), and the addition comes before
//! it. Between a fork and what the child does, and between two CPUs that a task runs on, the scheduler orders memory.

use monitor_common::{Filter, filter_slot};

use crate::maps::{self, FILTER};

/// Whether there may be an entry for `tgid`. False: there is none.
#[inline(always)]
pub fn may_contain(tgid: u32) -> bool {
    // "It cannot happen" that the map has no value; the look-up is the safe answer.
    let Some(count) = count_of(tgid) else { return true };
    // SAFETY: the pointer came from the map; a single aligned load.
    unsafe { core::ptr::read_volatile(count) != 0 }
}

#[inline(always)]
fn count_of(tgid: u32) -> Option<*mut u32> {
    let counts: *mut Filter = FILTER.get_ptr_mut(0)?;
    // SAFETY: the slot is below the length by construction.
    Some(unsafe { counts.cast::<u32>().add(filter_slot(tgid)) })
}

/// An entry was added (1) or removed (-1).
#[inline(always)]
pub fn change(tgid: u32, number: i32) {
    if let Some(count) = count_of(tgid) {
        maps::add(count, number);
    }
}
