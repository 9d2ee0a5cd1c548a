//! Tests of the search for the process that made the wire, where no record names it.

use serde_json::{Value, json};

use super::first_messages::{OWN, mcp};
use super::story::{BRIDGE, CLAUDE, SERVER, Story, TERMINAL, WIRE, seen};
use super::story_scene::WireState;
use crate::model::{Policy, Signal, Stdio};

const HOST: &[&str] = &["python3", "/srv/app/host.py"];
const NOTHING: [Stdio; 3] = [Stdio::Null, Stdio::File, Stdio::File];

/// The agent of the first server that was reported.
fn owner(story: &Story) -> Value {
    story.event("server_started")["owner"].clone()
}

/// Server 30 is the first process that is reported. Its parent 20 turns out to run `argv`.
fn started_by(argv: &[&str], stdio: [Stdio; 3]) -> Story {
    let mut story = Story::new(Policy::default());
    story.creator = Some(seen(20, 10, argv, stdio));
    story.exec(30, 20, SERVER, WIRE);
    story
}

#[test]
fn a_home_made_host_is_an_agent_because_it_made_the_wire() {
    let mut story = started_by(HOST, TERMINAL);
    let owner = owner(&story);
    assert_eq!((&owner["pid"], &owner["implied"]), (&json!(20), &json!(true)));
    assert_eq!(story.told(), ["agent_started", "server_started"]);
    story.end(20);
    story.pass_secs(10);
    assert_eq!(story.told(), ["agent_exited", "orphan_suspected", "orphan_detected"]);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
}

#[test]
fn an_agent_that_a_rule_knows_is_not_implied() {
    let story = started_by(CLAUDE, TERMINAL);
    let owner = owner(&story);
    assert_eq!((&owner["name"], &owner["implied"]), (&json!("claude"), &json!(false)));
}

#[test]
fn a_shell_owns_nothing() {
    let mut story = started_by(&["bash"], TERMINAL);
    assert_eq!(owner(&story), Value::Null);
    story.end(20);
    story.pass_secs(100);
    assert_eq!(story.told(), ["server_started"]);
    assert_eq!(story.sent(), []);
}

#[test]
fn a_bridge_without_a_wire_is_no_server_and_owns_what_it_talks_to() {
    let mut story = Story::new(Policy::default());
    story.exec(20, 10, BRIDGE, NOTHING);
    assert_eq!(story.engine.processes(), 0, "dismissed");
    story.creator = Some(seen(20, 10, BRIDGE, NOTHING));
    story.exec(30, 20, SERVER, WIRE);
    let owner = owner(&story);
    assert_eq!(
        (&owner["name"], &owner["pid"], &owner["implied"]),
        (&json!("supergateway"), &json!(20), &json!(true))
    );
    story.told();
    story.end(20);
    story.pass_secs(10);
    assert_eq!(story.told(), ["agent_exited", "orphan_suspected", "orphan_detected"]);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
}

#[test]
fn a_bridge_below_an_agent_owns_what_it_talks_to() {
    let mut story = Story::with_agent();
    story.start(20, 25, BRIDGE, NOTHING);
    story.start(25, 30, SERVER, WIRE);
    assert_eq!(owner(&story)["pid"], 25);
    assert_eq!(story.told(), ["agent_started", "server_started"]);
    // The bridge does not end when the agent exits.
    story.end(20);
    story.pass_secs(100);
    assert_eq!(story.told(), ["agent_exited"]);
}

#[test]
fn what_is_started_for_another_belongs_to_whoever_holds_its_wire() {
    for starter in ["erl_child_setup", "/usr/libexec/flatpak-session-helper"] {
        let mut story = Story::new(Policy::default());
        story.creator = Some(seen(20, 15, &[starter], NOTHING));
        story.facts.stdin = WireState::held_as(&[15], &["/usr/lib/erlang/erts/bin/beam.smp"]);
        story.exec(30, 20, SERVER, WIRE);
        let owner = owner(&story);
        assert_eq!((&owner["name"], &owner["pid"]), (&json!("beam.smp"), &json!(15)), "{starter}");
    }
}

#[test]
fn a_bridge_that_was_there_before_us_is_found_by_the_wire() {
    let mut story = Story::new(Policy::default());
    story.facts.stdin = WireState::held_as(&[20], BRIDGE);
    story.snapshot(vec![seen(20, 1, BRIDGE, NOTHING), seen(30, 20, SERVER, WIRE)]);
    story.pass_secs(100);
    assert_eq!(owner(&story)["pid"], 20);
    assert_eq!(story.told(), ["agent_started", "server_started"]);
    story.end(20);
    story.facts.stdin = WireState::HungUp;
    story.pass_secs(10);
    assert_eq!(story.told(), ["agent_exited", "orphan_suspected", "orphan_detected"]);
}

#[test]
fn a_host_that_holds_the_wire_at_the_verdict_is_the_owner_from_then_on() {
    let mut story = Story::agent_with_server(Policy::default());
    // The agent launched the server for a host that existed before. The host talks to the server.
    story.facts.stdin = WireState::held_as(&[5], HOST);
    story.end(20);
    story.pass_secs(100);
    let told = ["agent_exited", "orphan_suspected", "agent_started", "orphan_cleared owner_found"];
    assert_eq!(story.told(), told);
    assert_eq!(story.sent(), []);
    story.end(5);
    story.facts.stdin = WireState::HungUp;
    story.pass_secs(10);
    assert_eq!(story.told(), ["agent_exited", "orphan_suspected", "orphan_detected"]);
}

/// A helper forked the server and exited before it could be asked what it was. The host holds the wire.
#[test]
fn whoever_holds_the_wire_owns_the_server_of_a_helper_that_is_gone() {
    let mut story = Story::new(Policy::default());
    story.facts.stdin = WireState::held_as(&[5], HOST);
    story.gone.insert(20);
    story.exec(30, 20, SERVER, WIRE);
    assert_eq!((&owner(&story)["name"], &owner(&story)["pid"]), (&json!("host.py"), &json!(5)));
    assert_eq!(story.told(), ["agent_started", "server_started"]);
    story.end(20);
    story.pass_secs(100);
    assert_eq!(story.told(), [""; 0], "the helper was no agent");
    story.end(5);
    story.facts.stdin = WireState::HungUp;
    story.pass_secs(10);
    assert_eq!(story.told(), ["agent_exited", "orphan_suspected", "orphan_detected"]);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
}

/// A supervisor started the server and was killed while the engine was late: that it could not be asked any more proves
/// nothing, and is reported. On time it is a helper that exited at once.
#[test]
fn a_maker_that_was_asked_late_is_no_helper() {
    for (late, verdict) in [(false, "orphan_detected"), (true, "orphan_unproven owner_unknown")] {
        let mut story = Story::new(Policy::default());
        story.gone.insert(20);
        let at = story.now;
        if late {
            story.pass_secs(1);
        }
        story.exec_at(at, 0, 30, 20, SERVER, WIRE);
        story.pass_secs(15);
        assert_eq!(story.sent().is_empty(), late, "late: {late}");
        let told = story.told();
        assert!(told.iter().any(|line| line == verdict), "late: {late}: {told:?}");
    }
}

/// The same, but no process holds the wire: nobody can use the server, whoever started it. If a process reads its
/// answers, that is a doubt.
#[test]
fn a_server_of_a_host_that_is_gone_unasked_is_judged_by_its_wires() {
    for answers_read in [false, true] {
        let mut story = Story::new(Policy::default());
        if answers_read {
            story.facts.stdout = WireState::held_as(&[6], HOST);
        }
        story.gone.insert(20);
        story.exec(30, 20, SERVER, WIRE);
        story.pass_secs(15);
        let told = story.told();
        assert_eq!(told.iter().any(|line| line == "orphan_detected"), !answers_read, "{told:?}");
        assert_eq!(story.sent().is_empty(), answers_read);
    }
}

/// A script was killed with its host while what it ran had not read its first message: that is recognised when it does, seconds
/// later, when nobody can say any more who made its wires. The twin's host is known.
#[test]
fn who_made_the_wires_of_what_is_recognised_late_is_not_known() {
    for host in [None, Some(CLAUDE)] {
        let mut story = Story::new(Policy::default());
        if let Some(host) = host {
            story.exec(20, 10, host, TERMINAL);
        }
        story.messages.extend([30, 31].map(|pid| (pid, mcp())));
        story.exec(30, 20, &["/bin/sh", "run.sh"], WIRE);
        story.start(30, 31, OWN, WIRE);
        story.pass_secs(1);
        story.end(30);
        story.end(20);
        story.pass_secs(5);
        story.messages.remove(&31);
        story.pass_secs(100);
        let told = story.told();
        let is_unknown = told.contains(&"orphan_unproven owner_unknown".to_owned());
        assert_eq!((is_unknown, story.sent().is_empty()), (host.is_none(), host.is_none()), "{told:?}");
    }
}
