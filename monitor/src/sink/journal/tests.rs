//! Every notice as a journal entry; the ids in the manual and in the catalog.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::{os::journald::Priority, sink::human::tests::all};
use orphand_core::model::{Ending, EventKind, RunView};

/// The fields of an entry, by name.
fn fields(entry: &str) -> Vec<(&str, &str)> {
    entry.lines().map(|line| line.split_once('=').unwrap()).collect()
}

fn entry(notice: &Notice) -> String {
    let mut out = String::new();
    JournalEntries::new(WallClock { offset_ns: 1_785_153_600_000_000_000 }).write(
        BootTime(93_000_042_999),
        notice,
        &mut out,
    );
    out
}

#[test]
fn every_notice_has_a_kind_of_its_own_name() {
    let mut seen = BTreeSet::new();
    for notice in all() {
        let entry = entry(&notice);
        let fields = fields(&entry);
        let one = |name: &str| {
            let mut found = fields.iter().filter(|(field, _)| *field == name).map(|(_, value)| *value);
            let value = found.next().unwrap_or_else(|| panic!("no {name}: {entry}"));
            assert_eq!(found.next(), None, "{name} twice: {entry}");
            value
        };
        let json: Value = serde_json::from_str(one("ORPHAND_JSON")).unwrap();
        assert_eq!(json["event"], one("ORPHAND_EVENT"));
        assert!(json["seq"] == 1 && json["time"].is_string(), "{json}");
        assert_eq!(one("SYSLOG_IDENTIFIER"), "orphand");
        let message = appearance(notice.kind());
        assert_eq!((one("MESSAGE_ID"), one("ORPHAND_EVENT")), (message.id, notice.kind().name()));
        assert_eq!(one("PRIORITY"), (message.priority as u8).to_string());
        assert!(!one("MESSAGE").is_empty());
        seen.insert(notice.kind());
    }
    let known: BTreeSet<EventKind> = EventKind::ALL.iter().copied().collect();
    assert_eq!(seen, known, "what the sample has, and what the table has");
}

#[test]
fn ids_differ_and_are_ids() {
    let all = || EventKind::ALL.iter().map(|kind| appearance(*kind));
    let ids: BTreeSet<&str> = all().map(|message| message.id).collect();
    assert_eq!(ids.len(), EventKind::ALL.len());
    for id in ids {
        assert!(id.len() == 32 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')), "{id}");
    }
    assert!(all().any(|message| message.priority == Priority::Error));
}

#[test]
fn the_catalog_has_every_id() {
    let catalog = include_str!("../../../../packaging/catalog/orphand.catalog");
    for kind in EventKind::ALL {
        let (event, id) = (kind.name(), appearance(*kind).id);
        assert!(
            catalog.lines().any(|line| line == format!("-- {id}")),
            "the catalog has no entry for {event}, {id}"
        );
    }
}

#[test]
fn whom_an_entry_is_about() {
    let reaped = all().into_iter().find(|n| matches!(n, Notice::OrphanReaped { .. })).unwrap();
    let entry = entry(&reaped);
    insta::assert_snapshot!(entry);
}

#[test]
fn the_unit_is_told_in_the_field_of_its_manager() {
    let with = |manager: Option<&str>| {
        let mut server = crate::sink::report::tests::filesystem();
        server.run = Some(RunView {
            agent: "claude".into(),
            generation: Some(4),
            uid: None,
            unit: Some("bot.service".into()),
            manager: manager.map(ToOwned::to_owned),
            invocation_id: None,
        });
        entry(&Notice::ServerExited { server, owner: None, ending: Ending::default(), let_go: Vec::new() })
    };
    assert!(with(None).contains("\nUNIT=bot.service\n"));
    let of_a_user = with(Some("/user.slice/user-1000.slice/user@1000.service"));
    assert!(of_a_user.contains("\nUSER_UNIT=bot.service\n") && !of_a_user.contains("\nUNIT="));
    assert!(!with(Some("/machine.slice/box.scope")).contains("UNIT="), "not one of this host");
    assert!(with(None).contains("\nORPHAND_GENERATION=4\n"));
}

#[test]
fn nobody_can_write_a_field_of_his_own() {
    let mut server = crate::sink::report::tests::filesystem();
    server.name = "evil\nPRIORITY=0\nMESSAGE_ID=x".into();
    server.processes[0].argv = vec!["a\nORPHAND_EVENT=forged".into()];
    let entry =
        entry(&Notice::ServerExited { server, owner: None, ending: Ending::default(), let_go: Vec::new() });
    assert_eq!(entry.lines().filter(|line| line.starts_with("PRIORITY=")).count(), 1, "{entry}");
    assert_eq!(entry.lines().filter(|line| line.starts_with("ORPHAND_EVENT=")).count(), 1, "{entry}");
}

/// A name can have any text: none may begin a field or a line, or act on a terminal.
#[test]
fn a_name_forges_no_field() {
    let evil = "a\nPRIORITY=0\u{1b}[2J\u{202e}b";
    let forge = |notice: &Notice| {
        let mut value = serde_json::to_value(notice).unwrap();
        rename(&mut value, evil);
        serde_json::from_value::<Notice>(value).ok()
    };
    let mut forged = 0;
    for notice in all().iter().filter_map(forge) {
        let entry = entry(&notice);
        forged += usize::from(entry.contains(r"a\nPRIORITY=0\x1b[2J\u{202e}b"));
        assert_eq!(entry.matches("\nPRIORITY=").count(), 1, "{entry}");
        assert!(!entry.contains(|c: char| c != '\n' && orphand_core::model::text::is_hostile(c)), "{entry}");
    }
    assert!(forged > 5, "{forged} notices have a name");
}

/// Replaces every name in the value.
fn rename(value: &mut Value, to: &str) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(name) if ["name", "unit", "agent"].contains(&key.as_str()) => {
                        to.clone_into(name);
                    }
                    other => rename(other, to),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| rename(value, to)),
        _ => {}
    }
}
