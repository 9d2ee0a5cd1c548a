//! The latest events in memory, shared by the thread that writes them and all readers; and a reader: where it is, and what
//! comes next.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::sync::watch;

use super::{
    EventQuery, Position, is_since,
    segments::{self, BATCH},
    seq, time_text,
};
use crate::{
    os::lock,
    sink::{Format as _, stream::Json, wall_clock::WallClock},
};
use orphand_core::model::{BootTime, Losses, Notice};

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// These lines, each with its line feed; perhaps none of what was looked at was wanted.
    Lines(String),
    /// Nothing now: the next event has this number.
    Wait(u64),
}

#[derive(Debug)]
pub struct Reader {
    latest: Latest,
    at: Position,
    in_this_life: bool,
    expected: Option<u64>,
    /// Lines up to this number were read before, until another daemon's begin.
    read_before: u64,
    /// The next line is the first of the daemon whose lines were read before.
    at_cursor: bool,
    since: Option<String>,
}

impl Reader {
    pub fn new(latest: &Latest, query: &EventQuery) -> Self {
        let ring = latest.ring();
        let (at, expected, read_before) = match &query.after {
            Some(cursor) if cursor.life <= ring.began => {
                (cursor.life, Some(cursor.seq.saturating_add(1)), cursor.seq)
            }
            // Of a daemon with other files.
            Some(_) => (ring.began, Some(1), 0),
            None if query.follow && query.since.is_none() => (ring.end(), Some(ring.next()), 0),
            None => (Position::default(), None, 0),
        };
        let in_this_life = expected.is_some() && at >= ring.began;
        drop(ring);
        let since = query.since.filter(|_| query.after.is_none()).map(time_text);
        let (latest, at_cursor) = (latest.clone(), read_before > 0);
        Self { latest, at, in_this_life, expected, read_before, at_cursor, since }
    }

    /// The next lines. Reads a file unless they are in memory: [`Reader::is_fast`].
    pub fn step(&mut self, now: BootTime) -> Step {
        let ring = self.latest.ring();
        if let Some(from) = self.in_memory(&ring) {
            let (lines, at) = ring.batch(from);
            drop(ring);
            if lines.is_empty() {
                return Step::Wait(from);
            }
            self.at = at;
            return Step::Lines(self.take(lines.iter().map(AsRef::as_ref), now));
        }
        let (first, limit) = (ring.first, if self.in_this_life { ring.first_at } else { ring.began });
        drop(ring);
        // What cannot be read is missing like what is not there.
        let (lines, at) = segments::read(self.latest.dir(), self.at, limit).unwrap_or_default();
        if !lines.is_empty() {
            self.at_cursor &= at.file == self.at.file;
            self.at = at;
            return Step::Lines(self.take(lines.iter().map(String::as_str), now));
        }
        self.at = limit;
        let mut lost = String::new();
        if self.in_this_life {
            self.expect(first, now, &mut lost);
        } else {
            self.in_this_life = true;
            self.begin_life();
        }
        Step::Lines(lost)
    }

    pub fn is_fast(&self) -> bool {
        self.in_memory(&self.latest.ring()).is_some()
    }

    /// The number to read from memory, if that is where it is.
    fn in_memory(&self, ring: &Ring) -> Option<u64> {
        self.expected.filter(|seq| self.in_this_life && *seq >= ring.first)
    }

    fn begin_life(&mut self) {
        (self.expected, self.read_before) = (Some(1), 0);
    }

    fn take<'a>(&mut self, lines: impl Iterator<Item = &'a str>, now: BootTime) -> String {
        let mut out = String::new();
        for line in lines {
            // What is no line of the stream was cut off when a daemon was killed.
            let Some(seq) = seq(line) else { continue };
            if seq == 1 && self.expected != Some(1) && !self.at_cursor {
                self.begin_life();
            }
            self.at_cursor = false;
            if seq <= self.read_before {
                continue;
            }
            self.expect(seq, now, &mut out);
            self.expected = Some(seq + 1);
            if self.since.as_deref().is_none_or(|since| is_since(line, since)) {
                out.push_str(line);
                out.push('\n');
            }
        }
        out
    }

    /// The next line has the number `seq`: says how many are missing before it.
    fn expect(&mut self, seq: u64, now: BootTime, out: &mut String) {
        let missing = self.expected.map_or(0, |expected| seq.saturating_sub(expected));
        if missing > 0 {
            let lost =
                Notice::Lost { records: Losses::default(), sink: [("follower".to_owned(), missing)].into() };
            Json::after(self.latest.wall(), seq.saturating_sub(2)).write(now, &lost, out);
        }
        self.expected = Some(seq);
    }
}
