//! What must outlive the daemon: facts are written to the store before anything is announced or signalled because of them.

use std::{path::Path, time::Duration};

use crate::{
    host::boot_id,
    os::clock,
    store::{self, StoreError, StoreWriter},
};
use orphand_core::model::{BootTime, Fact, Knowledge};

/// Between two tries to write while nothing happens.
const AGAIN: Duration = Duration::from_secs(1);

/// Between two outages that are reported though each was short. A disk that is slow now and then fills no log.
const SELDOM: Duration = Duration::from_secs(300);

/// An outage of this length is reported, however recent the last report is.
const LONG: Duration = Duration::from_secs(5);

/// A time in which the store was not written, and what the log has of it.
#[derive(Debug, Default)]
struct Outage {
    since: Option<BootTime>,
    is_reported: bool,
    last_report: Option<BootTime>,
}

impl Outage {
    /// A write failed. Returns whether the log shall have it: once for an outage, and not for each of many short ones.
    fn goes_on(&mut self, now: BootTime) -> bool {
        let since = *self.since.get_or_insert(now);
        let is_seldom = self.last_report.is_none_or(|last| now.since(last) >= SELDOM);
        if self.is_reported || !is_seldom && now.since(since) < LONG {
            return false;
        }
        (self.is_reported, self.last_report) = (true, Some(now));
        true
    }

    /// Everything is written. Returns whether the log shall have it: it has the outage.
    fn ended(&mut self) -> bool {
        self.since = None;
        std::mem::take(&mut self.is_reported)
    }
}

/// The store, or nothing where it cannot be opened. A store that cannot be written does not stop the daemon: the log has one line,
/// and the store itself tries again.
#[derive(Debug)]
pub struct Persistence {
    store: Option<StoreWriter>,
    outage: Outage,
    /// When to try again if nothing happens before.
    due: Option<BootTime>,
}

impl Persistence {
    /// Opens the store in `dir`; returns what earlier daemons knew, too. `offset_ns` leads from the boot clock to the wall clock.
    /// The only failures are a store that a newer orphand wrote and a kernel that does not name this boot.
    pub fn open(dir: &Path, offset_ns: i64) -> anyhow::Result<(Self, Knowledge)> {
        // Without it processes of an earlier boot would pass for those of this one.
        let boot = boot_id()?;
        match StoreWriter::open(dir, &boot, offset_ns) {
            Ok((store, set_aside, knowledge)) => {
                if let Some(aside) = set_aside {
                    tracing::warn!("{aside}");
                }
                Ok((Self { store: Some(store), outage: Outage::default(), due: None }, knowledge))
            }
            Err(error @ StoreError::Newer { .. }) => Err(error.into()),
            Err(error) => {
                tracing::warn!("{error}; numbers and history are lost when this daemon ends");
                // Nobody knows whether there was an earlier daemon: what was there before is left to a person.
                let knowledge = Knowledge { first_start: Some(clock::now()), ..Knowledge::default() };
                Ok((Self { store: None, outage: Outage::default(), due: None }, knowledge))
            }
        }
    }

    /// Makes the directory, while the daemon still may. A failure is reported when the store is opened.
    pub fn prepare(dir: &Path) {
        if let Err(error) = store::create_directory(dir) {
            tracing::debug!("{error}");
        }
    }

    /// Keeps a fact; it is written by the next [`Persistence::commit`].
    pub fn remember(&mut self, at: BootTime, fact: &Fact) {
        if let Some(store) = &mut self.store {
            store.remember(at, fact);
        }
    }

    /// Writes what is kept: from here on it survives the death of this process, unless the store fails or does not answer in time.
    /// Both are reported, and nothing waits for them.
    pub fn commit(&mut self) {
        let Some(store) = &mut self.store else { return };
        match store.commit() {
            Ok(()) if store.pending() == 0 => {
                self.due = None;
                if self.outage.ended() {
                    tracing::info!(
                        "the store is written again, nothing is missing in it that there was room for"
                    );
                }
            }
            Ok(()) => {}
            Err(error) => {
                let now = clock::now();
                self.due = Some(now + AGAIN);
                if self.outage.goes_on(now) {
                    tracing::warn!("{error}; orphand goes on and tries again");
                }
            }
        }
    }

    pub const fn due(&self) -> Option<BootTime> {
        self.due
    }

    /// Why what the daemon announces may be lost, if it may: numbers are not safe.
    pub fn blind(&self) -> Option<String> {
        let silent = self.store.as_ref().is_some_and(StoreWriter::is_silent);
        silent.then(|| {
            "the store does not answer: numbers and judgements are lost if orphand ends now".to_owned()
        })
    }

    pub fn close(&mut self) {
        if let Some(store) = &mut self.store
            && let Err(error) = store.record_stop(clock::now())
        {
            tracing::warn!("{error}");
        }
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
