//! Writes a trace. Recording never stops the daemon, nor does it hold it up: when the disk is full, or nobody reads the pipe, it
//! ends with one warning.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufWriter, Read, Write},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Result, anyhow, bail};
use rustix::{fs::OFlags, io::Errno};

use super::outflow::Outflow;
use orphand_core::model::{BootTime, Input, TraceHeader};

/// How every trace begins, of any version.
pub(super) const BEGINNING: &[u8] = br#"{"orphand_trace":"#;

/// What was recorded longer ago than this is in the file, as long as more is recorded.
const FLUSH_AFTER: Duration = Duration::from_secs(1);

pub struct TraceWriter {
    path: PathBuf,
    /// Nothing after a failure.
    file: Option<BufWriter<Box<dyn Write + Send>>>,
    line: Vec<u8>,
    flushed: BootTime,
}

impl std::fmt::Debug for TraceWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceWriter")
            .field("path", &self.path)
            .field("recording", &self.recording())
            .finish_non_exhaustive()
    }
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
            return Self::new(path, Outflow::to(file).map_err(fail)?, header);
        }
        Self::new(path, file, header)
    }

    /// Begins a recording in `file`; `path` is what errors call it.
    pub fn new(path: &Path, file: impl Write + Send + 'static, header: &TraceHeader) -> Result<Self> {
        let fail = |error: io::Error| failed(path, &error);
        let mut file: BufWriter<Box<dyn Write + Send>> = BufWriter::with_capacity(256 * 1024, Box::new(file));
        let mut line = serde_json::to_vec(header).map_err(|error| fail(error.into()))?;
        line.push(b'\n');
        file.write_all(&line).and_then(|()| file.flush()).map_err(fail)?;
        Ok(Self { path: path.to_owned(), file: Some(file), line, flushed: BootTime::default() })
    }

    /// Records `input`, about to be handed in at `at`. Does nothing once recording has failed.
    pub fn record(&mut self, at: BootTime, input: &Input) {
        let Some(file) = &mut self.file else { return };
        self.line.clear();
        let written = serde_json::to_writer(&mut self.line, &Line { at, input }).map_err(io::Error::from);
        self.line.push(b'\n');
        let written = written.and_then(|()| file.write_all(&self.line));
        self.settle(written);
        if at.since(self.flushed) >= FLUSH_AFTER {
            self.flushed = at;
            self.flush();
        }
    }

    /// Puts into the file what was recorded so far: before the daemon sleeps, and at its end.
    pub fn flush(&mut self) {
        let flushed = self.file.as_mut().map_or(Ok(()), Write::flush);
        self.settle(flushed);
    }

    pub const fn recording(&self) -> bool {
        self.file.is_some()
    }

    fn settle(&mut self, result: io::Result<()>) {
        let Err(error) = result else { return };
        tracing::warn!("recording to {} ended: {error}; going on without", self.path.display());
        // What is left in the buffer would fail again when dropped.
        if let Some(file) = self.file.take() {
            drop(file.into_parts());
        }
    }
}

impl Drop for TraceWriter {
    fn drop(&mut self) {
        self.flush();
    }
}

/// [`orphand_core::model::TraceEntry`] with a borrowed input.
#[derive(serde::Serialize)]
struct Line<'a> {
    at: BootTime,
    #[serde(flatten)]
    input: &'a Input,
}

fn failed(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!("cannot create the trace {}: {error}", path.display())
}

fn is_ours(file: &mut File) -> io::Result<bool> {
    let mut beginning = Vec::new();
    file.take(BEGINNING.len() as u64).read_to_end(&mut beginning)?;
    Ok(beginning.is_empty() || beginning == BEGINNING)
}
