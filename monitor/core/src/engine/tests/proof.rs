//! Tests of the proof standard, each in both directions: a server in use stays, and its twin is ended. What the judgement table
//! plays with real processes is not repeated here.

use super::story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id};
use super::story_scene::{Copy, ProcessFacts, SocketUse, WireState};
use crate::model::{Policy, Signal, Stdio, Work};

pub(super) const PLAIN: [Stdio; 3] = [Stdio::Null, Stdio::File, Stdio::File];
/// What does not tell whether a process was let go.
const IDLE: [Stdio; 3] = [Stdio::Null, Stdio::Pipe(9), Stdio::Null];
pub(super) const OTHER: [Stdio; 3] = [Stdio::Pipe(3), Stdio::Pipe(4), Stdio::Null];
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

/// Asserts that nothing was ended and that these doubts were reported.
pub(super) fn unproven(story: &mut Story, doubts: &str) {
    let told = story.told();
    let expected = format!("orphan_unproven {doubts}");
    assert!(told.contains(&expected), "{expected}: {told:?}");
    assert!(!told.iter().any(|line| line.starts_with("orphan_detected")), "{told:?}");
    story.pass_secs(2000);
    assert_eq!((story.sent(), story.told()), (vec![], vec![]), "told once, and nothing is done");
}

/// A process of a server that an inspection finds in a session of its own.
pub(super) fn apart(sid: u32, stdio: [Stdio; 3]) -> ProcessFacts {
    ProcessFacts { sid, stdio, ..ProcessFacts::default() }
}

// ---- 1: a server, with both wires that its owner made ------------------------------------------------------------

#[test]
fn an_owner_that_dies_on_its_servers_way_to_the_exec_is_the_owner() {
    for argv in [CLAUDE, HOST] {
        let mut story = Story::new(Policy::default());
        // Another agent, unrelated to the server, is alive above it.
        story.exec(10, 5, &["codex"], TERMINAL);
        story.start(10, 20, argv, PLAIN);
        story.fork(20, 30);
        story.end(20);
        story.exec(30, 20, SERVER, WIRE);
        story.pass_secs(10);
        ended(&mut story, 30);
        // The twin: the unrelated agent's own server stays.
        story.start(10, 31, SERVER, OTHER);
        story.pass_secs(100);
        assert_eq!(story.sent().iter().filter(|(pid, _)| *pid == 31).count(), 0);
    }
}

// ---- 2: this server -----------------------------------------------------------------------------------------------

/// Server 30 has started 31, which runs another program on these streams.
pub(super) fn with_child(stdio: [Stdio; 3]) -> Story {
    let mut story = Story::agent_with_server(Policy::default());
    story.start(30, 31, &["/usr/bin/chromium", "about:blank"], stdio);
    story
}

/// Whether this process goes with its server, which orphand ends, or which ends `by_itself` during its grace.
fn goes_along(story: &mut Story, pid: u32, by_itself: bool) -> bool {
    story.polite.insert(30);
    story.end(20);
    if by_itself {
        story.end(30);
    }
    story.pass_secs(100);
    story.sent().contains(&(pid, Signal::Term))
}

#[test]
fn what_was_let_go_is_told() {
    let mut story = with_child(PLAIN);
    story.apart.insert(31, apart(31, PLAIN));
    assert!(!goes_along(&mut story, 31, false));
    let let_go = &story.event("orphan_reaped")["let_go"];
    assert_eq!((&let_go[0]["pid"], let_go.as_array().unwrap().len()), (&31.into(), 1));
}

/// The twin's child goes with it.
#[test]
fn memory_and_time_of_what_was_let_go_are_not_freed() {
    for (sid, stdio, freed) in [(31, PLAIN, 7), (10, IDLE, 12)] {
        let mut story = with_child(stdio);
        story.polite.extend([30, 31]);
        let using = |rss_bytes, facts| ProcessFacts { rss_bytes, pss_bytes: Some(rss_bytes), ..facts };
        story.apart.extend([(30, using(7, apart(10, WIRE))), (31, using(5, apart(sid, stdio)))]);
        story.end(20);
        story.pass_secs(100);
        let told = story.event("orphan_detected")["rss_bytes"].clone();
        let ended = story.event("orphan_reaped");
        let all = [told, ended["freed_bytes"].clone(), ended["freed_pss_bytes"].clone()];
        assert_eq!(all, [freed; 3].map(serde_json::Value::from), "{sid}");
    }
}

/// What is measured of a server that stays is what is judged of it.
#[test]
fn what_a_server_in_use_let_go_does_not_count_as_its_own() {
    for (sid, stdio, measured) in [(31, PLAIN, 7), (10, IDLE, 14)] {
        let mut story = with_child(stdio);
        story.apart.extend([(30, apart(10, WIRE)), (31, apart(sid, stdio))]);
        story.facts.stdin = WireState::held_as(&[40], &["relay"]);
        let mut story = judged(story);
        (story.rss_bytes, story.cpu_ms) = (7, 7);
        story.engine.measure();
        story.fork(1, 99);
        let server = &story.engine.report().agents[0].servers[0].server;
        assert_eq!((server.rss_bytes, server.cpu_ms), (Some(measured), Some(measured)), "{sid}");
    }
}

#[test]
fn a_browser_tied_to_its_server_goes_with_it() {
    let socket = [Stdio::Null, Stdio::Null, Stdio::Socket(9)];
    // The process is joined with the server now, or with the maker of its stream, which has exited by itself.
    for by_itself in [false, true] {
        let mut story = with_child(socket);
        let joined = if by_itself { Vec::new() } else { vec![id(30)] };
        story.apart.insert(31, ProcessFacts { joined, argv: &["chromium"], ..apart(31, socket) });
        assert!(goes_along(&mut story, 31, by_itself));
    }
    // A job in a session of its own outlives a server that ends by itself.
    let mut story = with_child(socket);
    story.apart.insert(31, apart(31, socket));
    assert!(!goes_along(&mut story, 31, true));
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
        assert!(!goes_along(&mut story, 32, by_itself), "{by_itself} {told}");
        assert_eq!(story.engine.counts()[1], 0);
    }
}

#[test]
fn the_session_ties_only_while_the_server_proper_lives() {
    for by_itself in [true, false] {
        assert_eq!(goes_along(&mut with_child(PLAIN), 31, by_itself), !by_itself);
    }
}

/// Below `nohup agent &` all inherit it, and a server that has ended tells nothing any more. The twins: `nohup job` of a server that does not
/// ignore SIGHUP, or took it back (node); and what ignores it by itself.
#[test]
fn what_ignores_sighup_as_the_server_that_has_ended_did_is_no_job() {
    let (nohup, other) = (&["nohup", "job"][..], &["env", "job"][..]);
    for (server, through, job, tied) in [
        (true, None, true, true),
        (true, Some((other, true)), true, true),
        (false, None, true, false),
        (true, Some((other, false)), true, false),
        (true, Some((nohup, true)), true, false),
        (false, None, false, false),
    ] {
        let mut story = Story::with_agent();
        story.below_nohup.extend(server.then_some(30));
        story.start(20, 30, SERVER, WIRE);
        story.fork(30, 31);
        if let Some((through, ignores)) = through {
            story.below_nohup.extend(ignores.then_some(31));
            story.exec(31, 30, through, WIRE);
        }
        story.below_nohup.extend(job.then_some(31));
        story.exec(31, 30, &["job"], WIRE);
        story.apart.insert(31, ProcessFacts { ignores_hangup: true, ..apart(0, WIRE) });
        story.end(30);
        story.end(20);
        story.pass_secs(400);
        let sent = story.sent().iter().any(|(pid, _)| *pid == 31);
        assert_eq!(sent, tied, "{server} {through:?} {job} {:?}", story.told());
    }
}

#[test]
fn a_job_that_shall_outlive_its_session_is_let_go() {
    // It ignores SIGHUP; the twin's server does, too, because its agent was started so.
    for server_too in [false, true] {
        let stdio = [Stdio::Null, Stdio::Pipe(9), Stdio::Null];
        let mut story = with_child(stdio);
        let ignores = |ignores_hangup, stdio| ProcessFacts { ignores_hangup, ..apart(10, stdio) };
        story.apart.extend([(31, ignores(true, stdio)), (30, ignores(server_too, WIRE))]);
        assert_eq!(goes_along(&mut story, 31, false), server_too);
    }
}

#[test]
fn a_job_with_a_log_or_no_output_is_let_go_unless_its_server_waits_for_it() {
    for (output, awaits_child, awaited, tied) in [
        (Stdio::File, false, None, false),
        (Stdio::File, true, None, true),
        (Stdio::File, true, Some(31), true),
        (Stdio::File, true, Some(32), false),
        (Stdio::File, true, Some(-7), true),
        (Stdio::File, true, Some(-32), false),
        (Stdio::Null, false, None, false),
        (Stdio::Null, true, None, true),
        (Stdio::Pipe(9), false, None, true),
    ] {
        let stdio = [Stdio::Null, output, output];
        let mut story = with_child(stdio);
        let server = ProcessFacts { awaits_child, awaited, ..apart(10, WIRE) };
        story.apart.extend([(31, ProcessFacts { group: 7, ..apart(10, stdio) }), (30, server)]);
        assert_eq!(goes_along(&mut story, 31, false), tied, "{output:?} {awaits_child} {awaited:?}");
    }
}

/// A server that has moved its descriptor 1 to a file gives that to the copies of itself that work for it.
#[test]
fn a_copy_that_writes_to_the_file_of_its_creator_is_a_part_of_it() {
    let moved = [Stdio::Null, Stdio::File, Stdio::Null];
    for (output, tied) in [(Stdio::File, true), (Stdio::Null, false)] {
        let mut story = Story::agent_with_server(Policy::default());
        story.fork(30, 31);
        story.apart.extend([(30, apart(10, moved)), (31, apart(10, [Stdio::Null, output, Stdio::Null]))]);
        story.facts.own_ends = [true, true];
        assert_eq!(goes_along(&mut story, 31, false), tied, "{output:?}");
    }
}

// ---- 3 and 4: its owner is gone, and nobody can talk to it --------------------------------------------------------

/// Agent 20 has a server, 30, and a forked copy of itself, 21.
pub(super) fn with_copy() -> Story {
    let mut story = Story::agent_with_server(Policy::default());
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
fn an_idle_copy_of_the_killed_owner_holds_the_wire_by_accident() {
    let active = |cpu_ns| Some(Work { process: id(21), cpu_ns, ..Work::default() });
    for (then, has_child, in_use) in [
        (Some(idle(0)), false, false),
        (Some(idle(0)), true, true),
        (Some(Copy { work: active(2), ..idle(0) }), false, true),
        (Some(Copy { work: None, ..idle(0) }), false, true),
        (Some(Copy { connected: true, ..idle(0) }), false, true),
        (Some(Copy { sid: 21, ..idle(0) }), false, true),
        (None, false, true),
    ] {
        let mut story = with_copy();
        story.copies = then.iter().map(|_| idle(0)).collect();
        story.facts.stdin = WireState::held_as(&[21], CLAUDE);
        if has_child {
            story.start(21, 22, &["sleep"], PLAIN);
        }
        story.end(20);
        story.copies = then.into_iter().collect();
        story.pass_secs(10);
        let sent = story.sent();
        assert_eq!(sent.contains(&(30, Signal::Term)), !in_use, "{then:?} {has_child}");
        assert!(!sent.iter().any(|(pid, _)| *pid == 21), "the copy is nobody's server");
    }
}

#[test]
fn what_the_server_let_go_is_outside() {
    let mut story = with_child(PLAIN);
    story.apart.insert(31, apart(31, PLAIN));
    story.facts.stdin = WireState::held_as(&[31], &["chromium"]);
    assert_eq!(judged(story).sent(), []);
}

// ---- 5: nobody else uses it ---------------------------------------------------------------------------------------

#[test]
fn a_server_that_listens_because_it_was_told_to_serve_has_clients() {
    const TOLD: &[&str] = &["npx", "-y", "@playwright/mcp", "--port", "8931"];
    for (argv, listens, in_use) in [(TOLD, true, true), (TOLD, false, false), (SERVER, true, false)] {
        let mut story = Story::with_agent();
        story.start(20, 30, argv, WIRE);
        story.sockets = SocketUse { listens, ..SocketUse::default() };
        let mut story = judged(story);
        if in_use {
            unproven(&mut story, "clients");
        } else {
            ended(&mut story, 30);
        }
    }
}

#[test]
fn a_server_that_listens_and_has_started_a_server_is_a_gateway() {
    for (listens, in_use) in [(true, true), (false, false)] {
        let mut story = Story::with_agent();
        story.start(20, 30, &["node", "/srv/node_modules/.bin/mcp-proxy", "x"], WIRE);
        story.start(30, 31, SERVER, OTHER);
        story.sockets = SocketUse { listens, ..SocketUse::default() };
        let mut story = judged(story);
        if in_use {
            unproven(&mut story, "clients");
        } else {
            assert!(!story.sent().is_empty());
        }
    }
}

#[test]
fn a_client_of_the_server_itself_is_none_and_one_that_was_let_go_is_one() {
    for (sid, in_use) in [(31, true), (0, false)] {
        let mut story = with_child(PLAIN);
        story.apart.insert(31, apart(sid, PLAIN));
        story.sockets.inside = vec![id(31)];
        assert_eq!(judged(story).sent().is_empty(), in_use);
    }
}

#[test]
fn a_change_of_doubts_is_told_once() {
    let mut story = Story::agent_with_server(Policy::default());
    story.facts.stdin = WireState::held_as(&[99], &["cat"]);
    let mut story = judged(story);
    story.told();
    story.facts.stdout = WireState::held_as(&[99], &["cat"]);
    story.pass_secs(600);
    assert_eq!(story.told(), ["orphan_unproven wire_held stdout_read"]);
    // The process that held them exits. What was left exits by itself.
    story.end(30);
    assert_eq!(story.told(), ["orphan_cleared exited"]);
}
