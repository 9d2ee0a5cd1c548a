//! Users of whom more processes matter than there is room for: told, held back, and looked for again when room comes back.
//!
//! Invariant: as long as a process that matters is not followed, its user is in [`Crowd`], and the engine knows. All other users
//! are judged as ever.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::Daemon;
use crate::{os::clock, source::members::Tracked};
use orphand_core::model::{BootTime, Input, Losses, ProcessId, Tracking};

/// Between two tries to follow all, at first. It doubles each time that there is no room again.
const FIRST: Duration = Duration::from_secs(1);
/// The longest it becomes: a try may read all of /proc.
const LAST: Duration = Duration::from_secs(60);
/// A user who stands in line again so soon has not left it.
const CALM: Duration = Duration::from_secs(60);

/// Who stands in line.
#[derive(Debug, Default)]
pub struct Crowd {
    /// Real user id -> when one of its processes was last refused.
    users: BTreeMap<u32, BootTime>,
    /// To be followed when there is room, with their users.
    waiting: BTreeMap<ProcessId, (Tracking, u32)>,
    /// Refused and not told yet.
    untold: u64,
    pause: Duration,
    due: Option<BootTime>,
    /// When the last one left.
    over: Option<BootTime>,
}

impl Crowd {
    /// When to try again.
    pub const fn due(&self) -> Option<BootTime> {
        self.due
    }

    /// Why the daemon cannot vouch for all that it says.
    pub fn blind(&self) -> Option<String> {
        if self.users.is_empty() {
            return None;
        }
        let users: Vec<String> = self.users.keys().map(u32::to_string).collect();
        Some(format!(
            "there is no room to follow all processes below agents of user {}: nothing of theirs is judged until there is",
            users.join(", ")
        ))
    }

    /// A process is of no interest any more.
    pub fn forget(&mut self, process: ProcessId) {
        self.waiting.remove(&process);
    }

    fn told(&self) -> Input {
        Input::Crowded { users: self.users.keys().copied().collect() }
    }
}

impl Daemon {
    /// The kernel side refused `count` processes of these users.
    pub(super) fn refused(&mut self, users: &[u32], count: u64) {
        let now = clock::now();
        let crowd = &mut self.crowd;
        crowd.untold = crowd.untold.saturating_add(count);
        self.standing.lost.member = self.standing.lost.member.saturating_add(count);
        let new: BTreeSet<u32> =
            users.iter().copied().filter(|uid| crowd.users.insert(*uid, now).is_none()).collect();
        if crowd.due.is_none() {
            let again = crowd.over.is_some_and(|over| now < over + CALM);
            crowd.pause = if again { (crowd.pause * 2).min(LAST) } else { FIRST };
            crowd.due = Some(now + crowd.pause);
        }
        if new.is_empty() {
            return;
        }
        for uid in new {
            tracing::warn!(
                "user {uid} has more processes below agents than there is room for (`members`); nothing of theirs is judged \
                 until there is room again"
            );
        }
        let told = self.crowd.told();
        self.tell_engine(told);
        self.tell_refused();
    }

    /// Has the kernel side follow a process, or puts it in line.
    pub(super) fn follow(&mut self, process: ProcessId, tracking: Tracking) -> anyhow::Result<()> {
        match self.kernel.track(process, tracking)? {
            Tracked::Followed => self.crowd.forget(process),
            Tracked::Gone => {
                self.crowd.forget(process);
                self.gone.push(process);
            }
            Tracked::NoRoom { uid } => {
                let known = self.crowd.waiting.insert(process, (tracking, uid)).is_some();
                self.refused(&[uid], u64::from(!known));
            }
        }
        Ok(())
    }

    /// Tries to follow those that stand in line, and finds what they did meanwhile.
    pub(super) fn ease(&mut self) -> anyhow::Result<()> {
        if self.crowd.due.is_none_or(|due| due > self.seen_until) {
            return Ok(());
        }
        self.tell_refused();
        // Every one of them is tried: who has gone is told here alone.
        for (process, (tracking, _)) in std::mem::take(&mut self.crowd.waiting) {
            self.follow(process, tracking)?;
        }
        let now = clock::now();
        let mut left = Vec::new();
        for (uid, last) in self.crowd.users.clone() {
            let waits = self.crowd.waiting.values().any(|(_, of)| *of == uid);
            if !waits && last + FIRST <= now && self.kernel.has_room_again(uid)? {
                left.push(uid);
            }
        }
        // While records are lost nothing is known for sure; the repair comes first.
        if !left.is_empty() && !self.doubtful {
            self.resync()?;
            self.carry_out()?;
            // Whoever was refused since then is in line again.
            left.retain(|uid| self.crowd.users.get(uid).is_some_and(|last| *last <= now));
            for uid in &left {
                self.crowd.users.remove(uid);
                tracing::info!("all processes below agents of user {uid} are followed again");
            }
            let told = self.crowd.told();
            self.tell_engine(told);
            self.carry_out()?;
            self.crowd.over = Some(now);
        }
        let wait = if left.is_empty() { FIRST } else { self.crowd.pause };
        self.crowd.due = (!self.crowd.users.is_empty()).then(|| clock::now() + wait);
        Ok(())
    }

    fn tell_refused(&mut self) {
        let member = std::mem::take(&mut self.crowd.untold);
        if member > 0 {
            self.tell_engine(Input::Lost { losses: Losses { member, ..Losses::default() } });
        }
    }
}
