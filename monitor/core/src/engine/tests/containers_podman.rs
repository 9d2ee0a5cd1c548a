//! Tests of containers of podman: the monitor below the client, conmon, holds their streams.

use super::{
    containers::{OTHER, detected, found_with, with_client},
    proof::judged,
    story::{CLAUDE, Story, TERMINAL, WIRE, id, image},
    story_scene::{Outside, WireState},
};
use crate::model::scene::ProcessRow;
use crate::{
    model::{ContainerFacts, ContainerId, OtherClient, Policy, Stdio},
    verdict::change,
};

const RUN: &[&str] = &["podman", "run", "-i", "--rm", "mcp/fetch"];
const CONMON: &[&str] = &["/usr/bin/conmon", "--api-version", "1", "-c", "0a0a"];
const APART: [Stdio; 3] = [Stdio::Null; 3];

/// The container of the client 30: its monitor, 89, and its first process, 90.
fn monitored() -> ContainerFacts {
    monitored_with(|_| {})
}

fn monitored_with(change: impl FnOnce(&mut Outside)) -> ContainerFacts {
    let conmon = ProcessRow { process: id(89), image: image(CONMON), ..ProcessRow::default() };
    ContainerFacts {
        container: ContainerId { engine: "podman".to_owned(), id: "0a".repeat(32) },
        monitor: Some(id(89)),
        ..found_with(|outside| {
            outside.stdout = WireState::Held { holders: vec![conmon], unseen: false };
            change(outside);
        })
    }
}

/// The client starts conmon, which goes into the background, and the container's process below it.
fn with_monitor() -> Story {
    let mut story = with_client(RUN);
    story.start(30, 88, CONMON, APART);
    story.fork(88, 89);
    story.setsid(89);
    story.end(88);
    story.fork(89, 90);
    story.setsid(90);
    story.exec(90, 89, &["/bin/mcp-server-fetch"], OTHER);
    story.told();
    story
}

fn last(story: &mut Story) -> String {
    story.told().last().cloned().unwrap_or_default()
}

#[test]
fn podman_stops_the_container_of_the_client_that_is_attached_to_it() {
    let mut story = with_monitor();
    story.facts.container = Some(Box::new(monitored()));
    let mut story = judged(story);
    assert_eq!(detected(&story).container.as_ref().unwrap().command, "podman stop 0a0a0a0a0a0a");
    assert_eq!(story.stops, ["0a".repeat(32)]);
    story.told();
    for pid in [90, 89, 30] {
        story.end(pid);
    }
    assert_eq!(last(&mut story), "orphan_reaped TERM");
    assert_eq!(story.sent(), []);
}

#[test]
fn without_podman_it_is_told() {
    let mut story = judged(with_monitor());
    let container = detected(&story).container.clone().unwrap();
    assert_eq!(container.command, "podman ps --filter ancestor=mcp/fetch");
    let setting = "[containers] podman = \"/run/podman/podman.sock\"";
    assert_eq!(container.setting.as_deref(), Some(setting));
    assert_eq!(last(&mut story), "orphan_spared exempt_rule container");
    story.pass_secs(10_000);
    assert_eq!((story.sent(), story.stops.len()), (vec![], 0));
}

/// Only the container's own monitor is part of it.
#[test]
fn another_monitor_below_the_client_is_exempt() {
    let mut story = with_monitor();
    story.start(30, 95, CONMON, APART);
    story.facts.container = Some(Box::new(monitored()));
    let mut story = judged(story);
    assert_eq!(last(&mut story), "orphan_spared exempt_rule");
    assert_eq!((story.sent(), story.stops.len()), (vec![], 0));
}

#[test]
fn somebody_else_who_may_use_it_is_a_doubt() {
    let another = ProcessRow { process: id(87), image: image(CONMON), ..ProcessRow::default() };
    let read =
        monitored_with(|outside| outside.stdout = WireState::Held { holders: vec![another], unseen: false });
    let held = monitored_with(|outside| outside.stdin = WireState::unseen());
    let shared = ContainerFacts { shared: true, ..monitored() };
    let visitor = OtherClient { process: id(70), image: image(&["podman", "exec", "-i", "box", "sh"]) };
    let visited = ContainerFacts { others: vec![visitor], ..monitored() };
    for (facts, doubt) in
        [(read, "stdout_read"), (held, "wire_held"), (shared, "clients"), (visited, "clients")]
    {
        let mut story = with_monitor();
        story.facts.container = Some(Box::new(facts));
        let mut story = judged(story);
        story.pass_secs(10_000);
        assert_eq!(last(&mut story), format!("orphan_unproven {doubt}"));
        assert_eq!((story.sent(), story.stops.len()), (vec![], 0), "{doubt}");
    }
}

/// Clients of one image that were started together: the monitor tells whose is whose.
#[test]
fn other_clients_of_the_image_do_not_matter() {
    let twin = OtherClient { process: id(31), image: image(RUN) };
    let stops = |facts: ContainerFacts| {
        let mut story = with_monitor();
        story.facts.container = Some(Box::new(facts));
        judged(story).stops.len()
    };
    assert_eq!(stops(ContainerFacts { others: vec![twin.clone()], ..monitored() }), 1);
    assert_eq!(stops(ContainerFacts { others: vec![twin], monitor: None, ..monitored() }), 0);
}

#[test]
fn another_monitor_is_a_change() {
    assert_eq!(change(&monitored(), &monitored()), None);
    for monitor in [None, Some(id(87))] {
        assert!(change(&monitored(), &ContainerFacts { monitor, ..monitored() }).is_some());
    }
}

/// A user may have an engine of his own, and chose the name: the command is for that user.
#[test]
fn the_command_is_for_the_user_of_the_client() {
    let told = |argv: &[&str]| {
        let mut story = Story::new(Policy::default());
        story.uid = 1000;
        story.exec_as(1000, 20, 10, CLAUDE, TERMINAL);
        story.fork(20, 30);
        story.exec_as(1000, 30, 20, argv, WIRE);
        let story = judged(story);
        let container = detected(&story).container.clone().unwrap();
        (container.command, container.setting.is_some())
    };
    let named = &["podman", "run", "-i", "--name", "box", "mcp/fetch"];
    assert_eq!(told(named), ("sudo -iu '#1000' podman stop box".to_owned(), false));
    // Of Docker it may be the host's, which a setting lets stop it.
    let named = &["docker", "run", "-i", "--name", "box", "mcp/fetch"];
    assert_eq!(told(named), ("sudo -iu '#1000' docker stop box".to_owned(), true));
}
