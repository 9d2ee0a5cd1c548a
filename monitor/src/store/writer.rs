//! The thread that writes, so that no disk holds the daemon: whoever hands facts over waits for it a moment, and no longer.
//!
//! A write(2) into a file system that hangs (a network's, a frozen one, a disk that is going) does not come back, and nothing can
//! end it. So the store lives on a thread of its own. As a rule it answers within microseconds, and what was handed over is safe
//! before anything follows from it. If it does not, that is told, and facts wait here until it does.

use std::{
    io,
    path::{Path, PathBuf},
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError},
    thread,
    time::Duration,
};

use super::{Opening, Store, StoreError, backlog::Backlog};
use crate::os::clock;
use orphand_core::model::{BootTime, Fact, Knowledge};

/// Of each second the store may hold the daemon so long.
const PATIENCE: Duration = Duration::from_millis(250);
const SECOND: Duration = Duration::from_secs(1);
/// For the store to be opened, which reads up to some megabytes.
const OPENING: Duration = Duration::from_secs(10);
/// For the store to be closed: the log is copied, fsync(2) is called.
const CLOSING: Duration = Duration::from_secs(5);

enum Order {
    Write(Backlog),
    /// The daemon stops in good order.
    Stop(BootTime, Backlog),
}

/// How an order was carried out.
struct Done {
    result: Result<(), StoreError>,
    /// Facts that the store could not write yet.
    left: usize,
}

/// The store on its thread. At most one order is under way.
#[derive(Debug)]
pub struct Writer {
    file: PathBuf,
    /// None: it is told to end.
    orders: Option<Sender<Order>>,
    /// Closed when the store is.
    done: Receiver<Done>,
    /// Not handed over yet.
    waiting: Backlog,
    /// Handed over, and not answered for yet.
    under_way: usize,
    /// Facts that wait in the store.
    left: usize,
    /// The second in which was waited, and how long.
    second: BootTime,
    waited: Duration,
}

impl Writer {
    /// Opens the store in `dir` ([`Store::open`]), and gives what earlier daemons knew. It is a failure if that takes longer than
    /// ten seconds.
    pub fn open(dir: &Path, boot_id: &str, offset_ns: i64) -> Result<(Self, Opening, Knowledge), StoreError> {
        let (give, opened) = mpsc::channel();
        let (folder, boot_id) = (dir.to_owned(), boot_id.to_owned());
        // One that hangs is left behind.
        spawn(dir, move || drop(give.send(Store::open(&folder, &boot_id, offset_ns))))?;
        let (mut store, opening) = opened
            .recv_timeout(OPENING)
            .map_err(|_| StoreError::Silent { path: dir.to_owned(), waited: OPENING })??;
        let knowledge = store.knowledge();
        Ok((Self::of(store)?, opening, knowledge))
    }

    /// Hands the store to a thread.
    pub(super) fn of(mut store: Store) -> Result<Self, StoreError> {
        let file = store.file.clone();
        let (orders, inbox) = mpsc::channel();
        let (tell, done) = mpsc::channel();
        spawn(&file, move || {
            for order in inbox {
                let (facts, stop) = match order {
                    Order::Write(facts) => (facts, None),
                    Order::Stop(at, facts) => (facts, Some(at)),
                };
                facts.into_iter().for_each(|(at, fact)| store.pending.push(at, fact));
                let result = match stop {
                    None => store.commit(),
                    Some(at) => store.stopped(at),
                };
                // It may have stopped waiting.
                let _ = tell.send(Done { result, left: store.pending() });
            }
            // Before `tell`: its end says that the store is closed.
            drop(store);
            drop(tell);
        })?;
        Ok(Self {
            file,
            orders: Some(orders),
            done,
            waiting: Backlog::default(),
            under_way: 0,
            left: 0,
            second: clock::now(),
            waited: Duration::ZERO,
        })
    }

    /// Takes note of what became known at `at`. Costs next to nothing; durable with the next [`Writer::commit`].
    pub fn remember(&mut self, at: BootTime, fact: &Fact) {
        self.waiting.push(at, fact.clone());
    }

    /// Writes what was remembered. After an `Ok` it survives the daemon, however that ends. After an error it is kept in memory,
    /// as far as there is room, and tried again with a later call. Of each second no more than a quarter is spent here.
    pub fn commit(&mut self) -> Result<(), StoreError> {
        if self.pending() == 0 {
            return Ok(());
        }
        if self.under_way > 0 {
            match self.done.try_recv() {
                Ok(done) => self.take(done)?,
                Err(TryRecvError::Empty) => return Err(self.silent()),
                Err(TryRecvError::Disconnected) => return Err(self.ended()),
            }
            if self.pending() == 0 {
                return Ok(());
            }
        }
        let facts = std::mem::take(&mut self.waiting);
        self.under_way = facts.len().saturating_add(self.left);
        self.send(Order::Write(facts))?;
        let now = clock::now();
        if now.since(self.second) >= SECOND {
            (self.second, self.waited) = (now, Duration::ZERO);
        }
        let answer = self.wait(PATIENCE.saturating_sub(self.waited));
        self.waited += clock::now().since(now);
        answer
    }

    /// Facts that are remembered and not durable yet.
    pub fn pending(&self) -> usize {
        // What waits in the store is under way with every order.
        self.waiting.len() + self.under_way.max(self.left)
    }

    /// Whether the store has not answered yet.
    pub const fn is_silent(&self) -> bool {
        self.under_way > 0
    }

    /// The daemon stops in good order ([`Store::stopped`]).
    pub fn stopped(&mut self, at: BootTime) -> Result<(), StoreError> {
        if self.under_way > 0 {
            self.wait(PATIENCE)?;
        }
        let facts = std::mem::take(&mut self.waiting);
        self.under_way = facts.len().saturating_add(self.left).max(1);
        self.send(Order::Stop(at, facts))?;
        self.wait(SECOND)
    }

    fn send(&self, order: Order) -> Result<(), StoreError> {
        let sent = self.orders.as_ref().map(|orders| orders.send(order));
        sent.and_then(Result::ok).ok_or_else(|| self.ended())
    }

    fn wait(&mut self, limit: Duration) -> Result<(), StoreError> {
        match self.done.recv_timeout(limit) {
            Ok(done) => self.take(done),
            Err(RecvTimeoutError::Timeout) => Err(self.silent()),
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
        }
    }

    fn take(&mut self, done: Done) -> Result<(), StoreError> {
        (self.under_way, self.left) = (0, done.left);
        done.result
    }

    fn silent(&self) -> StoreError {
        StoreError::Silent { path: self.file.clone(), waited: PATIENCE }
    }

    fn ended(&self) -> StoreError {
        let source = io::Error::other("its thread has ended");
        StoreError::File { operation: "write", path: self.file.clone(), source }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.orders.take());
        let end = clock::now() + CLOSING;
        // One that hangs is left behind: it ends with the process.
        while self.done.recv_timeout(end.since(clock::now())).is_ok() {}
    }
}

fn spawn(path: &Path, work: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
    let thread = thread::Builder::new().name("orphand-writer".to_owned()).spawn(work);
    thread.map(drop).map_err(|source| StoreError::File {
        operation: "start a thread for",
        path: path.to_owned(),
        source,
    })
}
