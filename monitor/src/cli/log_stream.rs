//! Writes the log to a standard error that is not the journal. A reader that does not read delays nobody.
//!
//! Invariant: a line is written only if that does not block. Otherwise it is dropped, and the next line that
//! can be written says how many are missing. Used only by [`crate::cli::logging`].

use std::{
    fs::File,
    io::{self, IsTerminal, Write},
    os::fd::{AsFd as _, OwnedFd},
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use orphand_core::model::text;

/// A writable pipe accepts this many bytes without blocking (`PIPE_BUF`).
const AT_ONCE: usize = 4096;

/// Writes log lines without blocking.
#[derive(Debug)]
pub struct NonBlockingLog {
    /// Absent if the descriptor could not be duplicated; then nothing is logged.
    out: Option<File>,
    lost: AtomicU64,
    /// Whether the log contains colours, because it goes to a terminal.
    colours: bool,
}

impl NonBlockingLog {
    /// Writes to standard error.
    pub fn to_stderr() -> Self {
        Self::to(io::stderr().as_fd().try_clone_to_owned().ok())
    }

    fn to(out: Option<OwnedFd>) -> Self {
        let colours = out.as_ref().is_some_and(IsTerminal::is_terminal);
        Self { out: out.map(File::from), lost: AtomicU64::default(), colours }
    }

    fn line(&self, line: &[u8]) -> io::Result<()> {
        let lost = self.lost.load(Ordering::Relaxed);
        if lost > 0 {
            let notice = format!("{lost} lines of the log are missing here: they were not read in time\n");
            if self.write(notice.as_bytes())? {
                self.lost.fetch_sub(lost, Ordering::Relaxed);
            } else {
                self.lost.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
        }
        if !self.write(line)? {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Writes as much as is possible without blocking. Returns whether that was everything.
    fn write(&self, text: &[u8]) -> io::Result<bool> {
        let Some(out) = &self.out else { return Ok(false) };
        for piece in text.chunks(AT_ONCE) {
            let mut ready = [PollFd::new(out, PollFlags::OUT)];
            let now = Timespec::default();
            if poll(&mut ready, Some(&now))? == 0 {
                return Ok(false);
            }
            (&mut &*out).write_all(piece)?;
        }
        Ok(true)
    }
}

impl Write for &NonBlockingLog {
    /// `tracing` calls this once for a whole line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let shown = String::from_utf8_lossy(line);
        self.line(text::log_line(&shown, self.colours).as_bytes()).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_name_begins_no_other_line() {
        let (mut reader, writer) = io::pipe().unwrap();
        let log = NonBlockingLog::to(Some(writer.into()));
        (&log).write_all(b"WARN a\nERROR forged\x1b[2J\n").unwrap();
        drop(log);
        let mut heard = String::new();
        reader.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "WARN a\\nERROR forged\\x1b[2J\n");
    }

    #[test]
    fn a_reader_that_sleeps_delays_nobody_and_hears_how_much_it_missed() {
        let (mut reader, writer) = io::pipe().unwrap();
        let log = NonBlockingLog::to(Some(writer.into()));
        let line = [&[b'x'; 999][..], b"\n"].concat();
        for _ in 0..1000 {
            (&log).write_all(&line).unwrap();
        }
        let lost = log.lost.load(Ordering::Relaxed);
        assert!((900..1000).contains(&lost), "{lost}");
        let mut heard = vec![0; 1 << 20];
        let got = reader.read(&mut heard).unwrap();
        assert_eq!(got, (1000 - usize::try_from(lost).unwrap()) * 1000);
        (&log).write_all(b"again\n").unwrap();
        let got = reader.read(&mut heard).unwrap();
        let notice = String::from_utf8_lossy(&heard[..got]).into_owned();
        assert_eq!(
            notice,
            format!("{lost} lines of the log are missing here: they were not read in time\nagain\n")
        );
        drop(reader);
        assert!((&log).write_all(b"to nobody\n").is_err());
    }
}
