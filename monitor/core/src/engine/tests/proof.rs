//! Tests of the proof standard. Each condition is tested in both directions: a server in use stays, and its twin is
//! ended.

use super::story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id};
use super::story_scene::{Copy, ProcessFacts};
use crate::{
    engine::Settings,
    model::{Notice, Signal, Stdio, Work},
};

pub(super) const PLAIN: [Stdio; 3] = [Stdio::Null, Stdio::File, Stdio::File];
pub(super) const OTHER: [Stdio; 3] = [Stdio::Pipe(3), Stdio::Pipe(4), Stdio::Null];
const SHELL: &[&str] = &["bash", "-c", "x | y > z"];
pub(super) const HOST: &[&str] = &["python3", "/srv/app/host.py"];

/// The owner, 20, exits, and the grace period passes.
pub(super) fn judged(mut story: Story) -> Story {
    story.told();
    story.end(20);
    story.pass_secs(10);
    story
}

pub(super) fn ended(story: &mut Story, pid: u32) {
    assert!(story.sent().contains(&(pid, Signal::Term)), "{:?}", story.told());
}

/// A process of a server that an inspection finds in a session of its own.
pub(super) fn apart(sid: u32, stdio: [Stdio; 3]) -> ProcessFacts {
    ProcessFacts { sid, stdio, ..ProcessFacts::default() }
}

// ---- 1: a server, with both wires that its owner made ------------------------------------------------------------

#[test]
fn a_shells_job_below_an_agent_is_nobodys_server() {
    for stdio in [WIRE, [Stdio::Pipe(1), Stdio::File, Stdio::File]] {
        let mut story = Story::new(Settings::default());
        story.exec(20, 10, CLAUDE, TERMINAL);
        story.fork(20, 25);
        story.exec(25, 20, SHELL, PLAIN);
        story.fork(25, 30);
        story.exec(30, 25, SERVER, stdio);
        // The shell may have exited by then, too. It is known that the shell made the wire.
        story.end(25);
        let mut story = judged(story);
        story.pass_secs(1000);
        assert!(!story.told().iter().any(|line| line.starts_with("orphan_")));
        assert_eq!(story.sent(), []);
    }
}

#[test]
fn a_shell_that_hands_the_agents_wire_on_is_a_launcher() {
    let mut story = Story::new(Settings::default());
    story.exec(20, 10, CLAUDE, TERMINAL);
    story.fork(20, 25);
    story.exec(25, 20, SHELL, WIRE);
    story.fork(25, 30);
    story.exec(30, 25, SERVER, WIRE);
    let mut story = judged(story);
    ended(&mut story, 30);
}

#[test]
fn what_a_loop_starts_below_a_dead_agent_is_the_loops() {
    let mut story = Story::new(Settings::default());
    story.exec(20, 10, CLAUDE, TERMINAL);
    story.fork(20, 25);
    story.exec(25, 20, HOST, PLAIN);
    story.end(20);
    story.fork(25, 30);
    story.exec(30, 25, SERVER, WIRE);
    let owner = story.notices.iter().find_map(|notice| match notice {
        Notice::ServerStarted { owner, .. } => owner.clone(),
        _ => None,
    });
    assert_eq!(owner.map(|owner| (owner.pid, owner.implied)), Some((25, true)));
    story.pass_secs(100);
    assert_eq!(story.sent(), []);
    // The twin: the loop ends.
    story.end(25);
    story.pass_secs(10);
    ended(&mut story, 30);
}

#[test]
fn an_owner_that_dies_on_its_servers_way_to_the_exec_is_the_owner() {
    for argv in [CLAUDE, HOST] {
        let mut story = Story::new(Settings::default());
        // Another agent, unrelated to the server, is alive above it.
        story.exec(10, 5, &["codex"], TERMINAL);
        story.fork(10, 20);
        story.exec(20, 10, argv, PLAIN);
        story.fork(20, 30);
        story.end(20);
        story.exec(30, 20, SERVER, WIRE);
        story.pass_secs(10);
        ended(&mut story, 30);
        // The twin: the unrelated agent's own server stays.
        story.fork(10, 31);
        story.exec(31, 10, SERVER, OTHER);
        story.pass_secs(100);
        assert_eq!(story.sent().iter().filter(|(pid, _)| *pid == 31).count(), 0);
    }
}

#[test]
fn a_bot_with_a_servers_name_that_a_shell_feeds_owns_what_it_starts() {
    const BOT: &[&str] = &["python3", "/home/me/mcp_chatbot.py"];
    for stdio in [[Stdio::Pipe(7), Stdio::File, Stdio::File], [Stdio::Pipe(7), Stdio::Pipe(8), Stdio::File]] {
        let mut story = Story::new(Settings::default());
        story.exec(20, 10, CLAUDE, TERMINAL);
        story.fork(20, 25);
        story.exec(25, 20, SHELL, PLAIN);
        story.fork(25, 26);
        story.exec(26, 25, BOT, stdio);
        story.fork(26, 30);
        story.exec(30, 26, SERVER, WIRE);
        let mut story = judged(story);
        story.pass_secs(1000);
        assert_eq!(story.sent(), []);
        story.end(26);
        story.pass_secs(10);
        ended(&mut story, 30);
    }
}

// ---- 2: this server -----------------------------------------------------------------------------------------------

/// Server 30 has started 31, which runs another program on these streams.
pub(super) fn with_child(stdio: [Stdio; 3]) -> Story {
    let mut story = Story::agent_with_server(Settings::default());
    story.fork(30, 31);
    story.exec(31, 30, &["/usr/bin/chromium", "about:blank"], stdio);
    story
}

#[test]
fn what_left_into_a_session_of_its_own_without_a_tie_is_let_go() {
    // Once the server is ended by orphand, and once it exits by itself during its grace.
    for by_itself in [false, true] {
        let mut story = with_child(PLAIN);
        story.apart.insert(31, apart(31, PLAIN));
        story.polite.insert(30);
        story.told();
        story.end(20);
        if by_itself {
            story.end(30);
        }
        story.pass_secs(100);
        let told = story.told();
        let end = if by_itself { "orphan_cleared exited" } else { "orphan_reaped TERM" };
        assert_eq!(told.last().map(String::as_str), Some(end), "{told:?}");
        assert!(!story.sent().iter().any(|(pid, _)| *pid == 31));
    }
}

#[test]
fn a_job_in_a_session_of_its_own_that_merely_inherited_the_input_is_let_go() {
    let [input, output, _] = WIRE;
    // The twin answers on the wire.
    for (stdio, stays) in [([input, Stdio::File, Stdio::File], true), ([input, output, Stdio::File], false)] {
        let mut story = with_child(stdio);
        story.apart.insert(31, apart(31, stdio));
        story.polite.insert(30);
        story.end(20);
        story.pass_secs(100);
        assert_eq!(story.sent().iter().any(|(pid, _)| *pid == 31), !stays, "{stdio:?}");
    }
}

#[test]
fn what_was_let_go_is_told() {
    let mut story = with_child(PLAIN);
    story.apart.insert(31, apart(31, PLAIN));
    story.polite.insert(30);
    story.end(20);
    story.pass_secs(100);
    let let_go = story.notices.iter().find_map(|notice| match notice {
        Notice::OrphanReaped { let_go, .. } => Some(let_go.iter().map(|p| p.pid).collect::<Vec<_>>()),
        _ => None,
    });
    assert_eq!(let_go, Some(vec![31]));
}

#[test]
fn a_browser_tied_to_its_server_goes_with_it() {
    let socket = [Stdio::Null, Stdio::Null, Stdio::Socket(9)];
    // The process is joined with the server now, or with the maker of its stream, which has exited by itself.
    for server_lives in [true, false] {
        let mut story = with_child(socket);
        let joined = if server_lives { vec![id(30)] } else { Vec::new() };
        story.apart.insert(31, ProcessFacts { joined, ..apart(31, socket) });
        story.polite.insert(30);
        story.end(20);
        if !server_lives {
            story.end(30);
        }
        story.pass_secs(100);
        ended(&mut story, 31);
    }
}

#[test]
fn a_daemon_that_closed_its_streams_is_tied_no_longer() {
    let mut story = with_child([Stdio::Pipe(8), Stdio::Pipe(9), Stdio::Null]);
    story.apart.insert(31, apart(31, [Stdio::Null; 3]));
    story.polite.insert(30);
    story.end(20);
    story.pass_secs(100);
    assert!(!story.sent().iter().any(|(pid, _)| *pid == 31));
}

#[test]
fn a_daemon_that_was_born_with_the_wire_is_no_server_proper() {
    for (by_itself, told) in [(true, true), (true, false), (false, true), (false, false)] {
        // Like ssh-agent: it inherits its standard input, forks itself into a session of its own, and closes its
        // streams.
        let mut story = with_child([Stdio::Pipe(1), Stdio::Pipe(9), Stdio::Null]);
        story.fork(31, 32);
        if told {
            story.setsid(32);
        }
        story.end(31);
        story.apart.insert(32, apart(32, [Stdio::Null; 3]));
        story.polite.insert(30);
        story.end(20);
        if by_itself {
            story.end(30);
        }
        story.pass_secs(100);
        assert!(!story.sent().iter().any(|(pid, _)| *pid == 32), "{by_itself} {told}");
        assert_eq!(story.engine.counts()[1], 0);
    }
}

#[test]
fn the_session_ties_only_while_the_server_proper_lives() {
    for by_itself in [true, false] {
        let mut story = with_child(PLAIN);
        story.polite.insert(30);
        story.end(20);
        if by_itself {
            story.end(30);
        }
        story.pass_secs(100);
        assert_eq!(story.sent().contains(&(31, Signal::Term)), !by_itself);
    }
}

#[test]
fn a_server_that_ends_under_a_living_owner_lets_go_too() {
    let mut story = with_child(PLAIN);
    story.apart.insert(31, apart(31, PLAIN));
    story.told();
    story.end(30);
    story.pass_secs(2);
    assert_eq!(story.told(), ["server_exited"]);
}

#[test]
fn a_wrapper_that_is_killed_leaves_the_server_proper() {
    let mut story = Story::new(Settings::default());
    story.exec(20, 10, CLAUDE, TERMINAL);
    story.fork(20, 30);
    story.exec(30, 20, &["npm", "exec", "@modelcontextprotocol/server-everything"], WIRE);
    story.fork(30, 31);
    story.exec(31, 30, &["node", "/srv/app/dist/index.js"], WIRE);
    story.told();
    story.end(30);
    story.pass_secs(100);
    assert_eq!(story.told(), Vec::<String>::new(), "the session works on");
    story.end(20);
    story.pass_secs(10);
    ended(&mut story, 31);
}

#[test]
fn a_server_that_becomes_another_program_is_a_server_no_longer() {
    for argv in [&["tmux", "new"][..], CLAUDE, &["/usr/bin/vim", "x"]] {
        let mut story = Story::agent_with_server(Settings::default());
        story.exec(30, 20, argv, WIRE);
        let told = story.told();
        assert!(told.contains(&"server_exited".to_owned()), "{argv:?}: {told:?}");
        story.end(20);
        story.pass_secs(1000);
        assert_eq!(story.sent(), []);
        assert_eq!(story.engine.counts()[1..], [0, 0], "no orphan without processes");
    }
    // The twin: a shell that becomes the program it was to launch.
    let mut story = Story::new(Settings::default());
    story.exec(20, 10, CLAUDE, TERMINAL);
    story.fork(20, 30);
    story.exec(30, 20, &["/bin/sh", "/srv/node_modules/.bin/mcp-server-filesystem"], WIRE);
    story.exec(30, 20, &["node", "/srv/dist/index.js"], WIRE);
    let mut story = judged(story);
    ended(&mut story, 30);
}

// ---- 3: its owner is gone -----------------------------------------------------------------------------------------

/// Agent 20 has a server, 30, and a forked copy of itself, 21.
pub(super) fn with_copy() -> Story {
    let mut story = Story::agent_with_server(Settings::default());
    story.fork(20, 21);
    story
}

pub(super) fn idle(sid: u32) -> Copy {
    let work = Some(Work { process: id(21), cpu_ns: 1, ..Work::default() });
    Copy { process: id(21), sid, work, ..Copy::default() }
}

#[test]
fn a_copy_in_another_session_goes_on_as_the_agent_though_its_setsid_was_not_reported() {
    for (sid, lives) in [(21, true), (0, false)] {
        let mut story = with_copy();
        story.copies = vec![idle(sid)];
        let mut story = judged(story);
        let told = story.told();
        assert_eq!(told.contains(&"agent_started".to_owned()), lives, "{told:?}");
        assert_eq!(story.sent().is_empty(), lives);
    }
}

#[test]
fn a_worker_with_a_server_of_its_own_goes_on_as_the_agent() {
    for has_server in [true, false] {
        let mut story = with_copy();
        story.copies = vec![idle(0)];
        if has_server {
            story.fork(21, 31);
            story.exec(31, 21, SERVER, OTHER);
        }
        let mut story = judged(story);
        story.pass_secs(100);
        assert_eq!(story.sent().is_empty(), has_server, "{:?}", story.told());
        // When the worker exits, too, no holder is left.
        story.end(21);
        story.pass_secs(20);
        assert_eq!(story.sent().contains(&(31, Signal::Term)), has_server);
    }
}
