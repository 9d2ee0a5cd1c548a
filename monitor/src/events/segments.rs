//! The files of events: lines are appended, a full file is followed by a new one, the oldest is removed.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use super::{Position, is_since, seq, time_text};
use crate::{os::if_there, store};

const FULL: u64 = 4 << 20;

pub(super) const KEPT: usize = 4;

/// The bytes of the longest line that is read: a hundred times what the longest events have.
const LONGEST: u64 = 1 << 20;

pub(super) const BATCH: usize = 64 * 1024;

fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("events-{number}.ndjson"))
}

/// The numbers of the files that there are, the oldest first.
fn numbers(dir: &Path) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("events-")?.strip_suffix(".ndjson"));
        // No daemon has come further than this, and what is no file may never answer.
        let number = number.and_then(|number| number.parse::<u32>().ok());
        found.extend(number.filter(|_| entry.file_type().is_ok_and(|kind| kind.is_file())).map(u64::from));
    }
    found.sort_unstable();
    Ok(found)
}

#[derive(Debug)]
pub(super) struct Writer {
    dir: PathBuf,
    file: File,
    pub(super) end: Position,
    /// The last write failed, and may have left a part of a line.
    torn: bool,
}

impl Writer {
    /// Continues the newest file. The directory must be one that nobody else can write to.
    pub(super) fn open(dir: &Path) -> io::Result<Self> {
        store::create_directory(dir).map_err(io::Error::other)?;
        let number = numbers(dir)?.last().copied().unwrap_or(1);
        let (file, offset) = create(dir, number)?;
        // A daemon that was killed may have left a part of a line.
        let mut writer =
            Self { dir: dir.to_owned(), file, end: Position { file: number, offset }, torn: offset > 0 };
        writer.mend()?;
        Ok(writer)
    }

    pub(super) fn append(&mut self, lines: &str) -> io::Result<()> {
        self.mend()?;
        if self.end.offset >= FULL {
            let number = self.end.file + 1;
            let (file, offset) = create(&self.dir, number)?;
            (self.file, self.end) = (file, Position { file: number, offset });
            self.remove_old()?;
        }
        self.torn = true;
        self.file.write_all(lines.as_bytes())?;
        self.torn = false;
        self.end.offset += lines.len() as u64;
        Ok(())
    }

    /// Ends a line that was not written to its end.
    fn mend(&mut self) -> io::Result<()> {
        if !self.torn {
            return Ok(());
        }
        self.end.offset = self.file.seek(SeekFrom::End(0))?;
        let mut last = [0];
        if self.end.offset > 0 {
            self.file.seek(SeekFrom::End(-1))?;
            self.file.read_exact(&mut last)?;
            if last != *b"\n" {
                self.file.write_all(b"\n")?;
                self.end.offset += 1;
            }
        }
        self.torn = false;
        Ok(())
    }

    fn remove_old(&self) -> io::Result<()> {
        let all = numbers(&self.dir)?;
        let old = all.len().saturating_sub(KEPT);
        all.iter().take(old).try_for_each(|number| fs::remove_file(path(&self.dir, *number)))
    }
}

fn create(dir: &Path, number: u64) -> io::Result<(File, u64)> {
    let options = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path(dir, number));
    let file = options?;
    let offset = file.metadata()?.len();
    Ok((file, offset))
}

/// Reads whole lines from `at` on, not beyond `limit`, at least one if there is one. Returns them and where the next
/// one begins. What has been removed is passed over. Nothing is there any more once the lines are empty.
pub(super) fn read(dir: &Path, at: Position, limit: Position) -> io::Result<(Vec<String>, Position)> {
    let (first, mut at, mut lines) = (at.file, at, Vec::new());
    for number in numbers(dir)?.into_iter().filter(|number| (first..=limit.file).contains(number)) {
        if number > at.file {
            at = Position { file: number, offset: 0 };
        }
        let end = if number == limit.file { limit.offset } else { u64::MAX };
        let Some(mut file) = if_there(File::open(path(dir, number)))? else { continue };
        file.seek(SeekFrom::Start(at.offset))?;
        let mut reader = BufReader::with_capacity(BATCH, file).take(end.saturating_sub(at.offset));
        let mut bytes = 0;
        while bytes < BATCH {
            let mut line = Vec::new();
            // What is longer is no line of ours: the file is damaged from there on.
            let read = reader.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
            if line.pop() != Some(b'\n') {
                break;
            }
            at.offset += read as u64;
            bytes += read;
            lines.push(String::from_utf8_lossy(&line).into_owned());
        }
        if !lines.is_empty() {
            break;
        }
    }
    Ok((lines, at))
}

/// Hands each line since then to `take`, until that says no. Where no daemon runs. Returns how many are damaged.
pub fn stored(dir: &Path, since: Option<Timestamp>, mut take: impl FnMut(&str) -> bool) -> io::Result<usize> {
    let (since, mut damaged) = (since.map(time_text), 0);
    let limit = Position { file: u64::MAX, offset: u64::MAX };
    let mut at = Position::default();
    // A directory without files of events has none; one that is not there is an error.
    loop {
        let (lines, next) = read(dir, at, limit)?;
        if lines.is_empty() {
            return Ok(damaged);
        }
        at = next;
        for line in lines {
            if seq(&line).is_none() {
                damaged += 1;
            } else if since.as_deref().is_none_or(|since| is_since(&line, since)) && !take(&line) {
                return Ok(damaged);
            }
        }
    }
}
