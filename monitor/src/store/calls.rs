//! Who called the ports of servers, in a file of its own beside the store: what the kernel side has written down ends with the
//! daemon, and the next one must not take for unused what is called now and then.
//!
//! Invariant: what is kept of another boot says nothing about this one's processes.

use std::{
    fs,
    hash::BuildHasher as _,
    io,
    path::Path,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    time::Duration,
};

use rustc_hash::FxBuildHasher;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::os::{if_there, replace_file, start};

const FILE: &str = "calls.json";

/// How much a daemon that is killed may forget.
pub const KEEP_EVERY: Duration = Duration::from_secs(30);

/// How long the end of the daemon waits for a slow disk.
const LAST: Duration = Duration::from_secs(5);

#[derive(Serialize, Deserialize)]
struct Kept<T> {
    boot: String,
    ports: T,
}

/// What an earlier daemon of this boot has kept. Where that cannot be read it is not known who called.
pub fn read<T: DeserializeOwned + Default>(dir: &Path, boot: &str) -> T {
    let path = dir.join(FILE);
    // One record a port at most. Nobody else writes here.
    let kept = if_there(fs::read(&path))
        .and_then(|text| Ok(text.map(|text| serde_json::from_slice(&text)).transpose()?));
    match kept {
        Ok(Some(Kept { boot: of, ports })) if of == boot => ports,
        Ok(_) => T::default(),
        Err(error) => {
            tracing::warn!("who called servers before is not known: cannot read {}: {error}", path.display());
            T::default()
        }
    }
}

/// Keeps what is known, again and again and at the end, on a thread of its own: a disk may be slow.
pub struct Keeper {
    end: Option<Sender<()>>,
    ended: Receiver<()>,
}

impl Keeper {
    pub fn start<T: Serialize>(
        (dir, boot): (&Path, &str),
        every: Duration,
        known: impl Fn() -> T + Send + 'static,
    ) -> io::Result<Self> {
        let ((end, ending), (done, ended)) = (channel(), channel());
        let (path, boot) = (dir.join(FILE), boot.to_owned());
        start("calls", move || {
            let (mut last, mut works) = (None, true);
            loop {
                let ends = ending.recv_timeout(every) != Err(RecvTimeoutError::Timeout);
                let kept = keep(&path, &mut last, &Kept { boot: boot.clone(), ports: known() });
                if let (true, Err(error)) = (works, &kept) {
                    tracing::warn!("who called servers is not kept for the next daemon: {error}");
                }
                works = kept.is_ok();
                if ends {
                    return drop(done);
                }
            }
        })?;
        Ok(Self { end: Some(end), ended })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.ended.recv_timeout(LAST);
    }
}

/// Writes it, unless the file has it already.
fn keep<T: Serialize>(path: &Path, last: &mut Option<u64>, kept: &Kept<T>) -> io::Result<()> {
    let text = serde_json::to_vec(kept)?;
    // Users decide how long it is.
    let hash = Some(FxBuildHasher.hash_one(&text));
    if hash != *last {
        replace_file(path, &text)?;
        *last = hash;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicU16, Ordering},
        },
        thread,
    };

    use super::*;

    #[test]
    fn it_is_read_in_the_same_boot_only() {
        let dir = tempfile::tempdir().unwrap();
        let calls = || read::<Vec<u16>>(dir.path(), "a");
        assert!(calls().is_empty());
        drop(Keeper::start((dir.path(), "a"), KEEP_EVERY, || vec![80]).unwrap());
        assert_eq!((calls(), read::<Vec<u16>>(dir.path(), "b")), (vec![80], vec![]));
        for broken in ["", "{\"boot\":", "{\"boot\": \"a\", \"ports\": [99999]}"] {
            fs::write(dir.path().join(FILE), broken).unwrap();
            assert!(calls().is_empty(), "{broken:?}");
        }
    }

    #[test]
    fn a_daemon_that_is_killed_forgets_the_last_moments_only() {
        let dir = tempfile::tempdir().unwrap();
        let called = Arc::new(AtomicU16::new(80));
        let known = Arc::clone(&called);
        let every = Duration::from_millis(1);
        let keeper =
            Keeper::start((dir.path(), "a"), every, move || vec![known.load(Ordering::Relaxed)]).unwrap();
        for port in [80, 81] {
            called.store(port, Ordering::Relaxed);
            while read::<Vec<u16>>(dir.path(), "a") != [port] {
                thread::sleep(every);
            }
        }
        drop(keeper);
    }
}
