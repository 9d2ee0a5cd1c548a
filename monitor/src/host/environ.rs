//! Searches the environment of a process, up to its very end.
//!
//! Invariant: the result "absent" is given only for an environment that was read completely.
//! `/proc/PID/environ` ends early and without an error if a page cannot be read, or if the process has
//! replaced its memory meanwhile (`environ_read()`, fs/proc/base.c). Therefore the length that was read is
//! compared with the length that `stat` gives.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{Mode, OFlags, openat},
    io::Errno,
};

use super::{ProcessDir, read};

/// The most bytes that are searched. It is more than `execve(2)` accepts for arguments and environment
/// together, which is a quarter of the stack limit and never more than 6 MiB (`_STK_LIM / 4 * 3`).
const MOST: usize = 32 * 1024 * 1024;
/// The size of one read, in bytes.
const CHUNK: usize = 64 * 1024;
/// The number of attempts. A process that calls exec during a search makes that search fail.
const TRIES: usize = 3;

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// The entry is there.
    Found,
    /// The environment was read to its end, and the entry is not there.
    Absent,
    /// The environment could not be read to its end.
    Unseen,
}

/// Searches for the complete entry `NAME=VALUE` in the environment of the process behind `dir`.
pub(super) fn find(dir: &OwnedFd, entry: &[u8]) -> Sight {
    find_within(dir, entry, MOST)
}

impl ProcessDir {
    /// Its whole environment at its exec; `None` if it has more than `most` bytes or cannot be read to its end.
    pub fn whole_environment(&self, most: usize) -> Option<Vec<u8>> {
        let _at = self.at().ok()?;
        let dir = self.body();
        let before = place(dir)?;
        let (bytes, more) = read(dir, "environ", most).ok()?;
        let is_whole = is_all(bytes.len(), before) && place(dir) == Some(before);
        (is_whole && !more).then_some(bytes)
    }
}

fn find_within(dir: &OwnedFd, entry: &[u8], most: usize) -> Sight {
    (0..TRIES)
        .map(|_| find_once(dir, entry, most))
        .find(|sight| *sight != Sight::Unseen)
        .unwrap_or(Sight::Unseen)
}

fn find_once(dir: &OwnedFd, entry: &[u8], most: usize) -> Sight {
    let Some(before) = place(dir) else { return Sight::Unseen };
    let Ok(file) = openat(dir, "environ", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else {
        return Sight::Unseen;
    };
    let mut search = Search::new(entry);
    let mut chunk = Vec::with_capacity(CHUNK);
    let mut length = 0_usize;
    loop {
        chunk.clear();
        match rustix::io::read(&file, rustix::buffer::spare_capacity(&mut chunk)) {
            Ok(0) => break,
            Ok(got) => length = length.saturating_add(got),
            Err(Errno::INTR) => continue,
            Err(_) => return Sight::Unseen,
        }
        if search.feed(&chunk) {
            return Sight::Found;
        }
        if length > most {
            return Sight::Unseen;
        }
    }
    if search.ends() {
        return Sight::Found;
    }
    let whole = place(dir) == Some(before) && is_all(length, before);
    if whole { Sight::Absent } else { Sight::Unseen }
}

/// Whether this is the length of an environment at this place.
fn is_all(length: usize, (first, end): (u64, u64)) -> bool {
    u64::try_from(length) == Ok(end.saturating_sub(first))
}

/// The position of the environment in the memory of the process: the address of its first byte, and the
/// address after its last byte. `None` if the kernel does not show it: there is no permission (both are 0
/// then), or the process has no memory.
fn place(dir: &OwnedFd) -> Option<(u64, u64)> {
    let (line, _) = read(dir, "stat", 4096).ok()?;
    parse_place(&line).filter(|place| *place != (0, 0))
}

fn parse_place(stat: &[u8]) -> Option<(u64, u64)> {
    let name_end = stat.iter().rposition(|&b| b == b')')?;
    let mut fields = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?.split_ascii_whitespace();
    // proc_pid_stat(5): fields 50 and 51; after the name comes field 3.
    Some((fields.nth(50 - 3)?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// An incremental search for one entry in a list of entries that each end with a NUL. The input may come in
/// pieces of any size.
struct Search<'a> {
    entry: &'a [u8],
    /// The number of bytes of the current entry that match so far; `None` after a mismatch.
    matched: Option<usize>,
}

impl<'a> Search<'a> {
    fn new(entry: &'a [u8]) -> Self {
        Self { entry, matched: Some(0) }
    }

    /// Searches the next bytes. Returns whether the wanted entry ended among them.
    fn feed(&mut self, bytes: &[u8]) -> bool {
        for &byte in bytes {
            if byte != 0 {
                self.matched = self.matched.filter(|at| self.entry.get(*at) == Some(&byte)).map(|at| at + 1);
            } else if self.ends() {
                return true;
            } else {
                self.matched = Some(0);
            }
        }
        false
    }

    /// Whether the current entry, if it ends here, is the wanted one. The last entry may lack its NUL.
    fn ends(&self) -> bool {
        self.matched == Some(self.entry.len())
    }
}

#[cfg(test)]
mod tests;
