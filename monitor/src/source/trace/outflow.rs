//! The way of a recording to a pipe: a bounded queue and a thread that writes, so that a pipe that nobody reads holds nobody up.

use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, TryRecvError, channel},
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
    /// Bytes.
    waiting: Arc<AtomicUsize>,
    /// Why nothing more is written. The other side is gone when the thread has ended.
    failed: Receiver<io::Error>,
}

impl Outflow {
    pub(super) fn to(mut file: impl Write + Send + 'static) -> io::Result<Self> {
        let (pieces, come) = channel::<Vec<u8>>();
        let (fail, failed) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&waiting);
        let write = move || {
            for piece in come {
                if let Err(error) = file.write_all(&piece) {
                    // The receiver is gone when nobody records any more.
                    let _ = fail.send(error);
                    return;
                }
                left.fetch_sub(piece.len(), Ordering::Relaxed);
            }
        };
        thread::Builder::new().name("orphand-record".to_owned()).spawn(write)?;
        Ok(Self { pieces: Some(pieces), waiting, failed })
    }
}

impl Write for Outflow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        if self.waiting.load(Ordering::Relaxed) + bytes.len() > MOST {
            let why = format!("{} MiB wait to be written: whoever reads it is too slow", MOST >> 20);
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        self.waiting.fetch_add(bytes.len(), Ordering::Relaxed);
        let sent = self.pieces.as_ref().and_then(|pieces| pieces.send(bytes.to_vec()).ok());
        sent.map(|()| bytes.len()).ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.failed.try_recv() {
            Ok(error) => Err(error),
            Err(TryRecvError::Empty) => Ok(()),
            Err(TryRecvError::Disconnected) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Drop for Outflow {
    /// Waits a moment for what is still to be written; a file that hangs is left to the end of the process.
    fn drop(&mut self) {
        self.pieces = None;
        let _ = self.failed.recv_timeout(PATIENCE);
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
        let failed = (0..1_000_000).find_map(|_| out.write(b"x").err()).unwrap();
        assert_eq!(failed.kind(), io::ErrorKind::BrokenPipe);
    }
}
