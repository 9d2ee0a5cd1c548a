//! An event writer: a bounded queue and a thread that writes.
//!
//! Invariant: the reader cannot block the caller. If the reader stalls, the queue fills, and then new notices
//! are dropped. When the reader continues, it finds a `lost` line with their number where they are missing.
//! If the reader goes away, one warning is logged and the daemon continues without it.

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

/// How many notices may be queued. The line of a server has about 2 kB.
pub const QUEUE: usize = 4096;

/// How many bytes of memory they may take: users decide how long the lines about their processes are.
const QUEUE_BYTES: usize = 8 << 20;

/// Queued lines are written together, up to about this many bytes.
const BATCH: usize = 64 * 1024;

/// The destination of an [`EventWriter`]: a file descriptor, or something that takes whole messages.
pub trait Output: Send {
    /// Up to how many bytes are collected for one write; 0: each notice is written by itself.
    const BATCH: usize;

    fn write(&mut self, text: &str) -> io::Result<()>;
}

impl<T: AsFd + Send> Output for T {
    const BATCH: usize = BATCH;

    fn write(&mut self, text: &str) -> io::Result<()> {
        Ok(write_all(self, text.as_bytes())?)
    }
}

/// A queue and a thread that writes its notices to an [`Output`].
#[derive(Debug)]
pub struct EventWriter {
    name: &'static str,
    shared: Arc<Shared>,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Signals the thread that there is something to do.
    filled: Condvar,
    /// Signals that the thread has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    items: VecDeque<Item>,
    /// The memory of the queued notices in bytes, by [`Notice::queued_bytes`].
    bytes: usize,
    dropped: u64,
    closed: bool,
    stopping: bool,
    ended: bool,
}

#[derive(Debug)]
enum Item {
    Notice(BootTime, Box<Notice>),
    /// A number of notices was dropped here; the first was caused at this time.
    Gap(BootTime, u64),
}

impl EventWriter {
    /// Starts the thread. `out` may be blocking or not. `name` is the sink's name in `lost` lines and in the
    /// log, for example `stream`.
    pub fn start(
        name: &'static str,
        out: impl Output + 'static,
        format: impl Format + 'static,
        capacity: usize,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let writer = Writer { name, out, format, shared: Arc::clone(&shared), unwritten: 0 };
        thread::Builder::new().name(format!("orphand-{name}")).spawn(move || writer.run())?;
        Ok(Self { name, shared, capacity })
    }

    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Queues a notice, or drops it if the queue is full. Never blocks.
    pub fn push(&self, at: BootTime, notice: Box<Notice>) {
        let size = notice.queued_bytes();
        let mut state = self.shared.lock();
        if state.closed {
            state.dropped += 1;
        } else if state.items.len() < self.capacity && state.bytes + size <= QUEUE_BYTES {
            state.bytes += size;
            state.items.push_back(Item::Notice(at, notice));
            drop(state);
            self.shared.filled.notify_one();
        } else {
            state.dropped += 1;
            match state.items.back_mut() {
                Some(Item::Gap(_, missing)) => *missing += 1,
                // The gap may exceed the capacity by this one entry.
                _ => state.items.push_back(Item::Gap(at, 1)),
            }
        }
    }

    /// How many notices were dropped: the queue was full, or the reader gone. Every notice is either written
    /// or counted here.
    pub fn dropped(&self) -> u64 {
        self.shared.lock().dropped
    }

    pub fn closed(&self) -> bool {
        self.shared.lock().closed
    }

    /// Writes what is queued, for at most `patience`. Returns whether everything was written. A blocked
    /// thread is left until the process ends.
    pub fn finish(self, patience: Duration) -> bool {
        let mut state = self.shared.lock();
        state.stopping = true;
        self.shared.filled.notify_one();
        let waited = self.shared.ended.wait_timeout_while(state, patience, |state| !state.ended);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.ended && !state.closed
    }
}

impl Queue {
    fn pop(&mut self) -> Option<Item> {
        let item = self.items.pop_front()?;
        if let Item::Notice(_, notice) = &item {
            self.bytes = self.bytes.saturating_sub(notice.queued_bytes());
        }
        Some(item)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // No code panics while it holds the lock, and the state would be consistent even then.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next item; `None` when everything is written and no more will come.
    fn next(&self) -> Option<Item> {
        let state = self.lock();
        let waited = self.filled.wait_while(state, |state| state.items.is_empty() && !state.stopping);
        waited.unwrap_or_else(PoisonError::into_inner).pop()
    }
}

struct Writer<O, F> {
    name: &'static str,
    out: O,
    format: F,
    shared: Arc<Shared>,
    /// Notices that were removed from the queue and are not written yet.
    unwritten: u64,
}

impl<O: Output, F: Format> Writer<O, F> {
    fn run(mut self) {
        let result = self.write_all_items();
        let mut state = self.shared.lock();
        if let Err(error) = result {
            state.closed = true;
            let waiting = state.items.drain(..).filter(|item| matches!(item, Item::Notice(..))).count();
            state.dropped += self.unwritten + u64::try_from(waiting).unwrap_or(u64::MAX);
            tracing::warn!("cannot write events to {}: {error}; orphand continues without it", self.name);
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
                let Some(item) = self.shared.lock().pop() else { break };
                self.format_item(item, &mut lines);
            }
            self.out.write(&lines)?;
            self.unwritten = 0;
        }
        Ok(())
    }

    fn format_item(&mut self, item: Item, lines: &mut String) {
        match item {
            Item::Notice(at, notice) => {
                self.unwritten += 1;
                self.format.write(at, &notice, lines);
            }
            Item::Gap(at, missing) => {
                let sink = BTreeMap::from([(self.name.to_owned(), missing)]);
                self.format.write(at, &Notice::Lost { records: Losses::default(), sink }, lines);
            }
        }
    }
}

/// Writes everything. Standard output may be non-blocking if it is shared with another program; then this
/// waits.
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
