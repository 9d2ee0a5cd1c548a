//! Keeps events: the output of an event writer, on that writer's thread.

use std::io;

use super::{Latest, segments::Writer};
use crate::sink::event_writer::Output;

/// Writes lines into the files and into memory. A file system that is full or fails costs the files only: the lines
/// are in memory, and the next one is tried again.
#[derive(Debug)]
pub struct Keeper {
    files: Option<Writer>,
    latest: Latest,
    /// The log has it that the last write failed.
    is_reported: bool,
}

impl Keeper {
    pub(super) const fn new(files: Option<Writer>, latest: Latest) -> Self {
        Self { files, latest, is_reported: false }
    }
}

#[cfg(test)]
impl Keeper {
    /// From now on nothing is written into the files.
    pub(super) fn take_files(&mut self) -> Option<Writer> {
        self.files.take()
    }

    /// The files are written again.
    pub(super) fn put_files(&mut self, files: Option<Writer>) {
        self.files = files;
    }
}

impl Output for Keeper {
    const BATCH: usize = 64 * 1024;

    fn write(&mut self, text: &str) -> io::Result<()> {
        for line in text.split_inclusive('\n') {
            let mut end = self.latest.ring().end();
            if let Some(files) = &mut self.files {
                match files.append(line) {
                    Ok(()) => self.is_reported = false,
                    Err(error) if self.is_reported => drop(error),
                    Err(error) => {
                        self.is_reported = true;
                        tracing::warn!(
                            "cannot keep events in the state directory: {error}; the next one is tried again"
                        );
                    }
                }
                end = files.end();
            }
            self.latest.push(line.trim_end_matches('\n'), end);
        }
        self.latest.tell();
        Ok(())
    }
}
