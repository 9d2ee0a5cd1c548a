//! Tests of what is told about containers: their memory, those of living servers, the setting that is missing.

use super::{
    containers::{OTHER, RUN, detected, found, found_with, with_client},
    proof::judged,
    story::{CLAUDE, Story, TERMINAL, WIRE, id, image},
    story_scene::WireState,
};
use crate::model::{ContainerFacts, Input, Notice, OtherClient, Policy};

#[test]
fn the_memory_of_the_container_counts() {
    const MIB: u64 = 1 << 20;
    let freed = |facts: ContainerFacts| {
        let mut story = with_client(RUN);
        story.rss_bytes = 3 * MIB;
        story.facts.container = Some(Box::new(facts));
        let mut story = judged(story);
        story.end(30);
        let told = detected(&story).container.clone().unwrap().memory_bytes;
        let freed = story.notices.iter().find_map(|notice| match notice {
            Notice::OrphanReaped { freed_bytes, .. } => Some(*freed_bytes / MIB),
            _ => None,
        });
        (told.map(|bytes| bytes / MIB), freed.unwrap())
    };
    assert_eq!(freed(ContainerFacts { memory_bytes: Some(800 * MIB), ..found() }), (Some(800), 803));
    // That of its processes, where the control group does not tell.
    let without = found_with(|outside| outside.processes[0].rss_bytes = 700 * MIB);
    assert_eq!(freed(without), (Some(700), 703));
}

fn asking() -> Policy {
    Policy { engines: vec!["docker".to_owned()], ..Policy::default() }
}

/// Two agents with a server each: one is the client of a container.
fn living(settings: Policy) -> Story {
    let mut story = Story::agent_with_server(settings);
    story.start(20, 40, RUN, OTHER);
    story
}

fn shown(story: &Story) -> Vec<Option<String>> {
    let report = story.engine.report();
    let servers = report.agents.iter().flat_map(|agent| &agent.servers);
    servers.map(|one| one.server.container.as_ref().and_then(|container| container.id.clone())).collect()
}

#[test]
fn the_container_of_a_living_server_is_known() {
    let mut story = living(asking());
    story.facts.stdin = WireState::unseen();
    story.facts.container = Some(Box::new(ContainerFacts { client: id(40), ..found() }));
    story.pass_secs(14);
    assert_eq!((story.containers_asked.len(), shown(&story)), (0, vec![None, None]));
    story.pass_secs(600);
    assert_eq!(story.containers_asked.iter().map(|(_, pid)| *pid).collect::<Vec<_>>(), [40]);
    assert_eq!(shown(&story), [None, Some("0a".repeat(32))]);
    assert_eq!(story.sent(), []);
}

#[test]
fn an_engine_that_does_not_tell_is_asked_three_times() {
    let mut story = living(asking());
    story.pass_secs(10_000);
    assert_eq!((story.containers_asked.len(), shown(&story)), (3, vec![None, None]));
    // Which of two containers of one image is whose?
    let mut story = Story::agent_with_server(asking());
    story.start(20, 40, &["docker", "run", "-i", "mcp/fetch"], OTHER);
    let other = OtherClient { process: id(70), image: image(&["docker", "run", "-i", "mcp/fetch"]) };
    let facts = ContainerFacts { client: id(40), others: vec![other], ..found() };
    story.facts.container = Some(Box::new(facts));
    story.pass_secs(10_000);
    assert_eq!((story.containers_asked.len(), shown(&story)), (3, vec![None, None]));
    // No engine is configured.
    let mut story = living(Policy::default());
    story.pass_secs(10_000);
    assert!(story.containers_asked.is_empty());
}

#[test]
fn the_setting_that_is_missing_is_told() {
    let setting = |argv: &[&str], settings: Policy| {
        let mut story = Story::new(settings);
        story.exec(20, 10, CLAUDE, TERMINAL);
        story.start(20, 30, argv, WIRE);
        let story = judged(story);
        detected(&story).container.clone().unwrap().setting
    };
    let line = "[containers] docker = \"/run/docker.sock\"";
    assert_eq!(setting(RUN, Policy::default()).as_deref(), Some(line));
    assert_eq!(setting(RUN, asking()), None);
    let line = "[containers] podman = \"/run/podman/podman.sock\"";
    let podman = &["podman", "run", "-i", "mcp/fetch"];
    assert_eq!(setting(podman, asking()).as_deref(), Some(line));
    let engines = vec!["podman".to_owned()];
    assert_eq!(setting(podman, Policy { engines, ..Policy::default() }), None);
    assert_eq!(setting(&["docker", "exec", "-i", "box", "mcp-server-time"], Policy::default()), None);
}

#[test]
fn the_setting_is_no_longer_missing_once_it_is_there() {
    let mut story = judged(with_client(RUN));
    assert!(detected(&story).container.as_ref().unwrap().setting.is_some());
    let seconds = std::time::Duration::from_secs;
    let policy = |engines: &[&str]| Policy {
        engines: engines.iter().map(|engine| (*engine).to_owned()).collect(),
        grace: seconds(10),
        term_timeout: seconds(5),
        ..Policy::default()
    };
    let mut configure = |engines: &[&str]| {
        story.hand_in(Input::Configured { policy: policy(engines) });
        story.pass_secs(30);
        let mut servers = story.engine.report().agents.into_iter().flat_map(|agent| agent.servers);
        let container = servers.find_map(|one| one.server.container).unwrap();
        assert_eq!(container.command, "docker stop box");
        container.setting
    };
    // The engine does not tell which container it is: that is another reason why it stays.
    assert_eq!(configure(&["docker"]), None);
    assert!(configure(&[]).is_some());
}
