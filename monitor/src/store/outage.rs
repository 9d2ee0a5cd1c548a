//! Which outages of the store the log has. A disk that is slow now and then fills no log.

use std::time::Duration;

use orphand_core::model::BootTime;

/// Between two outages that are reported though each was short.
const SELDOM: Duration = Duration::from_secs(300);

/// An outage of this length is reported, however recent the last report is.
const LONG: Duration = Duration::from_secs(5);

/// A time in which the store was not written, and what the log has of it.
#[derive(Debug, Default)]
pub(super) struct Outage {
    since: Option<BootTime>,
    is_reported: bool,
    last_report: Option<BootTime>,
}

impl Outage {
    /// A write failed. Returns whether the log shall have it: once for an outage, and not for each of many short ones.
    pub(super) fn goes_on(&mut self, now: BootTime) -> bool {
        let since = *self.since.get_or_insert(now);
        let is_seldom = self.last_report.is_none_or(|last| now.since(last) >= SELDOM);
        if self.is_reported || !is_seldom && now.since(since) < LONG {
            return false;
        }
        (self.is_reported, self.last_report) = (true, Some(now));
        true
    }

    /// Everything is written. Returns whether the log shall have it: it has the outage.
    pub(super) fn ended(&mut self) -> bool {
        self.since = None;
        std::mem::take(&mut self.is_reported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> BootTime {
        BootTime(seconds * 1_000_000_000)
    }

    #[test]
    fn an_outage_is_reported_once_with_its_end() {
        let mut outage = Outage::default();
        assert!(outage.goes_on(at(1)));
        assert!(!outage.goes_on(at(2)));
        assert!(!outage.goes_on(at(1000)));
        assert!(outage.ended());
        assert!(!outage.ended());
    }

    #[test]
    fn many_short_outages_are_one_line_in_five_minutes() {
        let mut outage = Outage::default();
        let reports = (0..600).filter(|&s| (outage.goes_on(at(s)), outage.ended()).0).count();
        assert_eq!(reports, 2);
    }

    #[test]
    fn a_long_outage_after_a_short_one_is_reported() {
        let mut outage = Outage::default();
        assert!(outage.goes_on(at(1)));
        assert!(outage.ended());
        assert!(!outage.goes_on(at(2)));
        assert!(!outage.goes_on(at(6)));
        assert!(outage.goes_on(at(7)));
        assert!(outage.ended());
    }

    #[test]
    fn the_end_of_an_outage_that_nobody_read_of_is_no_news() {
        let mut outage = Outage::default();
        assert!(outage.goes_on(at(1)));
        assert!(outage.ended());
        assert!(!outage.goes_on(at(2)));
        assert!(!outage.ended());
    }
}
