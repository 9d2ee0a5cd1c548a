//! Sessions of servers that work in containers.

use super::{
    containers::{RUN, found, found_with},
    containers_late::{by_the_shim, comes_late, enclosing},
    sessions::{ACTIVE, MISSING, answers, did, settings},
    story::{CLAUDE, Story, TERMINAL, WIRE, id},
    story_scene::WireState,
};
use crate::model::{ContainerFacts, Policy, ServerReport, SessionState};

fn asking() -> Policy {
    Policy { engines: vec!["docker".to_owned()], ..settings() }
}

/// The manager 20 holds the wires of a client, 30, that was started for the session `a`. The end of its input has
/// reached the container, 90.
fn manager(settings: Policy, known_by: u32) -> Story {
    let mut story = Story::new(settings);
    story.sessions.insert(known_by, "a".to_owned());
    story.facts.stdin = WireState::held_by(&[20]);
    story.facts.stdout = WireState::held_by(&[20]);
    story.facts.container = Some(Box::new(found()));
    story.exec(20, 10, CLAUDE, TERMINAL);
    did(&mut story, 30, 1);
    did(&mut story, 90, 1);
    did(&mut story, 20, 1);
    story.start(20, 30, RUN, WIRE);
    story.pass_secs(30);
    answers(&mut story, 15, &[("a", ACTIVE)]);
    story.told();
    story
}

fn report(story: &Story) -> ServerReport {
    let report = story.engine.report();
    let mut all = report.agents.into_iter().flat_map(|agent| agent.servers).chain(report.unowned);
    all.next().unwrap()
}

fn shown(story: &Story) -> (Option<String>, Option<SessionState>) {
    let report = report(story);
    (report.server.session, report.session)
}

#[test]
fn a_container_that_works_is_in_use_though_its_client_rests() {
    let mut story = manager(asking(), 30);
    for work in 2..100 {
        did(&mut story, 90, work);
        answers(&mut story, 15, &[("a", MISSING)]);
    }
    assert_eq!(story.told(), ["orphan_suspected", "orphan_unproven active"]);
    assert!(story.stops.is_empty());
    // Its work is done.
    for _ in 0..100 {
        let seconds = if story.stops.is_empty() { 15 } else { 0 };
        answers(&mut story, seconds, &[("a", MISSING)]);
    }
    assert_eq!((story.stops.len(), story.sent()), (1, vec![]));
    story.end(30);
    assert_eq!(story.told(), ["orphan_detected", "orphan_reaped TERM"]);
}

#[test]
fn a_container_that_may_still_be_talked_to_is_never_stopped_for_its_session() {
    let mut story = manager(asking(), 30);
    let held = found_with(|outside| outside.stdin = outside.stdout.clone());
    story.facts.container = Some(Box::new(held));
    answers(&mut story, 3000, &[("a", MISSING)]);
    assert_eq!(story.told(), ["orphan_suspected", "orphan_unproven wire_held"]);
    assert!(story.stops.is_empty());
}

#[test]
fn a_session_that_only_the_container_knows_is_that_of_its_client() {
    let mut story = manager(asking(), 90);
    assert_eq!(shown(&story), (Some("a".to_owned()), Some(SessionState::Active)));
    answers(&mut story, 1500, &[("a", MISSING)]);
    assert_eq!((story.stops.len(), story.sent()), (1, vec![]));
    // Nobody is asked which container it is.
    assert_eq!(shown(&manager(settings(), 90)), (None, None));
    // It may be another client's container.
    let mut story = Story::new(asking());
    story.sessions.insert(90, "a".to_owned());
    story.facts.stdin = WireState::held_by(&[20]);
    story.facts.container = Some(Box::new(ContainerFacts { client: id(31), ..found() }));
    story.exec(20, 10, CLAUDE, TERMINAL);
    story.start(20, 30, RUN, WIRE);
    story.pass_secs(60);
    assert_eq!(shown(&story), (None, None));
}

#[test]
fn a_server_found_in_a_container_is_told_with_its_session_and_nothing_follows_from_that() {
    let session = |enclosing| {
        let mut story = Story::new(settings());
        comes_late(&mut story, enclosing, by_the_shim(), &[(30, "a")]);
        answers(&mut story, 15, &[("a", ACTIVE)]);
        story
    };
    let mut story = session(Some(Box::new(enclosing())));
    assert_eq!(shown(&story), (Some("a".to_owned()), Some(SessionState::Active)));
    story.told();
    answers(&mut story, 3000, &[("a", MISSING)]);
    assert_eq!(shown(&story).1, Some(SessionState::Expired));
    assert_eq!((story.told(), story.sent()), (vec![], vec![]));
    // The twin is in no container: nobody knows whether the id was inherited.
    assert_eq!(shown(&session(None)), (None, None));
    let mut hung_up = Story::new(settings());
    comes_late(&mut hung_up, Some(Box::new(enclosing())), WireState::HungUp, &[(30, "a")]);
    assert_eq!(hung_up.sent(), []);
}

#[test]
fn an_id_that_the_owner_turns_out_to_have_was_inherited() {
    let adopted = |its_own: &str| {
        let sessions = &[(30, "a"), (20, its_own)];
        let mut story = Story::new(settings());
        story.facts.stdin = WireState::Unknown;
        comes_late(&mut story, Some(Box::new(enclosing())), by_the_shim(), sessions);
        answers(&mut story, 15, &[("a", ACTIVE)]);
        assert_eq!(shown(&story), (Some("a".to_owned()), Some(SessionState::Active)));
        story.facts.stdin = WireState::held_by(&[20]);
        story.pass_secs(60);
        answers(&mut story, 15, &[("a", ACTIVE)]);
        assert!(report(&story).server.run.is_some_and(|run| run.agent == "claude"));
        shown(&story).0
    };
    assert_eq!(adopted("b"), Some("a".to_owned()));
    assert_eq!(adopted("a"), None);
}
