//! The memory of a process, read from an open `statm`.

use std::{mem::MaybeUninit, os::fd::OwnedFd};

use rustix::io::Errno;

/// An open `/proc/PID/statm`. The kernel binds it to the process: after the process has ended, reads return
/// `ESRCH`, even if the pid is reused.
#[derive(Debug)]
pub struct Statm(pub(super) OwnedFd);

impl Statm {
    /// The present resident set size in bytes. It is 0 for a zombie and for a thread that has exited before
    /// its process.
    pub fn resident_bytes(&self) -> Result<u64, Errno> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 256];
        let (text, _) = rustix::io::pread(&self.0, &mut buffer, 0)?;
        let pages = resident_pages(text).ok_or(Errno::INVAL)?;
        Ok(pages.saturating_mul(rustix::param::page_size() as u64))
    }
}

/// The second field: resident pages.
fn resident_pages(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_field_counts() {
        assert_eq!(resident_pages(b"100 7 3 1 0 9 0\n"), Some(7));
        for bad in [&b""[..], b"100", b"100 x", b"\xff 7"] {
            assert_eq!(resident_pages(bad), None);
        }
    }
}
