//! Files of other versions.

use rusqlite::Connection;

use super::{
    super::schema::{STEPS, migrate, newest, version},
    *,
};

/// A file as orphand 0.1 wrote it: made with the first version of the schema, and kept.
const V1: &str = include_str!("v1.sql");

fn stored(dir: &Path, sql: &str) -> Connection {
    files::create_directory(dir).unwrap();
    let db = Connection::open(dir.join("orphand.db")).unwrap();
    db.execute_batch(sql).unwrap();
    db
}

#[test]
fn a_store_of_version_1_is_read() {
    let dir = tempfile::tempdir().unwrap();
    drop(stored(dir.path(), V1));
    let mut store = open(dir.path());
    let known = store.take_knowledge();
    assert_eq!(known.runs.len(), 2);
    assert_eq!(known.runs[0].run.key, unit());
    assert_eq!(known.servers[0].server, Tracked { start: None, ..tracked(10, unit(), 2) });
    record(&mut store, [(9, reaped(10))]);
    drop(store);
    assert_eq!(open(dir.path()).take_knowledge().servers, []);
    assert_eq!(number(dir.path(), "PRAGMA user_version"), i64::from(newest(STEPS)));
}

/// A server that version 1 spared for a reason that is a doubt today is unproven; one that ended or was
/// signalled was an orphan.
#[test]
fn the_guards_of_version_1_that_are_gone() {
    let rows = [
        (20, r#"'["weak_evidence"]'"#, "NULL", "NULL"),
        (30, r#"'["observe","listening","weak_evidence"]'"#, "NULL", "NULL"),
        (40, r#"'["detached","observe"]'"#, "NULL", "NULL"),
        (50, r#"'["listening"]'"#, "1785153609000000", "'orphan_exited'"),
        (60, r#"'["observe"]'"#, "NULL", "NULL"),
        (70, "'no list'", "1785153609000000", "'orphan_exited'"),
    ];
    let insert = |(pid, guards, ended, how): &(i64, &str, &str, &str)| {
        format!(
            "INSERT INTO servers (boot, pid, start, name, rule, processes, key, generation, since, judged, evidence, guards, rss, ended, how)
             VALUES (1, {pid}, {pid}0, 'x', 'npm-mcp', '{pid}@{pid}0', 1, 2, 1, 1785153604000000, '[]', {guards}, 7, {ended}, {how});"
        )
    };
    let all = rows.iter().map(insert).collect::<String>();
    let dir = tempfile::tempdir().unwrap();
    drop(stored(dir.path(), V1));
    drop(stored(dir.path(), &all));
    let known = open(dir.path()).take_knowledge();
    let orphans: Vec<_> = known.servers.iter().map(|one| (one.server.id.pid, one.orphan.is_some())).collect();
    assert_eq!(orphans, [(10, false), (20, false), (30, false), (40, true), (60, true)]);
    // An unreadable row stays unreadable and does not prevent opening.
    let query = orphand_core::model::HistoryQuery { boot_id: Some(BOOT.to_owned()), ..Default::default() };
    assert!(history::history(dir.path(), &query).unwrap_err().is_damage());
    drop(stored(dir.path(), "DELETE FROM servers WHERE pid = 70"));
    let past = history::history(dir.path(), &query).unwrap();
    let told = |all: &[orphand_core::model::PastOrphan]| -> Vec<_> {
        all.iter().map(|one| (one.id.clone(), one.guards.clone(), one.doubts.clone())).collect()
    };
    let of = |pid: u32| id(pid).to_string();
    assert_eq!(
        told(&past.unproven),
        [
            (of(20), vec![], vec![Doubt::OwnerUnknown]),
            (of(30), vec![], vec![Doubt::Clients, Doubt::OwnerUnknown]),
        ]
    );
    assert_eq!(
        told(&past.orphans),
        [
            (of(40), vec![Guard::Observe], vec![]),
            (of(50), vec![], vec![]),
            (of(60), vec![Guard::Observe], vec![]),
        ]
    );
}

/// A file that was damaged before its upgrade: its numbers continue, and its tracked servers are read like
/// new ones.
#[test]
fn a_damaged_one_of_version_1_is_salvaged() {
    let dir = tempfile::tempdir().unwrap();
    drop(stored(dir.path(), V1));
    let guarded =
        r#"UPDATE servers SET judged = since, evidence = '[]', guards = '["observe","listening"]', rss = 7"#;
    drop(stored(dir.path(), guarded));
    files::mark_suspect(&dir.path().join("orphand.db"), "row 7 missing");
    let (mut store, opening) = open_in(dir.path(), BOOT, OFFSET).unwrap();
    assert_eq!(opening.map(|aside| aside.runs), Some(2));
    let known = store.take_knowledge();
    assert_eq!(known.runs.last().map(|run| run.run.generation), Some(2));
    assert_eq!(known.servers[0].orphan, None);
    drop(store);
    let past = history::history(dir.path(), &orphand_core::model::HistoryQuery::default()).unwrap();
    assert_eq!(past.unproven[0].doubts, [Doubt::Clients]);
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
    // A migration that fails changes nothing.
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
            "has version 99, this orphand supports up to 10: run the newer orphand, or move the file away"
        ),
        "{line}"
    );
    assert_eq!(number(dir.path(), "SELECT count(*) FROM future"), 0);
    let query = orphand_core::model::HistoryQuery::default();
    assert_eq!(history::history(dir.path(), &query).unwrap_err().to_string(), line);
}
