//! `orphand history`, the binary, on a store that a daemon is writing.

#![expect(clippy::unwrap_used, reason = "what a test relies on is checked by it")]

use std::{
    path::Path,
    process::{Command, Output},
};

use orphand::{
    os::clock,
    store::{Limits, StoreWriter},
};
use orphand_core::model::{End, Evidence, Fact, ProcessId, Run, RunKey, Signal, Tracked};

fn history(dir: &Path, args: &[&str]) -> Output {
    let orphand = env!("CARGO_BIN_EXE_orphand");
    Command::new(orphand).args(["history", "--state-dir"]).arg(dir).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A run with one server, which became an orphan and was ended.
fn story() -> [Fact; 4] {
    let key = RunKey::Agent { name: "claude".to_owned(), uid: 1000 };
    let server = ProcessId::new(1234, 100);
    let run = Run {
        key: key.clone(),
        generation: 7,
        agent: "claude".to_owned(),
        uid: 1000,
        main: ProcessId::new(1200, 0),
        invocation_id: None,
        alive: false,
    };
    let name = "server-time".to_owned();
    let end = End::Reaped {
        signal: Some(Signal::Term),
        took_ms: Some(42),
        freed_bytes: 56_000_000,
        freed_pss_bytes: None,
    };
    [
        Fact::Run { run },
        Fact::Server { server: Tracked { id: server, name, run: Some((key, 7)), ..Tracked::default() } },
        Fact::Orphan {
            server,
            evidence: vec![Evidence::OwnerExited],
            guards: Vec::new(),
            rss_bytes: 56_000_000,
            pss_bytes: None,
        },
        Fact::Ended { server, end },
    ]
}

#[test]
fn it_tells_what_the_daemon_remembered() {
    let dir = tempfile::tempdir().unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let (mut store, _, _) =
        StoreWriter::open(dir.path(), boot.trim(), clock::realtime_offset(), Limits::default()).unwrap();
    for fact in story() {
        store.remember(clock::now(), &fact);
    }
    store.try_commit().unwrap();

    let told = history(dir.path(), &["--since", "24h"]);
    let tables = text(&told.stdout);
    assert!(told.status.success() && told.stderr.is_empty(), "{}", text(&told.stderr));
    for words in
        ["claude #7", "server-time", "reaped by SIGTERM", "owner exited", "1 orphan, 1 reaped, 56 MB freed."]
    {
        assert!(tables.contains(words), "no {words:?} in:\n{tables}");
    }

    let told = history(dir.path(), &["--json", "--agent", "claude"]);
    let json: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(json["runs"][0]["reaped"], 1);
    assert_eq!(json["orphans"][0]["id"], "1234@100");

    // Its negative twin: another agent has no past.
    let told = history(dir.path(), &["--agent", "codex"]);
    assert_eq!(told.status.code(), Some(4));
    assert!(text(&told.stdout).starts_with("no runs, no MCP servers, no orphans.\nNo daemon was asked"));
}

#[test]
fn without_a_store_it_says_so_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let told = history(dir.path(), &[]);
    assert_eq!(told.status.code(), Some(1));
    assert!(told.stdout.is_empty());
    let line = text(&told.stderr);
    assert!(line.starts_with("orphand: there is no store at ") && line.lines().count() == 1, "{line}");
}
