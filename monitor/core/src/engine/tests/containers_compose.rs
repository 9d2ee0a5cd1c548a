//! Tests of servers that docker-compose runs: it makes a container, and starts Docker's client below itself.

use super::{
    containers::{detected, found},
    proof::judged,
    story::{CLAUDE, Story, TERMINAL, WIRE, id, image},
};
use crate::model::{ContainerFacts, ContainerId, FirstMessage, OtherClient, Policy};

const COMPOSE: &[&str] = &["python3", "/usr/bin/docker-compose", "run", "--rm", "-T", "mcp-server-time"];

/// Agent 20 starts docker-compose, 30, which starts this client, 31.
fn below_compose(client: &[&str], settings: Policy) -> Story {
    let mut story = Story::new(settings);
    story.exec(20, 10, CLAUDE, TERMINAL);
    // It waits for the client to read it.
    for pid in [30, 31] {
        story.messages.insert(pid, FirstMessage::Mcp { client: Some("claude-code".to_owned()) });
    }
    story.start(20, 30, COMPOSE, WIRE);
    assert_eq!(story.told(), ["agent_started", "server_started"]);
    story.start(30, 31, client, WIRE);
    story
}

fn start(container: &str) -> Vec<String> {
    ["docker", "start", "--attach", "--interactive", container].map(str::to_owned).to_vec()
}

fn words(line: &[String]) -> Vec<&str> {
    line.iter().map(String::as_str).collect()
}

/// What the engine tells of the container of the client below docker-compose.
fn facts() -> ContainerFacts {
    ContainerFacts { client: id(31), ..found() }
}

#[test]
fn the_container_that_compose_made_is_stopped() {
    let mut story = below_compose(&words(&start(&"0a".repeat(32))), Policy::default());
    story.facts.container = Some(Box::new(facts()));
    let mut story = judged(story);
    let container = detected(&story).container.clone().unwrap();
    assert_eq!(container.command, "docker stop 0a0a0a0a0a0a");
    assert_eq!((story.stops.len(), story.sent()), (1, vec![]));
    story.told();
    // Docker's client ends with the container. docker-compose removes it, and ends.
    story.end(31);
    story.pass_secs(1);
    assert_eq!(story.told(), [""; 0]);
    story.end(30);
    assert_eq!((story.told(), story.sent()), (vec!["orphan_reaped TERM".to_owned()], vec![]));
}

#[test]
fn without_an_engine_the_command_for_exactly_this_container_is_told() {
    let mut story = judged(below_compose(&words(&start(&"0a".repeat(32))), Policy::default()));
    let container = detected(&story).container.clone().unwrap();
    assert_eq!(container.command, "docker stop 0a0a0a0a0a0a");
    assert_eq!(container.setting.as_deref(), Some("[containers] docker = \"/run/docker.sock\""));
    story.pass_secs(10_000);
    assert_eq!((story.stops.len(), story.sent()), (0, vec![]));
}

#[test]
fn another_container_than_that_of_the_client_is_never_stopped() {
    let other = ContainerId { engine: "docker".to_owned(), id: "0b".repeat(32) };
    let visitor = OtherClient { process: id(70), image: image(&["docker", "exec", "-i", "0a0a0a", "sh"]) };
    let whole = "0a".repeat(32);
    let again = OtherClient { process: id(71), image: image(&words(&start(&whole))) };
    for (client, facts) in [
        // Another one; one that is known by a name; one that was started before; somebody else uses it, too.
        (start(&whole), ContainerFacts { container: other, ..facts() }),
        (start("box"), facts()),
        (["docker", "attach", &whole].map(str::to_owned).to_vec(), facts()),
        (start(&whole), ContainerFacts { others: vec![visitor], ..facts() }),
        (start(&whole), ContainerFacts { others: vec![again], ..facts() }),
        (start(&whole), ContainerFacts { shared: true, ..facts() }),
    ] {
        let mut story = below_compose(&words(&client), Policy::default());
        story.facts.container = Some(Box::new(facts));
        let mut story = judged(story);
        story.pass_secs(10_000);
        assert_eq!((story.stops.len(), story.sent()), (0, vec![]), "{client:?}");
    }
}
