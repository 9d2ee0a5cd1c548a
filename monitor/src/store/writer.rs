//! The thread that owns the store, and the daemon's side of it.
//!
//! A write(2) to a file system that hangs does not return and cannot be interrupted. So the daemon waits for the thread only for
//! a short time: normally it answers within microseconds, and facts are durable before anything depends on them. If it does
//! not, an error is reported and facts wait here.

use std::{
    path::{Path, PathBuf},
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender},
    time::{Duration, Instant},
};

use super::{Facts, Limits, Opened, Store, StoreError, Unkept, files::FILE};
use crate::os::{clock, start};
use orphand_core::model::{BootTime, Fact, Knowledge};

pub(super) const PENDING: usize = 4096;
/// How long the daemon may wait for the store in each second.
const PATIENCE: Duration = Duration::from_millis(250);
const SECOND: Duration = Duration::from_secs(1);
/// The time between a failed write and the next attempt, so that a broken disk costs little.
const RETRY: Duration = Duration::from_secs(1);
/// From the first write after a pause to the tidying.
const DELAY: Duration = Duration::from_secs(5);
/// The timeout for opening, which reads up to some megabytes.
const OPENING: Duration = Duration::from_secs(10);
/// Between two attempts to open it, each of which may read all of it.
const REOPENING: Duration = Duration::from_secs(5);
/// The timeout for closing, which copies the log and calls fsync(2).
const CLOSING: Duration = Duration::from_secs(5);

/// Facts to write; and when the daemon stops in good order, if it does.
type Order = (Facts, Option<BootTime>);
type Answer = (Result<(), StoreError>, Facts);
/// What became of an unusable file, as a line for the log, and what daemons stored.
type Found = (Option<String>, Knowledge);

/// The daemon's side. At most one order is in progress.
#[derive(Debug)]
pub struct StoreWriter {
    file: PathBuf,
    /// `None`: the thread was told to end.
    orders: Option<SyncSender<Order>>,
    /// Disconnected when the store is closed.
    answers: Receiver<Answer>,
    pub(super) queued: Facts,
    /// Whether an order is in progress that was not answered yet.
    is_silent: bool,
    /// When to commit again after a failure, though nothing happens. After a failed write not before.
    pub retry: Option<BootTime>,
    outage: Outage,
    /// Why what is told is not kept, since the store could not be opened or written.
    pub trouble: Option<String>,
    /// What the next daemon is told of that.
    unkept: Unkept,
    /// Whether there was no room for all.
    dropped: bool,
    /// The start of the present second, and the time waited in it.
    second: BootTime,
    waited: Duration,
}

impl StoreWriter {
    /// Opens the store ([`Store::open`]), within ten seconds. Returns what became of an unusable file, and what daemons stored; or why
    /// there is no store: facts wait then, it is opened again, and nobody knows what earlier daemons knew.
    pub fn open(
        dir: &Path,
        boot_id: &str,
        offset_ns: i64,
        limits: Limits,
        mut unkept: Unkept,
    ) -> (Self, Result<Found, StoreError>) {
        // A daemon that ends meanwhile may have set a file aside.
        unkept.is_written(false);
        let (orders, inbox) = mpsc::sync_channel(1);
        let (results, answers) = mpsc::channel();
        let (sender, opened) = mpsc::channel();
        let (folder, boot_id) = (dir.to_owned(), boot_id.to_owned());
        let open = move || Store::open(&folder, &boot_id, offset_ns, limits);
        // If a call hangs, the thread is abandoned, and ends with the process.
        let started = start("store", move || {
            let store = match open() {
                Ok(Opened { store, knowledge, set_aside }) => match sender.send(Ok((set_aside, knowledge))) {
                    Ok(()) => Ok(store),
                    // Nobody waits for it any more.
                    Err(_) => store.begin_anew(),
                },
                Err(error) => {
                    let _ = sender.send(Err(error.clone()));
                    Err(error)
                }
            };
            serve(Kept { store: store.map_err(failed_now), open }, &inbox, &results);
        });
        let found = match started {
            Ok(()) => opened.recv_timeout(OPENING).unwrap_or_else(|_| Err(StoreError::silent(dir, OPENING))),
            Err(error) => Err(StoreError::file("start the thread of the store in", dir, &error)),
        };
        let (now, trouble) = (clock::now(), found.as_ref().err().map(ToString::to_string));
        if found.as_ref().map_or(true, |(_, knowledge)| knowledge.incomplete_before.is_some()) {
            unkept.lost();
        }
        unkept.is_written(trouble.is_none());
        let writer = Self {
            file: dir.join(FILE),
            orders: Some(orders),
            answers,
            queued: Facts::default(),
            is_silent: false,
            retry: trouble.is_some().then_some(now),
            outage: Outage::default(),
            trouble,
            unkept,
            dropped: false,
            second: now,
            waited: Duration::ZERO,
        };
        (writer, found)
    }

    /// Queues a fact that became known at `at`. Cheap; the fact is durable after the next [`StoreWriter::commit`].
    pub fn remember(&mut self, at: BootTime, fact: &Fact) {
        self.queued.push_back((at, fact.clone()));
        self.drop_excess();
    }

    /// Where there is no room the oldest is dropped; facts about runs are dropped last, because run numbers depend on them.
    fn drop_excess(&mut self) {
        while self.queued.len() > PENDING {
            let of_runs = |fact: &Fact| matches!(fact, Fact::Run { .. } | Fact::Forgotten { .. });
            let least = self.queued.iter().position(|(_, fact)| !of_runs(fact));
            self.queued.remove(least.unwrap_or(0));
            self.dropped = true;
        }
    }

    /// [`StoreWriter::try_commit`]. A store that cannot be written does not stop the daemon: the log says so, and facts wait.
    pub fn commit(&mut self) {
        match self.try_commit() {
            Ok(()) => {
                self.all_written();
                self.trouble = None;
                if self.outage.ended() {
                    tracing::info!(
                        "the store is written again, nothing is missing in it that there was room for"
                    );
                }
            }
            Err(error) => {
                self.unkept.is_written(false);
                self.trouble.get_or_insert_with(|| error.to_string());
                if self.outage.goes_on(clock::now()) {
                    tracing::warn!("{error}; orphand goes on and tries again");
                }
            }
        }
    }

    /// Writes the queued facts. After `Ok` they survive any end of the daemon; after an error they stay in memory, as far as there is
    /// room, and a later call tries again. At most a quarter of each second is spent here.
    pub fn try_commit(&mut self) -> Result<(), StoreError> {
        if self.is_silent {
            self.wait(Duration::ZERO)?;
        }
        // What failed is tried again though nothing waits: the store may not be open yet.
        if self.queued.is_empty() && self.retry.is_none() {
            return Ok(());
        }
        let now = clock::now();
        if self.retry.is_some_and(|retry| now < retry) {
            return Err(StoreError::Other(format!(
                "the last write to the store {} failed: {} facts wait in memory until the next attempt",
                self.file.display(),
                self.queued.len()
            )));
        }
        self.send(None)?;
        if now.since(self.second) >= SECOND {
            (self.second, self.waited) = (now, Duration::ZERO);
        }
        let answer = self.wait(PATIENCE.saturating_sub(self.waited));
        self.waited += clock::now().since(now);
        answer
    }

    /// Why what the daemon announces may be lost, if it may: numbers are not safe.
    pub fn blind(&self) -> Option<String> {
        self.is_silent.then(|| {
            "the store does not answer: numbers and judgements are lost if orphand ends now".to_owned()
        })
    }

    /// Writes what is queued, and that the daemon stops in good order ([`Store::record_stop`]).
    pub fn record_stop(&mut self, at: BootTime) -> Result<(), StoreError> {
        if self.is_silent {
            self.wait(PATIENCE)?;
        }
        self.send(Some(at))?;
        self.wait(SECOND)?;
        self.all_written();
        Ok(())
    }

    /// All that there was room for.
    fn all_written(&mut self) {
        if std::mem::take(&mut self.dropped) {
            self.unkept.lost();
        }
        self.unkept.is_written(true);
    }

    fn send(&mut self, stop: Option<BootTime>) -> Result<(), StoreError> {
        let facts = std::mem::take(&mut self.queued);
        self.is_silent = true;
        // The thread lives until it is told to end, and has no other order.
        let sent = self.orders.as_ref().and_then(|orders| orders.try_send((facts, stop)).ok());
        sent.ok_or_else(|| StoreError::silent(&self.file, PATIENCE))
    }

    fn wait(&mut self, limit: Duration) -> Result<(), StoreError> {
        // A thread that has ended does not answer either.
        let answer = self.answers.recv_timeout(limit);
        let now = clock::now();
        let Ok((result, mut rest)) = answer else {
            self.retry = self.retry.filter(|retry| now < *retry).or(Some(now + RETRY));
            return Err(StoreError::silent(&self.file, PATIENCE));
        };
        self.is_silent = false;
        self.retry = result.is_err().then(|| now + RETRY);
        rest.append(&mut self.queued);
        self.queued = rest;
        self.drop_excess();
        result
    }
}

impl Drop for StoreWriter {
    fn drop(&mut self) {
        drop(self.orders.take());
        let end = clock::now() + CLOSING;
        while self.answers.recv_timeout(end.since(clock::now())).is_ok() {}
    }
}

/// The thread sleeps until there is an order; when something was written, it tidies some seconds later, between orders.
fn serve(
    mut kept: Kept<impl Fn() -> Result<Opened, StoreError>>,
    orders: &Receiver<Order>,
    answers: &Sender<Answer>,
) {
    let mut due = Some(Instant::now() + DELAY);
    loop {
        let order = match due {
            Some(due) => orders.recv_timeout(due.saturating_duration_since(Instant::now())),
            None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match order {
            Ok((mut facts, stop)) => {
                let result = kept.store().and_then(|store| {
                    store.write(&facts)?;
                    facts.clear();
                    due = due.or_else(|| Some(Instant::now() + DELAY));
                    stop.map_or(Ok(()), |at| store.record_stop(at))
                });
                // The receiver may be gone.
                let _ = answers.send((result, facts));
            }
            Err(RecvTimeoutError::Timeout) => {
                due = kept.store.as_mut().is_ok_and(Store::tidy).then(Instant::now);
            }
            // The store is closed before `answers`, whose end reports that.
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The store on its thread, or why it could not be opened, and when that was tried.
struct Kept<Open> {
    store: Result<Store, (StoreError, Instant)>,
    open: Open,
}

impl<Open: Fn() -> Result<Opened, StoreError>> Kept<Open> {
    fn store(&mut self) -> Result<&mut Store, StoreError> {
        if matches!(&self.store, Err((_, tried)) if tried.elapsed() >= REOPENING) {
            let opened = (self.open)().and_then(|Opened { store, set_aside, .. }| {
                if let Some(aside) = set_aside {
                    tracing::warn!("{aside}");
                }
                store.begin_anew()
            });
            self.store = opened.map_err(failed_now);
        }
        self.store.as_mut().map_err(|(error, _)| error.clone())
    }
}

fn failed_now(error: StoreError) -> (StoreError, Instant) {
    (error, Instant::now())
}

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
