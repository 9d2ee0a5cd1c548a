//! Histories that the property tests ("laws") found. Each once led to a wrong signal or to a missed orphan.

use super::{
    proof::{HOST, OTHER, PLAIN, apart, ended, idle, judged, unproven, with_copy},
    story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id, image, seen},
    story_scene::{Copy, ProcessFacts, SocketUse, WireState},
};
use crate::model::scene::ProcessRow;
use crate::model::{
    ExitStatus, Input, Losses, Notice, Policy, ProcessEvent, ProcessId, SnapshotProcess, Stdio,
};

#[test]
fn nobody_is_its_own_owner() {
    // The process redirected its own streams and became a server: it has no owner.
    let mut story = Story::with_agent();
    story.start(20, 30, HOST, PLAIN);
    story.exec(30, 20, SERVER, WIRE);
    let mut story = judged(story);
    story.pass_secs(1000);
    assert_eq!(story.sent(), []);
    story.end(30);
    story.pass_secs(1000);
    let told = story.told();
    assert!(!told.iter().any(|line| line.starts_with("orphan_")), "no orphan without processes: {told:?}");
    // The twin was found in /proc between its fork and its exec, before it had its streams: its creator is the
    // owner.
    let mut story = Story::with_agent();
    story.snapshot(vec![seen(20, 10, CLAUDE, TERMINAL), seen(30, 20, CLAUDE, TERMINAL)]);
    story.exec(30, 20, SERVER, WIRE);
    ended(&mut judged(story), 30);
}

#[test]
fn a_fork_that_closed_the_servers_wire_is_let_go() {
    // A fork without an exec: gpg-agent, redis-server and others go into the background in this way. The process
    // that keeps the wire is the server.
    for (stdio, stays) in [([Stdio::Null; 3], true), (WIRE, false)] {
        for by_itself in [false, true] {
            let mut story = Story::agent_with_server(Policy::default());
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
    // An inspection of /proc finds the pipe that such a server reads, and not the pipe that it writes. Nothing is
    // known about the second pipe, whatever the inspection says.
    for (stdout, known) in [(Stdio::Pipe(1), false), (Stdio::Pipe(2), true)] {
        let mut story = Story::new(Policy::default());
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
        story.copies = vec![Copy { process: id(22), ..idle(0) }];
        story.facts.stdin = WireState::held_as(&[22], CLAUDE);
        let exit = ProcessEvent::Exit { at: story.now, process: id(20), status: ExitStatus::Code(0) };
        story.hand_in(Input::Process { event: exit });
        if !left_together {
            // A worker of the successor.
            story.fork(21, 22);
        }
        story.end(21);
        story.pass_secs(100);
        assert_eq!(story.sent().is_empty(), left_together, "{:?}", story.told());
    }
}

#[test]
fn the_launch_chain_of_a_sibling_holds_the_wire_by_accident_too() {
    let mut story = Story::agent_with_server(Policy::default());
    story.start(20, 31, &["bash", "-c", "cd /srv && mcp-server-time"], OTHER);
    story.start(31, 32, SERVER, OTHER);
    story.facts.stdin = WireState::held_as(&[31], &["bash"]);
    ended(&mut judged(story), 30);
}

#[test]
fn a_fork_of_a_sibling_may_be_a_daemon_that_uses_the_wire() {
    let mut story = Story::agent_with_server(Policy::default());
    story.start(20, 31, SERVER, OTHER);
    story.fork(31, 32);
    story.facts.stdin = WireState::held_as(&[32], SERVER);
    let mut story = judged(story);
    assert!(!story.sent().iter().any(|(pid, _)| *pid == 30), "{:?}", story.told());
}

#[test]
fn an_agent_below_a_server_is_not_its_host() {
    // The agent inherited the server's wire, and so did a server of the agent, which is no sibling.
    let mut story = Story::agent_with_server(Policy::default());
    story.start(30, 31, CLAUDE, PLAIN);
    story.start(31, 32, SERVER, OTHER);
    story.facts.stdin = WireState::held_as(&[31], CLAUDE);
    let mut story = judged(story);
    assert!(!story.told().iter().any(|line| line.starts_with("orphan_cleared")));
    story.facts.stdin = WireState::held_as(&[32], SERVER);
    story.end(31);
    story.pass_secs(10);
    assert!(!story.sent().iter().any(|(pid, _)| *pid == 30), "{:?}", story.told());
}

#[test]
fn a_program_in_place_of_a_multiplexer_is_not_its_creators_servers() {
    // The process left the server when it became a multiplexer. It has no owner afterwards, however often it runs
    // another program.
    for multiplexer in [true, false] {
        let mut story = Story::agent_with_server(Policy::default());
        story.fork(30, 31);
        if multiplexer {
            story.exec(31, 30, &["tmux"], PLAIN);
        }
        story.exec(31, 30, &["vim"], PLAIN);
        story.exec(31, 30, HOST, PLAIN);
        let mut story = judged(story);
        story.pass_secs(100);
        let sent = story.sent();
        assert!(sent.iter().any(|(pid, _)| *pid == 30));
        assert_eq!(!sent.iter().any(|(pid, _)| *pid == 31), multiplexer, "{:?}", story.told());
    }
}

#[test]
fn a_copy_that_is_an_agent_already_is_nobodys_heir() {
    let mut story = Story::new(Policy::default());
    story.exec(10, 5, &["codex"], TERMINAL);
    story.start(10, 20, HOST, PLAIN);
    story.fork(20, 21);
    // The worker starts a server first, its host second.
    story.start(21, 31, SERVER, OTHER);
    story.start(20, 30, SERVER, WIRE);
    story.told();
    let exit = ProcessEvent::Exit { at: story.now, process: id(20), status: ExitStatus::Code(0) };
    story.hand_in(Input::Process { event: exit });
    assert_eq!(story.told(), ["agent_exited", "orphan_suspected"], "nobody starts twice");
    story.pass_secs(100);
    assert!(!story.sent().iter().any(|(pid, _)| *pid == 31), "the worker's own server stays");
}

#[test]
fn who_turns_out_to_have_made_a_suspect_is_its_owner_and_lives() {
    // The copy of a host continues its work, starts a server and runs another program. That looked like its exit.
    let mut story = Story::new(Policy::default());
    story.creator = Some(seen(20, 10, &["python3", "/srv/app/old.py"], PLAIN));
    story.exec(30, 20, SERVER, WIRE);
    story.fork(20, 21);
    let exit = ProcessEvent::Exit { at: story.now, process: id(20), status: ExitStatus::Code(0) };
    story.hand_in(Input::Process { event: exit });
    story.start(21, 31, SERVER, OTHER);
    story.exec(21, 1, HOST, PLAIN);
    assert!(story.told().contains(&"orphan_suspected".to_owned()));
    story.start(21, 32, SERVER, [Stdio::Pipe(5), Stdio::Pipe(6), Stdio::Null]);
    assert!(story.told().contains(&"orphan_cleared owner_found".to_owned()));
    story.pass_secs(100);
    assert!(!story.sent().iter().any(|(pid, _)| *pid == 31), "{:?}", story.told());
    // The twin: it exits.
    story.end(21);
    story.pass_secs(10);
    ended(&mut story, 31);
}

#[test]
fn what_was_joined_with_a_server_that_is_being_ended_ends_with_it() {
    // For a process found in /proc nobody knows who made its streams.
    const BROWSER: &[&str] = &["chrome", "--headless"];
    let joined = [Stdio::Null, Stdio::Null, Stdio::Pipe(9)];
    for (then, ends) in [(joined, true), ([Stdio::Null; 3], false)] {
        let mut story = Story::new(Policy::default());
        let browser = SnapshotProcess { sid: 31, ..seen(31, 30, BROWSER, joined) };
        story.snapshot(vec![seen(20, 10, CLAUDE, TERMINAL), seen(30, 20, SERVER, WIRE), browser]);
        story.apart.insert(31, ProcessFacts { argv: BROWSER, joined: vec![id(30)], ..apart(31, joined) });
        story.polite.insert(30);
        let mut story = judged(story);
        story.apart.insert(31, apart(31, then));
        story.pass_secs(10);
        assert_eq!(story.sent().iter().any(|(pid, _)| *pid == 31), ends, "{then:?}");
    }
}

#[test]
fn of_what_ended_by_itself_no_wire_tells_that_nobody_uses_it() {
    // It is unknown what 20 was; it may have been a shell. Only the browser of its server is left.
    let joined = [Stdio::Null, Stdio::Null, Stdio::Pipe(9)];
    for by_itself in [true, false] {
        let mut story = Story::new(Policy::default());
        story.gone.insert(20);
        story.exec(30, 20, SERVER, WIRE);
        story.start(30, 31, &["chrome"], joined);
        story.apart.insert(31, ProcessFacts { argv: &["chrome"], ..apart(31, joined) });
        if by_itself {
            story.end(30);
        }
        let mut story = judged(story);
        if by_itself {
            assert!(story.told().contains(&"orphan_unproven owner_unknown".to_owned()));
            story.pass_secs(100);
            assert_eq!(story.sent(), []);
        } else {
            ended(&mut story, 30);
        }
    }
}

#[test]
fn the_end_of_a_server_that_may_not_be_signalled_is_told() {
    let mut story = Story::agent_with_server(Policy::default());
    story.errno = Some(1);
    let mut story = judged(story);
    assert!(story.told().contains(&"reap_failed".to_owned()));
    story.start(30, 31, &["git", "gc"], PLAIN);
    story.apart.insert(31, apart(31, PLAIN));
    story.end(30);
    story.pass_secs(10);
    assert_eq!(story.told(), ["orphan_exited"], "what is left of it was let go");
}

#[test]
fn a_suspicion_is_told_before_it_is_cleared() {
    // Both follow from one snapshot of /proc: the successor is a shell whose exec was lost, and the server has
    // become a multiplexer.
    let mut story = Story::agent_with_server(Policy::default());
    story.fork(20, 21);
    story.setsid(21);
    story.end(20);
    assert_eq!(story.told().last().map(String::as_str), Some("agent_started"));
    let losses = Losses { exec: 2, ..Losses::default() };
    story.hand_in(Input::Lost { losses });
    story.snapshot(vec![seen(21, 1, &["bash"], PLAIN), seen(30, 21, &["tmux"], WIRE)]);
    let told = story.told();
    let at = |word: &str| told.iter().position(|line| line.starts_with(word));
    assert!(at("orphan_suspected").is_some() && at("orphan_suspected") < at("orphan_cleared"), "{told:?}");
}

#[test]
fn a_look_that_runs_ahead_of_the_records_finds_no_host_below_the_server() {
    // An agent that the server has just started inherited its wire. An unknown process born in the same moment may
    // be such an agent.
    for (born, hosts) in [(30, false), (29, true)] {
        let mut story = Story::new(Policy::default());
        let process = ProcessId::new(31, born);
        let holder = ProcessRow { process, image: image(CLAUDE), ..ProcessRow::default() };
        story.facts.stdin = WireState::Held { holders: vec![holder], unseen: false };
        story.exec(30, 1, SERVER, WIRE);
        let started = story.notices.iter().any(|notice| match notice {
            Notice::ServerStarted { owner, .. } => owner.is_some(),
            _ => false,
        });
        assert_eq!(started, hosts, "{:?}", story.told());
    }
}

#[test]
fn a_bridge_whose_exec_was_lost_may_use_the_server_behind_it() {
    // The process looks like another server of the same dead owner. Whether somebody reaches it tells what it is.
    for in_use in [true, false] {
        let mut story = Story::agent_with_server(Policy::default());
        story.fork(20, 31);
        story.start(31, 32, SERVER, OTHER);
        story.hand_in(Input::Lost { losses: Losses { exec: 1, ..Losses::default() } });
        let other = [Stdio::Pipe(5), Stdio::Pipe(6), Stdio::Null];
        let processes =
            [seen(20, 10, CLAUDE, TERMINAL), seen(30, 20, SERVER, WIRE), seen(31, 20, SERVER, other)];
        story.snapshot([&processes[..], &[seen(32, 31, SERVER, OTHER)]].concat());
        story.facts.stdin = WireState::held_as(&[31], SERVER);
        let sockets = SocketUse { clients: in_use, ..SocketUse::default() };
        story.apart.insert(31, ProcessFacts { sockets, ..ProcessFacts::default() });
        // Nobody knows what it let go before it was found, so it is ended first.
        story.polite = [31].into();
        let mut story = judged(story);
        assert_eq!(!story.sent().iter().any(|(pid, _)| *pid == 32), in_use, "{:?}", story.told());
    }
}
