//! How many entries of MEMBERS each user has: one user's storm leaves room for the others.
//!
//! Invariant: an entry with a slot was counted there once, and whoever takes it out of MEMBERS counts it back. User space never
//! takes out such an entry.

use aya_ebpf::bindings::BPF_ANY;
use monitor_common::{Counter, Member};

use crate::{
    emit,
    maps::{self, MEMBERS, REFUSED, SHARES},
};

/// Counts a new entry of this user, in the slot that it gives. None, and told: its share is used up.
#[inline(always)]
pub fn take(uid: u32) -> Option<u32> {
    let slot = maps::slot_of(uid);
    let Some(used) = SHARES.get_ptr_mut(slot) else {
        // "It cannot happen": every slot is in the array.
        maps::count(Counter::Unreadable);
        return None;
    };
    // SAFETY: the pointer came from the map; a single aligned load. CPUs that look at the same time may exceed the share by one
    // entry each.
    if unsafe { core::ptr::read_volatile(used) } >= maps::member_share() {
        refuse(uid);
        return None;
    }
    add(used, 1);
    Some(slot)
}

/// Counts back what [`take`] counted for this entry.
#[inline(always)]
pub fn give_back(member: Member) {
    if let Some(used) = member.slot().and_then(|slot| SHARES.get_ptr_mut(slot)) {
        add(used, -1);
    }
}

/// There is no room for a process of this user.
#[inline(always)]
pub fn refuse(uid: u32) {
    maps::count(Counter::MembersFull);
    let _ = REFUSED.insert(uid, 1, u64::from(BPF_ANY));
    emit::wake();
}

/// Takes an entry out. Whether it was there: of two that try at once one succeeds.
#[inline(always)]
pub fn remove(tgid: u32, member: Member) -> bool {
    let removed = MEMBERS.remove(tgid).is_ok();
    if removed {
        give_back(member);
    }
    removed
}

/// Adds to a number that other CPUs add to as well.
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
