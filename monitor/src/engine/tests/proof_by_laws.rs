//! Histories that the laws found: each was once a wrong signal, or an orphan that was missed.

use super::{
    proof::{HOST, OTHER, PLAIN, apart, ended, idle, judged, with_copy},
    proof_of_use::{held_by, unproven},
    story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id, seen},
};
use crate::{
    engine::Settings,
    model::{CopyFacts, ExitStatus, Input, ProcessEvent, Stdio},
};

#[test]
fn nobody_is_its_own_owner() {
    // It redirected its own streams and became a server: nobody's.
    let mut story = Story::new(Settings::default());
    story.exec(20, 10, CLAUDE, TERMINAL);
    story.fork(20, 30);
    story.exec(30, 20, HOST, PLAIN);
    story.exec(30, 20, SERVER, WIRE);
    let mut story = judged(story);
    story.pass_secs(1000);
    assert_eq!(story.sent(), []);
    story.end(30);
    story.pass_secs(1000);
    let told = story.told();
    assert!(!told.iter().any(|line| line.starts_with("orphan_")), "no orphan without processes: {told:?}");
    // The twin was found in /proc between its fork and its exec, before its streams were there: its creator's.
    let mut story = Story::new(Settings::default());
    story.exec(20, 10, CLAUDE, TERMINAL);
    story.snapshot(vec![seen(20, 10, CLAUDE, TERMINAL), seen(30, 20, CLAUDE, TERMINAL)]);
    story.exec(30, 20, SERVER, WIRE);
    ended(&mut judged(story), 30);
}

#[test]
fn a_fork_that_closed_the_servers_wire_is_let_go() {
    // A fork without an exec: gpg-agent, redis-server and the like go into the background so. What keeps the wire is the server.
    for (stdio, stays) in [([Stdio::Null; 3], true), (WIRE, false)] {
        for by_itself in [false, true] {
            let mut story = Story::agent_with_server(Settings::default());
            story.fork(30, 31);
            story.apart.insert(31, apart(31, stdio));
            story.polite.insert(30);
            story.end(20);
            if by_itself {
                story.end(30);
            }
            story.pass_secs(100);
            assert_eq!(!story.sent().iter().any(|(pid, _)| *pid == 31), stays, "{stdio:?} {by_itself}");
        }
    }
}

#[test]
fn a_server_found_with_moved_wires_may_answer_somebody() {
    // A look at /proc finds the pipe that such a server reads, not the one that it writes: whatever a look says of that, nobody knows.
    for (stdout, known) in [(Stdio::Pipe(1), false), (Stdio::Pipe(2), true)] {
        let mut story = Story::new(Settings::default());
        let stdio = [Stdio::Pipe(1), stdout, Stdio::Null];
        story.snapshot(vec![seen(20, 10, CLAUDE, TERMINAL), seen(30, 20, SERVER, stdio)]);
        let mut story = judged(story);
        if known {
            ended(&mut story, 30);
        } else {
            unproven(&mut story, "wire_unknown");
        }
    }
}

#[test]
fn who_was_left_with_the_heir_is_an_heir_when_that_one_is_killed() {
    for left_together in [true, false] {
        let mut story = with_copy();
        if left_together {
            story.fork(20, 22);
        }
        story.copies = vec![CopyFacts { process: id(22), ..idle(0) }];
        story.facts.stdin = held_by(22, CLAUDE);
        let exit = ProcessEvent::Exit { at: story.now, process: id(20), status: ExitStatus::Code(0) };
        story.hand_in(Input::Process { event: exit });
        if !left_together {
            // A worker of the heir.
            story.fork(21, 22);
        }
        story.end(21);
        story.pass_secs(100);
        assert_eq!(story.sent().is_empty(), left_together, "{:?}", story.told());
    }
}

#[test]
fn the_launch_chain_of_a_sibling_holds_the_wire_by_accident_too() {
    let mut story = Story::agent_with_server(Settings::default());
    story.fork(20, 31);
    story.exec(31, 20, &["bash", "-c", "cd /srv && mcp-server-time"], OTHER);
    story.fork(31, 32);
    story.exec(32, 31, SERVER, OTHER);
    story.facts.stdin = held_by(31, &["bash"]);
    ended(&mut judged(story), 30);
}

#[test]
fn a_fork_of_a_sibling_may_be_a_daemon_that_uses_the_wire() {
    let mut story = Story::agent_with_server(Settings::default());
    story.fork(20, 31);
    story.exec(31, 20, SERVER, OTHER);
    story.fork(31, 32);
    story.facts.stdin = held_by(32, SERVER);
    let mut story = judged(story);
    assert!(!story.sent().iter().any(|(pid, _)| *pid == 30), "{:?}", story.told());
}

#[test]
fn an_agent_below_a_server_is_not_its_host() {
    // It inherited the server's wire, and so did a server of its own, which is no sibling.
    let mut story = Story::agent_with_server(Settings::default());
    story.fork(30, 31);
    story.exec(31, 30, CLAUDE, PLAIN);
    story.fork(31, 32);
    story.exec(32, 31, SERVER, OTHER);
    story.facts.stdin = held_by(31, CLAUDE);
    let mut story = judged(story);
    assert!(!story.told().iter().any(|line| line.starts_with("orphan_cleared")));
    story.facts.stdin = held_by(32, SERVER);
    story.end(31);
    story.pass_secs(10);
    assert!(!story.sent().iter().any(|(pid, _)| *pid == 30), "{:?}", story.told());
}
