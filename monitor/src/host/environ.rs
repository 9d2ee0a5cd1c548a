//! The whole environment of a process.
//!
//! `/proc/PID/environ` ends early and without an error if a page cannot be read, or if the process has
//! replaced its memory meanwhile (`environ_read()`, fs/proc/base.c). Therefore the length that was read is
//! compared with the length that `stat` gives.

use super::{ProcessDir, stat};

/// The most bytes that are searched. `execve(2)` accepts less for arguments and environment together: a quarter of the
/// stack limit, and never more than 6 MiB (`_STK_LIM / 4 * 3`).
const MOST: usize = 8 * 1024 * 1024;
/// The number of attempts. A process that calls exec during a search makes that search fail.
const TRIES: usize = 3;

type IsWanted<'a> = &'a mut dyn FnMut(&[u8]) -> bool;

impl ProcessDir {
    /// Whether its environment at its exec contains the entry `NAME=VALUE`, at any position. The answer is
    /// `true` if the environment cannot be read to its end, and `false` if the process has ended.
    pub fn has_environment(&self, entry: &[u8]) -> bool {
        let [found] = self.environment_has([&mut |one| one == entry]);
        found
    }

    /// The same for an entry of each of these kinds.
    pub fn environment_has<const N: usize>(&self, wanted: [IsWanted<'_>; N]) -> [bool; N] {
        self.has_within(wanted, MOST)
    }

    fn has_within<const N: usize>(&self, wanted: [IsWanted<'_>; N], most: usize) -> [bool; N] {
        match (0..TRIES).find_map(|_| self.whole_environment(most)) {
            Some(environ) => wanted.map(|is_wanted| environ.split(|byte| *byte == 0).any(is_wanted)),
            None => [self.still_alive(); N],
        }
    }

    /// Its whole environment at its exec; `None` if it has more than `most` bytes or cannot be read to its end.
    pub fn whole_environment(&self, most: usize) -> Option<Vec<u8>> {
        let before = self.place()?;
        let (bytes, more) = self.file("environ", most).ok()?;
        let is_whole = u64::try_from(bytes.len()) == Ok(before.1.saturating_sub(before.0));
        (is_whole && !more && self.place() == Some(before)).then_some(bytes)
    }

    /// The position of the environment in the memory of the process: the address of its first byte, and the
    /// address after its last byte. `None` if the kernel does not show it: there is no permission (both are 0
    /// then), or the process has no memory.
    fn place(&self) -> Option<(u64, u64)> {
        let (line, _) = self.file("stat", 4096).ok()?;
        parse_place(&line).filter(|place| *place != (0, 0))
    }
}

/// Fields 50 and 51 of `stat`.
fn parse_place(line: &[u8]) -> Option<(u64, u64)> {
    let mut fields = stat::fields(line)?;
    Some((fields.nth(50 - 3)?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests;
