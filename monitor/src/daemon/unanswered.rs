//! Processes that do not answer when they are looked at: told, and looked at again when they do.

use std::{collections::BTreeSet, time::Duration};

use super::Daemon;
use crate::host::{Stuck, stuck};
use orphand_core::model::{BootTime, StuckProcess, text};

/// A read that takes so long is told.
const TELL_AFTER: Duration = Duration::from_secs(1);
/// Between two lines about them: whoever makes such processes must not fill the log.
const BETWEEN_LINES: Duration = Duration::from_secs(10);
/// Until /proc is read again for what it could not say. It doubles up to [`LOOKS_MOST`] as long as that says no more.
const LOOKS_FIRST: Duration = Duration::from_secs(1);
const LOOKS_MOST: Duration = Duration::from_secs(600);

/// What is to be done about them.
#[derive(Debug, Default)]
pub struct Unanswered {
    /// Those that the last look at /proc lacks.
    unread: Vec<u32>,
    told: BTreeSet<u32>,
    line_at: BootTime,
    look_at: BootTime,
    delay: Duration,
}

impl Unanswered {
    /// /proc was read, but for these.
    pub(super) fn lacks(&mut self, now: BootTime, unread: &[u32]) {
        self.unread = unread.to_vec();
        let longer = self.delay.saturating_mul(2).clamp(LOOKS_FIRST, LOOKS_MOST);
        self.delay = if unread.is_empty() { Duration::ZERO } else { longer };
        self.look_at = now + self.delay;
    }

    /// Whether /proc should be read again: one that was missed answers now, or has ended.
    fn wants_a_look(&self, now: BootTime, stuck: &[Stuck]) -> bool {
        let answers = |pid: &u32| !stuck.iter().any(|one| one.pid == *pid);
        now >= self.look_at && self.unread.iter().any(answers)
    }

    /// The line about those that nobody was told of, if one is due.
    fn line(&mut self, now: BootTime, stuck: &[Stuck]) -> Option<String> {
        self.told.retain(|pid| stuck.iter().any(|one| one.pid == *pid));
        let is_news = |one: &&Stuck| one.waited >= TELL_AFTER && !self.told.contains(&one.pid);
        let news: Vec<&Stuck> = stuck.iter().filter(is_news).collect();
        if news.is_empty() || now < self.line_at {
            return None;
        }
        let shown: Vec<StuckProcess> = news.into_iter().map(shown).collect();
        self.line_at = now + BETWEEN_LINES;
        self.told.extend(shown.iter().map(|one| one.pid));
        Some(text::unanswered(&shown))
    }

    /// When there is something to do next.
    pub(super) fn due(&self, now: BootTime) -> Option<BootTime> {
        (!self.unread.is_empty() || !stuck().is_empty()).then(|| now + TELL_AFTER)
    }
}

impl Daemon {
    /// Tells of them and, where one answers again that /proc was read without, reads it again.
    pub(super) fn see_to_unanswered(&mut self, now: BootTime) -> anyhow::Result<()> {
        let stuck = stuck();
        if let Some(line) = self.unanswered.line(now, &stuck) {
            tracing::warn!("{line}");
        }
        if self.unanswered.wants_a_look(now, &stuck) {
            self.look_at_proc()?;
        }
        Ok(())
    }
}

/// Those that have not answered for a second, for whoever asks.
pub fn told() -> Vec<StuckProcess> {
    stuck().iter().filter(|one| one.waited >= TELL_AFTER).map(shown).collect()
}

/// All that do not answer, for a verb that looks once.
pub fn all() -> Vec<StuckProcess> {
    stuck().iter().map(shown).collect()
}

fn shown(one: &Stuck) -> StuckProcess {
    StuckProcess { pid: one.pid, uid: one.user, seconds: one.waited.as_secs() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(pid: u32, seconds: u64) -> Stuck {
        Stuck { pid, user: Some(1000), waited: Duration::from_secs(seconds) }
    }

    fn at(seconds: u64) -> BootTime {
        BootTime::default() + Duration::from_secs(seconds)
    }

    #[test]
    fn each_is_told_once_and_not_too_often() {
        let mut them = Unanswered::default();
        assert_eq!(them.line(at(100), &[one(7, 0)]), None);
        let line = them.line(at(101), &[one(7, 1)]).unwrap();
        assert!(line.starts_with("process 7 of user 1000 does not answer: "), "{line}");
        assert_eq!(them.line(at(102), &[one(7, 2), one(8, 1)]), None);
        let many: Vec<Stuck> = (8..30).map(|pid| one(pid, 5)).collect();
        let line = them.line(at(120), &many).unwrap();
        assert!(line.contains("15 of user 1000 and 14 others do not answer"), "{line}");
        assert_eq!(them.line(at(140), &many), None);
    }

    #[test]
    fn proc_is_read_again_when_one_answers_and_less_and_less_often() {
        let mut them = Unanswered::default();
        assert!(!them.wants_a_look(at(1), &[one(7, 1)]));
        them.lacks(at(100), &[7]);
        assert!(!them.wants_a_look(at(200), &[one(7, 1)]));
        assert!(them.wants_a_look(at(101), &[]) && !them.wants_a_look(at(100), &[]));
        for delay in [2, 4, 8] {
            them.lacks(at(200), &[7]);
            assert!(!them.wants_a_look(at(200 + delay - 1), &[]) && them.wants_a_look(at(200 + delay), &[]));
        }
        them.lacks(at(300), &[]);
        assert!(!them.wants_a_look(at(900), &[]));
        them.lacks(at(1000), &[7]);
        assert!(them.wants_a_look(at(1001), &[]));
    }
}
