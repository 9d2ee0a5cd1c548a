//! How many entries of MEMBERS each user has, so that the processes of one user leave room for those of others.
//!
//! Invariant: an entry with a slot is counted once in that slot, and whoever removes it from MEMBERS subtracts it. User
//! space never removes such an entry.

use aya_ebpf::bindings::BPF_ANY;
use monitor_common::{Counter, Member};

use crate::{
    emit,
    maps::{self, REFUSED, SHARES},
};

/// Counts a new entry of this user, and gives the slot. None: the user's share is used up, which is reported.
#[inline(always)]
pub fn reserve(uid: u32) -> Option<u32> {
    let slot = maps::share_slot_of(uid);
    let Some(used) = SHARES.get_ptr_mut(slot) else {
        // "It cannot happen": every slot is in the array.
        maps::count(Counter::Unreadable);
        return None;
    };
    // SAFETY: the pointer came from the map; a single aligned load. CPUs that read at the same time may exceed the share by
    // one entry each.
    if unsafe { core::ptr::read_volatile(used) } >= maps::member_share() {
        report_refused(uid);
        return None;
    }
    add(used, 1);
    Some(slot)
}

/// Subtracts what [`reserve`] has counted for this entry.
#[inline(always)]
pub fn release(member: Member) {
    if let Some(used) = member.slot().and_then(|slot| SHARES.get_ptr_mut(slot)) {
        add(used, -1);
    }
}

/// Reports that there is no room for a process of this user.
#[inline(always)]
pub fn report_refused(uid: u32) {
    maps::count(Counter::MembersFull);
    let _ = REFUSED.insert(uid, 1, u64::from(BPF_ANY));
    emit::wake();
}

/// Adds to a number that other CPUs change as well.
#[cfg(target_arch = "bpf")]
#[inline(always)]
fn add(to: *mut u64, number: i64) {
    // SAFETY: the pointer came from the map and is aligned; the instruction is atomic.
    unsafe {
        core::arch::asm!("lock *(u64 *)({to} + 0) += {number}", to = in(reg) to, number = in(reg) number);
    }
}

/// On the host there is nothing to run.
#[cfg(not(target_arch = "bpf"))]
fn add(_: *mut u64, _: i64) {}
