//! What each user has of what all share: entries of MEMBERS, and bytes of the ring. So the processes of one user leave room for
//! those of others.
//!
//! Invariant: an entry of MEMBERS is counted once in the slot that it names, and whoever removes it subtracts it. A record is
//! counted in the slot that it names until user space has read it.

use aya_ebpf::{bindings::BPF_ANY, maps::Array};
use monitor_common::{Counter, Member, Shares, share_user};

use crate::{
    emit,
    maps::{self, REFUSED, RING_SHARES, SHARES, global},
};

/// Counts a new entry of this user, and gives the slot. None: the user's share is used up, which is reported.
#[inline(always)]
pub fn reserve(uid: u32) -> Option<usize> {
    let slot = maps::share_slot_of(uid);
    let Some(used) = count_of(&SHARES, slot) else {
        // "It cannot happen": every slot is in the array.
        maps::count(Counter::Unreadable);
        return None;
    };
    // SAFETY: the pointer came from the map; a single aligned load. CPUs that read at the same time may exceed the share by
    // one entry each.
    if unsafe { core::ptr::read_volatile(used) } >= global!(TUNING.member_share) {
        report_refused(uid);
        return None;
    }
    maps::add(used, 1);
    Some(slot)
}

/// Subtracts what [`reserve`] has counted for this entry.
#[inline(always)]
pub fn release(member: Member) {
    if let Some(used) = count_of(&SHARES, member.slot()) {
        maps::add(used, -1);
    }
}

/// Whether there is room for one more record of this slot's user, if so many bytes of the ring are free: nobody's records may
/// take more of it than they leave free. So one user alone has half of it, three have a quarter each, and a user who has
/// none in it finds room beside any number of others.
#[inline(always)]
pub fn has_ring_room(slot: usize, free: u64) -> bool {
    // SAFETY: the pointer came from the map; a single aligned load. CPUs that read at the same time may exceed the share by
    // one record each.
    count_of(&RING_SHARES, slot)
        .is_none_or(|used| u64::from(unsafe { core::ptr::read_volatile(used) }) < free)
}

/// Counts bytes of the ring: before a record is written, and back if it was not.
#[inline(always)]
pub fn count_ring(slot: usize, bytes: i32) {
    if let Some(used) = count_of(&RING_SHARES, slot) {
        maps::add(used, bytes);
    }
}

#[inline(always)]
fn count_of(shares: &Array<Shares>, slot: usize) -> Option<*mut u32> {
    let counts: *mut Shares = shares.get_ptr_mut(0)?;
    // SAFETY: a slot is below the length by construction.
    Some(unsafe { counts.cast::<u32>().add(slot) })
}

/// Reports that there is no room for a process of this user, or for what it did.
#[inline(always)]
pub fn report_refused(uid: u32) {
    // Before it is counted: user space looks only when the count has changed.
    let _ = REFUSED.insert(share_user(uid), 1, u64::from(BPF_ANY));
    maps::count(Counter::MembersFull);
    emit::wake();
}
