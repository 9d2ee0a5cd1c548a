//! Files of other versions.

use rusqlite::Connection;

use super::{super::schema::VERSION, *};

pub fn change(dir: &Path, sql: &str) {
    files::create_directory(dir).unwrap();
    Connection::open(dir.join("orphand.db")).unwrap().execute_batch(sql).unwrap();
}

/// Nothing is lost, though columns are missing.
#[test]
fn one_of_an_earlier_version_is_copied() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let facts = [
        (1, run(unit(), 1, false)),
        (2, run(unit(), 2, true)),
        (3, server(10, unit(), 2)),
        (4, orphan(10, &[Guard::Observe])),
        (5, server(20, unit(), 1)),
        (6, unproven(20, &[Doubt::Clients])),
        (7, reaped(20)),
    ];
    record(&mut store, facts);
    drop(store);
    change(
        dir.path(),
        "ALTER TABLE runs DROP COLUMN hints; ALTER TABLE servers DROP COLUMN start_known; PRAGMA user_version = 4",
    );
    let query = orphand_core::model::HistoryQuery::default();
    let line = history::history(dir.path(), &query).unwrap_err().to_string();
    assert!(
        line.ends_with("has version 4, this orphand reads 11: `orphand run` copies it into a new one"),
        "{line}"
    );
    let Opened { store, knowledge, set_aside } = open_in(dir.path(), BOOT, OFFSET).unwrap();
    let line = set_aside.unwrap();
    assert!(line.contains(" has version 4: ") && line.ends_with("; 2 runs were recovered"), "{line}");
    assert_eq!(knowledge.runs.iter().map(|run| run.run.generation).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(knowledge.servers[0].server, Tracked { start: None, ..tracked(10, unit(), 2) });
    assert!(knowledge.servers[0].orphan.is_some() && knowledge.restarted);
    assert_eq!(knowledge.incomplete_before, None);
    drop(store);
    assert_eq!(known(dir.path()).runs.len(), 2);
    let past = history::history(dir.path(), &query).unwrap();
    assert_eq!((past.orphans[0].guards.as_slice(), past.unproven.len()), ([Guard::Observe].as_slice(), 1));
    assert_eq!(past.daemons.len(), 3);
}

#[test]
fn a_newer_one_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    change(dir.path(), "CREATE TABLE future (id); PRAGMA user_version = 99");
    let refused = open_in(dir.path(), BOOT, OFFSET).unwrap_err();
    let line = refused.to_string();
    let ending = format!(
        "has version 99, this orphand supports up to {VERSION}: run the newer orphand, or move the file away"
    );
    assert!(line.ends_with(&ending), "{line}");
    assert_eq!(number(dir.path(), "SELECT count(*) FROM future"), 0);
    let query = orphand_core::model::HistoryQuery::default();
    assert_eq!(history::history(dir.path(), &query).unwrap_err().to_string(), line);
}
