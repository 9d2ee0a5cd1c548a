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

use super::Unkept;
use crate::os::{clock, if_there, replace_file, start, text_file_within};
use orphand_core::model::{BootTime, Knowledge};

const FILE: &str = "calls.json";
/// One record a port, with numbers of their full length: a kilobyte each.
const LIMIT: u64 = 64 << 20;

/// How much a daemon that is killed may forget.
pub const KEEP_EVERY: Duration = Duration::from_secs(30);

/// How long the end of the daemon waits for a slow disk.
const LAST: Duration = Duration::from_secs(5);

#[derive(Serialize, Deserialize)]
struct Kept<T> {
    boot: String,
    /// Who called before that is not known.
    #[serde(default)]
    unknown_before: Option<BootTime>,
    ports: T,
}

/// Whether an earlier daemon of this boot has kept who called.
#[derive(Debug, PartialEq, Eq)]
pub enum Earlier {
    Kept {
        unknown_before: Option<BootTime>,
    },
    Nothing,
    /// Why that cannot be told.
    Unread(String),
}

/// What an earlier daemon of this boot has kept of each port, and whether it has.
pub fn read<T: DeserializeOwned + Default>(dir: &Path, boot: &str) -> (T, Earlier) {
    let path = dir.join(FILE);
    let kept = if_there(text_file_within(&path, LIMIT))
        .and_then(|text| Ok(text.map(|text| serde_json::from_str(&text)).transpose()?));
    match kept {
        Ok(Some(Kept { boot: of, unknown_before, ports })) if of == boot => {
            (ports, Earlier::Kept { unknown_before })
        }
        Ok(_) => (T::default(), Earlier::Nothing),
        Err(error) => (T::default(), Earlier::Unread(format!("cannot read {}: {error}", path.display()))),
    }
}

impl Earlier {
    /// Who called before that is not known. Where the store does not know all, nor does the file, whatever it says.
    pub fn unknown_before(&self, knowledge: &Knowledge) -> Option<BootTime> {
        let Knowledge { restarted, incomplete_before, .. } = *knowledge;
        let why = match self {
            Self::Kept { unknown_before } => return incomplete_before.max(*unknown_before),
            Self::Nothing if !restarted => return incomplete_before,
            Self::Nothing => "the daemon before has kept nothing",
            Self::Unread(why) => why,
        };
        tracing::warn!("who called servers before is not known, so those with a TCP port stay: {why}");
        Some(clock::now())
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
        unknown_before: Option<BootTime>,
        every: Duration,
        mut unkept: Unkept,
        known: impl Fn() -> T + Send + 'static,
    ) -> io::Result<Self> {
        let ((end, ending), (done, ended)) = (channel(), channel());
        let (path, boot) = (dir.join(FILE), boot.to_owned());
        start("calls", move || {
            let (mut last, mut works, mut ends) = (None, true, false);
            loop {
                let kept = Kept { boot: boot.clone(), unknown_before, ports: known() };
                let kept = keep(&path, &mut last, &kept);
                if let (true, Err(error)) = (works, &kept) {
                    tracing::warn!("who called servers is not kept for the next daemon: {error}");
                }
                works = kept.is_ok();
                // An old one that would not tell of the last calls is worse than none.
                let is_gone = || fs::remove_file(&path).is_ok() || matches!(path.try_exists(), Ok(false));
                unkept.is_written(works || is_gone());
                if ends {
                    return drop(done);
                }
                ends = ending.recv_timeout(every) != Err(RecvTimeoutError::Timeout);
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
        *last = None;
        replace_file(path, &text)?;
        *last = hash;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        sync::{
            Arc,
            atomic::{AtomicU16, Ordering},
        },
        thread,
    };

    use super::{
        super::{
            tests::unkept,
            unkept::tests::{begin, written},
        },
        *,
    };

    fn knowing(restarted: bool, incomplete_before: Option<BootTime>) -> Knowledge {
        Knowledge { restarted, incomplete_before, ..Knowledge::default() }
    }

    #[test]
    fn it_is_read_in_the_same_boot_only() {
        let dir = tempfile::tempdir().unwrap();
        let calls = |boot: &str| read::<Vec<u16>>(dir.path(), boot);
        assert_eq!(calls("a"), (vec![], Earlier::Nothing));
        drop(keeper(dir.path(), None, || vec![80]));
        assert_eq!(calls("a"), (vec![80], Earlier::Kept { unknown_before: None }));
        assert_eq!(calls("b"), (vec![], Earlier::Nothing));
        fs::write(dir.path().join(FILE), r#"{"boot": "a", "ports": [81]}"#).unwrap();
        assert_eq!(calls("a").0, [81], "an earlier version wrote it");
    }

    #[test]
    fn what_is_not_there_or_cannot_be_read_is_not_known() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(FILE);
        let calls = || read::<Vec<u16>>(dir.path(), "a");
        assert_eq!(calls().1.unknown_before(&knowing(false, None)), None, "the first daemon of the boot");
        assert!(calls().1.unknown_before(&knowing(true, None)).is_some());
        let is_unread = || calls().0.is_empty() && calls().1.unknown_before(&knowing(false, None)).is_some();
        for broken in ["", "{\"boot\":", "{\"boot\": \"a\", \"ports\": [99999]}"] {
            fs::write(&file, broken).unwrap();
            assert!(is_unread(), "{broken:?}");
        }
        File::options().write(true).open(&file).unwrap().set_len(5 << 30).unwrap();
        assert!(is_unread(), "a damaged file system");
        fs::remove_file(&file).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RUSR).unwrap();
        assert!(is_unread(), "it would never end");
        // The one after the next does not know it either.
        let unknown_before = Some(BootTime(7));
        drop(keeper(dir.path(), unknown_before, || vec![80]));
        assert_eq!(calls(), (vec![80], Earlier::Kept { unknown_before }));
        assert_eq!(calls().1.unknown_before(&knowing(true, None)), unknown_before);
    }

    #[test]
    fn the_record_of_every_port_can_be_read() {
        let call = monitor_common::Call {
            at: u64::MAX,
            caller: monitor_common::Caller {
                start: u64::MAX,
                tgid: u32::MAX,
                parents: [u32::MAX; monitor_common::PARENTS],
                head: u32::MAX,
                agent: u32::MAX,
                network: u32::MAX,
                near: u16::MAX,
                far: u16::MAX,
            },
        };
        let record = monitor_common::CallRecord {
            by_anybody: [u64::MAX; 2],
            without_place: [u64::MAX; 2],
            by: [call; 4],
        };
        let size = serde_json::to_vec(&(u16::MAX, record)).unwrap().len() as u64;
        assert!((size + 1) << 16 < LIMIT, "{size}");
    }

    #[test]
    fn an_old_one_does_not_stay_where_a_new_one_cannot_be_written() {
        let dir = tempfile::tempdir().unwrap();
        drop(keeper(dir.path(), None, || vec![80]));
        // As a full disk, for root, too.
        fs::create_dir(dir.path().join(FILE).with_extension("new")).unwrap();
        drop(keeper(dir.path(), None, || vec![81]));
        assert_eq!(read::<Vec<u16>>(dir.path(), "a"), (vec![], Earlier::Nothing));
    }

    /// As on a disk that has become read-only, for root, too. The twins: there is none, and the disk is well again.
    #[test]
    fn an_old_one_that_stays_is_told_to_the_next_daemon() {
        let dir = tempfile::tempdir().unwrap();
        let lock = tempfile::tempfile().unwrap();
        let keep = |after: &str| {
            let unkept = begin(&lock);
            drop(Keeper::start((dir.path(), "a"), None, Duration::from_millis(1), unkept, || 80).unwrap());
            assert_eq!(written(&lock) == BootTime(u64::MAX), after == "it stays", "{after}");
        };
        keep("written");
        let file = dir.path().join(FILE);
        fs::create_dir(file.with_extension("new")).unwrap();
        keep("removed");
        fs::create_dir(&file).unwrap();
        keep("it stays");
        fs::remove_dir(&file).unwrap();
        fs::remove_dir(file.with_extension("new")).unwrap();
        begin(&lock);
        keep("written");
        let told = |incomplete_before| {
            read::<u16>(dir.path(), "a").1.unknown_before(&knowing(true, incomplete_before))
        };
        assert_eq!([told(None), told(Some(BootTime(7)))], [None, Some(BootTime(7))], "whatever it says");
        fs::remove_file(&file).unwrap();
        assert!(told(Some(BootTime(7))) > Some(BootTime(7)));
    }

    fn keeper(
        dir: &Path,
        unknown_before: Option<BootTime>,
        known: impl Fn() -> Vec<u16> + Send + 'static,
    ) -> Keeper {
        Keeper::start((dir, "a"), unknown_before, Duration::from_millis(1), unkept(), known).unwrap()
    }

    #[test]
    fn a_daemon_that_is_killed_forgets_the_last_moments_only() {
        let dir = tempfile::tempdir().unwrap();
        let called = Arc::new(AtomicU16::new(80));
        let known = Arc::clone(&called);
        let keeper = keeper(dir.path(), None, move || vec![known.load(Ordering::Relaxed)]);
        for port in [80, 81] {
            called.store(port, Ordering::Relaxed);
            while read::<Vec<u16>>(dir.path(), "a").0 != [port] {
                thread::sleep(Duration::from_millis(1));
            }
        }
        drop(keeper);
    }
}
