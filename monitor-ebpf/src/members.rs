//! The processes that are followed: the maps MEMBERS and ANCHORS.
//!
//! Invariant: a process that is not in MEMBERS costs one load, see [`filter`]; what is below a candidate can take no more
//! than its budget until user space has judged the candidate.

use aya_ebpf::bindings::{BPF_ANY, BPF_EXIST, BPF_NOEXIST};
use monitor_common::{Anchor, Counter, Member, State};

use crate::{
    filter,
    maps::{self, ANCHORS, MEMBERS},
    shares,
    task::Task,
};

/// EEXIST, include/uapi/asm-generic/errno-base.h.
const EEXIST: i32 = 17;

/// How `tgid` is followed now. What is pending below a confirmed candidate becomes a member here, what is pending below a
/// refused one is removed here.
#[inline(always)]
pub fn look_up(tgid: u32) -> Option<Member> {
    let mut member = entry(tgid)?;
    if member.is(State::Dropped) {
        remove(tgid, member);
        return None;
    }
    if member.is(State::Pending) {
        match decision(member.anchor) {
            Some(Anchor::CONFIRMED) => {
                // Written down, because the anchor's entry may be evicted, or its number become another candidate's. Should
                // user space make it an agent at this moment, its exit wakes the reader one tick of the timer later.
                member = member.with_state(State::Member);
                let _ = MEMBERS.insert(tgid, member, u64::from(BPF_EXIST));
            }
            Some(Anchor::REFUSED) => {
                remove(tgid, member);
                return None;
            }
            _ => {}
        }
    }
    Some(member)
}

/// Whether this is a service manager that user space has inserted.
#[inline(always)]
pub fn is_manager(tgid: u32) -> bool {
    entry(tgid).is_some_and(|member| member.is(State::Manager))
}

/// The entry of `tgid` as it is.
#[inline(always)]
fn entry(tgid: u32) -> Option<Member> {
    if !filter::may_contain(tgid) {
        return None;
    }
    let entry = MEMBERS.get_ptr(tgid)?;
    // SAFETY: the pointer came from the map. One load of the aligned eight bytes: never half of two values.
    Some(Member::from_bits(unsafe { core::ptr::read_volatile(entry.cast::<u64>()) }))
}

#[inline(always)]
fn decision(anchor: u32) -> Option<Anchor> {
    // SAFETY: the pointer came from the map; a single aligned load.
    ANCHORS.get_ptr(anchor).map(|at| Anchor(unsafe { core::ptr::read_volatile(at) }))
}

/// Inserts the child of such a process. False: it is over the budget, or there is no room. Then it is not followed, and its
/// birth is not reported either: its end would not be.
#[inline(always)]
pub fn add_child(parent: Member, child: u32, uid: u32) -> bool {
    let mut member = Member::new(parent.anchor, State::Member);
    if parent.is(State::Pending) {
        member = member.with_state(State::Pending);
        if !spend_budget(parent.anchor) {
            maps::count(Counter::BudgetUsedUp);
            return false;
        }
    }
    insert(child, member, uid)
}

/// Takes one fork from the budget of an anchor. Many candidates at once evict anchors that may have been confirmed: what is
/// below an evicted one is followed as far as its user's share goes, and counted.
#[inline(always)]
fn spend_budget(anchor: u32) -> bool {
    let Some(used) = ANCHORS.get_ptr_mut(anchor) else {
        maps::count(Counter::AnchorForgotten);
        return true;
    };
    // SAFETY: the pointer came from the map. Two CPUs may count two forks as one: the budget need not be exact.
    let n = unsafe { core::ptr::read_volatile(used) };
    if n >= maps::pending_budget() {
        return false;
    }
    // SAFETY: as above. A decision that user space writes meanwhile is a new element of the map, so this store cannot
    // overwrite it.
    unsafe { core::ptr::write_volatile(used, n + 1) };
    true
}

/// Inserts a candidate: it is pending, with a full budget. Its parent is watched unless it is followed already. False: there
/// is no room for the candidate.
#[inline(always)]
pub fn add_candidate(tgid: u32, uid: u32, parent: Task, parent_tgid: u32) -> Result<bool, Counter> {
    let _ = ANCHORS.insert(tgid, 0, u64::from(BPF_ANY));
    if !insert(tgid, Member::new(tgid, State::Pending), uid) {
        return Ok(false);
    }
    if parent_tgid > 1 && look_up(parent_tgid).is_none() {
        insert(parent_tgid, Member::new(parent_tgid, State::Watched), parent.uid()?);
    }
    Ok(true)
}

/// Inserts a process and counts it in the share of its user. Whether there was room. An entry that its number already has
/// belongs to a process that has ended.
#[inline(always)]
fn insert(tgid: u32, member: Member, uid: u32) -> bool {
    if let Some(old) = entry(tgid) {
        remove(tgid, old);
    }
    let Some(slot) = shares::reserve(uid) else { return false };
    let member = member.with_slot(slot);
    filter::add(tgid);
    match MEMBERS.insert(tgid, member, u64::from(BPF_NOEXIST)) {
        Ok(()) => true,
        Err(error) => {
            filter::subtract(tgid);
            shares::release(member);
            // Another CPU, or user space, has just inserted it.
            if error != -EEXIST {
                shares::report_refused(uid);
            }
            error == -EEXIST
        }
    }
}

/// Removes an entry. Of those who try at once, for instance the last two threads of a process, one gets true.
#[inline(always)]
pub fn remove(tgid: u32, member: Member) -> bool {
    let removed = MEMBERS.remove(tgid).is_ok();
    if removed {
        filter::subtract(tgid);
        shares::release(member);
    }
    removed
}
