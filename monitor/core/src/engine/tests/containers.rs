//! Tests of servers that work in containers: the client of a container is never signalled.

use super::{
    proof::judged,
    story::{CLAUDE, Story, TERMINAL, WIRE},
};
use crate::{
    engine::Settings,
    model::{Guard, Input, Notice, ReapRequest, ServerView, Signal, Stdio},
};

const RUN: &[&str] = &["docker", "run", "-i", "--rm", "--name", "box", "mcp/fetch"];
const OTHER: [Stdio; 3] = [Stdio::Pipe(3), Stdio::Pipe(4), Stdio::Null];

/// Agent 20 starts a client, 30.
fn with_client(argv: &[&str]) -> Story {
    let mut story = Story::new(Settings::default());
    story.exec(20, 10, CLAUDE, TERMINAL);
    story.fork(20, 30);
    story.exec(30, 20, argv, WIRE);
    assert_eq!(story.told(), ["agent_started", "server_started"]);
    story
}

fn detected(story: &Story) -> &ServerView {
    let found = story.notices.iter().find_map(|notice| match notice {
        Notice::OrphanDetected { server, .. } => Some(server),
        _ => None,
    });
    found.unwrap()
}

#[test]
fn a_client_is_told_and_never_signalled() {
    for argv in [
        RUN,
        &["podman", "run", "-i", "--rm", "mcp/fetch"],
        &["docker", "exec", "-i", "box", "mcp-server-time"],
        &["docker", "--context", "c", "container", "run", "-i", "mcp/fetch"],
    ] {
        let mut story = judged(with_client(argv));
        assert!(detected(&story).container.is_some(), "{argv:?}");
        assert_eq!(
            story.told(),
            ["agent_exited", "orphan_suspected", "orphan_detected container", "orphan_spared container"]
        );
        story.pass_secs(10_000);
        assert_eq!((story.sent(), story.told()), (vec![], vec![]), "{argv:?}");
        // The client ends with its container.
        story.end(30);
        assert_eq!(story.told(), ["orphan_exited"]);
    }
}

#[test]
fn the_command_that_a_person_can_run_is_told() {
    let story = judged(with_client(RUN));
    let container = detected(&story).container.clone().unwrap();
    assert_eq!((container.engine.as_str(), container.name.as_deref()), ("docker", Some("box")));
    assert_eq!(
        (container.image.as_deref(), container.command.as_str()),
        (Some("mcp/fetch"), "docker stop box")
    );
}

/// The twin: the same server without a container is ended.
#[test]
fn another_command_of_the_same_program_is_no_client() {
    let mut story = judged(with_client(&["docker", "mcp", "gateway", "run"]));
    assert!(detected(&story).container.is_none());
    story.pass_secs(1);
    assert_eq!(story.sent().first(), Some(&(30, Signal::Term)));
}

#[test]
fn a_client_holds_against_a_person() {
    let mut story = judged(with_client(RUN));
    story.told();
    let plan = story.engine.plan(&ReapRequest::default());
    assert_eq!(plan[0].guards, [Guard::Container]);
    for request in [
        ReapRequest::default(),
        ReapRequest { pid: Some(30), include_unproven: true, include_active: true, ..ReapRequest::default() },
    ] {
        story.hand_in(Input::Reap { request });
        story.pass_secs(100);
    }
    assert_eq!(story.sent(), []);
    // Nor is it ended under a living owner.
    let mut story = with_client(RUN);
    let request = ReapRequest { include_active: true, ..ReapRequest::default() };
    story.hand_in(Input::Reap { request });
    story.pass_secs(100);
    assert_eq!((story.sent(), story.told()), (vec![], vec!["orphan_spared container".to_owned()]));
}

#[test]
fn a_client_in_the_launch_chain_or_below_the_server_counts() {
    // A launcher and a shell around the client.
    let mut story = Story::new(Settings::default());
    story.exec(20, 10, CLAUDE, TERMINAL);
    story.fork(20, 25);
    story.exec(25, 20, &["sh", "-c", "docker run -i mcp/fetch; exit"], WIRE);
    story.fork(25, 30);
    story.exec(30, 25, RUN, WIRE);
    let mut story = judged(story);
    story.pass_secs(1000);
    assert_eq!(story.sent(), []);
    assert!(detected(&story).container.is_some());
    // A server that has a client below it, until that client ends.
    let mut story = Story::agent_with_server(Settings::default());
    story.fork(30, 31);
    story.exec(31, 30, RUN, OTHER);
    let mut story = judged(story);
    story.pass_secs(1000);
    assert_eq!(story.sent(), []);
    story.end(31);
    story.pass_secs(1000);
    assert_eq!(story.sent().first(), Some(&(30, Signal::Term)));
}

/// A process of a server becomes a client after the server got its first signal.
#[test]
fn a_client_that_appears_while_its_server_is_ended_is_not_signalled() {
    let mut story = judged(Story::agent_with_server(Settings::default()));
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    story.fork(30, 31);
    story.exec(31, 30, RUN, OTHER);
    story.pass_secs(1000);
    assert!(story.sent().iter().all(|(pid, _)| *pid != 31));
    assert!(story.told().contains(&"orphan_spared container".to_owned()));
}

/// A process becomes a client between two rounds of SIGKILL, when nothing is inspected.
#[test]
fn a_client_that_appears_among_the_killed_is_not_signalled() {
    let mut story = judged(Story::agent_with_server(Settings::default()));
    while !story.sent().iter().any(|(_, signal)| *signal == Signal::Kill) {
        story.pass_secs(1);
    }
    story.exec(30, 20, RUN, WIRE);
    story.pass_secs(1000);
    assert_eq!(story.sent(), []);
    assert_eq!(story.engine.plan(&ReapRequest::default()).len(), 1);
}
