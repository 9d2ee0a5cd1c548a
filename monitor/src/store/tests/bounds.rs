//! Bounds by age and by size.

use std::{fs, os::unix::fs::MetadataExt as _};

use super::*;

/// An offset with which `at(seconds)` is that long before now.
fn ago() -> i64 {
    clock::realtime_offset() + i64::try_from(clock::now().0).unwrap()
        - i64::try_from(at(DAY * 200).0).unwrap()
}

const DAY: u64 = 86_400;

fn open_within(dir: &Path, limits: Limits) -> Store {
    Store::open_within(dir, BOOT, ago(), limits).unwrap().0
}

#[test]
fn what_is_too_old_goes_and_what_counts_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open_within(dir.path(), Limits::default());
    let losses = crate::model::Losses { exec: 3, ..Default::default() };
    let mut facts = Vec::new();
    // 100 days ago and 10 days ago.
    for (day, first) in [(100, 1), (190, 3)] {
        for generation in first..first + 2 {
            facts.push((DAY * day, run(claude(), generation, false)));
            facts.extend(
                life(u32::try_from(generation).unwrap() * 10, &claude(), generation).map(|f| (DAY * day, f)),
            );
        }
        facts.push((DAY * day, Fact::Lost { losses }));
    }
    // Long ago, but the last number of its key; its number before; one that has a server left.
    facts.extend((1..=3).map(|n| (DAY * 100, run(unit(), n, false))));
    facts.push((DAY * 100, server(1000, unit(), 1)));
    tell(&mut store, facts);
    store.keeper.work();
    let count = |sql: &str| number(dir.path(), &format!("SELECT count(*) FROM {sql}"));
    assert_eq!((count("servers"), count("losses")), (3, 1));
    assert_eq!(count("servers WHERE ended IS NULL"), 1);
    drop(store);
    let known = open_within(dir.path(), Limits::default()).knowledge();
    let runs: Vec<_> = known.runs.iter().map(|run| (&run.run.key, run.run.generation)).collect();
    assert_eq!(runs, [(&claude(), 3), (&claude(), 4), (&unit(), 1), (&unit(), 3)]);
}

#[test]
fn a_store_that_is_too_large_shrinks_oldest_first() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { bytes: 256 << 10, ..Limits::default() };
    let mut store = open_within(dir.path(), limits);
    for generation in 1..=200_u32 {
        let lives = (0..20).flat_map(|n| life(generation * 100 + n, &claude(), generation.into()));
        let mut facts: Vec<_> = lives.map(|fact| (DAY * 190 + u64::from(generation), fact)).collect();
        facts.push((DAY * 190 + u64::from(generation), run(claude(), generation.into(), false)));
        tell(&mut store, facts);
    }
    tell(&mut store, [(DAY * 191, server(7, claude(), 1))]);
    store.keeper.work();
    let file = dir.path().join("orphand.db");
    let bytes = fs::metadata(&file).unwrap().size();
    // Less than 64 free pages are not worth the work.
    assert!(bytes < 512 << 10, "{bytes}");
    let servers = number(dir.path(), "SELECT count(*) FROM servers");
    assert!((100..1000).contains(&servers), "{servers}");
    assert_eq!(number(dir.path(), "SELECT max(pid) FROM servers"), 20_019);
    assert!(number(dir.path(), "SELECT min(pid) FROM servers WHERE ended IS NOT NULL") > 15_000);
    assert_eq!(number(dir.path(), "SELECT max(generation) FROM runs"), 200);
    assert_eq!(number(dir.path(), "SELECT count(*) FROM servers WHERE pid = 7 AND ended IS NULL"), 1);
    // The log is cut, and nobody but the keeper did it.
    assert_eq!(fs::metadata(dir.path().join("orphand.db-wal")).unwrap().size(), 0);
}

/// Rows of an empty table cannot make it delete without end.
#[test]
fn even_an_impossible_bound_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open_within(dir.path(), Limits { bytes: 1, ..Limits::default() });
    tell(&mut store, [(DAY, run(claude(), 1, false)), (DAY, run(claude(), 2, false))]);
    store.keeper.work();
    drop(store);
    assert_eq!(open_within(dir.path(), Limits::default()).knowledge().runs.len(), 1);
}
