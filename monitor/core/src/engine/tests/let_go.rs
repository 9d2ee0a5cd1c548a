//! Tests of what a server has let go although it is in its session. Each has a twin that is ended with the server.

use super::{
    proof::{PLAIN, apart, ended, with_child},
    story::{Story, WIRE, id},
    story_scene::{ProcessFacts, SocketUse},
};
use crate::{engine::Settings, model::Signal};

#[test]
fn a_job_that_shall_outlive_its_session_is_let_go() {
    // It ignores SIGHUP; the twin's server does, too, because its agent was started so.
    for (server_too, stays) in [(false, true), (true, false)] {
        let mut story = with_child(PLAIN);
        let ignores = |stdio| ProcessFacts { ignores_hangup: true, ..apart(10, stdio) };
        story.apart.insert(31, ignores(PLAIN));
        story.apart.insert(30, if server_too { ignores(WIRE) } else { apart(10, WIRE) });
        story.polite.insert(30);
        story.end(20);
        story.pass_secs(100);
        assert_eq!(story.sent().iter().any(|(pid, _)| *pid == 31), !stays, "{server_too}");
    }
}

#[test]
fn what_left_its_parents_or_serves_others_is_let_go_though_it_is_in_the_session() {
    // Adopted; listens; is called by the server.
    for (adopted, listens, called, stays) in [
        (false, false, false, false),
        (true, false, false, true),
        (false, true, false, true),
        (false, true, true, false),
    ] {
        let mut story = Story::agent_with_server(Settings::default());
        story.fork(30, 32);
        story.exec(32, 30, &["bash", "-c", "job > log &"], PLAIN);
        story.fork(32, 31);
        story.exec(31, 32, &["/srv/job"], PLAIN);
        let inside = if called { vec![id(30)] } else { Vec::new() };
        let sockets = SocketUse { listens, inside, ..SocketUse::default() };
        story.apart.insert(31, ProcessFacts { sockets, ..apart(0, PLAIN) });
        if adopted {
            story.end(32);
        }
        story.polite.insert(30);
        story.end(20);
        story.pass_secs(10);
        if called {
            // The server has ended, and its connection with it.
            story.apart.insert(31, apart(0, PLAIN));
        }
        story.pass_secs(100);
        let (case, sent) = ((adopted, listens, called), story.sent());
        assert_eq!(sent.iter().any(|(pid, _)| *pid == 31), !stays, "{case:?}");
        // Who runs what is let go would end it.
        assert_eq!(sent.iter().any(|(pid, _)| *pid == 32), !stays, "{case:?}");
        assert!(sent.contains(&(30, Signal::Term)), "{case:?}");
    }
}

#[test]
fn what_was_born_while_its_server_is_ended_goes_with_it() {
    let mut story = Story::agent_with_server(Settings::default());
    story.end(20);
    story.pass_secs(10);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    // It forks when it is told to end; its child turns to a log, and is adopted.
    story.fork(30, 31);
    story.end(30);
    story.apart.insert(31, apart(0, PLAIN));
    story.pass_secs(100);
    ended(&mut story, 31);
}

#[test]
fn a_shells_loop_that_turned_to_its_log_is_let_go() {
    // A fork that was born with the wires. The twin runs a program on them: a link of the launch chain.
    for (own_program, stays) in [(false, true), (true, false)] {
        let mut story = Story::agent_with_server(Settings::default());
        story.fork(30, 32);
        story.exec(32, 30, &["bash", "-c", "(loop) > log &"], WIRE);
        story.fork(32, 31);
        if own_program {
            story.exec(31, 32, &["/srv/app"], WIRE);
        }
        story.apart.insert(31, apart(0, PLAIN));
        story.end(32);
        story.polite.insert(30);
        story.end(20);
        story.pass_secs(100);
        assert_eq!(story.sent().iter().any(|(pid, _)| *pid == 31), !stays, "{own_program}");
    }
}
