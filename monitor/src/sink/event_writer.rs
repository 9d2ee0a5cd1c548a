//! An event writer: a bounded queue and a thread that writes.
//!
//! Invariant: the reader cannot block the caller. If the reader stalls, the queue fills, and then new notices
//! are dropped. When the reader continues, it finds a `lost` line with their number where they are missing.
//! If the reader goes away, one warning is logged and the daemon continues without it.

use std::{
    collections::BTreeMap,
    io,
    os::fd::AsFd,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::Duration,
};

use rustix::event::{PollFd, PollFlags};

use super::Format;
use crate::os::{lock, start};
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

#[derive(Debug)]
pub struct EventWriter {
    name: &'static str,
    capacity: usize,
    items: Sender<Item>,
    state: Arc<Mutex<State>>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

#[derive(Debug, Default)]
struct State {
    /// The notices that wait, and their memory in bytes, by [`Notice::queued_bytes`].
    waiting: u64,
    bytes: usize,
    dropped: u64,
    /// So many were dropped behind those that wait; the first was caused at this time.
    gap: Option<(BootTime, u64)>,
    closed: bool,
}

#[derive(Debug)]
enum Item {
    Notice(BootTime, Box<Notice>),
    /// A number of notices was dropped here; the first was caused at this time.
    Gap(BootTime, u64),
}

impl EventWriter {
    /// Starts the thread. `out` may be blocking or not. `name` is its name in `lost` lines and in the log, such as `stream`.
    pub fn start(
        name: &'static str,
        out: impl Output + 'static,
        format: Box<dyn Format>,
        capacity: usize,
    ) -> io::Result<Self> {
        let ((items, come), (end, ended)) = (channel(), channel());
        let state = Arc::<Mutex<State>>::default();
        let writer = Writer { name, out, format, items: come, state: Arc::clone(&state), unwritten: 0 };
        start(name, move || {
            writer.run();
            drop(end);
        })?;
        Ok(Self { name, capacity, items, state, ended })
    }

    /// Queues a notice, or drops it if the queue is full. Never blocks.
    pub fn push(&self, at: BootTime, notice: Box<Notice>) {
        let size = notice.queued_bytes();
        let mut state = lock(&self.state);
        let is_full = state.waiting >= self.capacity as u64 || state.bytes + size > QUEUE_BYTES;
        if state.closed || is_full {
            state.dropped += 1;
            state.gap.get_or_insert((at, 0)).1 += 1;
            return;
        }
        state.waiting += 1;
        state.bytes += size;
        let gap = state.gap.take().map(|(at, missing)| Item::Gap(at, missing));
        for item in gap.into_iter().chain([Item::Notice(at, notice)]) {
            // The thread is there as long as it is not closed.
            let _ = self.items.send(item);
        }
    }

    /// How many notices were dropped: the queue was full, or the reader gone. All others are written.
    pub fn dropped(&self) -> u64 {
        lock(&self.state).dropped
    }

    /// Writes what is queued, for at most `patience`. Returns whether that was all. A blocked thread is left to its end.
    pub fn finish(self, patience: Duration) -> bool {
        drop(self.items);
        self.ended.recv_timeout(patience) == Err(RecvTimeoutError::Disconnected) && !lock(&self.state).closed
    }
}

/// The event writers of the daemon. Each has a queue of its own, so none of them delays another.
#[derive(Debug, Default)]
pub struct EventWriters(pub Vec<EventWriter>);

impl EventWriters {
    pub fn push(&self, at: BootTime, notice: Box<Notice>) {
        let Some((last, others)) = self.0.split_last() else { return };
        for writer in others {
            writer.push(at, notice.clone());
        }
        last.push(at, notice);
    }

    pub fn dropped(&self) -> BTreeMap<String, u64> {
        self.0.iter().map(|writer| (writer.name.to_owned(), writer.dropped())).collect()
    }

    /// Writes what is queued, for at most `patience` each.
    pub fn finish(self, patience: Duration) {
        for writer in self.0 {
            writer.finish(patience);
        }
    }
}

struct Writer<O> {
    name: &'static str,
    out: O,
    format: Box<dyn Format>,
    items: Receiver<Item>,
    state: Arc<Mutex<State>>,
    /// Notices that were taken from the queue and are not written yet.
    unwritten: u64,
}

impl<O: Output> Writer<O> {
    fn run(mut self) {
        let Err(error) = self.write_all_items() else { return };
        let mut state = lock(&self.state);
        state.closed = true;
        state.dropped += self.unwritten + state.waiting;
        drop(state);
        tracing::warn!("cannot write events to {}: {error}; orphand continues without it", self.name);
    }

    fn write_all_items(&mut self) -> io::Result<()> {
        let mut lines = String::new();
        // What was dropped comes after all that waited, and needs no further notice to come.
        while let Some(item) = self.waiting().or_else(|| self.items.recv().ok()) {
            lines.clear();
            self.format_item(item, &mut lines);
            while lines.len() < O::BATCH {
                let Some(item) = self.waiting() else { break };
                self.format_item(item, &mut lines);
            }
            self.out.write(&lines)?;
            self.unwritten = 0;
        }
        Ok(())
    }

    fn waiting(&self) -> Option<Item> {
        self.items.try_recv().ok().or_else(|| {
            let mut state = lock(&self.state);
            let (at, missing) = if state.waiting == 0 { state.gap.take()? } else { return None };
            Some(Item::Gap(at, missing))
        })
    }

    fn format_item(&mut self, item: Item, lines: &mut String) {
        match item {
            Item::Notice(at, notice) => {
                let mut state = lock(&self.state);
                state.waiting -= 1;
                state.bytes -= notice.queued_bytes();
                drop(state);
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

/// Writes everything, and waits for that: standard output may be non-blocking if it is shared with another program.
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
