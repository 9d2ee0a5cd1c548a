//! By what persons recognise agents and servers.

use super::story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id};
use crate::model::{AgentHints, Asked, Fact, FoundHints, Notice, Policy, ServerHints};

#[expect(clippy::unnecessary_wraps, reason = "each field is optional")]
fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn agent_hints() -> AgentHints {
    AgentHints { cwd: some("/home/me/shop"), terminal: some("pts/3"), session: None }
}

fn found() -> FoundHints {
    let server = ServerHints { configured_name: some("context7"), cwd: some("/home/me/shop") };
    FoundHints { server, session: some("1b4e28ba") }
}

fn story(with_hints: bool) -> Story {
    let mut story = Story::new(Policy::default());
    if with_hints {
        story.agent_hints = Some(agent_hints());
        story.hints.insert(30, found());
    }
    story.creator = Some(super::story::seen(20, 10, CLAUDE, TERMINAL));
    story.exec(20, 10, CLAUDE, TERMINAL);
    story.start(20, 30, SERVER, WIRE);
    story
}

#[test]
fn what_a_person_knows_them_by_is_in_events_lists_and_facts() {
    let mut story = story(true);
    let known = AgentHints { session: some("1b4e28ba"), ..agent_hints() };
    let started = story.notices.iter().find_map(|notice| match notice {
        Notice::AgentStarted { agent, .. } => Some(agent.hints.clone()),
        _ => None,
    });
    assert_eq!(started, Some(agent_hints()), "no server has told the session yet");
    let report = story.engine.report();
    assert_eq!(
        (&report.agents[0].agent.hints, &report.agents[0].servers[0].server.hints),
        (&known, &found().server)
    );
    let told = story.engine.explain(&Asked::Pid(30)).remove(0);
    assert_eq!(told.owner.map(|owner| owner.hints), Some(known.clone()));
    assert_eq!(told.report.map(|report| report.server.hints), Some(found().server));
    let facts: Vec<&Fact> = story
        .facts_persisted
        .iter()
        .filter(|fact| matches!(fact, Fact::AgentHints { .. } | Fact::ServerHints { .. }))
        .collect();
    assert_eq!(
        facts,
        [
            &Fact::AgentHints { agent: id(20), hints: agent_hints() },
            &Fact::AgentHints { agent: id(20), hints: known.clone() },
            &Fact::ServerHints { server: id(30), hints: found().server },
        ]
    );
    story.end(20);
    story.pass_secs(12);
    let judged = story.notices.iter().find_map(|notice| match notice {
        Notice::OrphanDetected { server, owner, .. } => Some((server.hints.clone(), owner.clone()?.hints)),
        _ => None,
    });
    assert_eq!(judged, Some((found().server, known)));
}

fn without_hints(event: &mut serde_json::Value) {
    if let Some(fields) = event.as_object_mut() {
        for hint in ["cwd", "terminal", "session", "configured_name"] {
            fields.remove(hint);
        }
        fields.values_mut().for_each(without_hints);
    }
}

/// All that happens, without the hints.
fn told(mut story: Story) -> (Vec<serde_json::Value>, Vec<(u32, crate::model::Signal)>) {
    story.end(20);
    story.pass_secs(60);
    let mut events: Vec<_> =
        story.notices.iter().map(|notice| serde_json::to_value(notice).unwrap()).collect();
    events.iter_mut().for_each(without_hints);
    (events, story.sent())
}

#[test]
fn hints_change_no_verdict() {
    assert_eq!(told(story(true)), told(story(false)));
}
