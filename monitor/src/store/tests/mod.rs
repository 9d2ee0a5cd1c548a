//! Tests of the store with real files.

mod bounds;
mod damage;
mod full;
mod killed;
mod meaning;
mod past;
mod silent;
mod timeline;
mod versions;

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use super::*;
use orphand_core::model::{
    Doubt, Evidence, Fate, Guard, Knowledge, ProcessId, Run, RunKey, Signal, Tracked, TrackedOwner,
    TrackedStart, Unit,
};

pub(super) const BOOT: &str = "0c8a1b9e-0000-4000-8000-000000000001";
/// 2026-07-27T12:00:00Z at boot.
pub(super) const OFFSET: i64 = 1_785_153_600_000_000_000;

/// Limits that keep everything, however old it is.
const EVER: Limits = Limits { age: Duration::from_secs(u32::MAX as u64), bytes: u64::MAX, rows: u64::MAX };

pub(super) fn open_in(dir: &Path, boot: &str, offset_ns: i64) -> Result<Opened, StoreError> {
    Store::open(dir, boot, offset_ns, EVER)
}

pub(super) fn open(dir: &Path) -> Store {
    let opened = open_in(dir, BOOT, OFFSET).unwrap();
    assert_eq!(opened.set_aside, None);
    opened.store
}

/// What the next daemon learns.
pub(super) fn known(dir: &Path) -> Knowledge {
    open_in(dir, BOOT, OFFSET).unwrap().knowledge
}

/// The thread of a store, and the daemon's side.
pub(super) fn writer(dir: &Path) -> StoreWriter {
    let (writer, found) = StoreWriter::open(dir, BOOT, OFFSET, EVER, unkept());
    found.unwrap();
    writer
}

/// What the next daemon is told of what could not be written.
pub(super) fn unkept() -> Unkept {
    Unkept::of(tempfile::tempfile().unwrap())
}

/// Commits until everything is written.
pub(super) fn commit_all(writer: &mut StoreWriter) {
    let begun = Instant::now();
    while writer.try_commit().is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20), "still not written");
        thread::yield_now();
    }
    assert_eq!((writer.queued.len(), writer.blind()), (0, None));
}

/// Why what is queued cannot be written. On a busy host the answer is late.
pub(super) fn refusal(writer: &mut StoreWriter) -> String {
    let begun = Instant::now();
    loop {
        let why = writer.try_commit().unwrap_err().to_string();
        if !why.contains("has not answered") || begun.elapsed() > Duration::from_secs(20) {
            return why;
        }
        thread::yield_now();
    }
}

pub(super) fn record(store: &mut Store, facts: impl IntoIterator<Item = (u64, Fact)>) {
    store.write(&facts.into_iter().map(|(seconds, fact)| (at(seconds), fact)).collect()).unwrap();
}

pub(super) const fn at(seconds: u64) -> BootTime {
    BootTime(seconds * 1_000_000_000)
}

pub(super) fn claude() -> RunKey {
    RunKey::Agent { name: "claude".to_owned(), uid: 1000 }
}

pub(super) fn unit() -> RunKey {
    RunKey::Unit(Unit { manager: String::new(), name: "bot.service".to_owned() })
}

pub(super) fn run(key: RunKey, generation: u64, alive: bool) -> Fact {
    let invocation_id = matches!(key, RunKey::Unit(_)).then(|| format!("{generation:032x}"));
    let main = ProcessId::new(100 + u32::try_from(generation).unwrap(), generation * 100);
    Fact::Run {
        run: Run { key, generation, agent: "claude".to_owned(), uid: 1000, main, invocation_id, alive },
    }
}

pub(super) fn id(pid: u32) -> ProcessId {
    ProcessId::new(pid, u64::from(pid) * 10)
}

pub(super) fn tracked(pid: u32, key: RunKey, generation: u64) -> Tracked {
    Tracked {
        id: id(pid),
        name: "server-filesystem".to_owned(),
        rule: "npm-mcp".to_owned(),
        uid: Some(1000),
        processes: vec![id(pid), id(pid + 1)],
        owner: Some(TrackedOwner {
            main: id(7),
            name: "claude".to_owned(),
            uid: 1000,
            ..TrackedOwner::default()
        }),
        run: Some((key, generation)),
        start: Some(TrackedStart { adopted: true, ..TrackedStart::default() }),
    }
}

pub(super) fn server(pid: u32, key: RunKey, generation: u64) -> Fact {
    Fact::Server { server: tracked(pid, key, generation) }
}

pub(super) fn orphan(pid: u32, guards: &[Guard]) -> Fact {
    Fact::Orphan {
        server: id(pid),
        evidence: vec![Evidence::OwnerExited, Evidence::StdinHangup],
        guards: guards.to_vec(),
        rss_bytes: 1_000_000,
        pss_bytes: Some(400_000),
    }
}

pub(super) fn unproven(pid: u32, doubts: &[Doubt]) -> Fact {
    Fact::Unproven {
        server: id(pid),
        evidence: vec![Evidence::OwnerExited],
        doubts: doubts.to_vec(),
        rss_bytes: 900_000,
    }
}

pub(super) fn reaped(pid: u32) -> Fact {
    let end = Fate::Reaped {
        signal: Some(Signal::Term),
        took_ms: Some(42),
        freed_bytes: 1_000_000,
        freed_pss_bytes: Some(400_000),
    };
    Fact::Ended { server: id(pid), end }
}

/// The whole life of a server that is ended as an orphan.
pub(super) fn life(pid: u32, key: &RunKey, generation: u64) -> [Fact; 4] {
    [
        server(pid, key.clone(), generation),
        orphan(pid, &[]),
        Fact::Reaping { server: id(pid), asked_by: None },
        reaped(pid),
    ]
}

/// Does all that the thread of the store does when it has time.
pub(super) fn tidy(store: &mut Store) {
    while store.tidy() {}
}

/// Holds SQLite's write lock, as a disk that does not answer does.
pub(super) fn hang(dir: &Path) -> rusqlite::Connection {
    let db = rusqlite::Connection::open(dir.join(files::FILE)).unwrap();
    db.busy_timeout(Duration::from_secs(20)).unwrap();
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    db
}

/// The number that a query returns.
pub(super) fn number(dir: &Path, sql: &str) -> i64 {
    rusqlite::Connection::open(dir.join(files::FILE)).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}
