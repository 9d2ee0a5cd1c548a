//! The processes that are followed: the maps MEMBERS and ANCHORS; and the threads that made a server: the map THREADS, which user
//! space fills.
//!
//! Invariant: a process that is not in MEMBERS costs one load, see [`filter`]; what is below a candidate can take no more
//! than its budget until user space has judged the candidate.

use aya_ebpf::bindings::{BPF_ANY, BPF_EXIST, BPF_NOEXIST};
use monitor_common::{Anchor, Counter, Member, State};

use crate::{
    filter,
    maps::{self, ANCHORS, MEMBERS, THREADS, global},
    shares,
    task::{Task, current_thread},
};

/// EEXIST, include/uapi/asm-generic/errno-base.h.
pub const EEXIST: i32 = 17;

/// How `tgid` is followed now. What is pending below a confirmed candidate becomes a member here, what is pending below a
/// refused one is removed here.
#[inline(always)]
pub fn look_up(tgid: u32) -> Option<Member> {
    let mut member = entry(tgid)?;
    if member.is(State::Pending) {
        match anchor(member.anchor) {
            Some((_, anchor)) if anchor.is_confirmed() => {
                // Written down, because the anchor's entry may be evicted, or its number become another candidate's. Should
                // user space make it an agent at this moment, its exit wakes the reader one tick of the timer later.
                member = member.with_state(State::Member);
                let _ = MEMBERS.insert(tgid, member, u64::from(BPF_EXIST));
            }
            Some((_, anchor)) if anchor.is_refused() => {
                remove(tgid, member);
                return None;
            }
            _ => {}
        }
    }
    Some(member)
}

/// Likewise, of one whose doings are reported.
#[inline(always)]
pub fn followed(tgid: u32) -> Option<Member> {
    look_up(tgid).filter(|member| !member.reports_only_exit())
}

/// Whether what this process does, or what is done to it, is reported. It changes nothing.
#[inline(always)]
pub fn is_followed(tgid: u32) -> bool {
    entry(tgid).is_some_and(|member| !member.reports_only_exit())
}

#[inline(always)]
pub fn is_agent(tgid: u32) -> bool {
    entry(tgid).is_some_and(|member| member.is(State::Agent))
}

#[inline(always)]
pub fn is_manager(tgid: u32) -> bool {
    entry(tgid).is_some_and(|member| member.is(State::Manager))
}

#[inline(always)]
fn entry(tgid: u32) -> Option<Member> {
    if !filter::may_contain(tgid) {
        return None;
    }
    let entry = MEMBERS.get_ptr(tgid)?;
    // SAFETY: the pointer came from the map. One load of the aligned eight bytes: never half of two values.
    Some(Member::from_bits(unsafe { core::ptr::read_volatile(entry.cast::<u64>()) }))
}

/// An anchor, and where it is. None: it was evicted, at the latest while it was read.
#[inline(always)]
fn anchor(tgid: u32) -> Option<(*mut Anchor, Anchor)> {
    let at = ANCHORS.get_ptr_mut(tgid)?;
    // SAFETY: the pointer came from the map. One load of the aligned eight bytes: never half of two values.
    let anchor = Anchor::from_bits(unsafe { core::ptr::read_volatile(at.cast::<u64>()) });
    (anchor.anchor == tgid).then_some((at, anchor))
}

/// Inserts the child of such a process. False: it is over the budget, or there is no room. Then it is not followed, and its
/// birth is not reported either: its end would not be.
#[inline(always)]
pub fn add_child(parent: Member, child: u32, uid: u32) -> bool {
    let mut state = State::Member;
    if parent.is(State::Pending) {
        state = State::Pending;
        if !spend_budget(parent.anchor) {
            maps::count(Counter::BudgetUsedUp);
            return false;
        }
    }
    insert(child, parent.anchor, state, uid)
}

/// Takes one fork from the budget of an anchor. Many candidates at once evict anchors that may have been confirmed: what is
/// below an evicted one is followed as far as its user's share goes, and counted.
#[inline(always)]
fn spend_budget(tgid: u32) -> bool {
    let Some((at, anchor)) = anchor(tgid) else {
        maps::count(Counter::AnchorForgotten);
        return true;
    };
    // CPUs that read at the same time may exceed the budget by one fork each.
    if anchor.forks() >= global!(TUNING.pending_budget) {
        return false;
    }
    // The element may have become another anchor's. An addition costs that one a fork of its budget; a store could take its
    // decision away.
    // SAFETY: the pointer came from the map; the field is the first one.
    maps::add(unsafe { &raw mut (*at).forks_and_decision }, 1);
    true
}

/// Inserts a candidate: it is pending, with a full budget. Its parent is watched unless it is followed already. False: there
/// is no room for the candidate.
#[inline(always)]
pub fn add_candidate(tgid: u32, uid: u32, parent: Task, parent_tgid: u32) -> Result<bool, Counter> {
    let _ = ANCHORS.insert(tgid, Anchor::new(tgid), u64::from(BPF_ANY));
    if !insert(tgid, tgid, State::Pending, uid) {
        return Ok(false);
    }
    if parent_tgid > 1 && look_up(parent_tgid).is_none() {
        insert(parent_tgid, parent_tgid, State::Watched, parent.uid()?);
    }
    Ok(true)
}

/// Removes a watched process whose last thread is on its way out. Its exit may have passed the tracepoint before it was
/// entered: then nobody else would ever remove it. True: this call has removed it, and its exit is not reported elsewhere.
#[inline(always)]
pub fn remove_watched(tgid: u32) -> bool {
    entry(tgid).is_some_and(|member| member.is(State::Watched) && remove(tgid, member))
}

/// Inserts a process and counts it in the share of its user. Whether there was room. An entry that its number already has
/// belongs to a process that has ended.
#[inline(always)]
fn insert(tgid: u32, anchor: u32, state: State, uid: u32) -> bool {
    if let Some(old) = entry(tgid) {
        remove(tgid, old);
    }
    let Some(slot) = shares::reserve(uid) else { return false };
    let member = Member::new(anchor, state, slot);
    filter::change(tgid, 1);
    match MEMBERS.insert(tgid, member, u64::from(BPF_NOEXIST)) {
        Ok(()) => true,
        Err(error) => {
            filter::change(tgid, -1);
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
        filter::change(tgid, -1);
        shares::release(member);
    }
    removed
}

/// Removes the current thread, of this thread group, from those that made a server. Whether it was there. An entry is gone when
/// its thread has ended, and a number that another process got meanwhile is no hit.
#[inline(always)]
pub fn remove_thread(tgid: u32) -> bool {
    let thread = current_thread();
    let Some(of) = THREADS.get_ptr(thread) else { return false };
    // SAFETY: the pointer came from the map; a single aligned load.
    let hit = unsafe { core::ptr::read_volatile(of) } == tgid;
    THREADS.remove(thread).is_ok() && hit
}
