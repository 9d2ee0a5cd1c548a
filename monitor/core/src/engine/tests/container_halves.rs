//! Tests of reports about servers in containers: a client and what works in its container are one server.

use super::{
    containers::found,
    story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id, seen},
    story_scene::WireState,
    units::NOTHING,
};
use crate::model::{ContainerFacts, Policy, Report};

const RUN: &[&str] = &["docker", "run", "-i", "--name", "box", "mcp/fetch"];
const SHIM: &[&str] = &["/usr/bin/containerd-shim-runc-v2"];

/// Agent 20 has the client 40. The server 90, and 91 below it, work in a container that 60 started: Docker's shim, which
/// was there before, or a conmon that the client started.
fn story(client: &[&str], conmon: bool, engines: &[&str]) -> Story {
    let engines = engines.iter().map(|engine| (*engine).to_owned()).collect();
    let mut story = Story::new(Policy { engines, ..Policy::default() });
    story.facts.stdin = WireState::unseen();
    story.snapshot(vec![
        seen(1, 0, &["/sbin/init"], NOTHING),
        seen(20, 1, CLAUDE, TERMINAL),
        seen(60, 1, SHIM, NOTHING),
    ]);
    story.start(20, 40, client, WIRE);
    if conmon {
        story.end(60);
        story.start(40, 60, &["/usr/bin/conmon", "-c", "0c"], NOTHING);
    }
    story.start(60, 90, SERVER, super::containers::OTHER);
    story.fork(90, 91);
    story
}

/// The processes of the agent's servers, and those of servers without an owner.
fn shown(report: &Report) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
    let pids = |servers: &[crate::model::ServerReport]| {
        let of = |one: &crate::model::ServerReport| one.server.processes.iter().map(|one| one.pid).collect();
        servers.iter().map(of).collect()
    };
    (report.agents.iter().flat_map(|agent| pids(&agent.servers)).collect(), pids(&report.unowned))
}

#[test]
fn a_container_that_the_engine_told_is_shown_with_its_client() {
    let mut story = story(RUN, false, &["docker"]);
    assert_eq!(shown(&story.engine.report()), (vec![vec![40]], vec![vec![90, 91]]), "nobody told yet");
    story.facts.container = Some(Box::new(ContainerFacts { client: id(40), ..found() }));
    story.pass_secs(600);
    let report = story.engine.report();
    assert_eq!(shown(&report), (vec![vec![40, 90, 91]], vec![]));
    let server = &report.agents[0].servers[0];
    assert_eq!((server.server.count(), server.members.len()), (3, 3));
    assert_eq!(server.server.container.as_ref().unwrap().name.as_deref(), Some("box"));
    // Its client is gone: it is a server of its own again.
    story.end(40);
    assert_eq!(shown(&story.engine.report()), (vec![], vec![vec![90, 91]]));
}

#[test]
fn a_container_that_nobody_told_of_stays_apart() {
    let mut other = story(RUN, false, &[]);
    other.pass_secs(600);
    assert_eq!(shown(&other.engine.report()), (vec![vec![40]], vec![vec![90, 91]]));
}

#[test]
fn what_a_conmon_keeps_is_shown_with_the_client_that_started_it() {
    let mut story = story(&["podman", "run", "-i", "mcp/fetch"], true, &[]);
    assert_eq!(shown(&story.engine.report()), (vec![vec![40, 90, 91]], vec![]));
    story.pass_secs(600);
    assert_eq!(story.sent(), []);
    story.end(40);
    assert_eq!(shown(&story.engine.report()), (vec![], vec![vec![90, 91]]));
}
