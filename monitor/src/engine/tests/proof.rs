//! The proof standard, each condition in both directions: something in use that stays, and its twin that is ended.

use super::story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id, image};
use crate::{
    engine::Settings,
    model::{
        Activity, CopyFacts, ExitStatus, Holder, Input, Notice, ProcessEvent, ProcessFacts, ReapRequest, Signal,
        SocketUse, Stdio, WireState,
    },
};

const PLAIN: [Stdio; 3] = [Stdio::Null, Stdio::File, Stdio::File];
const OTHER: [Stdio; 3] = [Stdio::Pipe(3), Stdio::Pipe(4), Stdio::Null];
const SHELL: &[&str] = &["bash", "-c", "x | y > z"];
const HOST: &[&str] = &["python3", "/srv/app/host.py"];

fn held_by(pid: u32, argv: &[&str]) -> WireState {
    let holder = Holder { process: id(pid), image: image(argv), ..Holder::default() };
    WireState::Held { holders: vec![holder], unseen: false }
}

/// The owner, 20, ends, and the grace passes.
fn judged(mut story: Story) -> Story {
    story.told();
    story.end(20);
    story.pass_secs(10);
    story
}

/// Nothing was ended, and these doubts were told.
fn unproven(story: &mut Story, doubts: &str) {
    let told = story.told();
    let expected = format!("orphan_unproven {doubts}");
    assert!(told.contains(&expected), "{expected}: {told:?}");
    assert!(!told.iter().any(|line| line.starts_with("orphan_detected")), "{told:?}");
    story.pass_secs(2000);
    assert_eq!((story.sent(), story.told()), (vec![], vec![]), "told once, and nothing is done");
}

fn ended(story: &mut Story, pid: u32) {
    assert!(story.sent().contains(&(pid, Signal::Term)), "{:?}", story.told());
}

/// A process of a server that a look finds in a session of its own.
fn apart(sid: u32, stdio: [Stdio; 3]) -> ProcessFacts {
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
        // The shell may have gone by then, too: that it made the wire is known.
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
        // Above it lives another agent, a stranger to the server.
        story.exec(10, 5, &["codex"], TERMINAL);
        story.fork(10, 20);
        story.exec(20, 10, argv, PLAIN);
        story.fork(20, 30);
        story.end(20);
        story.exec(30, 20, SERVER, WIRE);
        story.pass_secs(10);
        ended(&mut story, 30);
        // The twin: the stranger's own server stays.
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
fn with_child(stdio: [Stdio; 3]) -> Story {
    let mut story = Story::agent_with_server(Settings::default());
    story.fork(30, 31);
    story.exec(31, 30, &["/usr/bin/chromium", "about:blank"], stdio);
    story
}

#[test]
fn what_left_into_a_session_of_its_own_without_a_tie_is_let_go() {
    // By the server that is ended, and by one that ends by itself in its grace.
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
    // Joined with the server now; or with what made its stream, which has ended by itself.
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
    // The twin: a shell that becomes what it was to launch.
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
fn with_copy() -> Story {
    let mut story = Story::agent_with_server(Settings::default());
    story.fork(20, 21);
    story
}

fn idle(sid: u32) -> CopyFacts {
    let activity = Some(Activity { cpu_ns: 1, io_bytes: 1 });
    CopyFacts { process: id(21), sid, connected: false, activity }
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
        // When the worker ends, too, nobody is left.
        story.end(21);
        story.pass_secs(20);
        assert_eq!(story.sent().contains(&(31, Signal::Term)), has_server);
    }
}

// ---- 4: nobody can talk to it, nobody listens ---------------------------------------------------------------------

#[test]
fn an_outside_holder_of_either_end_is_a_doubt_whatever_its_age() {
    for (older, pid) in [(true, 15), (false, 99)] {
        let mut story = Story::agent_with_server(Settings::default());
        story.facts.stdout = held_by(pid, &["cat"]);
        unproven(&mut judged(story), "stdout_read");
        let mut story = Story::agent_with_server(Settings::default());
        story.facts.stdin = held_by(pid, &["cat"]);
        let mut story = judged(story);
        if older {
            // It was there before the server: its host.
            assert!(story.told().contains(&"orphan_cleared owner_found".to_owned()));
            assert_eq!(story.sent(), []);
        } else {
            unproven(&mut story, "wire_held");
        }
    }
    let mut story = judged(Story::agent_with_server(Settings::default()));
    ended(&mut story, 30);
}

#[test]
fn a_holder_that_nobody_sees_is_a_holder() {
    let mut story = Story::agent_with_server(Settings::default());
    story.facts.stdin = WireState::Held { holders: Vec::new(), unseen: true };
    unproven(&mut judged(story), "wire_held");
    // The server's own process is none.
    let mut story = Story::agent_with_server(Settings::default());
    story.facts.stdin = held_by(30, SERVER);
    ended(&mut judged(story), 30);
}

#[test]
fn an_idle_copy_of_the_killed_owner_holds_the_wire_by_accident() {
    let active = |cpu_ns| Some(Activity { cpu_ns, io_bytes: 1 });
    for (change, in_use) in [
        (idle(0), false),
        (CopyFacts { activity: active(2), ..idle(0) }, true),
        (CopyFacts { activity: None, ..idle(0) }, true),
        (CopyFacts { connected: true, ..idle(0) }, true),
        (CopyFacts { sid: 21, ..idle(0) }, true),
    ] {
        let mut story = with_copy();
        story.copies = vec![idle(0)];
        story.facts.stdin = held_by(21, CLAUDE);
        story.told();
        story.end(20);
        story.copies = vec![change];
        story.pass_secs(10);
        if in_use {
            assert_eq!(story.sent(), [], "{change:?}");
        } else {
            ended(&mut story, 30);
            assert!(!story.sent().iter().any(|(pid, _)| *pid == 21), "the copy is nobody's server");
        }
    }
}

#[test]
fn a_copy_that_has_a_child_or_of_which_nothing_is_known_is_no_accident() {
    let mut story = with_copy();
    story.copies = vec![idle(0)];
    story.fork(21, 22);
    story.exec(22, 21, &["sleep"], PLAIN);
    story.facts.stdin = held_by(21, CLAUDE);
    assert_eq!(judged(story).sent(), []);
    let mut story = with_copy();
    story.facts.stdin = held_by(21, CLAUDE);
    assert_eq!(judged(story).sent(), []);
}

#[test]
fn an_owner_that_left_on_its_own_accord_left_its_work_to_its_copy() {
    let mut story = with_copy();
    story.copies = vec![idle(0)];
    story.told();
    let exit = ProcessEvent::Exit { at: story.now, process: id(20), status: ExitStatus::Code(0) };
    story.hand_in(Input::Process { event: exit });
    story.pass_secs(100);
    assert_eq!(story.told(), ["agent_exited", "agent_started"]);
    assert_eq!(story.sent(), []);
}

#[test]
fn another_server_of_the_same_dead_owner_inherited_the_wire_by_accident() {
    for of_the_same in [true, false] {
        let mut story = Story::agent_with_server(Settings::default());
        let owner = if of_the_same { 20 } else { 12 };
        if !of_the_same {
            story.exec(12, 10, CLAUDE, TERMINAL);
        }
        story.fork(owner, 31);
        story.exec(31, owner, SERVER, OTHER);
        story.facts.stdin = held_by(31, SERVER);
        let story = judged(story);
        assert_eq!(story.signals.iter().any(|(pid, ..)| *pid == 30), of_the_same);
    }
}

#[test]
fn what_the_server_let_go_is_outside() {
    let mut story = with_child(PLAIN);
    story.apart.insert(31, apart(31, PLAIN));
    story.facts.stdin = held_by(31, &["chromium"]);
    assert_eq!(judged(story).sent(), []);
}

#[test]
fn a_dying_owner_is_no_new_owner() {
    let settings = Settings { grace: std::time::Duration::ZERO, ..Settings::default() };
    let mut story = Story::agent_with_server(settings);
    story.facts.stdin = held_by(20, CLAUDE);
    story.end(20);
    story.pass_secs(0);
    assert_eq!(story.sent(), []);
    // Its files are closed a moment later.
    story.facts.stdin = WireState::HungUp;
    story.pass_secs(1);
    ended(&mut story, 30);
}

// ---- 5: nobody else uses it ---------------------------------------------------------------------------------------

#[test]
fn a_client_is_a_doubt_until_it_has_gone() {
    let mut story = Story::agent_with_server(Settings::default());
    story.sockets = SocketUse { listens: true, clients: true, inside: Vec::new() };
    let mut story = judged(story);
    unproven(&mut story, "clients");
    story.sockets.clients = false;
    story.pass_secs(600);
    ended(&mut story, 30);
}

#[test]
fn a_client_of_the_server_itself_is_none_and_one_that_was_let_go_is_one() {
    for (stdio, sid, in_use) in [(PLAIN, 31, true), (PLAIN, 0, false)] {
        let mut story = with_child(PLAIN);
        story.apart.insert(31, apart(sid, stdio));
        story.sockets.inside = vec![id(31)];
        assert_eq!(judged(story).sent().is_empty(), in_use);
    }
}

#[test]
fn a_traced_server_is_in_use() {
    let mut story = Story::agent_with_server(Settings::default());
    story.apart.insert(30, ProcessFacts { traced: true, ..ProcessFacts::default() });
    let mut story = judged(story);
    unproven(&mut story, "traced");
    story.apart.clear();
    story.pass_secs(600);
    ended(&mut story, 30);
}

// ---- unproven -----------------------------------------------------------------------------------------------------

#[test]
fn an_unproven_server_is_no_orphan_and_ends_at_a_persons_word() {
    let mut story = Story::agent_with_server(Settings::default());
    story.facts.stdout = held_by(99, &["cat"]);
    story.polite.insert(30);
    let mut story = judged(story);
    assert_eq!(story.engine.counts(), [0, 1, 0]);
    assert_eq!(story.engine.report().orphans().count(), 0);
    assert_eq!(story.engine.plan(&ReapRequest::default()), []);
    let request = ReapRequest { pid: Some(30), ..ReapRequest::default() };
    assert_eq!(story.engine.plan(&request)[0].state, "unproven");
    story.hand_in(Input::Reap { request });
    story.pass_secs(1);
    ended(&mut story, 30);
}

#[test]
fn a_change_of_doubts_is_told_once() {
    let mut story = Story::agent_with_server(Settings::default());
    story.facts.stdin = held_by(99, &["cat"]);
    let mut story = judged(story);
    story.told();
    story.facts.stdout = held_by(99, &["cat"]);
    story.pass_secs(600);
    assert_eq!(story.told(), ["orphan_unproven wire_held stdout_read"]);
    // Whoever held them ends; so does what was left, by itself.
    story.end(30);
    assert_eq!(story.told(), ["orphan_cleared exited"]);
}
