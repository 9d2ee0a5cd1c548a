//! The processes that the kernel side follows: the maps MEMBERS, FILTER, ANCHORS, SHARES and REFUSED seen from user space.
//!
//! Invariant: filter and shares count an entry before it is there, and until it is gone. Whoever removes it subtracts it,
//! whichever side has entered it. For [`super::kernel`] only.

use std::{
    collections::HashSet,
    hash::{BuildHasher as _, Hasher as _, RandomState},
};

use aya::{
    Ebpf,
    maps::{HashMap, MapData, MapError},
};
use monitor_common::{
    Anchor, FILTER_SLOTS, Member, SHARE_SLOTS, SharedCounts, State, filter_slot, share_slot, share_user,
};

use super::{
    kernel_error::KernelError,
    maps::{self, absent_is_fine, counts, full_is_fine, hash_map, present_is_fine},
};
use crate::host::identity;
use orphand_core::model::{ProcessId, Tracking};

/// `BPF_NOEXIST` and `BPF_EXIST`, include/uapi/linux/bpf.h.
const NOEXIST: u64 = 1;
const EXIST: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracked {
    Followed,
    Gone,
    /// The map is full, or the share of its user is used up: it is not followed.
    NoRoom {
        uid: u32,
    },
}

impl Tracked {
    pub const fn is_followed(self) -> bool {
        matches!(self, Self::Followed)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomInUse {
    /// Counted one by one.
    pub entries: u64,
    /// As the filter counts them: more only while one is on its way in or out, never fewer.
    pub counted: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub share: u32,
    pub seed: u32,
}

impl Room {
    /// One user has half of it.
    pub(super) fn among(members: u32) -> Self {
        // A number that nobody can know before.
        let [a, b, c, d, ..] = RandomState::new().build_hasher().finish().to_le_bytes();
        Self { share: members.div_ceil(2), seed: u32::from_le_bytes([a, b, c, d]) }
    }
}

pub struct Members {
    entries: HashMap<MapData, u32, Member>,
    filter: SharedCounts<FILTER_SLOTS>,
    anchors: HashMap<MapData, u32, Anchor>,
    shares: SharedCounts<SHARE_SLOTS>,
    refused: HashMap<MapData, u32, u32>,
    room: Room,
}

impl Members {
    pub(super) fn new(programs: &mut Ebpf, room: Room) -> Result<Self, KernelError> {
        Ok(Self {
            entries: hash_map(programs, "MEMBERS")?,
            filter: counts(programs, "FILTER")?,
            anchors: hash_map(programs, "ANCHORS")?,
            shares: counts(programs, "SHARES")?,
            refused: hash_map(programs, "REFUSED")?,
            room,
        })
    }

    /// Follows a process. One that is gone is not entered, so nothing is left behind for a later process with its number.
    /// Nor is one that there is no room for.
    pub fn track(&mut self, process: ProcessId, tracking: Tracking) -> Result<Tracked, KernelError> {
        let state = match tracking {
            Tracking::Member => State::Member,
            Tracking::Agent => State::Agent,
            Tracking::Manager => State::Manager,
        };
        let pid = process.pid;
        // What is pending below it becomes a member with it.
        absent_is_fine(self.anchors.insert(pid, Anchor::confirmed(pid), EXIST))?;
        if let Some(entry) = maps::value(&self.entries, pid)? {
            let member = Member { anchor: pid, ..entry.with_state(state) };
            if absent_is_fine(self.entries.insert(pid, member, EXIST))? {
                // The kernel side may have entered the parent of a candidate that was on its way out.
                return if tracking == Tracking::Agent {
                    self.unless_it_exits(process)
                } else {
                    Ok(Tracked::Followed)
                };
            }
        }
        // Not there: dead, or not followed so far.
        let Some(uid) = identity::user(process) else { return Ok(Tracked::Gone) };
        if self.used(uid) >= self.room.share {
            return Ok(Tracked::NoRoom { uid });
        }
        let member = Member::new(pid, state, share_slot(uid, self.room.seed));
        if !full_is_fine(self.insert(pid, member).map(drop))? {
            return Ok(Tracked::NoRoom { uid });
        }
        self.unless_it_exits(process)
    }

    /// Looks after the entry was made: if the exit begins after the look, it is reported and removes the entry. An exit that
    /// has begun before may have passed the tracepoint already; then it would never be told, and the entry would stay.
    fn unless_it_exits(&mut self, process: ProcessId) -> Result<Tracked, KernelError> {
        if identity::stays(process) {
            return Ok(Tracked::Followed);
        }
        self.remove(process.pid)?;
        Ok(Tracked::Gone)
    }

    pub fn untrack(&mut self, pid: u32) -> Result<(), KernelError> {
        absent_is_fine(self.anchors.insert(pid, Anchor::refused(pid), EXIST))?;
        Ok(self.remove(pid)?)
    }

    /// Whether it may be followed, and there is room for an eighth of the share besides: time to look for those that were refused.
    pub fn has_room_again(&self, uid: u32) -> bool {
        self.used(uid) <= self.room.share - self.room.share.div_ceil(8)
    }

    fn used(&self, uid: u32) -> u32 {
        self.shares.count(share_slot(uid, self.room.seed))
    }

    /// The numbers of all that are followed in any way.
    pub fn pids(&self) -> Result<HashSet<u32>, KernelError> {
        Ok(self.entries.keys().collect::<Result<_, _>>()?)
    }

    pub fn room_in_use(&self) -> Result<RoomInUse, KernelError> {
        let entries = self.pids()?.len() as u64;
        Ok(RoomInUse { entries, counted: self.filter.counts().map(u64::from).sum() })
    }

    /// Whose processes the kernel side could not enter since the last call.
    pub fn refused(&mut self) -> Result<Vec<u32>, KernelError> {
        let users: Vec<u32> = self.refused.keys().collect::<Result<_, _>>()?;
        for uid in &users {
            absent_is_fine(self.refused.remove(uid))?;
        }
        Ok(users)
    }

    /// Whether processes of this user were refused since the last call of [`Self::refused`].
    pub(super) fn is_refused(&self, uid: u32) -> Result<bool, KernelError> {
        Ok(maps::value(&self.refused, share_user(uid))?.is_some())
    }

    fn insert(&mut self, pid: u32, member: Member) -> Result<bool, MapError> {
        self.filter.add(filter_slot(pid), 1);
        self.shares.add(member.slot(), 1);
        let inserted = present_is_fine(self.entries.insert(pid, member, NOEXIST));
        if !matches!(inserted, Ok(true)) {
            self.uncount(pid, member);
        }
        inserted
    }

    /// Removes an entry. Of those who try at once, on both sides, one succeeds.
    fn remove(&mut self, pid: u32) -> Result<(), MapError> {
        if let Some(entry) = maps::value(&self.entries, pid)?
            && absent_is_fine(self.entries.remove(&pid))?
        {
            self.uncount(pid, entry);
        }
        Ok(())
    }

    fn uncount(&self, pid: u32, member: Member) {
        self.filter.subtract(filter_slot(pid), 1);
        self.shares.subtract(member.slot(), 1);
    }
}
