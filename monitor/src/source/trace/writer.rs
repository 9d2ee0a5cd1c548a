//! Writes a trace. Recording never stops the daemon, nor does it hold it up: when the disk is full, or nobody reads the pipe, it
//! ends with one warning.

use std::{
    collections::VecDeque,
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt},
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, bail};
use rustix::{
    fs::OFlags,
    io::{Errno, ioctl_fionbio},
};

use orphand_core::model::{BootTime, Input, TraceEntry, TraceHeader};

/// How every trace begins, of any version.
pub(super) const BEGINNING: &[u8] = br#"{"orphand_trace":"#;

/// What was recorded longer ago than this is in the file, as long as more is recorded.
const FLUSH_AFTER: Duration = Duration::from_secs(1);
/// So many bytes are written together.
const TOGETHER: usize = 256 << 10;
/// So many bytes may wait for the reader of a pipe. One who is further behind ends the recording.
const MOST: usize = 16 << 20;
/// At the end, for what still waits.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two tries then.
const AGAIN: Duration = Duration::from_millis(10);

pub struct TraceWriter {
    path: PathBuf,
    /// Nothing after a failure.
    pub(super) file: Option<Box<dyn Write + Send>>,
    line: Vec<u8>,
    /// What is still to be written.
    waiting: VecDeque<u8>,
    flushed: BootTime,
}

impl TraceWriter {
    /// Begins a recording at `path`, in place of an older one if there is one. A file that is not a trace is
    /// left alone.
    pub fn create(path: &Path, header: &TraceHeader) -> Result<Self> {
        let fail = |error| failed(path, &error);
        // Whoever puts a link there would choose what we overwrite.
        let way = OFlags::NOFOLLOW.bits().cast_signed();
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).mode(0o600).custom_flags(way);
        let file = options.open(path).or_else(|error| {
            // A pipe or a device may be there to be written only.
            let other = !path.is_file() && !path.is_symlink();
            if other { OpenOptions::new().write(true).custom_flags(way).open(path) } else { Err(error) }
        });
        let mut file = file.map_err(|error| match error.raw_os_error() {
            Some(code) if code == Errno::LOOP.raw_os_error() && path.is_symlink() => {
                anyhow!(
                    "{} is a link: a recording goes only into a file that is named itself; give the file that is meant to --record",
                    path.display()
                )
            }
            _ => fail(error),
        })?;
        if file.metadata().map_err(fail)?.is_file() {
            if !is_ours(&mut file).map_err(fail)? {
                bail!(
                    "{} exists and is not a trace: it was left as it is; choose another file for --record",
                    path.display()
                );
            }
            file.set_len(0).map_err(fail)?;
            rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0)).map_err(|errno| fail(errno.into()))?;
        }
        if file.metadata().map_err(fail)?.file_type().is_fifo() {
            ioctl_fionbio(&file, true).map_err(|errno| fail(errno.into()))?;
        }
        Self::new(path, file, header)
    }

    /// Begins a recording in `file`; `path` is what errors call it.
    pub fn new(path: &Path, file: impl Write + Send + 'static, header: &TraceHeader) -> Result<Self> {
        let fail = |error: io::Error| failed(path, &error);
        let mut file: Box<dyn Write + Send> = Box::new(file);
        let mut line = serde_json::to_vec(header).map_err(|error| fail(error.into()))?;
        line.push(b'\n');
        let mut waiting = VecDeque::from(line);
        pour(&mut waiting, &mut *file).map_err(fail)?;
        let (line, flushed) = (Vec::new(), BootTime::default());
        Ok(Self { path: path.to_owned(), file: Some(file), line, waiting, flushed })
    }

    /// Records `input`, about to be handed in at `at`. Does nothing once recording has failed.
    pub fn record(&mut self, at: BootTime, input: &Input) {
        if self.file.is_none() {
            return;
        }
        self.line.clear();
        let written = serde_json::to_writer(&mut self.line, &TraceEntry { at, input });
        self.line.push(b'\n');
        self.waiting.extend(&self.line);
        self.settle(written.map_err(io::Error::from));
        if at.since(self.flushed) >= FLUSH_AFTER || self.waiting.len() > TOGETHER {
            self.flushed = at;
            self.flush();
        }
    }

    /// Puts into the file what was recorded so far: before the daemon sleeps, and at its end. What a pipe has no room for
    /// waits.
    pub fn flush(&mut self) {
        let flushed = self.file.as_mut().map_or(Ok(()), |file| pour(&mut self.waiting, &mut **file));
        self.settle(flushed);
    }

    fn settle(&mut self, result: io::Result<()>) {
        let Err(error) = result else { return };
        tracing::warn!("recording to {} ended: {error}; going on without", self.path.display());
        (self.file, self.waiting) = (None, VecDeque::new());
    }
}

impl Drop for TraceWriter {
    /// Waits a moment for the reader of a pipe.
    fn drop(&mut self) {
        let began = Instant::now();
        self.flush();
        while !self.waiting.is_empty() && began.elapsed() < PATIENCE {
            sleep(AGAIN);
            self.flush();
        }
    }
}

/// Writes what waits, as far as there is room.
fn pour(waiting: &mut VecDeque<u8>, file: &mut dyn Write) -> io::Result<()> {
    while !waiting.is_empty() {
        match file.write(waiting.as_slices().0) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => drop(waiting.drain(..written)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(_) if waiting.len() <= MOST => break,
            Err(_) => {
                let why = format!("{} MiB wait to be written: whoever reads it is too slow", MOST >> 20);
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
        }
    }
    Ok(())
}

fn failed(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!("cannot create the trace {}: {error}", path.display())
}

fn is_ours(file: &mut File) -> io::Result<bool> {
    let mut beginning = Vec::new();
    file.take(BEGINNING.len() as u64).read_to_end(&mut beginning)?;
    Ok(beginning.is_empty() || beginning == BEGINNING)
}
