//! Memory and CPU time of a process, read from an open `stat`.

use std::{mem::MaybeUninit, os::fd::OwnedFd};

use rustix::io::Errno;

use super::stat;

/// The open `stat` and `statm` of a process. The kernel binds them to the process: after the process has ended, reads
/// return `ESRCH`, even if another process has the number. Of both only `statm` has the exact number of resident pages
/// (`get_mm_counter_sum()`, since Linux 6.17).
#[derive(Debug)]
pub struct UsageFile {
    pub(super) stat: OwnedFd,
    pub(super) statm: OwnedFd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Its resident set size in bytes. It is 0 for a zombie and for a thread that has exited before its process.
    pub rss_bytes: u64,
    /// Its CPU time in milliseconds, that of threads that have ended included.
    pub cpu_ms: u64,
}

/// Milliseconds per clock tick: `USER_HZ` is 100 on every architecture that orphand is built for.
const MILLIS_PER_TICK: u64 = 10;

impl UsageFile {
    pub fn read(&self) -> Result<Usage, Errno> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 1024];
        let (text, _) = rustix::io::pread(&self.statm, &mut buffer, 0)?;
        let pages = pages(text).ok_or(Errno::INVAL)?;
        let (text, _) = rustix::io::pread(&self.stat, &mut buffer, 0)?;
        let ticks = ticks(text).ok_or(Errno::INVAL)?;
        let rss_bytes = pages.saturating_mul(rustix::param::page_size() as u64);
        Ok(Usage { rss_bytes, cpu_ms: ticks.saturating_mul(MILLIS_PER_TICK) })
    }
}

/// Resident pages: the second field of `statm`.
fn pages(line: &[u8]) -> Option<u64> {
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Clock ticks: the sum of the fields 14 and 15 of `stat`.
fn ticks(line: &[u8]) -> Option<u64> {
    let mut fields = stat::fields(line)?;
    let user: u64 = fields.nth(14 - 3)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user.saturating_add(system))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_cpu_time_are_taken_from_their_fields() {
        let line = b"7 (a) R 1) S 1 7 7 0 -1 4194560 99 0 0 0 250 31 5 6 20 0 3 0 229468 1000000 4321 18446744073709551615";
        assert_eq!((ticks(line), pages(b"1000000 4321 7 1 0 2 0\n")), (Some(281), Some(4321)));
        for bad in
            [&b""[..], b"7 (a) S 1 7", b"7 a S 1", b"7 (a) S 1 7 7 0 -1 4 9 0 0 0 x 31 5 6 20 0 3 0 2 1 4 1"]
        {
            assert_eq!((ticks(bad), pages(b"12")), (None, None));
        }
    }

    #[test]
    fn what_was_computed_counts() {
        let open = |name: &str| std::fs::File::open(format!("/proc/self/{name}")).unwrap().into();
        let file = UsageFile { stat: open("stat"), statm: open("statm") };
        let before = file.read().unwrap();
        assert!(before.rss_bytes > 0);
        let begun = std::time::Instant::now();
        while file.read().unwrap().cpu_ms < before.cpu_ms + 20 {
            assert!(begun.elapsed().as_secs() < 10, "{before:?}");
        }
    }
}
