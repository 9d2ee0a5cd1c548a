//! Tests of tools that go on with their work below an orphan: its end waits for them, for a bounded time.

use serde_json::json;

use super::{
    proof::{PLAIN, apart, with_child},
    story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id},
    story_scene::{ProcessFacts, SocketUse, WireState},
};
use crate::model::{BootTime, Doubt, FirstMessage, Input, Mode, Notice, Policy, Signal, Stdio, Work};

/// Agent 20, its server 30, and a tool of that, 31.
pub(super) fn with_tool() -> Story {
    let mut story = Story::agent_with_server(Policy::default());
    story.start(30, 31, &["/srv/migrate"], PLAIN);
    for pid in [30, 31] {
        story.work.insert(pid, Work { process: id(pid), cpu_ns: 7, ..Work::default() });
    }
    story.told();
    story
}

/// Lets time pass while this process works.
pub(super) fn work(story: &mut Story, pid: u32, seconds: u64) {
    for _ in 0..seconds {
        if let Some(work) = story.work.get_mut(&pid) {
            work.written_bytes += 1;
        }
        story.pass_secs(1);
    }
}

fn deadline(story: &Story) -> Option<BootTime> {
    story.notices.iter().find_map(|notice| match notice {
        Notice::OrphanUnproven { doubts, deadline, .. } if doubts == &[Doubt::Working] => *deadline,
        _ => None,
    })
}

#[test]
fn a_tool_at_work_comes_to_its_end() {
    let mut story = with_tool();
    story.end(20);
    work(&mut story, 31, 10);
    assert_eq!(deadline(&story), Some(story.now + Policy::default().work_grace));
    work(&mut story, 31, 100);
    assert_eq!(story.sent(), []);
    assert!(story.told().contains(&"orphan_unproven working".to_owned()));
    let report = story.engine.report();
    let steps = report.servers().flat_map(|(_, server)| &server.reached_by);
    let path: Vec<_> = steps.map(|step| (step.pid, step.by.as_str())).collect();
    assert_eq!(path, [(Some(31), "work")]);
    story.end(31);
    story.pass_secs(20);
    assert!(story.sent().contains(&(30, Signal::Term)));
}

#[test]
fn a_tool_that_works_for_ever_is_ended_at_its_deadline() {
    let mut story = with_tool();
    story.polite.insert(30);
    story.end(20);
    work(&mut story, 31, 305);
    assert_eq!(story.sent(), []);
    work(&mut story, 31, 20);
    let sent = story.sent();
    assert!(sent.contains(&(30, Signal::Term)) && sent.contains(&(31, Signal::Term)), "{sent:?}");
}

/// A job of a server that is named as a server is, too.
#[test]
fn a_tool_with_the_name_of_a_server_comes_to_its_end() {
    let mut story = Story::agent_with_server(Policy::default());
    story.start(30, 31, &["/srv/mcp-db-migrate"], [Stdio::Pipe(41), Stdio::Pipe(42), Stdio::Null]);
    for pid in [30, 31] {
        story.work.insert(pid, Work { process: id(pid), cpu_ns: 7, ..Work::default() });
    }
    story.end(20);
    work(&mut story, 31, 100);
    assert_eq!(story.sent(), []);
    story.end(31);
    story.pass_secs(20);
    assert!(story.sent().contains(&(30, Signal::Term)));
}

/// One that does nothing is a server behind another one, and waited for by nobody.
#[test]
fn what_is_behind_a_server_and_does_nothing_ends_with_it() {
    let mut story = Story::agent_with_server(Policy::default());
    story.start(30, 31, &["/srv/mcp-db-migrate"], [Stdio::Pipe(41), Stdio::Pipe(42), Stdio::Null]);
    for pid in [30, 31] {
        story.work.insert(pid, Work { process: id(pid), cpu_ns: 7, ..Work::default() });
    }
    story.end(20);
    story.pass_secs(20);
    assert!(story.sent().contains(&(30, Signal::Term)), "{:?}", story.told());
}

/// While nothing was to be ended, nothing waited for its tools.
#[test]
fn after_a_pause_the_tool_of_then_has_all_its_time() {
    let observing = Policy { mode: Mode::Observe, ..Policy::default() };
    let mut story = with_tool();
    story.hand_in(Input::Configured { policy: observing });
    story.end(20);
    work(&mut story, 31, 400);
    story.hand_in(Input::Configured { policy: Policy::default() });
    work(&mut story, 31, 100);
    assert_eq!(story.sent(), []);
}

/// A server of another dead agent, 40, on whose wire the server at work has a hand, may be asked for something until that is done.
#[test]
fn what_a_server_at_work_uses_stays_as_long() {
    let mut story = with_tool();
    story.exec(21, 10, CLAUDE, TERMINAL);
    story.start(21, 40, SERVER, [Stdio::Pipe(41), Stdio::Pipe(42), Stdio::Null]);
    story.work.insert(40, Work { process: id(40), ..Work::default() });
    story.facts.stdin = WireState::held_by(&[30]);
    story.end(20);
    work(&mut story, 31, 15);
    story.end(21);
    work(&mut story, 31, 60);
    assert_eq!(story.sent(), []);
    story.end(31);
    story.pass_secs(100);
    let sent = story.sent();
    assert!([30, 40].iter().all(|pid| sent.contains(&(*pid, Signal::Term))), "{sent:?}");
}

#[test]
fn what_does_nothing_is_not_waited_for_nor_is_the_server_itself() {
    for pid in [0, 30] {
        let mut story = with_tool();
        story.end(20);
        work(&mut story, pid, 11);
        assert!(story.sent().contains(&(30, Signal::Term)), "{pid}: {:?}", story.told());
    }
}

#[test]
fn a_tool_that_cannot_be_read_may_be_at_work() {
    let mut story = with_tool();
    story.work.remove(&31);
    story.end(20);
    story.pass_secs(300);
    assert_eq!(story.sent(), []);
    story.pass_secs(20);
    assert!(story.sent().contains(&(30, Signal::Term)));
}

/// Agent 20, its server 30, and what that started on its own wires, 31, and by a shell that has ended, 32. Then the server
/// ended.
fn left_on_the_wires(server: &[&str], sid: u32, listens: bool) -> Story {
    let mut story = Story::new(Policy::default());
    story.exec(20, 10, CLAUDE, TERMINAL);
    story.start(20, 30, server, WIRE);
    story.start(30, 31, &["/srv/migrate"], WIRE);
    story.start(30, 33, &["/bin/sh", "-c", "/srv/index &"], WIRE);
    story.start(33, 32, &["/srv/index"], WIRE);
    story.end(33);
    for pid in [31, 32] {
        let sockets = SocketUse { listens, ..SocketUse::default() };
        story.apart.insert(pid, ProcessFacts { sockets, ..apart(sid, WIRE) });
        story.work.insert(pid, Work { process: id(pid), cpu_ns: 7, ..Work::default() });
    }
    story.end(20);
    story.end(30);
    story
}

/// `nohup build > log; deploy`. What was let go is no part of a server that has ended by itself; the shell still waits for it, and
/// may pass SIGTERM on.
#[test]
fn who_waits_for_what_was_let_go_has_time_when_the_server_has_ended_too() {
    let log = [Stdio::Null, Stdio::File, Stdio::File];
    for catches_term in [true, false] {
        let mut story = Story::new(Policy::default());
        story.exec(20, 10, CLAUDE, TERMINAL);
        story.start(20, 30, SERVER, WIRE);
        story.start(30, 31, &["/bin/bash", "-c", "nohup build > log; deploy"], WIRE);
        story.start(31, 32, &["/srv/build"], log);
        let shell = ProcessFacts { awaits_child: true, catches_term, ..apart(0, WIRE) };
        let job = ProcessFacts { ignores_hangup: true, parent: 31, ..apart(0, log) };
        story.apart.extend([(31, shell), (32, job)]);
        for pid in [31, 32] {
            story.work.insert(pid, Work { process: id(pid), cpu_ns: 7, ..Work::default() });
        }
        story.end(20);
        story.end(30);
        story.pass_secs(200);
        assert_eq!(story.sent(), [], "{:?}", story.told());
        story.pass_secs(200);
        let sent = story.sent();
        assert_eq!(sent.first(), Some(&(31, Signal::Kill)), "{:?}", story.told());
        assert!(!sent.iter().any(|(pid, _)| *pid == 32));
    }
}

/// A script that is a server does its work itself. What a launcher leaves on the wires is the server.
#[test]
fn what_a_server_ran_on_its_wires_is_a_tool_when_the_server_has_ended() {
    for (server, is_tool) in [(SERVER, true), (&["npx", "-y", "@playwright/mcp"][..], false)] {
        for worker in [31, 32] {
            let mut story = left_on_the_wires(server, 0, false);
            work(&mut story, worker, 11);
            let mut sent = story.sent();
            assert_eq!(sent.is_empty(), is_tool, "{server:?} {worker}: {sent:?}");
            // One that rests is ended.
            story.pass_secs(20);
            sent.extend(story.sent());
            assert!(
                sent.contains(&(31, Signal::Term)) && sent.contains(&(32, Signal::Term)),
                "{server:?} {worker} {sent:?} {:?}",
                story.told()
            );
        }
    }
}

#[test]
fn what_a_server_ran_on_its_wires_and_serves_others_or_left_its_session_is_let_go() {
    for (sid, listens) in [(0, true), (31, false)] {
        let mut story = left_on_the_wires(SERVER, sid, listens);
        story.pass_secs(400);
        assert_eq!((story.sent(), story.engine.counts()[1]), (vec![], 0), "{sid} {listens}");
    }
}

#[test]
fn a_browser_is_no_tool() {
    let mut story = with_child(PLAIN);
    for pid in [30, 31] {
        story.work.insert(pid, Work { process: id(pid), cpu_ns: 7, ..Work::default() });
    }
    story.end(20);
    work(&mut story, 31, 11);
    assert!(story.sent().contains(&(30, Signal::Term)), "{:?}", story.told());
}

/// Many a runtime has a thread for each child that waits for its end, or is told of it. A step of a server's work may have a session
/// of its own (`start_new_session=True`, `detached: true`), which its server waits for.
#[test]
fn a_job_with_a_log_whose_end_may_be_waited_for_is_let_go_and_its_server_has_time() {
    for (reaps, hears_of_ends, busy, awaited, session, has_time) in [
        (true, false, false, None, 10, true),
        (false, true, false, None, 10, true),
        (false, true, false, None, 31, true),
        // It looks from time to time.
        (false, false, true, None, 10, true),
        (false, false, true, None, 31, true),
        (false, false, false, Some(31), 31, true),
        (false, false, false, Some(32), 31, false),
        (false, false, false, None, 10, false),
    ] {
        let mut story = with_tool();
        let awaits_child = awaited.is_some();
        let server = ProcessFacts { awaits_child, busy, awaited, reaps, hears_of_ends, ..apart(10, WIRE) };
        story.apart.extend([(30, server), (31, apart(session, PLAIN))]);
        story.end(20);
        work(&mut story, 31, 300);
        let mut sent = story.sent();
        assert_eq!(sent.is_empty(), has_time, "{reaps} {hears_of_ends} {busy} {awaited:?} {session}");
        work(&mut story, 31, 20);
        sent.extend(story.sent());
        assert_eq!(sent.first(), Some(&(30, Signal::Term)));
        assert!(!sent.iter().any(|(pid, _)| *pid == 31));
    }
}

/// `npm run build > log` works below a shell, `ssh HOST make > log` waits for another host, also if it listens for others to share
/// that (`ControlMaster`). For a service, which waits for callers, or has some, nobody waits.
#[test]
fn a_step_goes_on_by_what_is_below_it_or_when_its_wait_is_over() {
    for (below, busy, listens, asks, clients, has_time) in [
        (true, false, false, false, false, true),
        (false, true, false, false, false, true),
        (false, false, true, true, false, true),
        (false, true, true, false, true, false),
        (false, true, true, false, false, false),
        (false, false, false, false, false, false),
    ] {
        let mut story = with_tool();
        story.start(31, 32, &["/srv/step"], PLAIN);
        story.work.insert(32, Work { process: id(32), cpu_ns: 7, ..Work::default() });
        let server = ProcessFacts { hears_of_ends: true, ..apart(10, WIRE) };
        let sockets = SocketUse { listens, clients, asks, ..SocketUse::default() };
        let step = ProcessFacts { sockets, busy, ..apart(10, PLAIN) };
        story.apart.extend([(30, server), (31, step), (32, apart(10, PLAIN))]);
        story.end(20);
        work(&mut story, if below { 32 } else { 0 }, 100);
        assert_eq!(story.sent().is_empty(), has_time, "{below} {busy} {listens} {asks} {clients}");
    }
}

/// The shell of a terminal that a server opened: nobody is left to type.
#[test]
fn a_shell_that_waits_for_a_command_is_not_waited_for() {
    for (argv, has_time) in [(&["bash", "--norc"], false), (&["bash", "/srv/deploy"], true)] {
        let mut story = Story::agent_with_server(Policy::default());
        story.start(30, 31, argv, PLAIN);
        for pid in [30, 31] {
            story.work.insert(pid, Work { process: id(pid), cpu_ns: 7, ..Work::default() });
        }
        let server = ProcessFacts { hears_of_ends: true, ..apart(10, WIRE) };
        story.apart.extend([(30, server), (31, ProcessFacts { argv, busy: true, ..apart(31, PLAIN) })]);
        story.end(20);
        story.pass_secs(100);
        assert_eq!(story.sent().is_empty(), has_time, "{argv:?}");
    }
}

/// Who looks from time to time whether a step has ended has a moment to see it, and begins the next one.
#[test]
fn who_looks_for_the_end_of_a_step_goes_on_to_the_next() {
    let mut story = with_tool();
    let server = ProcessFacts { busy: true, ..apart(10, WIRE) };
    story.apart.extend([(30, server), (31, apart(10, PLAIN)), (32, apart(10, PLAIN))]);
    story.end(20);
    work(&mut story, 31, 30);
    story.end(31);
    story.apart.remove(&31);
    story.pass(std::time::Duration::from_millis(100));
    story.start(30, 32, &["/srv/migrate"], PLAIN);
    work(&mut story, 32, 30);
    assert_eq!(story.sent(), [], "{:?}", story.told());
    story.end(32);
    story.apart.remove(&32);
    story.pass_secs(20);
    assert_eq!(story.sent().first(), Some(&(30, Signal::Term)), "{:?}", story.told());
}

/// It has pipes of its own, as node gives them to what it runs, and the package is certainly called a server.
#[test]
fn a_tool_of_the_servers_own_package_has_time_and_makes_no_gateway() {
    for (package, has_time) in [("foo-mcp", true), ("bar-mcp", false)] {
        let mut story = Story::with_agent();
        story.start(20, 30, &["node", "/srv/node_modules/foo-mcp/index.js"], WIRE);
        let script = format!("/srv/node_modules/{package}/ingest.js");
        let argv: &'static [&'static str] = vec!["node", script.leak()].leak();
        let pipes = [Stdio::Pipe(3), Stdio::Pipe(4), Stdio::Pipe(5)];
        story.start(30, 31, argv, pipes);
        story.sockets = SocketUse { listens: true, ..SocketUse::default() };
        story.apart.insert(31, ProcessFacts { argv, ..apart(10, pipes) });
        for pid in [30, 31] {
            story.work.insert(pid, Work { process: id(pid), cpu_ns: 7, ..Work::default() });
        }
        story.end(20);
        work(&mut story, 31, 11);
        assert_eq!(story.sent(), [], "{package}");
        let unproven = story.event("orphan_unproven");
        let doubt = if has_time { "working" } else { "clients" };
        assert_eq!(unproven["doubts"], json!([doubt]), "{package}");
    }
}

/// `ELECTRON_RUN_AS_NODE`. What a server itself is called says nothing about its tools.
#[test]
fn electron_runs_servers_and_tools_as_node_does() {
    const ELECTRON: &[&str] = &["/usr/lib/electron/electron", "/srv/migrate.js"];
    for (server, tool, has_time) in [
        (&["/usr/lib/electron/electron", "/srv/server.js"][..], &["/srv/migrate"][..], true),
        (&["/opt/zen"], &["/srv/migrate"], true),
        (SERVER, ELECTRON, true),
        (SERVER, &["/usr/bin/chromium"], false),
    ] {
        let mut story = Story::with_agent();
        story.messages.insert(30, FirstMessage::Mcp { client: None });
        story.start(20, 30, server, WIRE);
        let pipes = [Stdio::Pipe(3), Stdio::Pipe(4), Stdio::Pipe(5)];
        story.start(30, 31, tool, pipes);
        for pid in [30, 31] {
            story.work.insert(pid, Work { process: id(pid), cpu_ns: 7, ..Work::default() });
        }
        let joined = Some((pipes[1], id(30)));
        let argv = if has_time { ELECTRON } else { &["/usr/bin/chromium"] };
        story.apart.insert(31, ProcessFacts { read_by: joined, argv, ..apart(10, pipes) });
        story.end(20);
        work(&mut story, 31, 100);
        let sent = story.sent();
        assert_eq!(sent.is_empty(), has_time, "{server:?} {tool:?} {sent:?} {:?}", story.told());
    }
}
