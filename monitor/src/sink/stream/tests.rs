//! The lines of the stream as programs read them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::*;
use crate::sink::report::tests::{claude, filesystem};
use orphand_core::model::{Class, Ending, Losses, Mode};

const WALL: WallClock = WallClock { offset_ns: 1_785_153_600_000_000_000 };
const AT: BootTime = BootTime(93_000_042_999);

fn lines(notices: &[Notice]) -> String {
    let mut json = Json::new(WALL);
    let mut out = String::new();
    for notice in notices {
        json.write(AT, notice, &mut out);
    }
    out
}

fn notices() -> Vec<Notice> {
    let (server, owner) = (filesystem, || Some(claude(false)));
    vec![
        Notice::Ready {
            version: "0.1.0".to_owned(),
            mode: Mode::Observe,
            kernel: "6.18.5".to_owned(),
            hooks: vec!["fork".to_owned()],
            processes: 214,
            agents: 2,
            servers: 5,
            found: 3,
        },
        Notice::OrphanSuspected {
            recovered: false,
            server: server(),
            owner: owner(),
            deadline: BootTime(103_000_000_000),
        },
        Notice::OrphanDetected {
            class: Class::Server,
            recovered: false,
            again: false,
            server: server(),
            owner: owner(),
            evidence: vec![orphand_core::model::Evidence::OwnerExited],
            guards: vec![orphand_core::model::Guard::Observe],
            rss_bytes: 197_132_288,
            cpu_ms: Some(90),
            pss_bytes: None,
            after_ms: 10_000,
            latency_ms: 0.42,
        },
        Notice::Lost { records: Losses { fork: 2, ..Losses::default() }, sink: BTreeMap::new() },
        Notice::Lost { records: Losses::default(), sink: BTreeMap::from([("stream".to_owned(), 12)]) },
    ]
}

#[test]
fn lines_of_the_contract() {
    insta::assert_snapshot!(lines(&notices()));
}

#[test]
fn every_line_has_the_common_fields_in_order() {
    for (n, line) in lines(&notices()).lines().enumerate() {
        let value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["seq"], n + 1);
        assert_eq!(value["time"], "2026-07-27T12:01:33.000042Z");
        assert_eq!(value["boot_ns"], AT.0);
        assert!(line.starts_with(r#"{"event":""#), "{line}");
    }
}

#[test]
fn the_deadline_is_told_twice() {
    let shown = lines(&notices());
    let value: Value = serde_json::from_str(shown.lines().nth(1).unwrap()).unwrap();
    assert_eq!(value["deadline"], "2026-07-27T12:01:43.000000Z");
    assert_eq!(value["deadline_boot_ns"], 103_000_000_000_u64);
}

/// Parsing gives what was written: escaping for terminals loses nothing.
#[test]
fn names_survive_and_terminals_too() {
    let evil = "a\u{1b}[2J\n\u{7f}\u{9b}\u{202e}\u{e0041}\"\\ 日本 🦀";
    let mut server = filesystem();
    server.name = evil.to_owned();
    let shown = lines(&[Notice::ServerExited {
        server: server.clone(),
        owner: None,
        ending: Ending::default(),
        let_go: Vec::new(),
    }]);
    let line = shown.strip_suffix('\n').unwrap();
    assert!(!line.contains(text::is_hostile), "{line:?}");
    let back: Notice = serde_json::from_str(line).unwrap();
    assert_eq!(
        back,
        Notice::ServerExited { server, owner: None, ending: Ending::default(), let_go: Vec::new() }
    );
}
