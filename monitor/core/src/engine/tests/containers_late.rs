//! Tests of servers that are found in containers: their client ended before the daemon came, or is not known.

use std::{collections::BTreeSet, time::Duration};

use super::{
    containers::{OTHER, RUN, detected, with_client},
    proof::judged,
    story::{CLAUDE, SERVER, Story, WIRE, id, seen},
    story_scene::WireState,
    units::NOTHING,
};
use crate::model::scene::ProcessRow;
use crate::model::{Container, ContainerId, Image, Input, Notice, Policy, ReapRequest, ServerView, Signal};

const SHIM: &str = "/usr/bin/containerd-shim-runc-v2";

pub fn enclosing() -> Container {
    made_by(Some(0))
}

fn made_by(user: Option<u32>) -> Container {
    let container = ContainerId { engine: "docker".to_owned(), id: "0c".repeat(32) };
    Container { memory_bytes: Some(7), ..Container::by_id(&container, user) }
}

/// The daemon comes when a server is there, whose parent is the engine's shim.
fn late(enclosing: Option<Box<Container>>, stdout: WireState) -> Story {
    let mut story = Story::new(Policy::default());
    comes_late(&mut story, enclosing, stdout, &[]);
    story
}

/// The same with sessions that processes have in their environment; 20 is an agent.
pub fn comes_late(
    story: &mut Story,
    enclosing: Option<Box<Container>>,
    stdout: WireState,
    sessions: &[(u32, &str)],
) {
    (story.facts.enclosing, story.facts.stdout) = (enclosing, stdout);
    let mut all = vec![
        seen(1, 0, &["/sbin/init"], NOTHING),
        seen(10, 1, &[SHIM, "-namespace", "moby"], NOTHING),
        seen(30, 10, SERVER, WIRE),
    ];
    for (pid, id) in sessions {
        story.sessions.insert(*pid, (*id).to_owned());
        if *pid == 20 {
            all.insert(2, seen(20, 1, CLAUDE, NOTHING));
        }
    }
    story.snapshot(all);
    story.pass_secs(60);
}

pub fn by_the_shim() -> WireState {
    let image = Image { exe: SHIM.to_owned(), argv: vec![SHIM.to_owned()], ..Image::default() };
    WireState::Held {
        holders: vec![ProcessRow { process: id(10), image, ..ProcessRow::default() }],
        unseen: false,
    }
}

fn unproven(story: &Story) -> &ServerView {
    let found = story.notices.iter().find_map(|notice| match notice {
        Notice::OrphanUnproven { server, .. } => Some(server),
        _ => None,
    });
    found.unwrap()
}

#[test]
fn a_server_whose_client_had_ended_is_told_with_its_container() {
    let mut story = late(Some(Box::new(enclosing())), by_the_shim());
    let container = unproven(&story).container.clone().unwrap();
    assert_eq!(container.command, "docker stop 0c0c0c0c0c0c");
    assert_eq!((container.id, container.memory_bytes), (Some("0c".repeat(32)), Some(7)));
    assert_eq!((container.name, container.image, container.setting), (None, None, None));
    assert_eq!(story.sent(), []);
    // The twin is in no container.
    assert_eq!(unproven(&late(None, by_the_shim())).container, None);
}

/// A user may name a group of his own like a container of somebody else's.
#[test]
fn a_name_that_a_user_chose_is_no_command_for_root() {
    for (user, command) in [
        (Some(1000), "sudo -iu '#1000' docker stop 0c0c0c0c0c0c".to_owned()),
        (None, format!("docker ps --filter id={}", "0c".repeat(32))),
    ] {
        let story = late(Some(Box::new(made_by(user))), by_the_shim());
        assert_eq!(unproven(&story).container.as_ref().unwrap().command, command);
    }
}

#[test]
fn a_server_found_in_a_container_is_never_signalled() {
    let mut story = late(Some(Box::new(enclosing())), WireState::HungUp);
    assert_eq!(detected(&story).container.as_ref().unwrap().command, "docker stop 0c0c0c0c0c0c");
    assert_eq!(story.told(), ["server_started", "orphan_detected container", "orphan_spared container"]);
    // Not on a person's word, either.
    let request = ReapRequest {
        targets: vec![crate::model::Asked::Pid(30)],
        include_unproven: true,
        ..ReapRequest::default()
    };
    story.hand_in(Input::Reap { request, by: "alice".to_owned() });
    story.pass_secs(1000);
    assert_eq!(story.sent(), []);
    // The twin is in no container.
    assert_eq!(late(None, WireState::HungUp).sent().first(), Some(&(30, Signal::Term)));
}

/// The client, a child of the agent, is killed under the eyes of the daemon; the server is a child of the shim.
#[test]
fn what_a_client_left_that_is_killed_later_is_told() {
    let left = |client: &[&str], stdin: WireState| {
        let mut story = Story::new(Policy::default());
        story.snapshot(vec![
            seen(1, 0, &["/sbin/init"], NOTHING),
            seen(10, 1, &[SHIM, "-namespace", "moby"], NOTHING),
            seen(20, 1, CLAUDE, NOTHING),
        ]);
        story.facts.enclosing = Some(Box::new(enclosing()));
        (story.facts.stdin, story.facts.stdout) = (by_the_shim(), by_the_shim());
        story.start(10, 30, SERVER, WIRE);
        story.start(20, 40, client, NOTHING);
        story.pass_secs(600);
        assert_eq!(story.told(), ["agent_started", "server_started"]);
        story.facts.stdin = stdin;
        story.end(40);
        story.pass_secs(600);
        assert_eq!(story.sent(), []);
        story.told()
    };
    let told = ["orphan_unproven stdout_read owner_unknown"];
    assert_eq!(left(RUN, WireState::HungUp), told);
    assert_eq!(left(RUN, by_the_shim()), [""; 0], "its own client lives");
    assert_eq!(left(&["sleep", "1"], WireState::HungUp), [""; 0], "no client has ended");
}

/// Any user can start and end clients as fast as he likes, and each look concerns all servers.
#[test]
fn clients_that_end_without_a_pause_have_one_look_a_second() {
    let mut story = Story::with_agent();
    let mut looks = BTreeSet::new();
    for client in 40..140 {
        story.start(20, client, RUN, NOTHING);
        story.end(client);
        story.pass(Duration::from_millis(20));
        looks.insert(story.engine.containers_until);
    }
    assert!(looks.len() < 10, "{looks:?}");
}

/// The same with podman, whose client starts a conmon. That is exempt, and the server below it is nobody's.
#[test]
fn what_a_client_of_podman_left_is_told() {
    let left = |conmon: &str| {
        let mut story = Story::with_agent();
        story.start(20, 40, &["podman", "run", "-i", "mcp/fetch"], OTHER);
        story.start(40, 41, &[conmon, "-c", "0c"], NOTHING);
        (story.facts.stdin, story.facts.stdout) = (by_the_shim(), by_the_shim());
        story.start(41, 30, SERVER, WIRE);
        story.pass_secs(60);
        story.told();
        story.facts.enclosing = Some(Box::new(enclosing()));
        story.facts.stdin = WireState::HungUp;
        story.end(40);
        story.pass_secs(600);
        assert_eq!(story.sent(), []);
        story.told()
    };
    let unproven = "orphan_unproven stdout_read owner_unknown";
    assert_eq!(left("/usr/bin/conmon"), ["server_exited", unproven]);
    assert_eq!(left("/usr/bin/tmux"), ["server_exited"], "a multiplexer keeps no container");
}

#[test]
fn an_agent_and_its_server_in_one_container_are_judged_as_anywhere() {
    let mut story = Story::agent_with_server(Policy::default());
    story.facts.enclosing = Some(Box::new(enclosing()));
    let mut story = judged(story);
    assert_eq!(detected(&story).container.as_ref().unwrap().command, "docker stop 0c0c0c0c0c0c");
    assert_eq!(story.sent().first(), Some(&(30, Signal::Term)));
}

#[test]
fn a_client_in_a_container_works_for_another_one() {
    let mut story = with_client(RUN);
    story.facts.enclosing = Some(Box::new(enclosing()));
    let mut story = judged(story);
    assert_eq!(detected(&story).container.as_ref().unwrap().command, "docker stop box");
    assert_eq!(story.sent(), []);
}
