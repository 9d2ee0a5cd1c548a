//! Tests of the judge: it accepts a good run, and it finds each thing that may go wrong.

use serde_json::json;

use super::*;
use crate::vm::account::Start;

fn process(id: &str) -> Value {
    let (pid, start) = id.split_once('@').unwrap();
    json!({ "pid": pid.parse::<u64>().unwrap(), "start": start.parse::<u64>().unwrap() })
}

/// The servers of the start `number`.
fn servers(number: usize) -> Vec<Id> {
    (1..=2).map(|n| format!("{number}{n}@1")).collect()
}

fn about(kind: &str, id: &str, number: usize) -> Value {
    let run = json!({ "unit": UNIT, "generation": number });
    json!({
        "event": kind, "server": { "id": id, "processes": [process(id)], "run": run },
        "evidence": ["stdin_hangup", "owner_exited"], "guards": ["observe"],
    })
}

/// A daemon's events: it is told of these starts, and `last` of all of them but the last.
fn events(mode: &str, starts: std::ops::RangeInclusive<usize>, last: &str) -> Vec<Value> {
    let hooks = ["fexit:ksys_setsid", "tracepoint:syscalls:sys_exit_setsid"];
    let hook = hooks[usize::from(*starts.end() == 5)];
    let mut events = vec![json!({ "event": "ready", "mode": mode, "hooks": [hook] })];
    for number in starts.clone() {
        let agent = json!({ "pid": number, "start": 1, "generation": number });
        events.push(json!({ "event": "agent_started", "agent": agent }));
        events.extend(servers(number).iter().map(|id| about("server_started", id, number)));
    }
    for number in *starts.start()..*starts.end() {
        for kind in ["orphan_suspected", "orphan_detected", last] {
            events.extend(servers(number).iter().map(|id| about(kind, id, number)));
        }
    }
    events.push(json!({ "event": "stopping" }));
    numbered(events)
}

fn numbered(mut events: Vec<Value>) -> Vec<Value> {
    for (seq, event) in (1..).zip(&mut events) {
        event["seq"] = json!(seq);
    }
    events
}

fn good() -> Account {
    let start = |number: usize| Start {
        daemon: ["observe", "observe", "reap", "service", "again"][number - 1].into(),
        agent: format!("{number}@1"),
        servers: servers(number).into_iter().collect(),
    };
    let ids: Vec<Id> = (1..=2).flat_map(servers).collect();
    let status: Vec<Value> =
        ids.iter().map(|id| json!({ "server": { "processes": [process(id)], "rss_bytes": 1 } })).collect();
    Account {
        host: Some(Host {
            kernel: "6.1".into(),
            init: "/usr/lib/systemd/systemd".into(),
            cgroups: vec!["cgroup2 /sys/fs/cgroup cgroup2 rw 0 0".into()],
            controllers: "cpu memory pids".into(),
        }),
        starts: (1..=5).map(start).collect(),
        events: [
            ("observe".into(), events("observe", 1..=2, "orphan_spared")),
            ("reap".into(), events("reap", 1..=3, "orphan_reaped")),
            ("service".into(), events("reap", 3..=4, "orphan_reaped")),
            ("again".into(), events("reap", 4..=5, "orphan_reaped")),
        ]
        .into(),
        alive: [
            ("observe".into(), ids.into_iter().collect()),
            ("reap".into(), servers(3).into_iter().collect()),
            ("service".into(), servers(4).into_iter().collect()),
            ("again".into(), servers(5).into_iter().collect()),
        ]
        .into(),
        service: [
            ("Uid", "999"),
            ("CapEff", KEPT),
            ("CapPrm", PERMITTED),
            ("CapBnd", GIVEN),
            ("CapAmb", "0000000000000000"),
            ("NoNewPrivs", "1"),
            ("Seccomp", "2"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
        status: json!({ "report": { "agents": [{ "servers": status }] } }),
    }
}

/// The complaint about a day that went well but for this.
fn but(change: impl FnOnce(&mut Account)) -> String {
    let mut account = good();
    change(&mut account);
    format!("{:#}", judge(&account).unwrap_err())
}

fn host(account: &mut Account) -> &mut Host {
    account.host.as_mut().unwrap()
}

/// The events of a daemon, changed and numbered anew.
fn change(account: &mut Account, name: &str, how: impl FnOnce(&mut Vec<Value>)) {
    let mut events = account.events.remove(name).unwrap();
    how(&mut events);
    account.events.insert(name.into(), numbered(events));
}

fn at(events: &[Value], kind: &str) -> usize {
    events.iter().position(|e| e["event"] == kind).unwrap()
}

#[test]
fn a_good_day_is_right() {
    let verdict = judge(&good()).unwrap().to_string();
    assert!(verdict.contains("Linux 6.1 (fexit:ksys_setsid)"), "{verdict}");
    assert!(
        verdict.contains("5 runs with their own 10 servers; 8 left behind, reaped by number, 4 of them"),
        "{verdict}"
    );
}

#[test]
fn the_machine_is_what_it_should_be() {
    assert!(but(|a| host(a).init = "/bin/busybox".into()).contains("pid 1 of the guest is /bin/busybox"));
    assert!(but(|a| host(a).controllers = "cpu pids".into()).contains("no memory controller"));
    let version1 = "cgroup /sys/fs/cgroup/systemd cgroup rw 0 0".to_owned();
    assert!(but(|a| host(a).cgroups.push(version1)).contains("not version 2 alone"));
    assert!(but(|a| host(a).cgroups.clear()).contains("not version 2 alone"));
}

#[test]
fn a_day_that_shows_nothing_is_not_right() {
    assert!(but(|a| a.starts.truncate(2)).contains("started 2 times only"));
    assert!(but(|a| a.starts.truncate(4)).contains("again: it saw no start"));
    assert!(but(|a| a.starts[0].servers.clear()).contains("0 servers only"));
    assert!(but(|a| a.starts[1].daemon = "reap".into()).contains("1 of 3 starts were observed"));
    assert!(but(|a| drop(a.events.remove("reap"))).contains("reap: no events"));
}

#[test]
fn a_daemon_says_all_that_it_has_to() {
    let without = |name: &'static str, kind: &'static str| {
        but(|a| change(a, name, |events| drop(events.remove(at(events, kind)))))
    };
    assert!(without("reap", "ready").contains("reap: the daemon was never ready"));
    assert!(without("observe", "stopping").contains("observe: the daemon did not say that it stops"));
    assert!(
        without("observe", "server_started")
            .contains("in server_started of run 1 (observe): missing [\"11@1\"]")
    );
    assert!(without("observe", "orphan_detected").contains("orphan_detected of run 1 (observe): missing"));
    assert!(without("reap", "orphan_reaped").contains("orphan_reaped of run 1 (reap): missing"));
    assert!(
        but(|a| drop(a.events.get_mut("reap").unwrap().remove(3))).contains("reap: event 4 has the number")
    );
    let lost = json!({ "event": "lost" });
    assert!(
        but(|a| change(a, "reap", |events| events.insert(1, lost))).contains("reap: {\"event\":\"lost\"")
    );
}

#[test]
fn nobody_is_accused_wrongly() {
    let more = |name: &'static str, kind: &'static str, number: usize| {
        but(|a| change(a, name, |events| events.insert(2, about(kind, &servers(number)[0], number))))
    };
    assert!(more("observe", "orphan_suspected", 2).contains("observe: a server in use was accused"));
    assert!(more("observe", "orphan_detected", 2).contains("too many [\"21@1\"]"));
    assert!(more("observe", "orphan_reaped", 1).contains("too many [\"11@1\"]"));
    assert!(more("reap", "orphan_reaped", 3).contains("too many [\"31@1\"]"));
    assert!(more("reap", "orphan_cleared", 3).contains("reap: a server in use was accused"));
    assert!(more("reap", "orphan_reaped", 1).contains("orphan_reaped: 11@1 twice"));
}

#[test]
fn a_server_is_who_was_started_whoever_launched_it() {
    let mut account = good();
    change(&mut account, "reap", |events| {
        let at = at(events, "orphan_reaped");
        events[at]["server"]["id"] = json!("10@1");
        events[at]["server"]["processes"] = json!([process("10@1"), process("11@1")]);
    });
    judge(&account).unwrap();
    let processes = |processes: Value| {
        but(|a| {
            change(a, "reap", |events| {
                let at = at(events, "orphan_reaped");
                events[at]["server"]["processes"] = processes;
            });
        })
    };
    assert!(processes(json!([process("10@1")])).contains("not one of the servers"));
    assert!(processes(json!([process("11@1"), process("12@1")])).contains("not one of the servers"));
}

#[test]
fn numbers_are_right() {
    let set = |kind: &'static str, pointer: &'static str, value: Value| {
        but(|a| {
            change(a, "reap", |events| {
                let at = at(events, kind);
                *events[at].pointer_mut(pointer).unwrap() = value;
            });
        })
    };
    assert!(
        set("agent_started", "/agent/generation", json!(2))
            .contains("agent 1@1 is start Some(1), not Some(2)")
    );
    assert!(set("server_started", "/server/run/generation", json!(2)).contains("of run 1 (reap): missing"));
    assert!(set("orphan_reaped", "/server/run/generation", Value::Null).contains("11@1 has no number"));
    assert!(
        set("orphan_reaped", "/server/run/unit", json!("other.service"))
            .contains("is accounted to Some(\"other")
    );
}

#[test]
fn verdicts_rest_on_the_wire() {
    let set = |key: &'static str, value: Value| {
        but(|a| {
            change(a, "observe", |events| {
                let at = at(events, "orphan_detected");
                events[at][key] = value;
            });
        })
    };
    assert!(set("evidence", json!(["owner_exited"])).contains("observe: the evidence is {\"owner_exited\"}"));
    assert!(set("guards", json!(["observe", "own_unit"])).contains("observe: the guards are"));
}

#[test]
fn who_lives_is_what_counts() {
    let gone =
        |name: &'static str, id: &'static str| but(|a| assert!(a.alive.get_mut(name).unwrap().remove(id)));
    assert!(gone("observe", "11@1").contains("alive after observe: missing [\"11@1\"]"));
    assert!(gone("reap", "31@1").contains("alive after reap: missing [\"31@1\"]"));
    let stays = but(|a| assert!(a.alive.get_mut("reap").unwrap().insert("11@1".into())));
    assert!(stays.contains("alive after reap: missing [], too many [\"11@1\"]"));
}

#[test]
fn the_status_has_memory() {
    let none = but(|a| a.status["report"]["agents"][0]["servers"][0]["server"]["rss_bytes"] = json!(null));
    assert!(none.contains("with memory in the status of the observing daemon: missing [\"11@1\"]"));
}

#[test]
fn the_service_is_no_root_and_goes_on_after_it_has_hung() {
    let is =
        |name: &'static str, value: &'static str| but(|a| drop(a.service.insert(name.into(), value.into())));
    assert!(is("Uid", "0").contains("runs as user \"0\""));
    assert!(is("CapEff", GIVEN).contains("the service has CapEff \"000000c0000800e4\", not"));
    assert!(is("Seccomp", "0").contains("has Seccomp"));
    assert!(but(|a| a.service.clear()).contains("runs as user \"\""));
    let without = |name: &'static str, kind: &'static str| {
        but(|a| change(a, name, |events| drop(events.remove(at(events, kind)))))
    };
    assert!(without("service", "orphan_reaped").contains("orphan_reaped of run 3 (service): missing"));
    assert!(without("again", "server_started").contains("server_started of run 4 (again): missing"));
    assert!(without("again", "stopping").contains("again: the daemon did not say that it stops"));
    // One that hung said nothing any more.
    let mut hung = good();
    change(&mut hung, "service", |events| drop(events.pop()));
    judge(&hung).unwrap();
    let hook = but(|a| change(a, "again", |events| events[0]["hooks"] = json!(["fexit:ksys_setsid"])));
    assert!(hook.contains("again: the hooks are"), "{hook}");
}
