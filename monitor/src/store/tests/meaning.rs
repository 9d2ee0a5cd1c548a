//! What the next daemon learns from facts.

use super::*;
use orphand_core::model::{RememberedOrphan, RememberedServer};

/// The first start of all is remembered as long as the boot lasts; where that is not known, it is the present one.
#[test]
fn when_the_first_start_was() {
    let dir = tempfile::tempdir().unwrap();
    let first_start = |boot: &str| open_in(dir.path(), boot, OFFSET).unwrap().knowledge.first_start;
    let before = clock::now();
    let first = first_start(BOOT);
    assert!(first.is_some_and(|at| before <= at && at <= clock::now()));
    assert_eq!(first_start(BOOT), first, "a restart is no first start");
    let file = dir.path().join(files::FILE);
    files::mark_suspect(&file, "row 7 missing");
    assert_eq!(first_start(BOOT), first, "the damaged file said it");
    let other = "0c8a1b9e-0000-4000-8000-000000000002";
    assert_eq!(first_start(other), None, "it was in an earlier boot");
    files::mark_suspect(&file, "row 8 missing");
    assert_eq!(first_start(other), None);
    std::fs::write(&file, [0x5a; 8192]).unwrap();
    let lost = first_start(other);
    assert!(lost > first, "nothing is known: {lost:?}");
    assert_eq!(first_start(other), lost);
}

#[test]
fn the_next_daemon_knows_what_was_committed() {
    let dir = tempfile::tempdir().unwrap();
    let Opened { mut store, knowledge, .. } = open_in(dir.path(), BOOT, OFFSET).unwrap();
    assert_eq!(knowledge, Knowledge { first_start: knowledge.first_start, ..Knowledge::default() });
    record(
        &mut store,
        [
            (1, run(claude(), 1, false)),
            (2, run(claude(), 2, true)),
            (2, run(unit(), 1, true)),
            (3, server(10, claude(), 1)),
            (3, server(20, claude(), 2)),
            (3, server(30, unit(), 1)),
            (3, Fact::Server { server: Tracked { id: id(40), ..Tracked::default() } }),
            (4, orphan(10, &[Guard::Observe])),
            (5, orphan(30, &[])),
            (6, Fact::Reaping { server: id(30), asked_by: None }),
        ],
    );
    drop(store);
    let known = known(dir.path());
    let runs: Vec<_> =
        known.runs.iter().map(|run| (&run.run.key, run.run.generation, run.run.alive)).collect();
    assert_eq!(runs, [(&claude(), 1, false), (&claude(), 2, true), (&unit(), 1, true)]);
    assert!(known.runs.iter().all(|run| run.this_boot));
    let Fact::Run { run: told } = run(unit(), 1, true) else { panic!() };
    assert_eq!(known.runs[2].run, told);
    let case = |reaping| {
        Some(RememberedOrphan {
            announced: true,
            reaping,
            asked_by: None,
            rss_bytes: 1_000_000,
            pss_bytes: Some(400_000),
        })
    };
    assert_eq!(
        known.servers,
        [
            RememberedServer { server: tracked(10, claude(), 1), orphan: case(false) },
            RememberedServer { server: tracked(20, claude(), 2), orphan: None },
            RememberedServer { server: tracked(30, unit(), 1), orphan: case(true) },
            RememberedServer { server: Tracked { id: id(40), ..Tracked::default() }, orphan: None },
        ]
    );
}

#[test]
fn what_was_committed_needs_no_closing() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    record(&mut store, [(1, run(claude(), 1, true))]);
    // As after SIGKILL: nothing is closed or flushed.
    std::mem::forget(store);
    assert_eq!(known(dir.path()).runs.len(), 1);
}

#[test]
fn telling_twice_is_telling_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let losses = orphand_core::model::Losses { exec: 3, ..Default::default() };
    let mut facts = vec![run(claude(), 1, true), run(claude(), 1, false), Fact::Lost { losses }];
    facts.extend(life(10, &claude(), 1));
    facts.push(Fact::ReapFailed { server: id(10), pid: 11, error: "late".to_owned() });
    let all = |dir: &Path| {
        let count = |table: &str| number(dir, &format!("SELECT count(*) FROM {table}"));
        let sums = "SELECT sum(freed) * 1000 + sum(ended) % 1000 FROM servers";
        (
            ["runs", "servers", "losses"].map(count),
            number(dir, sums),
            number(dir, "SELECT sum(ended) FROM runs"),
        )
    };
    record(&mut store, (5..).zip(facts.clone()));
    let once = all(dir.path());
    record(&mut store, (5..).zip(facts.clone()));
    drop(store);
    let mut store = open(dir.path());
    record(&mut store, (5..).zip(facts));
    assert_eq!(all(dir.path()), once);
    assert_eq!(once.0, [1, 1, 1]);
}

#[test]
fn an_end_is_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let end = |end| Fact::Ended { server: id(10), end };
    record(&mut store, (1..).zip(life(10, &claude(), 1)));
    record(
        &mut store,
        [
            (9, end(Fate::Unseen)),
            (10, server(10, claude(), 2)),
            (11, orphan(10, &[Guard::Observe])),
            (12, Fact::Cleared { server: id(10) }),
            (13, Fact::Reaping { server: id(10), asked_by: None }),
        ],
    );
    let unchanged = "SELECT count(*) FROM servers WHERE how = 'reaped' AND generation = 1 AND guards = '[]'
                     AND judged IS NOT NULL AND ended / 1000000 = 1785153604";
    assert_eq!(number(dir.path(), unchanged), 1);
    drop(store);
    assert_eq!(known(dir.path()).servers, []);
}

#[test]
fn one_that_was_cleared_is_no_orphan() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    record(
        &mut store,
        [
            (1, server(10, claude(), 1)),
            (2, orphan(10, &[Guard::OwnUnit])),
            (3, Fact::Cleared { server: id(10) }),
        ],
    );
    drop(store);
    let known = known(dir.path());
    assert_eq!(known.servers, [RememberedServer { server: tracked(10, claude(), 1), orphan: None }]);
}

/// It is judged again, like a server whose owner has just exited. A signal that was sent stays recorded.
#[test]
fn one_that_is_unproven_is_remembered_as_no_orphan() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    record(
        &mut store,
        [
            (1, server(10, claude(), 1)),
            (2, unproven(10, &[Doubt::WireHeld])),
            (1, server(20, claude(), 1)),
            (2, orphan(20, &[Guard::OwnUnit])),
            (3, unproven(20, &[Doubt::Clients])),
            (1, server(30, claude(), 1)),
            (2, unproven(30, &[Doubt::WireHeld])),
            (3, orphan(30, &[])),
            (1, server(40, claude(), 1)),
            (2, orphan(40, &[])),
            (3, Fact::Reaping { server: id(40), asked_by: None }),
            (4, unproven(40, &[Doubt::Clients])),
        ],
    );
    drop(store);
    let known = known(dir.path());
    let orphans: Vec<_> =
        known.servers.iter().map(|one| (one.server.id.pid, one.orphan.as_ref().map(|o| o.reaping))).collect();
    assert_eq!(orphans, [(10, None), (20, None), (30, Some(false)), (40, Some(true))]);
    assert_eq!(known.servers[0].server, tracked(10, claude(), 1));
}

/// A verdict on an unrecorded server counts, repetition changes nothing, and after its end nothing changes.
#[test]
fn unproven_is_a_fact_like_others() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let doubted = |sql: &str| number(dir.path(), &format!("SELECT count(*) FROM servers WHERE {sql}"));
    record(&mut store, [(2, unproven(10, &[Doubt::Traced])), (5, unproven(10, &[Doubt::Traced]))]);
    assert_eq!(doubted("unproven / 1000000 = 1785153602 AND doubts = '[\"traced\"]' AND rss = 900000"), 1);
    record(
        &mut store,
        [(
            6,
            Fact::Ended {
                server: id(10),
                end: Fate::Exited { ending: orphand_core::model::Ending::default() },
            },
        )],
    );
    record(
        &mut store,
        [(7, unproven(10, &[Doubt::Clients])), (8, orphan(10, &[])), (9, Fact::Cleared { server: id(10) })],
    );
    assert_eq!(doubted("how = 'exited' AND doubts = '[\"traced\"]' AND judged IS NULL"), 1);
    assert_eq!(doubted("true"), 1);
}

/// Its servers ended with the boot; its numbers continue.
#[test]
fn another_boot() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    record(&mut store, [(1, run(claude(), 4, true)), (1, server(10, claude(), 4)), (2, orphan(10, &[]))]);
    drop(store);
    let later = open_in(dir.path(), "another", OFFSET + 3_600_000_000_000).unwrap();
    let Opened { mut store, knowledge: known, .. } = later;
    assert_eq!(known.servers, []);
    let [run] = known.runs.as_slice() else { panic!("{known:?}") };
    assert_eq!((run.run.generation, run.run.alive, run.this_boot), (4, true, false));
    // The same process id and start time is another server now.
    record(&mut store, [(1, server(10, claude(), 5))]);
    assert_eq!(number(dir.path(), "SELECT count(*) FROM servers"), 2);
    drop(store);
    assert_eq!(open_in(dir.path(), "another", OFFSET).unwrap().knowledge.servers.len(), 1);
}

#[test]
fn nobody_else_may_read_or_write_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let above = tempfile::tempdir().unwrap();
    let dir = above.path().join("state/orphand");
    let mut store = open(&dir);
    record(&mut store, [(1, run(claude(), 1, true))]);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for file in ["orphand.db", "orphand.db-wal", "orphand.db-shm"] {
        assert_eq!(mode(&dir.join(file)), 0o600, "{file}");
    }
    drop(store);
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o770)).unwrap();
    let error = open_in(&dir, BOOT, OFFSET).unwrap_err().to_string();
    let expected = format!("cannot be used: others may write {} (mode 0770): chmod go-w it; ", dir.display());
    assert!(error.contains(&expected), "{error}");
}

#[test]
fn a_directory_that_cannot_be_made_is_one_line() {
    let error = open_in(Path::new("/proc/orphand"), BOOT, OFFSET).unwrap_err().to_string();
    assert!(error.starts_with("cannot create the state directory /proc/orphand: "), "{error}");
    assert!(error.ends_with("or choose another directory with --state-dir"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = open_in(&file, BOOT, OFFSET).unwrap_err().to_string();
    assert!(
        error.contains("/file is no directory; ") && error.ends_with("--state-dir names another one"),
        "{error}"
    );
}

/// Only one that stopped in good order says so.
#[test]
fn the_next_daemon_knows_until_when_the_last_one_watched() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let mut stopped = open(dir.path());
    stopped.record_stop(at(30)).unwrap();
    drop(stopped);
    assert_eq!(known(dir.path()).watched_until, Some(at(30)));
    assert_eq!(known(dir.path()).watched_until, None, "it did not stop in good order");
}
