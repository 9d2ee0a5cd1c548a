//! The variables of a hook.

use serde_json::{Value, json};

use super::*;
use orphand_core::model::Losses;

fn server(id: &str, name: &str) -> Value {
    let run = json!({ "agent": "boss", "generation": 3, "uid": 0, "unit": null, "invocation_id": null });
    json!({ "id": id, "name": name, "rule": "r", "processes": [], "processes_total": 0, "rss_bytes": 700,
            "session_leader": false, "run": run })
}

fn agent(name: &str) -> Value {
    json!({ "name": name, "pid": 7, "start": 8, "uid": 0, "generation": 5, "unit": null, "invocation_id": null, "alive": false,
            "implied": false })
}

fn notice(event: &str, mut fields: Value) -> Notice {
    fields["event"] = event.into();
    serde_json::from_value(fields).unwrap()
}

fn detected(id: &str, rss_bytes: u64) -> Notice {
    notice(
        "orphan_detected",
        json!({ "class": "server", "server": server(id, "files"), "owner": agent("claude"), "evidence": ["owner_exited"],
                "guards": [], "rss_bytes": rss_bytes, "pss_bytes": null, "after_ms": 1, "latency_ms": 1.0 }),
    )
}

/// The variables where there are two orphans, one of them of the agent "boss".
fn told(notice: &Notice) -> Vec<String> {
    let orphans = |whose: Option<&str>| match whose {
        None => [2, 120],
        Some("boss") => [1, 100],
        Some(_) => [0, 0],
    };
    variables(notice, &orphans).into_iter().map(|(_, value)| value).collect()
}

#[test]
fn one_user_takes_half_of_the_room_and_leaves_some_to_each_other() {
    let mut state = State::default();
    let mut fill = |user: Option<u32>| {
        let share = user.map(Share::of);
        let mut put = 0;
        while state.has_room(share, 0) {
            state.waiting.entry(share).or_default().events += 1;
            put += 1;
        }
        put
    };
    assert_eq!([Some(1000), Some(1001), None, Some(1002)].map(&mut fill), [64, 32, 16, 8]);
    assert_eq!(fill(Some(1000)), 0);
}

#[test]
fn what_was_taken_makes_room() {
    let share = Some(Share::of(1000));
    let event = Event {
        share,
        name: "",
        variables: variables(&detected("1@1", 1), &|_| [0, 0]),
        line: "12".to_owned(),
    };
    let mut state = State::default();
    state.waiting.insert(share, Load { events: 1, bytes: 2 });
    assert!(!state.has_room(share, QUEUE.bytes - 3) && state.has_room(share, QUEUE.bytes - 4));
    state.taken(&event);
    assert!(state.waiting.is_empty() && state.has_room(share, QUEUE.bytes));
}

#[test]
fn the_log_tells_of_dropped_events_once_until_none_waits() {
    let mut state = State::default();
    let share = Some(Share::of(1000));
    state.put(share, 2);
    state.put(share, 2);
    assert_eq!([state.drops(), state.drops()], [true, false]);
    let event = Event {
        share,
        name: "",
        variables: variables(&detected("1@1", 1), &|_| [0, 0]),
        line: "12".to_owned(),
    };
    state.taken(&event);
    state.put(share, 2);
    assert!(!state.drops(), "one place became free");
    state.taken(&event);
    state.taken(&event);
    state.put(share, 2);
    assert!(state.drops(), "none waited");
    assert_eq!((state.dropped, state.queued), (4, 4));
}

#[test]
fn whose_an_event_is() {
    let of = |notice: &Notice| EventSubject::of(notice).share();
    let mut own = server("1@1", "files");
    own["processes"] =
        json!([{ "pid": 1, "start": 1, "uid": 1001, "exe": "", "argv": [], "argv_truncated": false }]);
    let mut owner = agent("claude");
    owner["uid"] = 1000.into();
    assert_eq!(of(&notice("server_exited", json!({ "server": own, "owner": owner }))), Some(Share::of(1001)));
    assert_eq!(
        of(&notice("agent_started", json!({ "agent": owner, "parent": null }))),
        Some(Share::of(1000))
    );
    assert_eq!(of(&notice("lost", json!({ "records": Losses::default() }))), None);
}

#[test]
fn the_orphans_alive_are_counted_with_their_memory() {
    assert_eq!(told(&detected("1@1", 100)), ["orphan_detected", "boss", "3", "2", "100", "files"]);
    let lost = notice("lost", json!({ "records": Losses::default() }));
    assert_eq!(told(&lost), ["lost", "", "", "2", "120", ""]);
    let alert = |agent: Option<&str>| {
        notice("alert", json!({ "rule": "r", "on": "orphans", "agent": agent, "value": 2, "limit": 1 }))
    };
    assert_eq!(told(&alert(None)), ["alert", "", "", "2", "120", ""]);
    assert_eq!(told(&alert(Some("boss"))), ["alert", "boss", "", "2", "100", ""]);
}

#[test]
fn who_answers_for_it() {
    // Without a run the owner is named, and without an owner nobody. An event about an agent names that
    // agent.
    let mut unowned = server("1@1", "files");
    unowned["run"] = Value::Null;
    let fields = json!({ "server": unowned.clone(), "owner": agent("claude") });
    assert_eq!(told(&notice("server_exited", fields))[1..3], ["claude", "5"]);
    let fields = json!({ "server": unowned, "owner": null });
    assert_eq!(told(&notice("server_exited", fields))[1..3], ["", ""]);
    let fields = json!({ "agent": agent("codex"), "exit_code": 0, "signal": null, "servers_left": 2, "rss_bytes": 9, "cpu_ms": 1 });
    let exited = notice("agent_exited", fields);
    assert_eq!(told(&exited), ["agent_exited", "codex", "5", "2", "9", ""]);
}

#[test]
fn names_are_harmless() {
    let fields = json!({ "server": server("1@1", "a\0b\n\u{1b}[2J\u{202e}c"), "owner": null });
    let name = told(&notice("server_exited", fields)).remove(5);
    assert_eq!(name, r"a\x00b\n\x1b[2J\u{202e}c");
    let fields = json!({ "server": server("1@1", &"ä".repeat(100_000)), "owner": null });
    let name = told(&notice("server_exited", fields)).remove(5);
    assert_eq!(name, "ä".repeat(LONGEST));
}
