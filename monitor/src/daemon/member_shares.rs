//! The kernel side tracks a limited number of processes (`members`) and keeps a limited number of records (`ring`), and of each
//! user a share of both. This module knows the users whose share is used up: it reports them, and reads /proc for what they did,
//! when there is room again.
//!
//! Invariant: as long as a process that matters is not tracked, or not known as it is, its user is in [`MemberShares`], and the engine judges nothing of
//! that user. All other users are judged as ever.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use monitor_common::share_user;

use super::environment::Environment;
use crate::{driver::Driver, os::clock, source::members::Tracked};
use orphand_core::model::{BootTime, Input, Losses, ProcessId, Tracking};

/// The pause between two tries to track all, at first. It doubles each time that there is no room soon again.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause: a try may read all of /proc.
const LAST: Duration = Duration::from_secs(60);
/// A shortage that begins again within this time counts as the same one.
const CALM: Duration = Duration::from_secs(60);

/// The users whose share is used up, and their processes that wait to be tracked.
#[derive(Debug, Default)]
pub struct MemberShares {
    /// Real user id, one of each share -> when one of its processes was last refused.
    users: BTreeMap<u32, BootTime>,
    /// To be tracked when there is room, with their users.
    waiting: BTreeMap<ProcessId, (Tracking, u32)>,
    /// Processes that were refused and that the engine has not been told of.
    unreported: u64,
    pause: Duration,
    pub(super) due: Option<BootTime>,
    ended_at: Option<BootTime>,
}

impl MemberShares {
    pub fn blind(&self) -> Option<String> {
        if self.users.is_empty() {
            return None;
        }
        let users: Vec<String> = self.users.keys().map(u32::to_string).collect();
        Some(format!(
            "there is no room for all that processes below agents of user {} do: nothing of theirs is judged until there is",
            users.join(", ")
        ))
    }

    pub fn is_short(&self, uid: u32) -> bool {
        self.users.contains_key(&share_user(uid))
    }

    pub fn forget(&mut self, process: ProcessId) {
        self.waiting.remove(&process);
    }

    fn as_input(&self) -> Input {
        Input::Crowded { users: self.users.keys().copied().collect() }
    }
}

impl Environment {
    /// The kernel side refused to track `count` processes of these users.
    pub(super) fn note_refused(&mut self, driver: &mut Driver, users: &[u32], count: u64) {
        let now = clock::now();
        let shares = &mut self.shares;
        shares.unreported = shares.unreported.saturating_add(count);
        self.status.lost.member = self.status.lost.member.saturating_add(count);
        let users = users.iter().map(|uid| share_user(*uid));
        let new: BTreeSet<u32> = users.filter(|uid| shares.users.insert(*uid, now).is_none()).collect();
        if shares.due.is_none() {
            let again = shares.ended_at.is_some_and(|ended| now < ended + CALM);
            shares.pause = if again { (shares.pause * 2).min(LAST) } else { FIRST };
            shares.due = Some(now + shares.pause);
        }
        if new.is_empty() {
            return;
        }
        for uid in new {
            tracing::warn!(
                "user {uid} has more processes below agents than there is room for (`--members`), or makes more of them than \
                 can be read (`--ring-size`); nothing of theirs is judged until there is room again"
            );
        }
        driver.feed(self.shares.as_input());
        self.report_refused(driver);
    }

    /// Has the kernel side track a process, or keeps it until there is room.
    pub(super) fn track_member(
        &mut self,
        driver: &mut Driver,
        process: ProcessId,
        tracking: Tracking,
    ) -> anyhow::Result<()> {
        match self.kernel.members.track(process, tracking)? {
            Tracked::Followed => self.shares.forget(process),
            Tracked::Gone => {
                self.shares.forget(process);
                self.gone.push(process);
            }
            Tracked::NoRoom { uid } => {
                let known = self.shares.waiting.insert(process, (tracking, share_user(uid))).is_some();
                self.note_refused(driver, &[uid], u64::from(!known));
            }
        }
        Ok(())
    }

    /// If it is time: tries to track the processes that wait, and reads /proc for what they did meanwhile.
    pub(super) fn retry_shares(&mut self, driver: &mut Driver) -> anyhow::Result<()> {
        if self.shares.due.is_none_or(|due| due > self.seen_until) {
            return Ok(());
        }
        self.report_refused(driver);
        // Each of them is tried: only this finds those that have ended.
        for (process, (tracking, _)) in std::mem::take(&mut self.shares.waiting) {
            self.track_member(driver, process, tracking)?;
        }
        let now = clock::now();
        let mut left = Vec::new();
        for (uid, last) in self.shares.users.clone() {
            let waits = self.shares.waiting.values().any(|(_, of)| *of == uid);
            if !waits && last + FIRST <= now && self.kernel.members.has_room_again(uid) {
                left.push(uid);
            }
        }
        // While records are lost nothing is known for sure; the repair comes first.
        if !left.is_empty() && !self.doubtful {
            self.repair(driver)?;
            driver.perform(self)?;
            // A user who was refused room since then is short of it again.
            left.retain(|uid| self.shares.users.get(uid).is_some_and(|last| *last <= now));
            for uid in &left {
                self.shares.users.remove(uid);
                tracing::info!("all processes below agents of user {uid} are tracked again");
            }
            driver.handle(self, self.shares.as_input())?;
            self.shares.ended_at = Some(now);
        }
        let wait = if left.is_empty() { FIRST } else { self.shares.pause };
        self.shares.due = (!self.shares.users.is_empty()).then(|| clock::now() + wait);
        Ok(())
    }

    fn report_refused(&mut self, driver: &mut Driver) {
        let member = std::mem::take(&mut self.shares.unreported);
        if member > 0 {
            driver.feed(Input::Lost { losses: Losses { member, ..Losses::default() } });
        }
    }
}
