//! Files of other versions.

use rusqlite::Connection;

use super::{
    super::schema::{STEPS, migrate, newest, version},
    *,
};

/// As orphand 0.1 wrote it: made with the first version of the schema, and kept.
const V1: &str = include_str!("v1.sql");

fn stored(dir: &Path, sql: &str) -> Connection {
    place::directory(dir).unwrap();
    let db = Connection::open(dir.join("orphand.db")).unwrap();
    db.execute_batch(sql).unwrap();
    db
}

#[test]
fn a_store_of_version_1_is_read() {
    let dir = tempfile::tempdir().unwrap();
    drop(stored(dir.path(), V1));
    let mut store = open(dir.path());
    let known = store.knowledge();
    assert_eq!(known.runs.len(), 2);
    assert_eq!(known.runs[0].run.key, unit());
    assert_eq!(known.servers[0].server, tracked(10, unit(), 2));
    tell(&mut store, [(9, reaped(10))]);
    drop(store);
    assert_eq!(open(dir.path()).knowledge().servers, []);
    assert_eq!(number(dir.path(), "PRAGMA user_version"), i64::from(newest(STEPS)));
}

#[test]
fn a_step_changes_the_file_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut db = stored(dir.path(), V1);
    let mut steps = STEPS.to_vec();
    steps.push("ALTER TABLE runs ADD COLUMN colour TEXT NOT NULL DEFAULT 'green'");
    for _ in 0..2 {
        migrate(&mut db, &steps).unwrap();
        assert_eq!(version(&db).unwrap(), newest(STEPS) + 1);
    }
    let green = "SELECT count(*) FROM runs WHERE colour = 'green'";
    assert_eq!(db.query_row(green, [], |row| row.get::<_, i64>(0)).unwrap(), 2);
    // One that fails leaves all as it was.
    steps.push("CREATE TABLE half (id); SELECT * FROM nowhere");
    migrate(&mut db, &steps).unwrap_err();
    assert_eq!(version(&db).unwrap(), newest(STEPS) + 1);
    db.prepare("SELECT * FROM half").unwrap_err();
}

#[test]
fn a_newer_one_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    drop(stored(dir.path(), "CREATE TABLE future (id); PRAGMA user_version = 99"));
    let refused = open_in(dir.path(), BOOT, OFFSET).unwrap_err();
    let line = refused.to_string();
    assert!(
        line.ends_with(
            "is of version 99, this orphand knows up to 1: run the newer orphand, or move the file away"
        ),
        "{line}"
    );
    assert_eq!(number(dir.path(), "SELECT count(*) FROM future"), 0);
    let query = crate::model::HistoryQuery::default();
    assert_eq!(history::history(dir.path(), &query).unwrap_err().to_string(), line);
}
