//! Tests of what a server let go: it is no tool however it was started, and the end of the server does it no harm.

use super::{
    proof::{PLAIN, apart, ended, judged, unproven},
    story::{SERVER, Story, WIRE, id},
    story_scene::{ProcessFacts, SocketUse},
};
use crate::model::{ExitStatus, FirstMessage, Policy, Signal, Stdio, scene::Began};

pub(super) const JOB: &[&str] = &["/srv/job"];

pub(super) fn with_job(argv: &[&str], stdio: [Stdio; 3]) -> Story {
    let mut story = Story::agent_with_server(Policy::default());
    story.start(30, 31, argv, stdio);
    story
}

#[test]
fn jobs_in_a_pipeline_with_a_log_are_tied_only_together_with_a_reader() {
    for (sid, logger, tied) in [
        (10, [Stdio::Pipe(7), Stdio::File, Stdio::File], false),
        (31, [Stdio::Pipe(7), Stdio::File, Stdio::File], false),
        // Its output is the server's.
        (10, [Stdio::Pipe(7), Stdio::Pipe(2), Stdio::File], true),
    ] {
        let stdio = [Stdio::Null, Stdio::Pipe(7), Stdio::File];
        let mut story = with_job(JOB, stdio);
        story.start(30, 32, &["cat"], logger);
        let job = ProcessFacts { read_by: Some((Stdio::Pipe(7), id(32))), ..apart(sid, stdio) };
        story.apart.extend([(31, job), (32, apart(sid, logger))]);
        let mut story = judged(story);
        story.pass_secs(400);
        let sent = story.sent();
        assert!(sent.contains(&(30, Signal::Term)), "{sent:?}");
        assert_eq!(sent.iter().any(|(pid, _)| *pid != 30), tied, "{sid} {logger:?} {sent:?}");
    }
}

/// `spawn(job, {stdio: ["pipe", log, log]})`. The pipe leads to a process outside of the server then. The twins report elsewhere than to
/// a file, read the output of their server, or wait for their input.
#[test]
fn an_input_does_not_tie_a_job_with_a_log() {
    let (works, rests) = (true, false);
    for (sid, output, from, busy, tied) in [
        (31, Stdio::File, 7, works, false),
        (31, Stdio::File, 7, rests, false),
        (10, Stdio::File, 7, works, false),
        (10, Stdio::File, 7, rests, true),
        (31, Stdio::Pipe(9), 7, works, true),
        (10, Stdio::Pipe(9), 7, works, true),
        (10, Stdio::File, 2, works, true),
    ] {
        let stdio = [Stdio::Pipe(from), output, output];
        let mut story = with_job(JOB, stdio);
        let server = ProcessFacts { read_by: Some((Stdio::Pipe(from), id(31))), ..apart(10, WIRE) };
        story.apart.extend([(31, ProcessFacts { busy, ..apart(sid, stdio) }), (30, server)]);
        let mut story = judged(story);
        if tied {
            story.pass_secs(400);
            assert!(story.sent().contains(&(31, Signal::Term)), "{sid} {output:?}");
        } else {
            unproven(&mut story, "clients");
        }
    }
}

/// `spawn(job, {detached: true, stdio: ["pipe", "ignore", "ignore"]})`: it does not keep its server, which has time while both are at
/// work. The twins have an output, or something else that joins them with others.
#[test]
fn who_is_only_fed_by_a_server_does_not_keep_it() {
    for (sid, output, busy, calls, keeps) in [
        (31, Stdio::Null, false, false, false),
        (31, Stdio::Null, true, false, false),
        (10, Stdio::Null, true, false, false),
        (31, Stdio::File, false, false, true),
        (31, Stdio::Null, false, true, true),
    ] {
        let stdio = [Stdio::Pipe(7), output, output];
        let mut story = with_job(JOB, stdio);
        let server = ProcessFacts { read_by: Some((Stdio::Pipe(7), id(31))), ..apart(10, WIRE) };
        let calls = calls.then_some(Began::Near).into_iter().collect();
        story.apart.extend([(31, ProcessFacts { busy, calls, ..apart(sid, stdio) }), (30, server)]);
        let mut story = judged(story);
        if keeps {
            unproven(&mut story, "clients");
            continue;
        }
        assert_eq!(story.sent().is_empty(), busy, "{sid}");
        story.pass_secs(400);
        let told = story.told();
        assert!(!busy || told.iter().any(|told| told.contains("working")), "{told:?}");
        let sent = story.sent();
        assert!(sent.iter().all(|(pid, _)| *pid == 30), "{sid} {busy} {sent:?}");
    }
}

/// `Popen(job, stdin=DEVNULL, stdout=sys.stderr)`, below an agent in a terminal or in a unit. The twin hands its output on.
#[test]
fn a_job_that_writes_where_its_server_reports_is_no_tool() {
    for errors in [Stdio::Terminal, Stdio::Socket(7)] {
        for (output, tied) in [(errors, false), (Stdio::Pipe(2), true)] {
            let stdio = [Stdio::Null, output, errors];
            let mut story = with_job(JOB, stdio);
            let [input, to_agent, _] = WIRE;
            story.apart.extend([(30, apart(10, [input, to_agent, errors])), (31, apart(10, stdio))]);
            let mut story = judged(story);
            story.pass_secs(400);
            let sent = story.sent();
            assert!(sent.contains(&(30, Signal::Term)), "{sent:?}");
            assert_eq!(sent.contains(&(31, Signal::Term)), tied, "{output:?} {sent:?}");
        }
    }
}

/// `Popen(job, stdin=DEVNULL, stdout=..)`: a terminal, a device, nothing, or a collector of logs that the server dialled. The twin is a
/// connection on which the server was called (inetd).
#[test]
fn a_job_that_does_not_report_to_its_server_is_no_tool() {
    let dialled = |began| (Stdio::Socket(7), Some(began));
    for ((output, began), tied) in [
        ((Stdio::Terminal, None), false),
        ((Stdio::Other, None), false),
        ((Stdio::Closed, None), false),
        (dialled(Began::Near), false),
        (dialled(Began::Far), true),
    ] {
        let stdio = [Stdio::Null, output, output];
        let mut story = with_job(JOB, stdio);
        let calls = began.into_iter().collect();
        story.apart.extend([(30, apart(10, WIRE)), (31, ProcessFacts { calls, ..apart(10, stdio) })]);
        let mut story = judged(story);
        story.pass_secs(400);
        let sent = story.sent();
        assert_eq!(
            sent.contains(&(31, Signal::Term)),
            tied,
            "{output:?} {began:?} {sent:?} {:?}",
            story.told()
        );
    }
}

/// Version 2 of the mcp package has its descriptor 1 moved to standard error while it serves: here to a log.
#[test]
fn two_logs_are_not_known_to_be_one() {
    for (parent, tied) in [(30, false), (31, true), (31, false)] {
        let stdio = [Stdio::Null, Stdio::File, Stdio::File];
        let mut story = with_job(JOB, PLAIN);
        story.start(parent, 32, JOB, stdio);
        story.apart.extend([
            (30, ProcessFacts { awaits_child: tied, ..apart(10, [WIRE[0], Stdio::File, Stdio::File]) }),
            (31, ProcessFacts { awaits_child: tied, ..apart(10, stdio) }),
            (32, apart(10, stdio)),
        ]);
        let mut story = judged(story);
        story.pass_secs(400);
        let sent = story.sent();
        assert_eq!(sent.contains(&(32, Signal::Term)), tied, "{parent} {sent:?}");
    }
}

/// The resource tracker and the fork server of Python's multiprocessing, below a server of version 2 of the mcp package with a log.
/// The twins: what its server reads, too, was inherited by accident; another service is one; and what a shell started in the
/// background stays.
#[test]
fn who_alone_reads_what_its_server_writes_works_for_it() {
    const FORKS: &[&str] =
        &["python3", "-c", "from multiprocessing.forkserver import main; main(5, 6, ['__main__'])"];
    for (argv, readers, listens, tied) in [
        (JOB, &[31][..], false, true),
        (JOB, &[31, 30], false, false),
        (JOB, &[], false, false),
        (FORKS, &[31], true, true),
        (JOB, &[31], true, false),
    ] {
        let stdio = [Stdio::Null, Stdio::File, Stdio::File];
        let mut story = with_job(argv, stdio);
        let sockets = SocketUse { listens, ..SocketUse::default() };
        let feeds = readers.iter().map(|pid| id(*pid)).collect();
        story.apart.extend([
            (30, ProcessFacts { feeds, ..apart(10, WIRE) }),
            (31, ProcessFacts { argv, sockets, ..apart(10, stdio) }),
        ]);
        assert_eq!(ends(story, 31), tied, "{argv:?} {readers:?} {listens}");
    }
    let stdio = [Stdio::Null, Stdio::File, Stdio::File];
    let mut story = with_job(&["sh"], PLAIN);
    story.start(31, 32, JOB, stdio);
    story.apart.extend([
        (30, ProcessFacts { feeds: vec![id(32)], ..apart(10, WIRE) }),
        (31, ProcessFacts { argv: &["sh"], ..apart(10, PLAIN) }),
        (32, ProcessFacts { parent: 31, ..apart(10, stdio) }),
    ]);
    assert!(!ends(story, 32));
}

fn ends(story: Story, pid: u32) -> bool {
    let mut story = judged(story);
    story.pass_secs(400);
    story.sent().iter().any(|(sent, _)| *sent == pid)
}

/// What has a log for its output and only inherited a pipe of the server's from a tool that has ended. The twin reports elsewhere.
#[test]
fn who_was_left_with_a_log_is_not_driven_over_what_it_inherited() {
    for (tool_lives, output, tied) in
        [(false, Stdio::File, false), (true, Stdio::File, false), (true, Stdio::Pipe(9), true)]
    {
        let stdio = [Stdio::Pipe(7), output, output];
        let mut story = with_job(JOB, [Stdio::Pipe(7), Stdio::Pipe(8), Stdio::Null]);
        story.start(31, 32, &["worker"], stdio);
        let parent = if tool_lives { 31 } else { 1 };
        if !tool_lives {
            story.end_with(31, ExitStatus::Code(0));
        }
        let read_by = Some((Stdio::Pipe(7), id(30)));
        story.apart.extend([
            (30, apart(10, WIRE)),
            (31, apart(10, PLAIN)),
            (32, ProcessFacts { parent, read_by, busy: true, ..apart(10, stdio) }),
        ]);
        let mut story = judged(story);
        story.pass_secs(400);
        let sent = story.sent();
        assert_eq!(sent.iter().any(|(pid, _)| *pid == 32), tied, "{sent:?} {:?}", story.told());
    }
}

/// `nohup job &`, whose output the server reads, and which may take SIGHUP back. The server itself may ignore SIGHUP, too, or be below
/// another `nohup`: then that says nothing.
#[test]
fn who_was_told_to_outlive_the_session_is_no_tool_whatever_streams_it_has() {
    for (server, below, began, ignores_hangup, tied) in [
        (false, false, false, true, false),
        (true, false, false, true, true),
        (false, false, true, false, false),
        (true, false, true, false, false),
        (false, true, true, false, true),
        (false, false, false, false, true),
    ] {
        let stdio = [Stdio::Null, Stdio::Pipe(7), Stdio::Pipe(8)];
        let mut story = Story::with_agent();
        story.below_nohup.extend(
            [(below, 20), (below, 30), (began, 31)].iter().filter_map(|(is, pid)| is.then_some(*pid)),
        );
        story.start(20, 30, SERVER, WIRE);
        story.start(30, 31, JOB, stdio);
        let read_by = Some((Stdio::Pipe(7), id(30)));
        story.apart.extend([
            (30, ProcessFacts { ignores_hangup: server, ..apart(10, WIRE) }),
            (31, ProcessFacts { ignores_hangup, read_by, ..apart(10, stdio) }),
        ]);
        let mut story = judged(story);
        if tied {
            story.pass_secs(400);
            assert!(
                story.sent().contains(&(31, Signal::Term)),
                "{server} {below} {began} {:?}",
                story.sent()
            );
        } else {
            unproven(&mut story, "clients");
        }
    }
}

/// An agent that ignores SIGHUP itself, or was there before: each shell that it starts seems to be the first that does. The helper was
/// started before the server had read its first message; the twin began below a `nohup` of its own.
#[test]
fn what_a_server_ignores_from_its_beginning_says_nothing_of_what_it_has_started() {
    const OWN: &[&str] = &["/usr/bin/python3", "server.py"];
    for job in [false, true] {
        let stdio = [Stdio::Pipe(9), Stdio::Pipe(7), Stdio::Pipe(8)];
        let mut story = Story::with_agent();
        let said = FirstMessage::Mcp { client: None };
        story.messages.extend([(29, said.clone()), (30, said)]);
        story.below_nohup.extend([29, 30].into_iter().chain(job.then_some(31)));
        story.start(20, 29, &["/bin/sh", "-c", "server.py; true"], WIRE);
        story.start(29, 30, OWN, WIRE);
        story.start(30, 31, if job { &["nohup", "job"] } else { JOB }, stdio);
        if job {
            story.exec(31, 30, JOB, stdio);
        }
        story.messages.clear();
        story.pass_secs(5);
        let read_by = Some((Stdio::Pipe(7), id(30)));
        story.apart.extend([
            (29, apart(10, WIRE)),
            (30, ProcessFacts { parent: 29, ..apart(10, WIRE) }),
            (31, ProcessFacts { parent: 30, read_by, ..apart(10, stdio) }),
        ]);
        let mut story = judged(story);
        story.pass_secs(400);
        assert_eq!(story.sent().iter().any(|(pid, _)| *pid == 31), !job, "{:?}", story.told());
    }
}

/// A tool that waits for its workers, and cleans up when they have ended: it is asked before them.
#[test]
fn the_rest_is_asked_from_the_top_down() {
    let mut story = with_job(JOB, PLAIN);
    story.polite.extend([30, 31, 32]);
    story.start(31, 32, JOB, PLAIN);
    let waits = |stdio| ProcessFacts { awaits_child: true, ..apart(10, stdio) };
    story.apart.extend([(30, waits(WIRE)), (31, waits(PLAIN)), (32, apart(10, PLAIN))]);
    let mut story = judged(story);
    story.pass_secs(400);
    let pids: Vec<u32> = story.sent().iter().map(|(pid, _)| *pid).collect();
    assert_eq!(pids, [30, 31, 32]);
}

/// `child.stdout.destroy(); child.unref()`, and the twin whose server has ended.
#[test]
fn an_output_whose_other_end_the_server_closed_does_not_tie() {
    let stdio = [Stdio::Null, Stdio::Pipe(7), Stdio::Pipe(8)];
    let mut story = with_job(JOB, stdio);
    story.apart.insert(31, apart(31, stdio));
    let mut story = judged(story);
    story.pass_secs(400);
    assert_eq!(story.sent(), [(30, Signal::Term), (30, Signal::Kill)]);
}

#[test]
fn a_helper_that_was_told_its_port_may_be_called_by_others() {
    let told: &'static [&'static str] = &["vector-db", "serve", "--port", "8000"];
    for (argv, chosen, in_use) in [
        (told, false, true),
        (&["vector-db"][..], false, false),
        (&["vector-db"], true, true),
        (&["chromedriver", "--port=40001"], true, false),
        (&["chrome", "--remote-debugging-port=9222"], true, true),
        (&["chrome", "--remote-debugging-port=0"], false, false),
    ] {
        let stdio = [Stdio::Null, Stdio::Pipe(7), Stdio::File];
        let mut story = with_job(argv, stdio);
        let sockets = SocketUse { listens: true, chosen, inside: vec![id(30)], ..SocketUse::default() };
        let server = ProcessFacts { sockets: SocketUse::default(), ..apart(10, WIRE) };
        let helper =
            ProcessFacts { argv, sockets, read_by: Some((Stdio::Pipe(7), id(30))), ..apart(10, stdio) };
        story.apart.extend([(30, server), (31, helper)]);
        let mut story = judged(story);
        if in_use {
            unproven(&mut story, "clients");
        } else {
            ended(&mut story, 30);
        }
    }
}

/// Its handler may end what it let go. The twin has let go nothing.
#[test]
fn a_server_that_catches_sigterm_and_let_something_go_is_not_asked() {
    for (sid, catches_term, signal) in
        [(31, true, Signal::Kill), (31, false, Signal::Term), (10, true, Signal::Term)]
    {
        let stdio = if sid == 31 { PLAIN } else { [Stdio::Null, Stdio::Pipe(9), Stdio::Null] };
        let mut story = with_job(JOB, stdio);
        let server = ProcessFacts { catches_term, ..apart(10, WIRE) };
        story.apart.extend([(31, apart(sid, stdio)), (30, server)]);
        let mut story = judged(story);
        story.pass_secs(400);
        assert_eq!(story.sent().first(), Some(&(30, signal)), "{sid} {catches_term}");
    }
}
