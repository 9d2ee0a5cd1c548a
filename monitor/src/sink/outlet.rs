//! The way out of the daemon: a bounded queue and a thread that writes.
//!
//! Invariant: nothing the reader does can hold up the caller. A reader that stalls fills the queue; from then
//! on the newest notices are dropped, and where they are missing the reader finds a `lost` line with their
//! number once it reads again. A reader that goes away is one warning, and the daemon goes on without it.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    os::fd::AsFd,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use rustix::event::{PollFd, PollFlags};

use super::Format;
use orphand_core::model::{BootTime, Losses, Notice};

/// Notices that may wait for their reader. A server's line has some 2 kB.
pub const QUEUE: usize = 4096;

/// What they may take together, in bytes: users decide how long the lines about their processes are.
const QUEUE_BYTES: usize = 8 << 20;

/// Lines are handed to the system together while there are more, up to about this many bytes.
const BATCH: usize = 64 * 1024;

/// What an [`Outlet`] writes to: any file descriptor, and what takes whole messages.
pub trait Target: Send {
    /// How many bytes are handed over together before the next notice is formatted; 0: one notice at a time.
    const BATCH: usize;

    /// Hands all of it over, however long that takes.
    fn write(&mut self, text: &str) -> io::Result<()>;
}

impl<T: AsFd + Send> Target for T {
    const BATCH: usize = BATCH;

    fn write(&mut self, text: &str) -> io::Result<()> {
        Ok(write_all(self, text.as_bytes())?)
    }
}

/// A sink that writes to a [`Target`].
#[derive(Debug)]
pub struct Outlet {
    name: &'static str,
    shared: Arc<Shared>,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Something for the writer to do.
    filled: Condvar,
    /// The writer has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Item>,
    /// What the notices in it take, by [`Notice::queued_bytes`].
    bytes: usize,
    dropped: u64,
    closed: bool,
    stopping: bool,
    ended: bool,
}

#[derive(Debug)]
enum Item {
    Notice(BootTime, Box<Notice>),
    /// So many notices are missing here, the first of them caused then.
    Gap(BootTime, u64),
}

impl Outlet {
    /// Starts to write to `out`, which may be non-blocking or not. `name` is the sink's name in `lost` lines
    /// and in the log, `stream`.
    pub fn start(
        name: &'static str,
        out: impl Target + 'static,
        format: impl Format + 'static,
        capacity: usize,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let writer = Writer { name, out, format, shared: Arc::clone(&shared), in_hand: 0 };
        thread::Builder::new().name(format!("orphand-{name}")).spawn(move || writer.run())?;
        Ok(Self { name, shared, capacity })
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Takes a notice over. Never blocks.
    pub fn push(&self, at: BootTime, notice: Box<Notice>) {
        let weight = notice.queued_bytes();
        let mut state = self.shared.lock();
        if state.closed {
            state.dropped += 1;
        } else if state.queue.len() < self.capacity && state.bytes + weight <= QUEUE_BYTES {
            state.bytes += weight;
            state.queue.push_back(Item::Notice(at, notice));
            drop(state);
            self.shared.filled.notify_one();
        } else {
            state.dropped += 1;
            match state.queue.back_mut() {
                Some(Item::Gap(_, missing)) => *missing += 1,
                // The one entry beyond the capacity.
                _ => state.queue.push_back(Item::Gap(at, 1)),
            }
        }
    }

    /// Notices that did not reach the reader: the queue was full, or the reader gone. Written and dropped are
    /// together all that were pushed.
    pub fn dropped(&self) -> u64 {
        self.shared.lock().dropped
    }

    /// Whether the reader is gone.
    pub fn closed(&self) -> bool {
        self.shared.lock().closed
    }

    /// Writes what is left, for at most `patience`; whether all of it was written. A writer that hangs is left
    /// to the end of the process.
    pub fn finish(self, patience: Duration) -> bool {
        let mut state = self.shared.lock();
        state.stopping = true;
        self.shared.filled.notify_one();
        let waited = self.shared.ended.wait_timeout_while(state, patience, |state| !state.ended);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.ended && !state.closed
    }
}

impl State {
    fn take(&mut self) -> Option<Item> {
        let item = self.queue.pop_front()?;
        if let Item::Notice(_, notice) = &item {
            self.bytes = self.bytes.saturating_sub(notice.queued_bytes());
        }
        Some(item)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics with the lock held; and if it did, the state would still be whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next item, or nothing when all is written and no more will come.
    fn next(&self) -> Option<Item> {
        let state = self.lock();
        let waited = self.filled.wait_while(state, |state| state.queue.is_empty() && !state.stopping);
        waited.unwrap_or_else(PoisonError::into_inner).take()
    }
}

struct Writer<O, F> {
    name: &'static str,
    out: O,
    format: F,
    shared: Arc<Shared>,
    /// Notices taken from the queue and not written yet.
    in_hand: u64,
}

impl<O: Target, F: Format> Writer<O, F> {
    fn run(mut self) {
        let result = self.write_all_items();
        let mut state = self.shared.lock();
        if let Err(error) = result {
            state.closed = true;
            let waiting = state.queue.drain(..).filter(|item| matches!(item, Item::Notice(..))).count();
            state.dropped += self.in_hand + u64::try_from(waiting).unwrap_or(u64::MAX);
            tracing::warn!("{}: {error}; going on without it, events are no longer written there", self.name);
        }
        state.ended = true;
        drop(state);
        self.shared.ended.notify_all();
    }

    fn write_all_items(&mut self) -> io::Result<()> {
        let mut lines = String::new();
        while let Some(item) = self.shared.next() {
            lines.clear();
            self.format_item(item, &mut lines);
            while lines.len() < O::BATCH {
                let Some(item) = self.shared.lock().take() else { break };
                self.format_item(item, &mut lines);
            }
            self.out.write(&lines)?;
            self.in_hand = 0;
        }
        Ok(())
    }

    fn format_item(&mut self, item: Item, lines: &mut String) {
        match item {
            Item::Notice(at, notice) => {
                self.in_hand += 1;
                self.format.write(at, &notice, lines);
            }
            Item::Gap(at, missing) => {
                let sink = BTreeMap::from([(self.name.to_owned(), missing)]);
                self.format.write(at, &Notice::Lost { records: Losses::default(), sink }, lines);
            }
        }
    }
}

/// Writes everything. Standard output may have been made non-blocking by whoever shares it: then waits.
fn write_all(out: impl AsFd, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(&out, bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => {
                match rustix::event::poll(&mut [PollFd::new(&out, PollFlags::OUT)], None) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error),
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
