//! The environment of a process, read to its very end.
//!
//! Invariant: "the entry is not there" is said only of an environment that was seen whole. `/proc/PID/environ` ends early
//! without an error where a page cannot be read and where the process has replaced its memory meanwhile (`environ_read()`,
//! fs/proc/base.c): so the length that was read is compared with the one that `stat` names.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{Mode, OFlags, openat},
    io::Errno,
};

use super::read;

/// Bytes looked at, at most: more than `execve(2)` takes of arguments and environment together, which is a quarter of the
/// stack's limit and never more than 6 MiB (`_STK_LIM / 4 * 3`).
const MOST: usize = 32 * 1024 * 1024;
/// Bytes of one read.
const CHUNK: usize = 64 * 1024;
/// The process may call exec while it is looked at: so often it is begun anew.
const TRIES: usize = 3;

/// What a look through an environment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// The entry is there.
    Found,
    /// It was read to its end, and the entry is not there.
    Absent,
    /// It could not be read to its end.
    Unseen,
}

/// Looks for this whole entry, `NAME=VALUE`, in the environment behind a directory of /proc.
pub(super) fn find(dir: &OwnedFd, entry: &[u8]) -> Sight {
    find_within(dir, entry, MOST)
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
    let whole = place(dir) == Some(before) && u64::try_from(length) == Ok(before.1.saturating_sub(before.0));
    if whole { Sight::Absent } else { Sight::Unseen }
}

/// Where the environment is in the memory of the process: its first byte, and the one behind its last. Nothing where that is
/// not shown: no permission (both are 0 then), or no memory.
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

/// A search for one entry among those that a NUL ends, in pieces of any size.
struct Search<'a> {
    entry: &'a [u8],
    /// So many bytes of the current entry are those of the one looked for; nothing if one differs.
    matched: Option<usize>,
}

impl<'a> Search<'a> {
    fn new(entry: &'a [u8]) -> Self {
        Self { entry, matched: Some(0) }
    }

    /// Looks at the next bytes. Whether the entry ended among them.
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

    /// Whether the current entry, if it ends here, is the one looked for. The last one may end without a NUL.
    fn ends(&self) -> bool {
        self.matched == Some(self.entry.len())
    }
}

#[cfg(test)]
mod tests;
