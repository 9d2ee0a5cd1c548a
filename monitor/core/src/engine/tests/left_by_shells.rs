//! Tests of what shells leave, and of what they start beside a server or a browser that they become.

use super::{
    first_messages::mcp,
    let_go::{JOB, with_job},
    proof::{PLAIN, apart, judged, unproven},
    story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id, seen},
    story_scene::ProcessFacts,
};
use crate::model::{ExitStatus, Input, Losses, Policy, Signal, Stdio};

/// `job > log & tail -f log`, whatever the job does about SIGINT. The twin waits for the job.
#[test]
fn a_shell_waits_for_what_it_started_last() {
    for (job, other) in [(32, 33), (33, 32)] {
        let mut story = Story::agent_with_server(Policy::default());
        story.start(30, 31, &["/bin/bash"], PLAIN);
        let (log, tool) =
            ([Stdio::Null, Stdio::File, Stdio::File], [Stdio::Null, Stdio::Pipe(9), Stdio::Pipe(9)]);
        for pid in [32, 33] {
            let stdio = if pid == job { log } else { tool };
            story.start(31, pid, JOB, stdio);
            story.apart.insert(pid, ProcessFacts { parent: 31, ..apart(10, stdio) });
        }
        let shell = ProcessFacts { argv: &["/bin/bash"], awaits_child: true, ..apart(10, PLAIN) };
        story.apart.extend([(30, ProcessFacts { awaits_child: true, ..apart(10, WIRE) }), (31, shell)]);
        let mut story = judged(story);
        story.pass_secs(400);
        let sent = story.sent();
        let is_ended = |one| sent.iter().any(|(pid, _)| *pid == one);
        assert!(is_ended(other), "{job}: {sent:?}");
        assert_eq!(is_ended(job), job > other, "{job}: {sent:?}");
    }
}

/// `job | gzip > dump &`: the job has the server's pipes. A shell that was killed has left nothing on purpose, nor has another program,
/// unless it ended by itself and the job is in a session of its own (`setsid -f job`), without a channel to the server.
#[test]
fn what_a_shell_left_is_no_tool_whatever_streams_it_has() {
    const BASH: &[&str] = &["/bin/bash", "-c", "job &"];
    let stdio = [Stdio::Null, Stdio::Pipe(7), Stdio::Pipe(8)];
    for (argv, status, sid, channel, tied) in [
        (BASH, ExitStatus::Code(0), 0, false, false),
        (BASH, ExitStatus::Signal(9), 10, false, true),
        (JOB, ExitStatus::Code(0), 0, false, true),
        (JOB, ExitStatus::Signal(9), 10, false, true),
        (JOB, ExitStatus::Code(0), 10, false, false),
        (JOB, ExitStatus::Code(0), 10, true, true),
    ] {
        let mut story = with_job(argv, stdio);
        story.start(31, 32, JOB, stdio);
        story.start(32, 33, JOB, stdio);
        story.end_with(31, status);
        for pid in [32, 33] {
            let read_by = Some((Stdio::Pipe(7), id(30)));
            let joined = channel.then(|| id(30)).into_iter().collect();
            story.apart.insert(pid, ProcessFacts { joined, read_by, ..apart(sid, stdio) });
        }
        let mut story = judged(story);
        if tied {
            story.pass_secs(400);
            let sent = story.sent();
            assert!([32, 33].iter().all(|pid| sent.contains(&(*pid, Signal::Term))), "{sent:?}");
        } else {
            unproven(&mut story, "clients");
        }
    }
}

/// The record of the exec of a shell is lost, and the shell ends before /proc is read. In the twin no record is lost: it was a
/// copy of the server.
#[test]
fn what_a_process_left_that_may_have_been_a_shell_is_no_tool() {
    let stdio = [Stdio::Null, Stdio::Pipe(7), Stdio::Pipe(8)];
    let lost = || Input::Lost { losses: Losses { exec: 1, ..Losses::default() } };
    for (input, tied) in
        [(None, true), (Some(lost()), false), (Some(Input::Crowded { users: vec![0] }), false)]
    {
        let mut story = Story::agent_with_server(Policy::default());
        story.fork(30, 31);
        let is_lost = matches!(input, Some(Input::Lost { .. }));
        if let Some(input) = input {
            story.hand_in(input);
        }
        story.start(31, 32, JOB, stdio);
        story.end_with(31, ExitStatus::Code(0));
        if is_lost {
            let known = [(20, 10, CLAUDE, TERMINAL), (30, 20, SERVER, WIRE), (32, 1, JOB, stdio)];
            story.snapshot(known.map(|(pid, up, argv, stdio)| seen(pid, up, argv, stdio)).to_vec());
        }
        story.hand_in(Input::Crowded { users: vec![] });
        let read_by = Some((Stdio::Pipe(7), id(30)));
        story.apart.insert(32, ProcessFacts { read_by, ..apart(0, stdio) });
        let mut story = judged(story);
        story.pass_secs(400);
        let sent = story.sent();
        assert_eq!(sent.contains(&(32, Signal::Term)), tied, "{sent:?} {:?}", story.told());
    }
}

/// `result=$(job | gzip > dump &)` in a server that is written in bash, by its name or by its first message, which may have
/// ended since. The twin is written in Python.
#[test]
fn a_copy_of_a_server_in_bash_leaves_what_it_had_in_the_background() {
    for argv in [
        ["/bin/bash", "/usr/bin/mcp-server-notes"],
        ["/bin/bash", "/srv/notes"],
        ["python3", "/usr/bin/mcp-server-notes"],
    ] {
        for server_ends in [false, true] {
            let mut story = Story::with_agent();
            story.messages.insert(30, mcp());
            story.start(20, 30, &argv, WIRE);
            story.messages.remove(&30);
            story.pass_secs(40);
            assert_eq!(story.told(), ["server_started"], "{argv:?}");
            let stdio = [WIRE[0], Stdio::Pipe(7), Stdio::Pipe(7)];
            story.fork(30, 31);
            story.start(31, 32, JOB, stdio);
            story.end(31);
            story.apart.extend([(30, apart(0, WIRE)), (32, ProcessFacts { parent: 1, ..apart(0, stdio) })]);
            if server_ends {
                story.end(30);
            }
            let mut story = judged(story);
            story.pass_secs(400);
            let sent: Vec<u32> = story.sent().iter().map(|(pid, _)| *pid).collect();
            assert_eq!(sent.contains(&30), !server_ends, "{argv:?} {:?}", story.told());
            assert_eq!(sent.contains(&32), argv[0] == "python3", "{argv:?} {server_ends}");
        }
    }
}

/// google-chrome: `exec > >(cat); exec chrome`. The twins have an input of their own, and have become no browser.
#[test]
fn what_reads_the_output_of_a_browser_ends_with_it() {
    for (title, input, tied) in [("chrome", 7, true), ("chrome", 8, false), ("job", 7, false)] {
        let stdio = [Stdio::Null, Stdio::Pipe(7), Stdio::Socket(9)];
        let reader = [Stdio::Pipe(input), Stdio::Null, Stdio::Null];
        let mut story = Story::agent_with_server(Policy::default());
        story.start(30, 31, &["/bin/bash", "/usr/bin/google-chrome"], [Stdio::Null, Stdio::Null, stdio[2]]);
        story.start(31, 32, &["cat"], reader);
        story.exec(31, 30, &[title], stdio);
        let argv: &'static [&'static str] = if title == "chrome" { &["chrome"] } else { &["job"] };
        let browser = ProcessFacts { argv, joined: vec![id(30)], ..apart(0, stdio) };
        let read_by = (input == 7).then_some((Stdio::Pipe(7), id(31)));
        let cat = ProcessFacts { parent: 31, read_by, ..apart(0, reader) };
        story.apart.extend([(30, apart(0, WIRE)), (31, browser), (32, cat)]);
        let mut story = judged(story);
        story.pass_secs(400);
        let sent = story.sent();
        assert_eq!(sent.contains(&(32, Signal::Term)), tied, "{title} {input} {sent:?} {:?}", story.told());
    }
}

/// `cd x && job > log &` in a shell that a server keeps. The twin waits for what waits.
#[test]
fn who_waits_in_the_background_of_a_shell_keeps_nobody() {
    const BASH: &[&str] = &["/bin/bash"];
    for (awaits, tied) in [(false, false), (true, true)] {
        let log = [Stdio::Null, Stdio::File, Stdio::File];
        let mut story = with_job(BASH, PLAIN);
        story.fork(31, 32);
        story.start(32, 33, JOB, log);
        let shell =
            |awaits_child, parent| ProcessFacts { argv: BASH, awaits_child, parent, ..apart(10, PLAIN) };
        story.apart.extend([
            (30, ProcessFacts { awaits_child: true, ..apart(10, WIRE) }),
            (31, shell(awaits, 30)),
            (32, shell(true, 31)),
            (33, ProcessFacts { parent: 32, ..apart(10, log) }),
        ]);
        let mut story = judged(story);
        story.pass_secs(400);
        let sent = story.sent();
        let is_ended = |one| sent.iter().any(|(pid, _)| *pid == one);
        assert!(is_ended(30), "{sent:?}");
        assert_eq!(is_ended(33), tied, "{sent:?}");
    }
}

/// `Popen("cd x && job > log", shell=True)`, or `Popen("make")`, after which the server goes on. The twins: it waits, may be told of the
/// end, reads the output, or is a script itself, whose parent waits for nobody.
#[test]
fn a_shell_for_which_the_server_does_not_wait_keeps_nobody() {
    const BASH: &[&str] = &["/bin/bash"];
    let log = [Stdio::Null, Stdio::File, Stdio::File];
    let read = [Stdio::Null, Stdio::Pipe(7), Stdio::File];
    for (awaits_child, hears_of_ends, stdio, server, tied) in [
        (false, false, log, SERVER, false),
        (true, false, log, SERVER, true),
        (false, true, log, SERVER, true),
        (false, false, read, SERVER, true),
        (true, false, log, BASH, true),
    ] {
        let mut story = with_job(BASH, WIRE);
        story.fork(31, 32);
        story.start(32, 33, JOB, stdio);
        let shell = |parent| ProcessFacts { argv: BASH, awaits_child: true, parent, ..apart(10, WIRE) };
        let read_by = (stdio == read).then_some((Stdio::Pipe(7), id(30)));
        let main = ProcessFacts { argv: server, awaits_child, hears_of_ends, ..apart(10, WIRE) };
        story.apart.extend([(30, main), (31, shell(30)), (32, shell(31))]);
        story.apart.insert(33, ProcessFacts { parent: 32, read_by, ..apart(10, stdio) });
        let mut story = judged(story);
        story.pass_secs(400);
        let sent = story.sent();
        assert!(sent.iter().any(|(pid, _)| *pid == 30), "{sent:?}");
        assert_eq!(
            sent.iter().any(|(pid, _)| *pid == 33),
            tied,
            "{awaits_child} {hears_of_ends} {stdio:?} {server:?} {sent:?}"
        );
    }
}

/// `bash -lc "job & exec server"`, also as the profile of a log-in shell does. The twin is no shell.
#[test]
fn what_a_shell_started_before_it_became_the_server_is_no_tool() {
    for (argv, tied) in [(&["/bin/bash", "-lc", "job & exec server"][..], false), (JOB, true)] {
        let stdio = [Stdio::Null, Stdio::Pipe(9), Stdio::Null];
        let mut story = Story::with_agent();
        story.start(20, 30, argv, WIRE);
        story.start(30, 31, JOB, stdio);
        story.exec(30, 20, SERVER, WIRE);
        story.apart.extend([(30, apart(10, WIRE)), (31, apart(10, stdio))]);
        let mut story = judged(story);
        story.pass_secs(400);
        let sent = story.sent();
        assert!(sent.contains(&(30, Signal::Term)), "{sent:?}");
        assert_eq!(sent.contains(&(31, Signal::Term)), tied, "{sent:?}");
    }
}

/// A shell that launched the server has not left what that starts.
#[test]
fn the_shell_of_a_launch_chain_leaves_nothing() {
    let stdio = [Stdio::Null, Stdio::Pipe(9), Stdio::Null];
    let mut story = Story::with_agent();
    story.start(20, 29, &["sh", "-c", "server; true"], WIRE);
    story.start(29, 30, SERVER, WIRE);
    story.start(30, 31, JOB, stdio);
    story.end_with(29, ExitStatus::Code(0));
    story.apart.extend([(30, apart(10, WIRE)), (31, apart(10, stdio))]);
    let mut story = judged(story);
    story.pass_secs(400);
    assert!(story.sent().contains(&(31, Signal::Term)), "{:?}", story.sent());
}

/// `job & sleep 600`, killed by the time limit of the tool. The job may have taken back that it ignores SIGINT (node), all ignore it
/// below `nohup host &`, and none does under job control (`set -m`). The twins are what the shell waited for, in the group of the
/// server or the first of its session.
#[test]
fn a_killed_shell_leaves_what_it_had_in_the_background() {
    for (began, ignores, server, group) in [
        (true, true, false, 10),
        (true, false, false, 10),
        (false, true, true, 10),
        (false, false, false, 32),
        (false, false, false, 9),
        (false, false, false, 10),
    ] {
        let stdio = [Stdio::Null, Stdio::Pipe(7), Stdio::Pipe(8)];
        let mut story = with_job(&["/bin/bash", "-c", "job & sleep 600"], stdio);
        story.in_background.extend(began.then_some(32));
        story.start(31, 32, JOB, stdio);
        story.end_with(31, ExitStatus::Signal(9));
        let read_by = Some((Stdio::Pipe(7), id(30)));
        story.apart.extend([
            (30, ProcessFacts { ignores_interrupt: server, group: 9, ..apart(10, WIRE) }),
            (32, ProcessFacts { ignores_interrupt: ignores, read_by, parent: 1, group, ..apart(10, stdio) }),
        ]);
        let mut story = judged(story);
        story.pass_secs(400);
        let (sent, is_left) = (story.sent(), began || ignores || group == 32);
        assert_eq!(
            sent.contains(&(32, Signal::Term)),
            !is_left,
            "{began} {ignores} {server} {group} {sent:?}"
        );
    }
}

/// `job | tee log &` and `job &` in a shell that a server keeps: what writes to the output of the shell, and so to the server, is in the
/// background nevertheless. The twins: the shell waits, or made the pipe for itself (coproc).
#[test]
fn what_a_lasting_shell_has_in_the_background_is_not_tied_by_the_output_of_the_shell() {
    const BASH: &[&str] = &["/bin/bash"];
    for (awaits_child, output, tied) in [(false, 7, false), (true, 7, true), (false, 8, true)] {
        let shell = [Stdio::Pipe(5), Stdio::Pipe(7), Stdio::Pipe(7)];
        let stdio = [Stdio::Null, Stdio::Pipe(output), Stdio::Null];
        let mut story = with_job(BASH, shell);
        story.start(31, 32, JOB, stdio);
        let reader = if output == 7 { 30 } else { 31 };
        story.apart.extend([
            (30, apart(10, WIRE)),
            (31, ProcessFacts { argv: BASH, awaits_child, ..apart(10, shell) }),
            (
                32,
                ProcessFacts {
                    read_by: Some((Stdio::Pipe(output), id(reader))),
                    parent: 31,
                    ..apart(10, stdio)
                },
            ),
        ]);
        let mut story = judged(story);
        if tied {
            story.pass_secs(400);
            let sent = story.sent();
            assert!(
                sent.contains(&(32, Signal::Term)),
                "{awaits_child} {output} {sent:?} {:?}",
                story.told()
            );
        } else {
            unproven(&mut story, "clients");
        }
    }
}

/// `job > log & sleep 600` in a shell that waits, below `nohup host &`: all ignore SIGINT, so only the younger one is waited for. Where
/// the shell does not ignore it, the job is told apart by that it began so.
#[test]
fn what_is_older_than_another_is_not_waited_for_where_all_ignore_sigint() {
    const BASH: &[&str] = &["/bin/bash"];
    for (all, began, group, left) in
        [(true, false, 0, true), (false, true, 0, true), (false, false, 32, true), (false, false, 0, false)]
    {
        let tee = [Stdio::Pipe(8), Stdio::Pipe(9), Stdio::Null];
        let mut story = with_job(BASH, PLAIN);
        story.in_background.extend(began.then_some(32));
        story.start(31, 32, JOB, tee);
        story.start(31, 33, JOB, [Stdio::Null, Stdio::Pipe(9), Stdio::Null]);
        let of = |stdio| ProcessFacts { ignores_interrupt: all, parent: 31, ..apart(10, stdio) };
        story.apart.extend([
            (30, ProcessFacts { ignores_interrupt: all, awaits_child: true, ..apart(10, WIRE) }),
            (31, ProcessFacts { argv: BASH, awaits_child: true, parent: 30, ..of(PLAIN) }),
            (32, ProcessFacts { group, ..of(tee) }),
            (33, of([Stdio::Null, Stdio::Pipe(9), Stdio::Null])),
        ]);
        let mut story = judged(story);
        story.pass_secs(400);
        let sent = story.sent();
        let is_ended = |one| sent.iter().any(|(pid, _)| *pid == one);
        assert!(is_ended(33), "{all} {began} {group} {sent:?}");
        assert_eq!(is_ended(32), !left, "{all} {began} {group} {sent:?}");
    }
}
