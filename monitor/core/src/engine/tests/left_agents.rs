//! Tests of agents that are left behind by whoever spoke to them, and not by their unit.

use std::time::Duration;

use super::{
    story::{CLAUDE, SERVER, Story, WIRE, id, seen},
    story_scene::{ProcessFacts, SocketUse, WireState},
    units::NOTHING,
};
use crate::model::{Policy, Stdio};

const HOST: &[&str] = &["/opt/sdk/host"];
const OTHER_WIRE: [Stdio; 3] = [Stdio::Pipe(3), Stdio::Pipe(4), Stdio::Null];
const TOLD: [&str; 2] = ["orphan_detected live_agent", "orphan_spared live_agent"];

fn reap() -> Policy {
    let rules = "[[agent]]\nname = \"claude\"\nprogram = \"claude\"\nreap = true";
    Policy { rules: rules.to_owned(), ..Policy::default() }
}

/// A host that no rule knows, 20, has started claude, 21, which has a server, 30. Its streams are these.
fn below_a_host(stdio: [Stdio; 3]) -> Story {
    let mut story = Story::new(reap());
    story.exec(21, 20, CLAUDE, stdio);
    story.start(21, 30, SERVER, OTHER_WIRE);
    story.told();
    at(&mut story, ProcessFacts { stdio, ..ProcessFacts::default() });
    story
}

fn at(story: &mut Story, claude: ProcessFacts) {
    story.apart.insert(21, claude);
}

#[test]
fn by_an_answer_that_has_waited_too_long_nothing_is_told() {
    for (waited, expected) in [(200, &TOLD[..]), (201, &[])] {
        let mut story = below_a_host(WIRE);
        story.late = Some(Vec::new());
        story.end(20);
        story.pass_secs(100);
        story.answer_after(Duration::from_millis(waited));
        assert_eq!(story.told(), expected);
        story.pass_secs(1);
        story.answer_late();
        assert_eq!(story.told().is_empty(), !expected.is_empty(), "it is looked at again");
    }
}

/// Why it is not told, its streams, and what else is so.
type Case = (&'static str, [Stdio; 3], fn(&mut Story));

/// It is never ended for that, whatever its rule says.
#[test]
fn an_agent_that_nobody_can_speak_to_and_nobody_listens_to_is_told_and_stays() {
    let mut story = below_a_host(WIRE);
    story.pass_secs(100);
    assert_eq!(story.told(), Vec::<String>::new(), "its host lives");
    story.end(20);
    story.pass_secs(500);
    assert_eq!(story.told(), TOLD);
    assert_eq!(story.sent(), []);
    story.end(21);
    assert_eq!(story.told()[..2], ["orphan_exited", "agent_exited"]);
}

#[test]
fn an_agent_that_somebody_may_wait_for_is_not() {
    let held = || WireState::held_by(&[50]);
    let cases: [Case; 7] = [
        ("a file", [WIRE[0], Stdio::File, Stdio::Null], |_| {}),
        ("a terminal", [WIRE[0], Stdio::Terminal, Stdio::Null], |_| {}),
        ("a prompt from a file", [Stdio::File, WIRE[1], Stdio::Null], |_| {}),
        ("fed", WIRE, |story| story.facts.stdin = WireState::held_by(&[50])),
        ("read", WIRE, |story| story.facts.stdout = WireState::held_by(&[50])),
        ("not seen", WIRE, |story| story.facts.stdout = WireState::Unknown),
        ("at a port", WIRE, |story| {
            let sockets = SocketUse { listens: true, chosen: true, ..SocketUse::default() };
            at(story, ProcessFacts { stdio: WIRE, sockets, ..ProcessFacts::default() });
        }),
    ];
    for (why, stdio, change) in cases {
        let mut story = below_a_host(stdio);
        change(&mut story);
        story.end(20);
        story.pass_secs(500);
        assert_eq!(story.told(), Vec::<String>::new(), "{why}");
    }
    // It is looked at in growing pauses, and told when the last reader has gone.
    let mut story = below_a_host(WIRE);
    story.facts.stdout = held();
    story.end(20);
    story.pass_secs(4000);
    assert!(story.looks.len() < 20, "{}", story.looks.len());
    story.facts.stdout = WireState::HungUp;
    story.pass_secs(600);
    assert_eq!(story.told(), TOLD);
}

/// A launcher between the two waits for the agent.
#[test]
fn who_started_it_may_be_further_up() {
    let mut story = Story::new(Policy::default());
    story.exec(22, 20, &["sh", "-c", "claude -p; exit"], WIRE);
    story.start(22, 21, CLAUDE, WIRE);
    at(&mut story, ProcessFacts { stdio: WIRE, ..ProcessFacts::default() });
    story.told();
    story.end(20);
    story.pass_secs(100);
    assert_eq!(story.told(), TOLD);
}

/// The one below an agent that lives is spoken to by that.
#[test]
fn an_agent_below_an_agent_that_lives_is_not() {
    let mut story = below_a_host(WIRE);
    story.start(21, 22, CLAUDE, OTHER_WIRE);
    story.told();
    at(&mut story, ProcessFacts { stdio: NOTHING, ..ProcessFacts::default() });
    let below = ProcessFacts { stdio: OTHER_WIRE, ..ProcessFacts::default() };
    story.apart.insert(22, below);
    story.end(20);
    story.pass_secs(100);
    assert_eq!(story.told(), Vec::<String>::new());
    story.end(21);
    story.pass_secs(100);
    let told = story.told();
    assert!(TOLD.iter().all(|line| told.iter().any(|one| one == line)), "{told:?}");
}

/// Its host ended before the daemon came, or while none ran: init has it. The twin has a parent.
#[test]
fn one_that_was_left_before_the_daemon_came_is_told() {
    for (parent, expected) in [(1, &TOLD[..]), (20, &[])] {
        let mut story = Story::new(Policy::default());
        let host = seen(20, 1, HOST, NOTHING);
        story.snapshot(vec![seen(1, 0, &["/sbin/init"], NOTHING), host, seen(21, parent, CLAUDE, WIRE)]);
        at(&mut story, ProcessFacts { process: id(21), stdio: WIRE, ..ProcessFacts::default() });
        story.told();
        story.pass_secs(100);
        assert_eq!(story.told(), expected, "{parent}");
    }
}
