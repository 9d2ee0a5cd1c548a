//! One reader: where it is, and what comes next.

use super::{EventQuery, Latest, Position, is_since, segments, seq, time_text};
use crate::sink::{Format as _, stream::Json};
use orphand_core::model::{BootTime, Losses, Notice};

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

    /// Whether the next step reads no file.
    pub fn is_fast(&self) -> bool {
        self.in_memory(&self.latest.ring()).is_some()
    }

    /// The number to read from memory, if that is where it is.
    fn in_memory(&self, ring: &super::latest::Ring) -> Option<u64> {
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
