//! The variables of a hook.

use serde_json::{Value, json};

use super::*;
use orphand_core::model::Losses;

fn server(id: &str, name: &str) -> Value {
    let run = json!({ "agent": "boss", "generation": 3, "uid": 0, "unit": null, "invocation_id": null });
    json!({ "id": id, "name": name, "rule": "r", "processes": [], "rss_bytes": 700, "session_leader": false, "run": run })
}

fn agent(name: &str) -> Value {
    json!({ "name": name, "pid": 7, "start": 8, "generation": 5, "unit": null, "invocation_id": null, "alive": false,
            "implied": false })
}

fn notice(event: &str, mut fields: Value) -> Notice {
    fields["event"] = event.into();
    serde_json::from_value(fields).unwrap()
}

fn detected(id: &str, rss_bytes: u64) -> Notice {
    notice(
        "orphan_detected",
        json!({ "server": server(id, "files"), "owner": agent("claude"), "evidence": ["owner_exited"], "guards": [],
                "rss_bytes": rss_bytes, "pss_bytes": null, "latency_ms": 1.0 }),
    )
}

fn reaped(id: &str) -> Notice {
    notice(
        "orphan_reaped",
        json!({ "server": server(id, "files"), "owner": null, "signal": "TERM", "took_ms": 1, "freed_bytes": 44,
                "freed_pss_bytes": null }),
    )
}

fn told(account: &mut Account, notice: &Notice) -> Vec<String> {
    account.note(notice);
    variables(notice, account).into_iter().map(|(_, value)| value).collect()
}

#[test]
fn the_orphans_alive_are_counted_with_their_memory() {
    let mut account = Account::default();
    let a = &mut account;
    assert_eq!(told(a, &detected("1@1", 100)), ["orphan_detected", "boss", "3", "1", "100", "files"]);
    assert_eq!(told(a, &detected("2@2", 10)), ["orphan_detected", "boss", "3", "2", "10", "files"]);
    // A repeated event counts once.
    assert_eq!(told(a, &detected("2@2", 20))[3], "2");
    let lost = notice("lost", json!({ "records": Losses::default() }));
    assert_eq!(told(a, &lost), ["lost", "", "", "2", "120", ""]);
    assert_eq!(told(a, &reaped("1@1")), ["orphan_reaped", "boss", "3", "1", "44", "files"]);
    let exited = json!({ "server": server("2@2", "files"), "owner": null });
    assert_eq!(
        told(a, &notice("orphan_exited", exited)),
        ["orphan_exited", "boss", "3", "0", "700", "files"]
    );
    assert_eq!(told(a, &lost), ["lost", "", "", "0", "0", ""]);
}

#[test]
fn the_memory_of_an_agent_or_a_unit() {
    let mut account = Account::default();
    let mut of_a_unit = server("2@2", "files");
    of_a_unit["run"]["unit"] = "x.service".into();
    of_a_unit["run"]["agent"] = "other".into();
    account.note(&detected("1@1", 100));
    account
        .note(&notice("orphan_spared", json!({ "server": of_a_unit, "owner": null, "guards": ["observe"] })));
    let of = |whose| account.bytes(whose);
    assert_eq!((of(None), of(Some("boss")), of(Some("x.service")), of(Some("none"))), (800, 100, 700, 0));
}

#[test]
fn spared_ones_count_until_they_are_gone() {
    let mut account = Account::default();
    let fields = json!({ "server": server("1@1", "files"), "owner": null, "guards": ["observe"] });
    assert_eq!(told(&mut account, &notice("orphan_spared", fields))[3], "1");
    let cleared = json!({ "server": server("1@1", "files"), "after_ms": 1, "reason": "owner_found" });
    assert_eq!(told(&mut account, &notice("orphan_cleared", cleared))[3], "0");
    // A suspect is not an orphan yet.
    let fields = json!({ "server": server("1@1", "files"), "owner": null, "deadline_boot_ns": 1 });
    assert_eq!(told(&mut account, &notice("orphan_suspected", fields))[3], "0");
}

/// An unproven server was never an orphan, or it is one no longer because a process was found that holds
/// it.
#[test]
fn one_that_is_unproven_is_no_orphan() {
    let mut account = Account::default();
    let unproven = |id: &str| {
        notice(
            "orphan_unproven",
            json!({ "server": server(id, "files"), "owner": agent("claude"), "evidence": ["owner_exited"],
                    "doubts": ["wire_held"], "rss_bytes": 55, "after_ms": 9 }),
        )
    };
    let told = |account: &mut Account, notice: &Notice| told(account, notice).join(" ");
    assert_eq!(told(&mut account, &unproven("1@1")), "orphan_unproven boss 3 0 55 files");
    assert_eq!(told(&mut account, &detected("1@1", 100)), "orphan_detected boss 3 1 100 files");
    assert_eq!(told(&mut account, &detected("2@2", 10)), "orphan_detected boss 3 2 10 files");
    assert_eq!(told(&mut account, &unproven("1@1")), "orphan_unproven boss 3 1 55 files");
    assert_eq!((account.bytes(None), account.bytes(Some("boss"))), (10, 10));
}

#[test]
fn who_answers_for_it() {
    let mut account = Account::default();
    // Without a run the owner is named, and without an owner nobody. An event about an agent names that
    // agent.
    let mut unowned = server("1@1", "files");
    unowned["run"] = Value::Null;
    let fields = json!({ "server": unowned.clone(), "owner": agent("claude") });
    assert_eq!(told(&mut account, &notice("server_exited", fields))[1..3], ["claude", "5"]);
    let fields = json!({ "server": unowned, "owner": null });
    assert_eq!(told(&mut account, &notice("server_exited", fields))[1..3], ["", ""]);
    let fields =
        json!({ "agent": agent("codex"), "exit_code": 0, "signal": null, "servers_left": 2, "rss_bytes": 9 });
    let exited = notice("agent_exited", fields);
    assert_eq!(told(&mut account, &exited), ["agent_exited", "codex", "5", "0", "9", ""]);
}

#[test]
fn names_are_harmless() {
    let fields = json!({ "server": server("1@1", "a\0b\n\u{1b}[2J\u{202e}c"), "owner": null });
    let name = told(&mut Account::default(), &notice("server_exited", fields)).remove(5);
    assert_eq!(name, r"a\x00b\n\x1b[2J\u{202e}c");
    let fields = json!({ "server": server("1@1", &"ä".repeat(100_000)), "owner": null });
    let name = told(&mut Account::default(), &notice("server_exited", fields)).remove(5);
    assert_eq!(name, "ä".repeat(LONGEST));
}
