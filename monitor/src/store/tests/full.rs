//! A full disk.

use std::{fs, path::PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::{
    super::{
        unkept::tests::{begin, written},
        writer::PENDING,
    },
    versions::change,
    *,
};

/// A file system of one megabyte.
struct Small(PathBuf);

impl Small {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap().keep();
        mount("orphand-test", &dir, "tmpfs", MountFlags::empty(), Some(c"size=1m,mode=700")).unwrap();
        Self(dir)
    }

    /// Fills it to the last byte. Returns the file to remove to free the space.
    fn fill(&self) -> PathBuf {
        let ballast = self.0.join("ballast");
        let mut file = fs::File::create(&ballast).unwrap();
        while std::io::Write::write_all(&mut file, &[0; 512]).is_ok() {}
        ballast
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        unmount(&self.0, UnmountFlags::DETACH).unwrap();
        fs::remove_dir(&self.0).unwrap();
    }
}

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn what_does_not_fit_waits_in_memory() {
    let small = Small::new();
    let dir = small.0.as_path();
    let mut store = writer(dir);
    store.remember(at(1), &run(claude(), 1, true));
    commit_all(&mut store);
    let ballast = small.fill();
    (2..400).for_each(|n| store.remember(at(2), &run(claude(), n, true)));
    let line = refusal(&mut store);
    assert!(line.ends_with("no space left; facts are kept in memory until there is space"), "{line}");
    assert_eq!(store.queued.len(), 398);
    store.commit();
    assert!(store.trouble.is_some());
    // At once again: not tried.
    let line = store.try_commit().unwrap_err().to_string();
    assert!(line.contains("398 facts wait in memory"), "{line}");

    // Meanwhile the stored rows are intact.
    let past = history::history(dir, &orphand_core::model::HistoryQuery::default()).unwrap();
    assert_eq!(past.runs.len(), 1);

    fs::remove_file(&ballast).unwrap();
    commit_all(&mut store);
    store.commit();
    assert_eq!(store.trouble, None);
    drop(store);
    assert_eq!(known(dir).runs.len(), 399);
}

/// What this daemon knew from the start is written then. It counted without the past, which stays beside it.
#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn a_full_disk_at_the_start_is_one_line_and_opened_when_there_is_room() {
    let small = Small::new();
    let dir = small.0.as_path();
    record(
        &mut open(dir),
        [(1, run(claude(), 1, true)), (2, run(claude(), 2, true)), (3, server(7, claude(), 2))],
    );
    let ballast = small.fill();
    let (mut store, found) = StoreWriter::open(dir, BOOT, OFFSET, EVER, unkept());
    let error = found.unwrap_err().to_string();
    assert!(!error.contains('\n'), "{error}");
    assert_eq!(store.trouble.as_ref(), Some(&error));
    store.remember(at(4), &run(claude(), 1, true));
    store.commit();
    assert!(store.trouble.is_some());

    fs::remove_file(&ballast).unwrap();
    commit_all(&mut store);
    store.commit();
    assert_eq!(store.trouble, None);
    drop(store);
    assert_eq!(number(dir, "SELECT count(*) FROM runs"), 3);
    let Knowledge { runs, servers, .. } = known(dir);
    assert_eq!(runs.iter().map(|run| run.run.generation).collect::<Vec<_>>(), [1]);
    assert_eq!(servers.iter().map(|one| one.server.run.clone()).collect::<Vec<_>>(), [None]);
}

/// Nobody has told it anything, and it is opened all the same.
#[test]
fn one_that_could_not_be_opened_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    fs::write(&state, "in its place").unwrap();
    let (mut store, found) = StoreWriter::open(&state, BOOT, OFFSET, EVER, unkept());
    assert!(found.is_err() && store.retry.is_some());
    assert!(refusal(&mut store).contains("no directory"));
    fs::remove_file(&state).unwrap();
    commit_all(&mut store);
    assert_eq!((store.retry, number(&state, "SELECT count(*) FROM daemons")), (None, 1));
}

/// As long as something is not written the next daemon is told so, and for good if it never was. The twin: all is written.
#[test]
fn the_next_daemon_is_told_of_what_was_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let (state, lock) = (dir.path().join("state"), tempfile::tempfile().unwrap());
    let open = || StoreWriter::open(&state, BOOT, OFFSET, EVER, begin(&lock)).0;
    drop(open());
    assert_eq!(written(&lock), BootTime(0));
    let mut store = open();
    let hung = hang(&state);
    store.remember(at(1), &run(claude(), 1, true));
    store.commit();
    assert_eq!(written(&lock), BootTime(u64::MAX));
    drop(hung);
    commit_all(&mut store);
    store.commit();
    assert_eq!(written(&lock), BootTime(0));
    let began = clock::now();
    (0..=PENDING).for_each(|n| store.remember(at(2), &server(10 + u32::try_from(n).unwrap(), claude(), 1)));
    while store.record_stop(at(3)).is_err() {}
    let dropped = written(&lock);
    assert!(dropped >= began && dropped <= clock::now(), "{dropped:?}");
    drop(store);

    assert_eq!(written(&lock), dropped);
    fs::rename(&state, dir.path().join("aside")).unwrap();
    fs::write(&state, "in its place").unwrap();
    let mut store = open();
    assert_eq!(written(&lock), BootTime(u64::MAX), "it is not known what there is");
    fs::remove_file(&state).unwrap();
    commit_all(&mut store);
    store.commit();
    let unread = written(&lock);
    assert!(unread > dropped && unread <= clock::now(), "{unread:?}");
    drop(store);
    drop(open());
    assert_eq!(written(&lock), unread, "each later one knows it");
}

/// Were it set aside, run numbers would begin at 1, and the history would be out of sight.
#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn one_that_cannot_be_copied_stays_where_it_is() {
    let small = Small::new();
    let dir = small.0.as_path();
    record(&mut open(dir), (1..1000).map(|n| (n, run(claude(), n, true))));
    change(dir, "PRAGMA user_version = 4");
    let file = dir.join("orphand.db");
    let ballast = small.fill();
    // It can be opened, which needs 32 KB, but not copied.
    let rest = fs::metadata(&ballast).unwrap().len() - (64 << 10);
    fs::OpenOptions::new().write(true).open(&ballast).unwrap().set_len(rest).unwrap();
    let line = open_in(dir, BOOT, OFFSET).unwrap_err().to_string();
    assert!(line.starts_with("cannot write the store ") && line.contains("orphand.db.new: "), "{line}");
    assert!(file.exists());

    fs::remove_file(&ballast).unwrap();
    let line = open_in(dir, BOOT, OFFSET).unwrap().set_aside.unwrap();
    assert!(line.ends_with("999 runs were recovered"), "{line}");
}

/// Memory is bounded too; facts about run numbers are dropped last.
#[test]
fn the_oldest_go_first_and_numbers_last() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = writer(dir.path());
    store.remember(at(1), &run(claude(), 1, true));
    for pid in 10..10 + u32::try_from(PENDING).unwrap() {
        store.remember(at(2), &server(pid, claude(), 1));
    }
    assert_eq!(store.queued.len(), PENDING);
    commit_all(&mut store);
    assert_eq!(number(dir.path(), "SELECT count(*) FROM runs"), 1);
    assert_eq!(number(dir.path(), "SELECT min(pid) FROM servers"), 11);
}
