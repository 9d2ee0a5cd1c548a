//! Processes whose files in /proc do not answer a read: the log says so, and /proc is read again when they do.

use std::{collections::BTreeSet, time::Duration};

use super::environment::Environment;
use crate::{driver::Driver, host::stuck};
use orphand_core::model::{BootTime, StuckProcess, text};

const REPORT_AFTER: Duration = Duration::from_secs(1);
/// Between two lines about them: a user who makes many such processes must not fill the log.
const BETWEEN_LINES: Duration = Duration::from_secs(10);
/// Until /proc is read again for processes that it lacked. It doubles up to [`RETRY_MOST`] as long as some are lacking.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MOST: Duration = Duration::from_secs(600);

#[derive(Debug, Default)]
pub struct StuckReads {
    /// Processes that the last reading of /proc lacks.
    unread: Vec<u32>,
    reported: BTreeSet<u32>,
    next_line: BootTime,
    next_read: BootTime,
    delay: Duration,
}

impl StuckReads {
    /// /proc was read, but for these processes.
    pub(super) fn set_unread(&mut self, now: BootTime, unread: &[u32]) {
        self.unread = unread.to_vec();
        let longer = self.delay.saturating_mul(2).clamp(RETRY_FIRST, RETRY_MOST);
        self.delay = if unread.is_empty() { Duration::ZERO } else { longer };
        self.next_read = now + self.delay;
    }

    /// Whether /proc should be read again: one that was missed answers now, or has ended.
    fn needs_reading(&self, now: BootTime, stuck: &[StuckProcess]) -> bool {
        let answers = |pid: &u32| !stuck.iter().any(|one| one.pid == *pid);
        now >= self.next_read && self.unread.iter().any(answers)
    }

    /// The line of the log about those that it has not named, if one is due.
    fn line(&mut self, now: BootTime, stuck: &[StuckProcess]) -> Option<String> {
        self.reported.retain(|pid| stuck.iter().any(|one| one.pid == *pid));
        let is_news = |one: &&StuckProcess| is_reported(one) && !self.reported.contains(&one.pid);
        let news: Vec<StuckProcess> = stuck.iter().filter(is_news).cloned().collect();
        if news.is_empty() || now < self.next_line {
            return None;
        }
        self.next_line = now + BETWEEN_LINES;
        self.reported.extend(news.iter().map(|one| one.pid));
        Some(text::unanswered(&news))
    }

    pub(super) fn due(&self, now: BootTime) -> Option<BootTime> {
        (!self.unread.is_empty() || !stuck().is_empty()).then(|| now + REPORT_AFTER)
    }
}

impl Environment {
    /// Reports them. If one of those that the last reading of /proc lacks answers again, reads /proc again.
    pub(super) fn retry_stuck(&mut self, driver: &mut Driver, now: BootTime) -> anyhow::Result<()> {
        let stuck = stuck();
        if let Some(line) = self.stuck.line(now, &stuck) {
            tracing::warn!("{line}");
        }
        if self.stuck.needs_reading(now, &stuck) {
            self.reconcile(driver)?;
        }
        Ok(())
    }
}

pub fn is_reported(one: &StuckProcess) -> bool {
    Duration::from_millis(one.unanswered_ms) >= REPORT_AFTER
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(pid: u32, seconds: u64) -> StuckProcess {
        StuckProcess { pid, uid: Some(1000), unanswered_ms: seconds * 1000 }
    }

    fn at(seconds: u64) -> BootTime {
        BootTime::default() + Duration::from_secs(seconds)
    }

    #[test]
    fn each_is_reported_once_and_not_too_often() {
        let mut them = StuckReads::default();
        assert_eq!(them.line(at(100), &[one(7, 0)]), None);
        let line = them.line(at(101), &[one(7, 1)]).unwrap();
        assert!(line.starts_with("process 7 of user 1000 does not answer: "), "{line}");
        assert_eq!(them.line(at(102), &[one(7, 2), one(8, 1)]), None);
        let many: Vec<StuckProcess> = (8..30).map(|pid| one(pid, 5)).collect();
        let line = them.line(at(120), &many).unwrap();
        assert!(line.contains("15 of user 1000 and 14 others do not answer"), "{line}");
        assert_eq!(them.line(at(140), &many), None);
    }

    #[test]
    fn proc_is_read_again_when_one_answers_and_less_and_less_often() {
        let mut them = StuckReads::default();
        assert!(!them.needs_reading(at(1), &[one(7, 1)]));
        them.set_unread(at(100), &[7]);
        assert!(!them.needs_reading(at(200), &[one(7, 1)]));
        assert!(them.needs_reading(at(101), &[]) && !them.needs_reading(at(100), &[]));
        for delay in [2, 4, 8] {
            them.set_unread(at(200), &[7]);
            assert!(
                !them.needs_reading(at(200 + delay - 1), &[]) && them.needs_reading(at(200 + delay), &[])
            );
        }
        them.set_unread(at(300), &[]);
        assert!(!them.needs_reading(at(900), &[]));
        them.set_unread(at(1000), &[7]);
        assert!(them.needs_reading(at(1001), &[]));
    }
}
