//! Whom events are reported for: the maps MEMBERS and ANCHORS.
//!
//! Invariant: a process that is not in MEMBERS costs one look-up; nothing below a candidate can take more than its
//! budget until user space has judged it.

use aya_ebpf::bindings::{BPF_ANY, BPF_EXIST, BPF_NOEXIST};
use monitor_common::{Anchor, Counter, Member, State};

use crate::{
    maps::{self, ANCHORS, MEMBERS},
    shares,
    task::Task,
};

/// EEXIST, include/uapi/asm-generic/errno-base.h.
const EEXIST: i32 = 17;

/// How `tgid` is followed now: what is pending below a confirmed candidate is a member, what is pending below a
/// refused one is forgotten here.
#[inline(always)]
pub fn standing(tgid: u32) -> Option<Member> {
    let entry = MEMBERS.get_ptr(tgid)?;
    // SAFETY: the pointer came from the map. One load of the aligned eight bytes: never half of two values.
    let bits = unsafe { core::ptr::read_volatile(entry.cast::<u64>()) };
    let mut member = Member::from_bits(bits);
    if member.is(State::Dropped) {
        shares::remove(tgid, member);
        return None;
    }
    if member.is(State::Pending) {
        match judged(member.anchor) {
            Some(Anchor::CONFIRMED) => {
                // For good: the anchor's entry may be forgotten, or its number be another candidate's one day. Should user
                // space make it an agent at this very moment, its exit wakes the reader a timer's tick later.
                member = member.made(State::Member);
                let _ = MEMBERS.insert(tgid, member, u64::from(BPF_EXIST));
            }
            Some(Anchor::REFUSED) => {
                shares::remove(tgid, member);
                return None;
            }
            _ => {}
        }
    }
    Some(member)
}

/// Whether this is a service manager that user space has entered.
#[inline(always)]
pub fn is_manager(tgid: u32) -> bool {
    let Some(entry) = MEMBERS.get_ptr(tgid) else { return false };
    // SAFETY: as in `standing()`.
    let bits = unsafe { core::ptr::read_volatile(entry.cast::<u64>()) };
    Member::from_bits(bits).is(State::Manager)
}

#[inline(always)]
fn judged(anchor: u32) -> Option<Anchor> {
    // SAFETY: the pointer came from the map; a single aligned load.
    ANCHORS.get_ptr(anchor).map(|at| Anchor(unsafe { core::ptr::read_volatile(at) }))
}

/// Enters the child of a process of this standing. False: over the budget, or no room; and the child is not followed. Its birth
/// without its end would be half the truth: it is not told.
#[inline(always)]
pub fn inherit(standing: Member, child: u32, uid: u32) -> bool {
    let mut member = Member::new(standing.anchor, State::Member);
    if standing.is(State::Pending) {
        member = member.made(State::Pending);
        if !spend(standing.anchor) {
            maps::count(Counter::BudgetUsedUp);
            return false;
        }
    }
    enter(child, member, uid)
}

/// Takes one fork from an anchor's budget. One that is forgotten, in somebody's storm of candidates, may have been confirmed: what
/// is below it is followed, as far as its user's share goes, and counted.
#[inline(always)]
fn spend(anchor: u32) -> bool {
    let Some(used) = ANCHORS.get_ptr_mut(anchor) else {
        maps::count(Counter::AnchorForgotten);
        return true;
    };
    // SAFETY: the pointer came from the map. Two CPUs may count two forks as one: the budget is a bound on
    // crowding, not an account.
    let n = unsafe { core::ptr::read_volatile(used) };
    if n >= maps::pending_budget() {
        return false;
    }
    // SAFETY: as above. A verdict written by user space in between is replaced in the map as a whole (a new element), so
    // this store cannot undo it.
    unsafe { core::ptr::write_volatile(used, n + 1) };
    true
}

/// A candidate's exec: it becomes pending with a fresh budget, and its parent is watched unless it is followed already. False: there
/// is no room for it.
#[inline(always)]
pub fn enter_candidate(tgid: u32, uid: u32, parent: Task, parent_tgid: u32) -> Result<bool, Counter> {
    let _ = ANCHORS.insert(tgid, 0, u64::from(BPF_ANY));
    if !enter(tgid, Member::new(tgid, State::Pending), uid) {
        return Ok(false);
    }
    if parent_tgid > 1 && standing(parent_tgid).is_none() {
        enter(parent_tgid, Member::new(parent_tgid, State::Watched), parent.uid()?);
    }
    Ok(true)
}

/// Enters a process for its user. Whether there was room. What is entered under its number already is of a process that is gone.
#[inline(always)]
fn enter(tgid: u32, member: Member, uid: u32) -> bool {
    if let Some(old) = MEMBERS.get_ptr(tgid) {
        // SAFETY: as in `standing()`.
        let bits = unsafe { core::ptr::read_volatile(old.cast::<u64>()) };
        shares::remove(tgid, Member::from_bits(bits));
    }
    let Some(slot) = shares::take(uid) else { return false };
    let member = member.counted_in(slot);
    match MEMBERS.insert(tgid, member, u64::from(BPF_NOEXIST)) {
        Ok(()) => true,
        Err(error) => {
            shares::give_back(member);
            // Another CPU, or user space, has just entered it.
            if error != -EEXIST {
                shares::refuse(uid);
            }
            error == -EEXIST
        }
    }
}

/// Forgets a process that ended. True for one of its threads only, whichever comes first.
#[inline(always)]
pub fn leave(tgid: u32, standing: Member) -> bool {
    shares::remove(tgid, standing)
}
