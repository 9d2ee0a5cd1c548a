//! The thread that writes the store. The daemon waits for it only for a short time, so no disk can block the
//! daemon.
//!
//! A write(2) to a file system that hangs (network, frozen, failing disk) does not return and cannot be
//! interrupted. Therefore the store has a thread of its own. Normally it answers within microseconds, and
//! facts are durable before anything depends on them. If it does not answer, an error is reported and facts
//! wait here.

use std::{
    path::{Path, PathBuf},
    sync::mpsc::{self, Receiver, Sender},
    thread,
    time::Duration,
};

use super::{Backlog, DamagedFile, Store, StoreError, push};
use crate::os::clock;
use orphand_core::model::{BootTime, Fact, Knowledge};

/// How long the daemon may wait for the store in each second.
const PATIENCE: Duration = Duration::from_millis(250);
const SECOND: Duration = Duration::from_secs(1);
/// The timeout for opening, which reads up to some megabytes.
const OPENING: Duration = Duration::from_secs(10);
/// The timeout for closing, which makes a checkpoint and calls fsync(2).
const CLOSING: Duration = Duration::from_secs(5);

enum Order {
    Write(Backlog),
    /// The daemon stops in good order.
    Stop(BootTime, Backlog),
}

struct Done {
    result: Result<(), StoreError>,
    /// Facts that the store could not write yet.
    backlog: usize,
}

/// The handle of the thread. At most one order is in progress.
#[derive(Debug)]
pub struct StoreWriter {
    file: PathBuf,
    /// `None`: the thread was told to end.
    orders: Option<Sender<Order>>,
    /// Disconnected when the store is closed.
    done: Receiver<Done>,
    /// Facts that were not sent to the thread yet.
    queued: Backlog,
    /// Facts of the order in progress.
    in_flight: usize,
    /// Facts that wait in the store.
    backlog: usize,
    /// The start of the present second, and the time waited in it.
    second: BootTime,
    waited: Duration,
}

impl StoreWriter {
    /// Opens the store in `dir` ([`Store::open`]), and returns what earlier daemons stored. Fails if this
    /// takes longer than ten seconds.
    pub fn open(
        dir: &Path,
        boot_id: &str,
        offset_ns: i64,
    ) -> Result<(Self, Option<DamagedFile>, Knowledge), StoreError> {
        let (sender, opened) = mpsc::channel();
        let (folder, boot_id) = (dir.to_owned(), boot_id.to_owned());
        // If the call hangs, its thread is abandoned.
        spawn_thread(dir, move || drop(sender.send(Store::open(&folder, &boot_id, offset_ns))))?;
        let (mut store, damaged) =
            opened.recv_timeout(OPENING).map_err(|_| StoreError::silent(dir, OPENING))??;
        let knowledge = store.take_knowledge();
        Ok((Self::of(store)?, damaged, knowledge))
    }

    pub(super) fn of(mut store: Store) -> Result<Self, StoreError> {
        let file = store.file.clone();
        let (orders, inbox) = mpsc::channel();
        let (results, done) = mpsc::channel();
        spawn_thread(&file, move || {
            for order in inbox {
                let (facts, stop) = match order {
                    Order::Write(facts) => (facts, None),
                    Order::Stop(at, facts) => (facts, Some(at)),
                };
                for (at, fact) in facts {
                    push(&mut store.pending, at, fact);
                }
                let result = match stop {
                    None => store.commit(),
                    Some(at) => store.record_stop(at),
                };
                // The receiver may be gone.
                let _ = results.send(Done { result, backlog: store.pending() });
            }
            // Dropped before `results`, whose end reports that the store is closed.
            drop(store);
            drop(results);
        })?;
        Ok(Self {
            file,
            orders: Some(orders),
            done,
            queued: Backlog::default(),
            in_flight: 0,
            backlog: 0,
            second: clock::now(),
            waited: Duration::ZERO,
        })
    }

    /// Queues a fact that became known at `at`. Cheap; the fact is durable after the next [`StoreWriter::commit`].
    pub fn remember(&mut self, at: BootTime, fact: &Fact) {
        push(&mut self.queued, at, fact.clone());
    }

    /// Writes the queued facts. After `Ok` they survive any end of the daemon. After an error they stay in
    /// memory, as far as there is room, and a later call tries again. At most a quarter of each second is
    /// spent here.
    pub fn commit(&mut self) -> Result<(), StoreError> {
        if self.pending() == 0 {
            return Ok(());
        }
        if self.in_flight > 0 {
            self.wait(Duration::ZERO)?;
            if self.pending() == 0 {
                return Ok(());
            }
        }
        let facts = std::mem::take(&mut self.queued);
        self.in_flight = facts.len().saturating_add(self.backlog);
        self.send(Order::Write(facts))?;
        let now = clock::now();
        if now.since(self.second) >= SECOND {
            (self.second, self.waited) = (now, Duration::ZERO);
        }
        let answer = self.wait(PATIENCE.saturating_sub(self.waited));
        self.waited += clock::now().since(now);
        answer
    }

    /// How many facts are remembered and not durable yet.
    pub fn pending(&self) -> usize {
        // Facts that wait in the store are part of every order.
        self.queued.len() + self.in_flight.max(self.backlog)
    }

    /// Whether the store has not answered yet.
    pub const fn is_silent(&self) -> bool {
        self.in_flight > 0
    }

    /// Records that the daemon stops in good order ([`Store::record_stop`]).
    pub fn record_stop(&mut self, at: BootTime) -> Result<(), StoreError> {
        if self.in_flight > 0 {
            self.wait(PATIENCE)?;
        }
        let facts = std::mem::take(&mut self.queued);
        self.in_flight = facts.len().saturating_add(self.backlog).max(1);
        self.send(Order::Stop(at, facts))?;
        self.wait(SECOND)
    }

    fn send(&self, order: Order) -> Result<(), StoreError> {
        let sent = self.orders.as_ref().map(|orders| orders.send(order));
        sent.and_then(Result::ok).ok_or_else(|| self.silent())
    }

    fn wait(&mut self, limit: Duration) -> Result<(), StoreError> {
        // A thread that has ended does not answer either.
        let done = self.done.recv_timeout(limit).map_err(|_| self.silent())?;
        (self.in_flight, self.backlog) = (0, done.backlog);
        done.result
    }

    fn silent(&self) -> StoreError {
        StoreError::silent(&self.file, PATIENCE)
    }
}

impl Drop for StoreWriter {
    fn drop(&mut self) {
        drop(self.orders.take());
        let end = clock::now() + CLOSING;
        // If the thread hangs it is abandoned, and ends with the process.
        while self.done.recv_timeout(end.since(clock::now())).is_ok() {}
    }
}

fn spawn_thread(path: &Path, work: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
    let thread = thread::Builder::new().name("orphand-writer".to_owned()).spawn(work);
    thread.map(drop).map_err(|error| StoreError::file("start the writer thread of", path, &error))
}
