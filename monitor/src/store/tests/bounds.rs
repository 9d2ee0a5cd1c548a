//! Limits by age and by size.

use std::{fs, os::unix::fs::MetadataExt as _};

use super::*;

/// A clock offset with which `at(seconds)` is that long before now.
fn ago() -> i64 {
    clock::realtime_offset() + i64::try_from(clock::now().0).unwrap()
        - i64::try_from(at(DAY * 200).0).unwrap()
}

const DAY: u64 = 86_400;

fn open_within(dir: &Path, limits: Limits) -> Store {
    Store::open(dir, BOOT, ago(), limits).unwrap().store
}

fn known_runs(dir: &Path) -> Vec<orphand_core::model::RememberedRun> {
    Store::open(dir, BOOT, ago(), Limits::default()).unwrap().knowledge.runs
}

#[test]
fn what_is_too_old_goes_and_what_counts_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open_within(dir.path(), Limits::default());
    let losses = orphand_core::model::Losses { exec: 3, ..Default::default() };
    let mut facts = Vec::new();
    // 100 days ago, and 10 days ago.
    for (day, first) in [(100, 1), (190, 3)] {
        for generation in first..first + 2 {
            facts.push((DAY * day, run(claude(), generation, false)));
            facts.extend(
                life(u32::try_from(generation).unwrap() * 10, &claude(), generation).map(|f| (DAY * day, f)),
            );
        }
        facts.push((DAY * day, Fact::Lost { losses }));
    }
    // Old runs: the last number of a key, the number before it, and one that still has a server.
    facts.extend((1..=3).map(|n| (DAY * 100, run(unit(), n, false))));
    facts.push((DAY * 100, server(1000, unit(), 1)));
    record(&mut store, facts);
    tidy(&mut store);
    let count = |sql: &str| number(dir.path(), &format!("SELECT count(*) FROM {sql}"));
    assert_eq!((count("servers"), count("losses")), (3, 1));
    assert_eq!(count("servers WHERE ended IS NULL"), 1);
    drop(store);
    let known = known_runs(dir.path());
    let runs: Vec<_> = known.iter().map(|run| (&run.run.key, run.run.generation)).collect();
    assert_eq!(runs, [(&unit(), 1), (&unit(), 3), (&claude(), 3), (&claude(), 4)]);
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
        record(&mut store, facts);
    }
    record(&mut store, [(DAY * 191, server(7, claude(), 1))]);
    tidy(&mut store);
    let servers = number(dir.path(), "SELECT count(*) FROM servers");
    assert!((100..1000).contains(&servers), "{servers}");
    assert_eq!(number(dir.path(), "SELECT max(pid) FROM servers"), 20_019);
    assert!(number(dir.path(), "SELECT min(pid) FROM servers WHERE ended IS NOT NULL") > 15_000);
    assert_eq!(number(dir.path(), "SELECT max(generation) FROM runs"), 200);
    assert_eq!(number(dir.path(), "SELECT count(*) FROM servers WHERE pid = 7 AND ended IS NULL"), 1);
    // Less than 64 free pages are not worth the work.
    let bytes = |name| fs::metadata(dir.path().join(name)).unwrap().size();
    assert!(bytes("orphand.db") < 512 << 10, "{}", bytes("orphand.db"));
    // The log was copied, and begins again.
    record(&mut store, [(DAY * 192, server(8, claude(), 1))]);
    assert!(bytes("orphand.db-wal") <= 4 << 20, "{}", bytes("orphand.db-wal"));
}

/// Limits that cannot be met must not make it delete forever.
#[test]
fn even_an_impossible_bound_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open_within(dir.path(), Limits { bytes: 1, ..Limits::default() });
    record(&mut store, [(DAY, run(claude(), 1, false)), (DAY, run(claude(), 2, false))]);
    tidy(&mut store);
    drop(store);
    assert_eq!(known_runs(dir.path()).len(), 1);
}

/// One user has a program name of its own for each of 20,000 runs, and as many servers; another user has a
/// few older ones.
#[test]
fn a_user_with_many_rows_loses_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { rows: 2000, bytes: 2 << 20, ..Limits::default() };
    let mut store = open_within(dir.path(), limits);
    for generation in 1..=50_u32 {
        let mut facts: Vec<_> =
            life(generation * 10, &claude(), generation.into()).map(|fact| (DAY * 190, fact)).into();
        facts.push((DAY * 190, run(claude(), generation.into(), false)));
        record(&mut store, facts);
    }
    let hostile = 64_001;
    for first in (0..20_000_u32).step_by(500) {
        let facts = (first..first + 500).flat_map(|n| {
            let key = RunKey::Agent { name: format!("a{n}"), uid: hostile };
            let main = ProcessId::new(n, 5);
            let run = Run {
                key: key.clone(),
                generation: 1,
                agent: format!("a{n}"),
                uid: hostile,
                main,
                invocation_id: None,
                alive: false,
            };
            let server = Tracked { uid: Some(hostile), owner: None, ..tracked(100_000 + n, key, 1) };
            let ended = Fact::Ended {
                server: server.id,
                end: Fate::Exited { ending: orphand_core::model::Ending::default() },
            };
            [Fact::Run { run }, Fact::Server { server }, ended].map(|fact| (DAY * 191 + u64::from(n), fact))
        });
        record(&mut store, facts.collect::<Vec<_>>());
    }
    drop(store);
    let Opened { mut store, knowledge, .. } = Store::open(dir.path(), BOOT, ago(), limits).unwrap();
    let known = knowledge.runs;
    let of = |uid| known.iter().filter(|run| run.run.uid == uid).count();
    assert_eq!((of(1000), of(hostile)), (50, orphand_core::model::KEYS_OF_USER));
    tidy(&mut store);
    let count = |sql: &str| number(dir.path(), &format!("SELECT count(*) FROM {sql}"));
    assert_eq!((count("runs WHERE uid = 1000"), count("servers WHERE uid = 1000")), (50, 50));
    let all = count("runs WHERE uid = 64001") + count("servers WHERE uid = 64001");
    assert!((64..=2000).contains(&all), "{all}");
    assert!(count("keys") <= 2065, "{}", count("keys"));
    // What is left of it is what came last.
    assert_eq!(number(dir.path(), "SELECT max(pid) FROM runs"), 19_999);
}

/// The ids of a range that was delegated to one user are one share: their keys do not take those of another user's.
#[test]
fn a_range_of_users_is_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open_within(dir.path(), Limits::default());
    let of = |uid: u32, name: String, seconds| {
        let key = RunKey::Agent { name: name.clone(), uid };
        let main = ProcessId::new(1, 5);
        let run = Run { key, generation: 1, agent: name, uid, main, invocation_id: None, alive: false };
        (seconds, Fact::Run { run })
    };
    record(&mut store, (0..64).map(|n| of(1000, format!("a{n}"), DAY * 190)));
    record(&mut store, (0..3000).map(|n| of(100_000 + n, "b".to_owned(), DAY * 191 + u64::from(n))));
    let runs = known_runs(dir.path());
    let honest = runs.iter().filter(|run| run.run.uid == 1000).count();
    assert_eq!((honest, runs.len()), (64, 1024));
}

/// A key that comes back begins again; rows of its past may still exist.
#[test]
fn a_key_that_was_forgotten_is_another_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open_within(dir.path(), Limits::default());
    record(&mut store, [1, 2].map(|generation| (DAY * 190, run(claude(), generation, false))));
    record(&mut store, [(DAY * 191, Fact::Forgotten { key: claude() })]);
    drop(store);
    let Opened { mut store, knowledge, .. } =
        Store::open(dir.path(), BOOT, ago(), Limits::default()).unwrap();
    assert_eq!(knowledge.runs, []);
    let fact = run(claude(), 1, false);
    record(&mut store, [(DAY * 192, fact.clone()), (DAY * 192, fact)]);
    drop(store);
    let known = known_runs(dir.path());
    assert_eq!(known.iter().map(|run| run.run.generation).collect::<Vec<_>>(), [1]);
    let past = history::history(dir.path(), &orphand_core::model::HistoryQuery::default()).unwrap();
    let mut past: Vec<_> = past.runs.iter().map(|run| run.run.generation).collect();
    past.sort_unstable();
    assert_eq!(past, [Some(1), Some(1), Some(2)]);
}
