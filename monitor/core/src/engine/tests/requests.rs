//! Tests of reaping at a person's request.

use super::story::{SERVER, Story, TERMINAL, WIRE, seen};
use super::story_scene::WireState;
use crate::model::{Asked, Fact, Guard, Input, Mode, Notice, Policy, ReapRequest, Signal, State};

fn ask(story: &mut Story, request: ReapRequest) {
    story.hand_in(Input::Reap { request, by: "alice".to_owned() });
}

fn active() -> ReapRequest {
    ReapRequest { include_active: true, ..ReapRequest::default() }
}

/// The agent is alive and holds the wire of its server.
fn in_use(settings: Policy) -> Story {
    let mut story = Story::agent_with_server(settings);
    story.facts.stdin = WireState::held_as(&[20], &["claude"]);
    story.polite.insert(30);
    story
}

#[test]
fn a_server_in_use_is_ended_only_if_that_was_said() {
    let mut story = in_use(Policy::default());
    ask(&mut story, ReapRequest::default());
    story.pass_secs(100);
    assert_eq!(story.sent(), []);
    ask(&mut story, ReapRequest { agent: Some("codex".to_owned()), ..active() });
    story.pass_secs(100);
    assert_eq!(story.sent(), []);
    ask(&mut story, ReapRequest { agent: Some("claude".to_owned()), generation: Some(1), ..active() });
    story.pass_secs(1);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    let said = story.notices.iter().find_map(|notice| match notice {
        Notice::OrphanReaped { asked, asked_by, .. } => Some((*asked, asked_by.clone())),
        _ => None,
    });
    let alice = Some("alice".to_owned());
    assert_eq!(said, Some((true, alice.clone())));
    let stored = |fact: &Fact| matches!(fact, Fact::Reaping { asked_by, .. } if *asked_by == alice);
    assert!(story.facts_persisted.iter().any(stored));
    assert_eq!(story.told(), ["orphan_reaped TERM"], "no verdict: it was no orphan");
}

#[test]
fn who_asks_overrules_observation() {
    let mut story = Story::agent_with_server(Policy { mode: Mode::Observe, ..Policy::default() });
    story.polite.insert(30);
    story.end(20);
    story.pass_secs(100);
    assert_eq!(story.sent(), []);
    let (spared, listed) = (story.event("orphan_spared"), story.engine.plan(&ReapRequest::default()));
    assert!(spared["deadline_boot_ns"].as_u64().is_some_and(|at| at > 0), "{spared}");
    assert_eq!(listed.len(), 1);
    ask(&mut story, ReapRequest { targets: vec![Asked::Pid(30)], ..ReapRequest::default() });
    story.pass_secs(1);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
}

/// A name means the orphans of that name. The twin is of another name.
#[test]
fn who_asks_by_a_name_means_servers_of_that_name() {
    let mut story = Story::agent_with_server(Policy { mode: Mode::Observe, ..Policy::default() });
    story.end(20);
    story.pass_secs(100);
    let name = story.engine.report().servers().map(|(_, one)| one.server.name.clone()).next().unwrap();
    for (name, meant) in [(name.clone(), 1), (format!("{name}x"), 0)] {
        let targets = vec![Asked::Name(name)];
        assert_eq!(story.engine.plan(&ReapRequest { targets, ..ReapRequest::default() }).len(), meant);
    }
}

/// What was shown as an orphan may be in use by now: that it shall be ended nevertheless was not said.
#[test]
fn who_asks_for_orphans_ends_none_that_is_in_use_meanwhile() {
    for (include_unproven, ends) in [(false, false), (true, true)] {
        let mut story = Story::agent_with_server(Policy { mode: Mode::Observe, ..Policy::default() });
        story.polite.insert(30);
        story.end(20);
        story.pass_secs(12);
        story.told();
        story.facts.stdin = WireState::held_by(&[70]);
        ask(&mut story, ReapRequest { include_unproven, ..ReapRequest::default() });
        story.pass_secs(1);
        assert_eq!(!story.sent().is_empty(), ends);
        let stays = story.told().contains(&"orphan_unproven wire_held".to_owned());
        assert_eq!(stays, !ends);
    }
}

/// The person who asked waits until the state shows that nothing more will happen. That is not before the inspection
/// was answered.
#[test]
fn what_was_asked_for_is_being_ended_before_the_look_is_answered() {
    let mut story = Story::agent_with_server(Policy { mode: Mode::Observe, ..Policy::default() });
    story.end(20);
    story.pass_secs(100);
    let state = |story: &Story| story.engine.plan(&ReapRequest::default())[0].state;
    assert_eq!(state(&story), State::Orphan, "that orphand only observes is nothing to a person");
    story.late = Some(Vec::new());
    ask(&mut story, ReapRequest::default());
    assert_eq!((state(&story), story.sent()), (State::Ending, vec![]));
    story.answer_late();
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    assert_eq!(state(&story), State::Ending);
}

#[test]
fn who_asks_overrules_doubts_but_no_guard() {
    let unproven = || {
        let mut story = Story::new(Policy::default());
        story.snapshot(vec![seen(10, 1, &["bash"], TERMINAL), seen(30, 10, SERVER, WIRE)]);
        story.pass_secs(20);
        story
    };
    let asked_for = || ReapRequest { include_unproven: true, ..ReapRequest::default() };
    let mut story = unproven();
    assert_eq!(story.told(), ["server_started", "orphan_unproven owner_unknown"]);
    assert_eq!((story.engine.counts(), story.engine.report().orphans().count()), ([0, 1, 0], 0));
    let named = ReapRequest { targets: vec![Asked::Pid(30)], ..ReapRequest::default() };
    assert_eq!(story.engine.plan(&named), [], "a filter is no word");
    // Unproven servers are selected only by a request that says so.
    ask(&mut story, ReapRequest::default());
    story.pass_secs(1);
    assert_eq!(story.sent(), []);
    ask(&mut story, asked_for());
    story.pass_secs(1);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    let mut story = unproven();
    story.told();
    story.facts.opted_out = true;
    ask(&mut story, asked_for());
    story.pass_secs(1);
    assert_eq!(story.sent(), []);
    assert_eq!(story.told(), ["orphan_spared opted_out"]);
}

#[test]
fn a_refused_server_in_use_is_in_use_as_before() {
    let mut story = in_use(Policy::default());
    story.facts.opted_out = true;
    ask(&mut story, active());
    story.pass_secs(100);
    assert_eq!(story.told(), ["orphan_spared opted_out"]);
    assert_eq!(story.engine.report().orphans().count(), 0);
    assert_eq!(story.engine.plan(&ReapRequest::default()), []);
    assert_eq!(story.engine.plan(&active())[0].state, State::Live);
    // The exit of its owner is judged as usual.
    story.facts.opted_out = false;
    story.facts.stdin = WireState::HungUp;
    story.end(20);
    story.pass_secs(10);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
}

/// A guard that appears while a server in use is being ended stops the whole request, not only this attempt.
#[test]
fn a_guard_stops_the_end_of_a_server_in_use_for_good() {
    let mut story = in_use(Policy::default());
    story.polite.clear();
    ask(&mut story, active());
    story.pass_secs(1);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    story.facts.opted_out = true;
    story.pass_secs(5);
    assert_eq!(story.told(), ["orphan_spared opted_out"]);
    story.facts.opted_out = false;
    // The owner closes its end of the wire. Without that, the request would be the only reason for a case.
    story.facts.stdin = WireState::HungUp;
    story.pass_secs(1000);
    assert_eq!((story.sent(), story.told()), (vec![], vec![]));
    assert_eq!(story.engine.plan(&active())[0].state, State::Live);
}

#[test]
fn a_plan_tells_what_forbids_it() {
    let mut story = Story::agent_with_server(Policy::default());
    story.facts.opted_out = true;
    story.end(20);
    story.pass_secs(100);
    let plan = story.engine.plan(&ReapRequest::default());
    assert_eq!(plan[0].guards, [Guard::OptedOut]);
    ask(&mut story, ReapRequest::default());
    story.pass_secs(100);
    assert_eq!(story.sent(), []);
}

#[test]
fn what_a_person_had_ended_is_ended_even_if_its_owner_exits_meanwhile() {
    let mut story = in_use(Policy::default());
    story.fork(30, 31);
    ask(&mut story, active());
    story.end(30);
    story.end(20);
    story.pass_secs(1);
    story.end(31);
    assert_eq!(story.sent(), [(30, Signal::Term), (31, Signal::Term)]);
    assert_eq!(story.told(), ["agent_exited", "orphan_reaped TERM"]);
}
