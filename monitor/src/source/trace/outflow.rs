//! The way of a recording to a pipe: a bounded queue and a thread that writes, so that a pipe that nobody reads holds nobody up.

use std::{
    io::{self, Write},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{Sender, channel},
    },
    thread,
    time::Duration,
};

/// So many bytes may wait. Whoever is further behind ends the recording.
const MOST: usize = 16 << 20;
/// At the end, for what still waits.
const PATIENCE: Duration = Duration::from_secs(2);

/// Takes what is written at once, and writes it later.
#[derive(Debug)]
pub(super) struct Outflow {
    pieces: Option<Sender<Vec<u8>>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: usize,
    /// Why nothing more is written.
    failed: Option<io::Error>,
    ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outflow {
    /// Starts the thread.
    pub(super) fn to(mut file: impl Write + Send + 'static) -> io::Result<Self> {
        let (pieces, come) = channel::<Vec<u8>>();
        let shared = Arc::new(Shared::default());
        let copy = Arc::clone(&shared);
        let write = move || {
            for piece in come {
                let done = file.write_all(&piece);
                let mut state = copy.lock();
                state.waiting -= piece.len();
                if let Err(error) = done {
                    state.failed = Some(error);
                    break;
                }
            }
            copy.lock().ended = true;
            copy.ended.notify_all();
        };
        thread::Builder::new().name("orphand-record".to_owned()).spawn(write)?;
        Ok(Self { pieces: Some(pieces), shared })
    }
}

impl Write for Outflow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.shared.lock();
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        let gone = || io::Error::new(io::ErrorKind::BrokenPipe, "it cannot be written to any more");
        if state.ended {
            return Err(gone());
        }
        if state.waiting + bytes.len() > MOST {
            let why = format!("{} MiB wait to be written: whoever reads it is too slow", MOST >> 20);
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        state.waiting += bytes.len();
        drop(state);
        let pieces = self.pieces.as_ref().ok_or_else(gone)?;
        pieces.send(bytes.to_vec()).map_err(|_| gone())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.shared.lock().failed.take().map_or(Ok(()), Err)
    }
}

impl Drop for Outflow {
    /// Waits a moment for what is still to be written; a file that hangs is left to the end of the process.
    fn drop(&mut self) {
        self.pieces = None;
        let state = self.shared.lock();
        drop(
            self.shared.ended.wait_timeout_while(state, PATIENCE, |state| !state.ended && state.waiting > 0),
        );
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn all_of_it_arrives() {
        let (mut reader, writer) = io::pipe().unwrap();
        let read = thread::spawn(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).map(|_| all)
        });
        let mut out = Outflow::to(writer).unwrap();
        for n in 0..1000u32 {
            out.write_all(&n.to_le_bytes()).unwrap();
        }
        drop(out);
        assert_eq!(read.join().unwrap().unwrap().len(), 4000);
    }

    #[test]
    fn nobody_reads_and_nobody_waits() {
        let (reader, writer) = io::pipe().unwrap();
        let mut out = Outflow::to(writer).unwrap();
        let piece = vec![0; 1 << 20];
        let ended = (0..100).find_map(|_| out.write_all(&piece).err()).unwrap();
        assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
        drop(reader);
    }

    #[test]
    fn a_failure_is_told_by_what_comes_next() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        crate::os::forks_of_tests::settle();
        let mut out = Outflow::to(writer).unwrap();
        out.write_all(b"x").unwrap();
        drop(out.shared.ended.wait_while(out.shared.lock(), |state| !state.ended));
        assert_eq!(out.flush().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(out.write(b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
