//! Tests of servers that work in containers: the client of a container is never signalled.

use super::{
    proof::judged,
    story::{Story, WIRE, id, image},
    story_scene::{Outside, ProcessFacts, SocketUse, WireState, scene},
};
use crate::model::scene::ProcessRow;
use crate::model::{
    ContainerFacts, ContainerId, Guard, Input, MadeContainer, Notice, OtherClient, Policy, ProcessId,
    ReapRequest, ServerView, Signal, Stdio, scene::SceneServer,
};

pub const RUN: &[&str] = &["docker", "run", "-i", "--rm", "--name", "box", "mcp/fetch"];
pub const OTHER: [Stdio; 3] = [Stdio::Pipe(3), Stdio::Pipe(4), Stdio::Null];

/// Agent 20 starts a client, 30.
pub fn with_client(argv: &[&str]) -> Story {
    let mut story = Story::with_agent();
    story.start(20, 30, argv, WIRE);
    assert_eq!(story.told(), ["server_started"]);
    story
}

pub fn detected(story: &Story) -> &ServerView {
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
        ReapRequest {
            targets: vec![crate::model::Asked::Pid(30)],
            include_unproven: true,
            include_active: true,
            ..ReapRequest::default()
        },
    ] {
        story.hand_in(Input::Reap { request, by: "alice".to_owned() });
        story.pass_secs(100);
    }
    assert_eq!(story.sent(), []);
    // Nor is it ended under a living owner.
    let mut story = with_client(RUN);
    let request = ReapRequest { include_active: true, ..ReapRequest::default() };
    story.hand_in(Input::Reap { request, by: "alice".to_owned() });
    story.pass_secs(100);
    assert_eq!((story.sent(), story.told()), (vec![], vec!["orphan_spared container".to_owned()]));
}

#[test]
fn a_client_in_the_launch_chain_or_below_the_server_counts() {
    // A launcher and a shell around the client.
    let mut story = Story::with_agent();
    story.start(20, 25, &["sh", "-c", "docker run -i mcp/fetch; exit"], WIRE);
    story.start(25, 30, RUN, WIRE);
    let mut story = judged(story);
    story.pass_secs(1000);
    assert_eq!(story.sent(), []);
    assert!(detected(&story).container.is_some());
    // A server that has a client below it, until that client ends.
    let mut story = Story::agent_with_server(Policy::default());
    story.start(30, 31, RUN, OTHER);
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
    let mut story = judged(Story::agent_with_server(Policy::default()));
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    story.start(30, 31, RUN, OTHER);
    story.pass_secs(1000);
    assert!(story.sent().iter().all(|(pid, _)| *pid != 31));
    assert!(story.told().contains(&"orphan_spared container".to_owned()));
}

/// A process becomes a client between two rounds of SIGKILL, when nothing is inspected.
#[test]
fn a_client_that_appears_among_the_killed_is_not_signalled() {
    let mut story = judged(Story::agent_with_server(Policy::default()));
    while !story.sent().iter().any(|(_, signal)| *signal == Signal::Kill) {
        story.pass_secs(1);
    }
    story.exec(30, 20, RUN, WIRE);
    story.pass_secs(1000);
    assert_eq!(story.sent(), []);
    assert_eq!(story.engine.plan(&ReapRequest::default()).len(), 1);
}

// ---- with an engine that tells and stops -------------------------------------------------------------------------

/// What the engine tells of the container, 90, whose standard streams its shim, 89, holds.
pub fn found() -> ContainerFacts {
    found_with(|_| {})
}

/// The same, after a change to what is outside of its processes.
pub fn found_with(change: impl FnOnce(&mut Outside)) -> ContainerFacts {
    let shim =
        ProcessRow { process: id(89), image: image(&["containerd-shim-runc-v2"]), ..ProcessRow::default() };
    let stdio = [Stdio::Pipe(901), Stdio::Pipe(902), Stdio::Null];
    let mut outside = Outside {
        processes: vec![ProcessFacts { process: id(90), stdio, ..ProcessFacts::default() }],
        stdout: WireState::Held { holders: vec![shim], unseen: false },
        ..Outside::default()
    };
    change(&mut outside);
    let processes: Vec<ProcessId> = outside.processes.iter().map(|one| one.process).collect();
    let server = SceneServer { processes: processes.clone(), stdin: stdio[0], stdout: stdio[1] };
    ContainerFacts {
        container: ContainerId { engine: "docker".to_owned(), id: "0a".repeat(32) },
        client: id(30),
        name: "box".to_owned(),
        image: "mcp/fetch".to_owned(),
        monitor: None,
        shared: false,
        memory_bytes: None,
        processes,
        others: Vec::new(),
        made: vec![made(0x0a, 30)],
        inside: Box::new(scene(&server, &outside, &[])),
    }
}

/// A container that was made when the client with this pid had just been started.
fn made(id: u8, client: u32) -> MadeContainer {
    MadeContainer {
        id: format!("{id:02x}").repeat(32),
        name: format!("{id}"),
        created: super::story::id(client).start,
    }
}

fn with_engine(facts: ContainerFacts) -> Story {
    let mut story = with_client(RUN);
    story.facts.container = Some(Box::new(facts));
    judged(story)
}

#[test]
fn the_engine_stops_the_container_and_the_client_ends_by_itself() {
    let mut story = with_client(RUN);
    story.facts.container = Some(Box::new(found()));
    story.late = Some(Vec::new());
    let mut story = judged(story);
    story.answer_late();
    let container = detected(&story).container.clone().unwrap();
    assert_eq!(container.command, "docker stop 0a0a0a0a0a0a");
    assert_eq!(
        (container.id.as_deref(), story.stops.as_slice()),
        (Some("0a".repeat(32).as_str()), &["0a".repeat(32)][..])
    );
    // The client ends before the engine has answered: nothing is told until then.
    story.told();
    story.end(30);
    assert_eq!(story.told(), [""; 0]);
    story.answer_late();
    assert_eq!(story.told(), ["orphan_reaped TERM"]);
    assert_eq!(story.sent(), []);
}

#[test]
fn a_client_that_outlives_the_answer_is_waited_for() {
    let mut story = with_engine(found());
    assert_eq!(story.stops.len(), 1);
    story.told();
    story.pass_secs(1);
    story.end(30);
    assert_eq!((story.told(), story.sent()), (vec!["orphan_reaped TERM".to_owned()], vec![]));
}

#[test]
fn an_engine_that_does_not_stop_it_is_told() {
    let mut story = with_client(RUN);
    story.facts.container = Some(Box::new(found()));
    story.stop_error = Some("the engine does not answer".to_owned());
    let mut story = judged(story);
    assert_eq!(story.told().last().map(String::as_str), Some("reap_failed"));
    story.pass_secs(10_000);
    story.end(30);
    assert_eq!((story.told(), story.sent()), (vec!["orphan_exited".to_owned()], vec![]));
    // It says that it stopped the container, and the client lives.
    let mut story = with_engine(found());
    story.told();
    story.pass_secs(10_000);
    assert_eq!(story.told(), ["reap_failed"]);
    assert_eq!((story.sent(), story.stops.len()), (vec![], 1));
    // Too late, and still by the engine.
    story.end(30);
    assert_eq!(story.told(), ["orphan_reaped TERM"]);
}

#[test]
fn a_container_that_somebody_may_use_is_unproven() {
    let user = || ProcessRow { process: id(70), image: image(&["python3", "x.py"]), ..ProcessRow::default() };
    let held = || WireState::Held { holders: vec![user()], unseen: false };
    let clients = || SocketUse { clients: true, ..SocketUse::default() };
    let mut shared = found();
    shared.shared = true;
    for (facts, doubt) in [
        (found_with(|facts| facts.stdin = held()), "wire_held"),
        (found_with(|facts| facts.stdin = WireState::Unknown), "wire_unknown"),
        (found_with(|facts| facts.stdout = held()), "stdout_read"),
        (found_with(|facts| facts.processes[0].sockets = clients()), "clients"),
        (found_with(|facts| facts.processes[0].traced = true), "traced"),
        (shared, "clients"),
    ] {
        let mut story = with_engine(facts);
        story.pass_secs(10_000);
        assert_eq!(story.told().last(), Some(&format!("orphan_unproven {doubt}")));
        assert_eq!((story.sent(), story.stops.len()), (vec![], 0), "{doubt}");
        // The doubt goes.
        story.facts.container = Some(Box::new(found()));
        story.pass_secs(1000);
        assert_eq!(story.stops.len(), 1, "{doubt}");
    }
}

#[test]
fn a_container_that_is_not_seen_or_is_not_all_of_the_server_keeps_the_guard() {
    let blind = found_with(|facts| facts.blind = Some("cannot read".to_owned()));
    let empty = found_with(|facts| facts.processes.clear());
    for facts in [blind, empty] {
        let mut story = with_engine(facts);
        assert_eq!(story.told().last().map(String::as_str), Some("orphan_spared container"));
        assert_eq!((story.sent(), story.stops.len()), (vec![], 0));
    }
    let mut story = Story::agent_with_server(Policy::default());
    story.start(30, 31, RUN, OTHER);
    story.facts.container = Some(Box::new(found()));
    let mut story = judged(story);
    assert_eq!(story.told().last().map(String::as_str), Some("orphan_spared container"));
    assert_eq!((story.sent(), story.stops.len()), (vec![], 0));
    let mut story = with_engine(found_with(|facts| facts.opted_out = true));
    assert_eq!(story.told().last().map(String::as_str), Some("orphan_spared opted_out"));
    assert_eq!(story.stops.len(), 0);
}

#[test]
fn other_clients_count() {
    let client = |pid: u32, argv: &[&str]| OtherClient { process: id(pid), image: image(argv) };
    let told = |argv: &[&str], other: OtherClient| {
        let mut story = with_client(argv);
        story.facts.container = Some(Box::new(ContainerFacts { others: vec![other], ..found() }));
        let mut story = judged(story);
        let last = story.told().last().cloned().unwrap_or_default();
        assert_eq!(
            (story.sent(), story.stops.len()),
            (vec![], usize::from(last == "orphan_detected")),
            "{last}"
        );
        last
    };
    let bare = &["docker", "run", "-i", "mcp/fetch"];
    assert_eq!(told(RUN, client(70, &["docker", "exec", "-i", "box", "sh"])), "orphan_unproven clients");
    assert_eq!(told(RUN, client(70, &["docker", "attach", "0a0a0a0a"])), "orphan_unproven clients");
    assert_eq!(told(RUN, client(70, &["docker", "exec", "-i", "other", "sh"])), "orphan_detected");
    assert_eq!(told(RUN, client(70, bare)), "orphan_detected");
    // Which of two containers of one image is whose?
    assert_eq!(told(bare, client(70, bare)), "orphan_spared container");
    assert_eq!(told(bare, client(9000, bare)), "orphan_detected");
    assert_eq!(told(bare, client(70, &["docker", "run", "-i", "mcp/time"])), "orphan_detected");
    // What it passes on may be about any container.
    assert_eq!(told(RUN, client(70, &["docker", "system", "dial-stdio"])), "orphan_unproven clients");
}

/// The container that was made before the other client was started is not that one's.
#[test]
fn of_two_containers_of_one_image_the_times_tell_whose_each_is() {
    let bare = &["docker", "run", "-i", "mcp/fetch"];
    let stops = |made: Vec<MadeContainer>| {
        let other = OtherClient { process: id(230), image: image(bare) };
        let mut story = with_client(bare);
        story.facts.container = Some(Box::new(ContainerFacts { others: vec![other], made, ..found() }));
        let mut story = judged(story);
        (story.sent(), story.stops.len())
    };
    assert_eq!(stops(vec![made(0x0a, 30), made(0x0b, 230)]), (vec![], 1));
    // The other one may have been made for either.
    assert_eq!(stops(vec![made(0x0a, 230), made(0x0b, 230)]), (vec![], 0));
    assert_eq!(stops(vec![made(0x0a, 30)]), (vec![], 0));
}

#[test]
fn an_owner_that_lives_is_asked_for_by_nobody() {
    let mut story = with_client(RUN);
    story.facts.container = Some(Box::new(found()));
    story.facts.stdin = WireState::unseen();
    story.pass_secs(10_000);
    assert_eq!((story.sent(), story.stops.len()), (vec![], 0));
}
