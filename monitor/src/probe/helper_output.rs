//! Reads what a helper process of ours answers.

use std::{
    io::{self, Read as _},
    os::fd::AsFd as _,
    process::ChildStdout,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Reads the output of a helper until it ends or the time is over. Of a longer output than `longest` bytes only the
/// beginning, and up to a page more, is read.
pub(super) fn read(mut out: ChildStdout, patience: Duration, longest: usize) -> io::Result<Vec<u8>> {
    let until = Instant::now() + patience;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while answer.len() < longest {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| io::ErrorKind::TimedOut)?;
        if poll(&mut [PollFd::new(&out.as_fd(), PollFlags::IN)], Some(&left))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match out.read(&mut buffer)? {
            0 => break,
            got => answer.extend_from_slice(buffer.get(..got).unwrap_or_default()),
        }
    }
    Ok(answer)
}
