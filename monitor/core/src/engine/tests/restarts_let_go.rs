//! What an earlier daemon knew of what a server let go, and of what is around it.

use super::{
    found::daemon,
    let_go::JOB,
    proof::apart,
    restarts::{known, next},
    story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id, image, seen},
    story_scene::ProcessFacts,
};
use crate::model::{BootTime, ExitStatus, Ignored, Input, Policy, ProcessEvent, Signal, Stdio};

const PLAIN: [Stdio; 3] = [Stdio::Null; 3];

/// A server has started itself again, on pipes of its own, to write an index; its session ends well. What a script had launched is the
/// server, whatever has happened to that.
#[test]
fn what_a_server_that_has_ended_let_go_is_no_server_for_the_next_daemon() {
    let pipes = [Stdio::Pipe(7), Stdio::Pipe(8), Stdio::Null];
    for (head, stdio, ended) in [(SERVER, pipes, false), (&["sh", "/srv/run"], WIRE, true)] {
        let mut story = Story::with_agent();
        story.start(20, 30, head, WIRE);
        story.fork(30, 31);
        let event = ProcessEvent::Exec {
            at: story.now,
            process: id(31),
            parent: id(30),
            uid: 0,
            sid: 31,
            image: image(SERVER),
            stdio,
            ignored: Ignored::default(),
        };
        story.hand_in(Input::Process { event });
        story.end_with(30, ExitStatus::Code(0));
        story.end(20);
        let mut knowledge = known(&story);
        knowledge.watched_until = Some(BootTime(10_000_000_000));
        let mut next = daemon(Some(0), Policy::default(), knowledge, vec![seen(31, 1, SERVER, stdio)]);
        next.pass_secs(30);
        assert_eq!(!next.sent().is_empty(), ended, "{head:?}: {:?}", next.told());
    }
}

/// A program of a person's own around the server, which ends a site when that has ended. The twin is who has only the same parent.
#[test]
fn a_program_around_a_server_is_known_to_the_next_daemon() {
    let run = &["/usr/bin/python3", "/srv/run-all"][..];
    for (parent, ended) in [(29, false), (1, true)] {
        let mut story = Story::with_agent();
        story.start(20, 29, run, WIRE);
        story.start(29, 31, &["/srv/site"], PLAIN);
        story.start(29, 30, SERVER, WIRE);
        story.end(20);
        let site = seen(31, parent, &["/srv/site"], PLAIN);
        let mut next = next(&story, "", vec![seen(29, 1, run, WIRE), seen(30, 29, SERVER, WIRE), site]);
        next.apart.insert(29, ProcessFacts { argv: run, awaits_child: true, ..apart(0, WIRE) });
        next.apart.insert(30, ProcessFacts { parent: 29, ..apart(0, WIRE) });
        next.pass_secs(30);
        assert_eq!(next.sent().iter().any(|(pid, _)| *pid == 30), ended, "{parent}: {:?}", next.told());
    }
}

/// Its handler may end what it let go, of which nobody knows any more.
#[test]
fn a_server_that_was_found_and_catches_sigterm_is_not_asked() {
    for (restart, signal) in [(true, Signal::Kill), (false, Signal::Term)] {
        let mut story = Story::agent_with_server(Policy::default());
        if restart {
            let found = vec![seen(20, 10, CLAUDE, TERMINAL), seen(30, 20, SERVER, WIRE)];
            story = next(&story, "", found);
        }
        story.apart.insert(30, ProcessFacts { catches_term: true, ..apart(0, WIRE) });
        story.end(20);
        story.pass_secs(30);
        assert_eq!(story.sent().first(), Some(&(30, signal)));
    }
}

/// node takes back what is ignored when it begins: nobody can tell it of `nohup job` after a restart. The twin began without. Who says
/// nothing of standard input has it inherit that of the server.
#[test]
fn what_began_below_nohup_is_known_to_the_next_daemon() {
    for (stdin, began) in [Stdio::Null, WIRE[0]].into_iter().flat_map(|stdin| [(stdin, true), (stdin, false)])
    {
        let stdio = [stdin, Stdio::Pipe(7), Stdio::Null];
        let mut story = Story::agent_with_server(Policy::default());
        story.below_nohup.extend(began.then_some(31));
        story.start(30, 31, JOB, stdio);
        let found =
            vec![seen(20, 10, CLAUDE, TERMINAL), seen(30, 20, SERVER, WIRE), seen(31, 30, JOB, stdio)];
        let mut next = next(&story, "", found);
        next.apart.insert(30, apart(0, WIRE));
        let read_by = Some((Stdio::Pipe(7), id(30)));
        next.apart.insert(31, ProcessFacts { read_by, parent: 30, ..apart(0, stdio) });
        next.end(20);
        next.pass_secs(400);
        assert_eq!(next.sent().iter().any(|(pid, _)| *pid == 31), !began, "{:?}", next.told());
    }
}

/// `job | tee log & tool` in a shell that waits: whether the job ignored SIGINT when it began nobody knows after a restart.
#[test]
fn how_a_job_of_a_shell_began_is_not_known_of_what_was_found() {
    const BASH: &[&str] = &["/bin/bash"];
    let (job, tool) =
        ([Stdio::Null, Stdio::Pipe(9), Stdio::Null], [Stdio::Null, Stdio::Pipe(8), Stdio::Null]);
    for restart in [true, false] {
        let mut story = Story::agent_with_server(Policy::default());
        story.start(30, 31, BASH, PLAIN);
        story.start(31, 32, JOB, job);
        story.start(31, 33, JOB, tool);
        if restart {
            let found =
                vec![seen(20, 10, CLAUDE, TERMINAL), seen(30, 20, SERVER, WIRE), seen(31, 30, BASH, PLAIN)];
            let jobs = [seen(32, 31, JOB, job), seen(33, 31, JOB, tool)];
            story = next(&story, "", found.into_iter().chain(jobs).collect());
        }
        let of = |stdio| ProcessFacts { parent: 31, ..apart(0, stdio) };
        story.apart.extend([
            (30, ProcessFacts { awaits_child: true, ..apart(0, WIRE) }),
            (31, ProcessFacts { argv: BASH, awaits_child: true, parent: 30, ..apart(0, PLAIN) }),
            (32, of(job)),
            (33, of(tool)),
        ]);
        story.end(20);
        story.pass_secs(400);
        let sent = story.sent();
        assert!(sent.iter().any(|(pid, _)| *pid == 33), "{sent:?} {:?}", story.told());
        assert_eq!(sent.iter().any(|(pid, _)| *pid == 32), !restart, "{sent:?} {:?}", story.told());
    }
}

/// Of a server with a person's site, whoever started that, a helper may end the site when it sees the end of the server, and so may
/// the server, told of the helper's. There are many ways to see one: a pipe, a lock, a pidfd, `PR_SET_PDEATHSIG`. The twins have let
/// nothing go.
#[test]
fn a_server_that_let_something_go_and_has_a_helper_is_not_asked() {
    let inherited = [Stdio::Null, WIRE[1], Stdio::Null];
    let (reads, writes) =
        ([Stdio::Pipe(7), Stdio::Null, Stdio::Null], [Stdio::Null, Stdio::Pipe(8), Stdio::Null]);
    for (stdio, site_of, is_asked) in [
        (reads, Some(31), false),
        (reads, Some(30), false),
        (writes, Some(31), false),
        (reads, None, true),
        (writes, None, true),
        (inherited, Some(30), false),
        (inherited, None, true),
    ] {
        let mut story = Story::agent_with_server(Policy::default());
        story.start(30, 31, &["/srv/runner"], stdio);
        if let Some(parent) = site_of {
            story.start(parent, 32, &["/srv/site"], PLAIN);
            story.apart.insert(32, ProcessFacts { parent, ..apart(32, PLAIN) });
        }
        let pipe = stdio.into_iter().find(|stream| matches!(stream, Stdio::Pipe(7 | 8)));
        let helper = ProcessFacts { read_by: pipe.map(|pipe| (pipe, id(30))), ..apart(0, stdio) };
        story.apart.extend([(30, apart(0, WIRE)), (31, ProcessFacts { parent: 30, ..helper })]);
        story.end(20);
        story.pass_secs(30);
        let sent = story.sent();
        if is_asked {
            assert_eq!(sent.first(), Some(&(30, Signal::Term)), "{stdio:?} {site_of:?} {sent:?}");
        } else {
            assert_eq!(sent[..2], [(31, Signal::Kill), (30, Signal::Kill)], "{stdio:?} {site_of:?}");
        }
        assert!(sent.iter().all(|(pid, _)| *pid != 32), "{sent:?}");
    }
}

/// After a restart nobody knows what a server let go: a helper has a handler, or shares a pipe with it. The twin is a browser.
#[test]
fn a_server_that_was_found_is_not_asked_if_a_helper_would_do_something() {
    const RUNNER: &[&str] = &["/srv/runner"];
    let (input, output) = (Stdio::Pipe(7), Stdio::Pipe(8));
    for (helper, catches_term, stream, is_asked) in [
        (RUNNER, true, output, false),
        (RUNNER, false, input, false),
        (RUNNER, false, output, false),
        (&["/usr/bin/chromium", "--headless"], true, input, true),
    ] {
        let stdio = if stream == input {
            [input, Stdio::Null, Stdio::Null]
        } else {
            [Stdio::Null, output, Stdio::Null]
        };
        let mut story = Story::agent_with_server(Policy::default());
        story.start(30, 31, helper, stdio);
        let found =
            vec![seen(20, 10, CLAUDE, TERMINAL), seen(30, 20, SERVER, WIRE), seen(31, 30, helper, stdio)];
        let mut story = next(&story, "", found);
        let facts = ProcessFacts { catches_term, read_by: Some((stream, id(30))), ..apart(0, stdio) };
        story.apart.insert(31, ProcessFacts { argv: helper, parent: 30, ..facts });
        story.end(20);
        story.pass_secs(60);
        let (sent, signal) = (story.sent(), if is_asked { Signal::Term } else { Signal::Kill });
        let first = if is_asked { 30 } else { 31 };
        assert_eq!(sent.first(), Some(&(first, signal)), "{helper:?} {catches_term} {stream:?} {sent:?}");
        assert!(sent.iter().any(|(pid, _)| *pid == 31), "{helper:?} {sent:?}");
    }
}
