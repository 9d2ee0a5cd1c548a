//! Files that are damaged.

use std::{fs, os::unix::fs::FileExt as _};

use super::*;

/// A closed store with a few hundred rows. The directory is removed with the value.
fn written() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    record(&mut store, (1..=300).map(|n| (n, run(claude(), n, false))));
    let lives = (1..=300).flat_map(|n| life(n * 10, &claude(), u64::from(n)).map(|fact| (400, fact)));
    record(&mut store, lives);
    drop(store);
    assert!(!dir.path().join("orphand.db-wal").exists());
    dir
}

/// Four pages of garbage.
fn garbage() -> Vec<u8> {
    (0..4096_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

fn harm(dir: &Path, name: &str, harm: impl FnOnce(&fs::File, u64)) {
    let file = fs::OpenOptions::new().read(true).write(true).open(dir.join(name)).unwrap();
    let bytes = file.metadata().unwrap().len();
    harm(&file, bytes);
}

/// Opens the store, checks the report about the old file, and checks that the second opening reports nothing. Returns the
/// report.
fn renamed(dir: &Path) -> String {
    let Opened { mut store, set_aside, knowledge } = open_in(dir, BOOT, OFFSET).unwrap();
    let line = set_aside.expect("the damage was not found");
    let start = format!("the store {} was damaged (", dir.join("orphand.db").display());
    assert!(line.starts_with(&start) && !line.contains('\n'), "{line}");
    let aside = line.split_once("it was renamed to ").unwrap().1.split_once(',').unwrap().0;
    assert!(Path::new(aside).exists() && !aside.ends_with("orphand.db"), "{line}");
    let next = knowledge.runs.iter().map(|run| run.run.generation).max().unwrap_or(0) + 1;
    record(&mut store, [(500, run(claude(), next, true))]);
    drop(store);
    assert!(knowledge.incomplete_before.is_some());
    let known = known(dir);
    assert_eq!(known.runs.iter().map(|run| run.run.generation).max(), Some(next));
    line
}

const ALL: &str = "; 300 runs were recovered";
const NONE: &str = "; run numbers begin at 1 again";

#[test]
fn a_good_one_is_left_alone() {
    let dir = written();
    assert_eq!(known(dir.path()).incomplete_before, None);
    assert_eq!(number(dir.path(), "SELECT count(*) FROM runs"), 300);
    assert_eq!(fs::read_dir(dir.path()).unwrap().flatten().count(), 1);
}

#[test]
fn a_zeroed_header() {
    let dir = written();
    harm(dir.path(), "orphand.db", |file, _| file.write_all_at(&[0; 100], 0).unwrap());
    assert!(renamed(dir.path()).ends_with(NONE));
}

#[test]
fn something_else() {
    let dir = written();
    fs::write(dir.path().join("orphand.db"), "ceci n'est pas une base de données".repeat(500)).unwrap();
    renamed(dir.path());
}

#[test]
fn cut_short() {
    for keep in [100, 4096, 20_000] {
        let dir = written();
        harm(dir.path(), "orphand.db", |file, bytes| {
            assert!(bytes > keep);
            file.set_len(keep).unwrap();
        });
        renamed(dir.path());
    }
}

#[test]
fn garbage_in_the_middle() {
    let dir = written();
    harm(dir.path(), "orphand.db", |file, bytes| {
        file.write_all_at(&garbage(), bytes / 4 * 3 / 4096 * 4096).unwrap();
    });
    // The runs are elsewhere in the file and are recovered: no number is used twice.
    assert!(renamed(dir.path()).ends_with(ALL));
    assert_eq!(number(dir.path(), "SELECT max(generation) FROM runs"), 301);
}

#[test]
fn a_text_that_cannot_be_understood() {
    let dir = written();
    let db = rusqlite::Connection::open(dir.path().join("orphand.db")).unwrap();
    db.execute("UPDATE keys SET key = 'nobody'", []).unwrap();
    drop(db);
    renamed(dir.path());
}

/// What the log contains after the garbage is lost; what is before it is not, and the file is consistent.
#[test]
fn a_damaged_log() {
    let dir = written();
    let mut store = open(dir.path());
    record(&mut store, [(500, run(claude(), 301, true))]);
    let log = fs::read(dir.path().join("orphand.db-wal")).unwrap();
    let copy = tempfile::tempdir().unwrap();
    for zeroed in [0..32, 24..log.len(), log.len() / 2..log.len()] {
        fs::copy(dir.path().join("orphand.db"), copy.path().join("orphand.db")).unwrap();
        let mut damaged = log.clone();
        damaged[zeroed].fill(0x5a);
        fs::write(copy.path().join("orphand.db-wal"), damaged).unwrap();
        drop(open(copy.path()));
        assert_eq!(number(copy.path(), "SELECT count(*) FROM runs WHERE generation <= 300"), 300);
    }
}

/// Damage that is found while a daemon runs: the next start renames the file.
#[test]
fn found_while_it_ran() {
    let dir = written();
    files::mark_suspect(&dir.path().join("orphand.db"), "row 7 missing");
    let line = renamed(dir.path());
    assert!(line.contains(" was damaged (row 7 missing): ") && line.ends_with(ALL), "{line}");
}

/// A new file begins with all run numbers.
#[test]
fn in_a_large_file_it_is_found_at_the_start() {
    let dir = written();
    let mut store = open(dir.path());
    for first in (10_000..40_000).step_by(500) {
        record(
            &mut store,
            (first..first + 500).flat_map(|pid| life(pid, &claude(), 1).map(|fact| (400, fact))),
        );
    }
    drop(store);
    harm(dir.path(), "orphand.db", |file, bytes| {
        assert!(bytes > 5 << 20, "{bytes}");
        file.write_all_at(&garbage(), bytes / 2 / 4096 * 4096).unwrap();
    });
    assert!(renamed(dir.path()).ends_with(ALL));
}

#[test]
fn few_damaged_ones_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..6 {
        fs::write(dir.path().join("orphand.db"), "x".repeat(9000)).unwrap();
        renamed(dir.path());
    }
    let kept = fs::read_dir(dir.path())
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().contains("damaged"));
    assert_eq!(kept.count(), 3);
}

#[test]
fn a_file_that_was_removed_is_said() {
    let dir = written();
    let mut store = open(dir.path());
    fs::remove_file(dir.path().join("orphand.db")).unwrap();
    record(&mut store, [(500, run(claude(), 301, true))]);
    tidy(&mut store);
    let error = store.write(&[(at(501), run(claude(), 302, true))].into()).unwrap_err().to_string();
    assert!(
        error.ends_with("was removed or replaced while orphand ran: restart orphand to begin a new one"),
        "{error}"
    );
}

/// A daemon was killed between the two renames: the old file is set aside, its successor is not in its place yet.
#[test]
fn a_kill_while_it_is_replaced_loses_nothing() {
    let dir = written();
    let file = dir.path().join("orphand.db");
    fs::rename(&file, dir.path().join("orphand.db.new")).unwrap();
    assert_eq!(known(dir.path()).runs.iter().map(|run| run.run.generation).max(), Some(300));
    // What is left of an earlier attempt is no successor.
    fs::write(dir.path().join("orphand.db.new"), "half").unwrap();
    files::mark_suspect(&file, "row 7 missing");
    assert!(renamed(dir.path()).ends_with(ALL));
}
