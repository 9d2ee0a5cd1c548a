//! The settings files of agents as they were read last, for [`super::declared`].
//!
//! A file is read again only if it has changed, which its identity tells. Invariant: what is kept, and how much is
//! read anew, is bounded for each user; the number of users is bounded, too.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustix::fs::Stat;

use orphand_core::recognise::{Declarations, Notation};

/// The most files of one user that are kept, and the most bytes of them.
const FILES: usize = 64;
const BYTES: usize = 256 << 10;
/// The most users of whom anything is kept.
const USERS: usize = 32;
/// The bytes that may be read anew for one user at once, and what is added to that in a second. A file that is written
/// again and again is read at that pace.
const BURST: u64 = 32 << 20;
const A_SECOND: u64 = 2 << 20;

/// A file of a user, as it is written in one notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    device: u64,
    inode: u64,
    notation: Notation,
}

/// What changes with each change of a file. Its owner can set the time of modification, but not that of the change of
/// status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    size: i64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Name {
    pub(super) fn of(stat: &Stat, notation: Notation) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino, notation }
    }
}

impl Version {
    #[expect(clippy::useless_conversion, reason = "the types differ between architectures")]
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            size: stat.st_size,
            modified: (stat.st_mtime, u64::try_from(stat.st_mtime_nsec).unwrap_or_default()),
            changed: (stat.st_ctime, u64::try_from(stat.st_ctime_nsec).unwrap_or_default()),
        }
    }

    /// Whether any later write gives the file another version: it is older than the step of the clock that files get
    /// their times from. Some file systems store whole seconds.
    pub(super) fn is_settled(self, now: SystemTime) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let changed = u64::try_from(seconds)
            .ok()
            .and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)))
            .and_then(|at| at.checked_add(Duration::from_nanos(nanoseconds)));
        let step = Duration::from_millis(if nanoseconds == 0 { 2_000 } else { 100 });
        changed.and_then(|at| now.duration_since(at).ok()).is_some_and(|age| age >= step)
    }
}

/// What was read of the files of all users.
#[derive(Debug, Default)]
pub(super) struct Settings {
    users: BTreeMap<u32, Share>,
    /// Counts the uses, so that what was used longest ago can be told.
    uses: u64,
}

#[derive(Debug)]
struct Share {
    files: BTreeMap<Name, Kept>,
    bytes: usize,
    /// What may be read anew now, in bytes, as of `since`.
    allowed: u64,
    since: Instant,
    used: u64,
}

#[derive(Debug)]
struct Kept {
    version: Version,
    found: Arc<Declarations>,
    used: u64,
}

impl Settings {
    /// What this version of a file of a user declares, if it was read before.
    pub(super) fn get(&mut self, user: u32, name: Name, version: Version) -> Option<Arc<Declarations>> {
        self.uses += 1;
        let share = self.users.get_mut(&user)?;
        let kept = share.files.get_mut(&name).filter(|kept| kept.version == version)?;
        (share.used, kept.used) = (self.uses, self.uses);
        Some(Arc::clone(&kept.found))
    }

    /// Whether so many bytes may be read anew for a user. If so, they count.
    pub(super) fn may_read(&mut self, user: u32, bytes: u64, now: Instant) -> bool {
        let share = self.share(user, now);
        let passed = now.saturating_duration_since(share.since);
        let more = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX).saturating_mul(A_SECOND) / 1000;
        // The fraction of a step that is not added yet stays.
        if more > 0 {
            (share.allowed, share.since) = (share.allowed.saturating_add(more).min(BURST), now);
        }
        let left = share.allowed.checked_sub(bytes);
        share.allowed = left.unwrap_or(share.allowed);
        left.is_some()
    }

    /// Keeps what a version of a file declares.
    pub(super) fn keep(
        &mut self,
        user: u32,
        name: Name,
        version: Version,
        found: &Arc<Declarations>,
        now: Instant,
    ) {
        let last = self.uses;
        let share = self.share(user, now);
        share.remove(name);
        share.bytes += found.bytes();
        share.files.insert(name, Kept { version, found: Arc::clone(found), used: last });
        while share.files.len() > FILES || share.bytes > BYTES {
            let oldest = share.files.iter().min_by_key(|(_, kept)| kept.used).map(|(name, _)| *name);
            let Some(oldest) = oldest else { return };
            share.remove(oldest);
        }
    }

    /// The share of a user. A new one takes the place of the one that was used longest ago, if there are too many.
    fn share(&mut self, user: u32, now: Instant) -> &mut Share {
        self.uses += 1;
        if !self.users.contains_key(&user) && self.users.len() >= USERS {
            let oldest = self.users.iter().min_by_key(|(_, share)| share.used).map(|(user, _)| *user);
            oldest.map(|user| self.users.remove(&user));
        }
        let new = || Share { files: BTreeMap::new(), bytes: 0, allowed: BURST, since: now, used: 0 };
        let share = self.users.entry(user).or_insert_with(new);
        share.used = self.uses;
        share
    }
}

impl Share {
    fn remove(&mut self, name: Name) {
        if let Some(kept) = self.files.remove(&name) {
            self.bytes -= kept.found.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(inode: u64) -> Name {
        Name { device: 1, inode, notation: Notation::Json }
    }

    fn version(changed: i64) -> Version {
        Version { size: 1, modified: (0, 0), changed: (changed, 7) }
    }

    fn entry(length: usize) -> Arc<Declarations> {
        let file = format!(r#"{{"mcpServers":{{"a":{{"command":"{}"}}}}}}"#, "x".repeat(length));
        Arc::new(Declarations::of(file.as_bytes(), Notation::Json))
    }

    #[test]
    fn a_file_is_known_until_it_changes() {
        let (mut settings, now) = (Settings::default(), Instant::now());
        settings.keep(7, name(1), version(1), &entry(1), now);
        assert!(settings.get(7, name(1), version(1)).is_some());
        assert!(settings.get(7, name(1), version(2)).is_none());
        assert!(settings.get(7, name(2), version(1)).is_none());
        assert!(settings.get(7, Name { notation: Notation::Toml, ..name(1) }, version(1)).is_none());
        // Another user has to read it again.
        assert!(settings.get(8, name(1), version(1)).is_none());
        settings.keep(7, name(1), version(2), &entry(1), now);
        assert!(
            settings.get(7, name(1), version(1)).is_none() && settings.get(7, name(1), version(2)).is_some()
        );
        assert_eq!(settings.users[&7].files.len(), 1);
    }

    #[test]
    fn each_user_has_a_share() {
        let (mut settings, now) = (Settings::default(), Instant::now());
        settings.keep(8, name(1), version(1), &entry(1), now);
        for inode in 0..1000 {
            settings.keep(7, name(inode), version(1), &entry(1), now);
            settings.get(7, name(0), version(1)).unwrap();
        }
        assert_eq!(settings.users[&7].files.len(), FILES);
        // Large ones.
        for inode in 0..1000 {
            settings.keep(7, name(inode), version(1), &entry(60_000), now);
            let share = &settings.users[&7];
            assert_eq!(share.bytes, share.files.values().map(|kept| kept.found.bytes()).sum::<usize>());
            assert!(share.bytes <= BYTES);
        }
        assert!(settings.get(8, name(1), version(1)).is_some());
        for user in 100..1000 {
            settings.keep(user, name(1), version(1), &entry(1), now);
            settings.get(8, name(1), version(1)).unwrap();
        }
        assert_eq!(settings.users.len(), USERS);
    }

    #[test]
    fn a_file_that_changes_all_the_time_is_read_at_a_pace() {
        let (mut settings, start) = (Settings::default(), Instant::now());
        let mut read = |user, millis| settings.may_read(user, 1 << 20, start + Duration::from_millis(millis));
        assert_eq!((0..1000).filter(|_| read(7, 0)).count(), 32);
        // Half a minute, with a try each millisecond.
        assert_eq!((0..30_000).filter(|millis| read(7, *millis)).count(), 59);
        assert!(read(8, 30_000), "another user");
        assert_eq!((0..1000).filter(|_| read(7, 10_000_000)).count(), 32);
    }

    #[test]
    fn a_young_version_may_be_followed_by_one_that_looks_the_same() {
        let of = |nanoseconds, age| {
            let version = Version { changed: (100, nanoseconds), ..version(0) };
            version.is_settled(UNIX_EPOCH + Duration::new(100, 0) + Duration::from_millis(age))
        };
        assert_eq!([99, 100, 101].map(|age| of(1_000_000, age)), [false, false, true]);
        assert_eq!([0, 1999, 2000].map(|age| of(0, age)), [false, false, true]);
        assert!(!Version { changed: (i64::MAX, 1), ..version(0) }.is_settled(SystemTime::now()));
        assert!(!Version { changed: (-1, 1), ..version(0) }.is_settled(SystemTime::now()));
    }
}
