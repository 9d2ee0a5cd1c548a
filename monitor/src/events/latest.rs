//! The latest events in memory, shared by the thread that writes them and all readers.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::sync::watch;

use super::{Position, segments::BATCH};
use crate::{os::lock, sink::wall_clock::WallClock};

pub(super) const BYTES: usize = 256 * 1024;

/// The latest events. A clone is the same.
#[derive(Clone, Debug)]
pub struct Latest(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    dir: PathBuf,
    wall: WallClock,
    ring: Mutex<Ring>,
    /// The number of the next event. Changes when there is one.
    next: watch::Sender<u64>,
}

#[derive(Debug)]
pub(super) struct Ring {
    pub began: Position,
    pub first_at: Position,
    /// The number of the first line in memory; of the next event, if there is none.
    pub first: u64,
    lines: VecDeque<(Arc<str>, Position)>,
    bytes: usize,
}

impl Latest {
    pub(super) fn new(dir: &Path, began: Position, wall: WallClock) -> Self {
        let ring = Ring { began, first_at: began, first: 1, lines: VecDeque::new(), bytes: 0 };
        let (ring, next) = (Mutex::new(ring), watch::Sender::new(1));
        Self(Arc::new(Shared { dir: dir.to_owned(), wall, ring, next }))
    }

    pub(super) fn dir(&self) -> &Path {
        &self.0.dir
    }

    pub fn wall(&self) -> WallClock {
        self.0.wall
    }

    /// Where the events of this daemon begin.
    pub fn life(&self) -> Position {
        self.ring().began
    }

    pub fn news(&self) -> watch::Receiver<u64> {
        self.0.next.subscribe()
    }

    /// The latest lines after this number, at most so many, and the number of the first of them.
    pub fn after(&self, number: u64, most: usize) -> (u64, Vec<Arc<str>>) {
        let ring = self.ring();
        let fits = ring.next().saturating_sub(u64::try_from(most).unwrap_or(u64::MAX));
        let first = ring.first.max(number + 1).max(fits);
        let skip = usize::try_from(first - ring.first).unwrap_or(usize::MAX);
        (first, ring.lines.iter().skip(skip).map(|(line, _)| Arc::clone(line)).collect())
    }

    pub(super) fn ring(&self) -> MutexGuard<'_, Ring> {
        lock(&self.0.ring)
    }

    pub(super) fn tell(&self) {
        let next = self.ring().next();
        self.0.next.send_replace(next);
    }
}

impl Ring {
    pub(super) fn push(&mut self, line: &str, next_at: Position) {
        self.bytes += line.len();
        self.lines.push_back((line.into(), next_at));
        while self.bytes > BYTES && self.lines.len() > 1 {
            let Some((line, next_at)) = self.lines.pop_front() else { break };
            self.bytes -= line.len();
            (self.first, self.first_at) = (self.first + 1, next_at);
        }
    }

    pub(super) fn next(&self) -> u64 {
        self.first + self.lines.len() as u64
    }

    pub(super) fn end(&self) -> Position {
        self.lines.back().map_or(self.first_at, |(_, next_at)| *next_at)
    }

    /// Lines from this number on, and where the next one begins.
    pub(super) fn batch(&self, from: u64) -> (Vec<Arc<str>>, Position) {
        let skip = usize::try_from(from.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let (mut lines, mut bytes, mut at) = (Vec::new(), 0, self.end());
        for (line, next_at) in self.lines.iter().skip(skip) {
            if bytes >= BATCH {
                break;
            }
            bytes += line.len();
            lines.push(Arc::clone(line));
            at = *next_at;
        }
        (lines, at)
    }
}
