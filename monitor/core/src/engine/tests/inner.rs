//! What a server speaks to itself, by a rule or by the protocol: it makes the server a gateway, or a program that it started an agent.

use std::time::Duration;

use super::{
    restarts::next,
    story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, seen},
};
use crate::model::{FirstMessage, Policy, SnapshotProcess, Stdio};

const INNER: [Stdio; 3] = [Stdio::Pipe(3), Stdio::Pipe(4), Stdio::Null];
const OWN: &[&str] = &["/usr/bin/python3", "/srv/inventory.py"];
const ASSISTANT: &[&str] = &["/opt/acme/assistant"];

fn mcp() -> FirstMessage {
    FirstMessage::Mcp { client: Some("gateway".to_owned()) }
}

/// Server 30 of agent 20 runs this program on two pipes of its own, and says this to it.
fn speaks(message: FirstMessage) -> Story {
    let mut story = Story::agent_with_server(Policy::default());
    story.messages.insert(31, message);
    story.start(30, 31, OWN, INNER);
    story
}

/// Whether the server is ended, where it listens at a port that nobody told it.
fn is_ended(mut story: Story) -> bool {
    story.sockets.listens = true;
    story.end(20);
    story.pass_secs(60);
    !story.sent().is_empty()
}

#[test]
fn a_server_that_speaks_to_one_of_its_own_is_a_gateway() {
    for (message, ended) in [(mcp(), false), (FirstMessage::Other, true)] {
        let mut story = speaks(message.clone());
        assert_eq!((story.told(), story.message_looks.len()), (vec![], 1), "it is no server by itself");
        assert_eq!(is_ended(story), ended, "{message:?}");
        let gateway = speaks(message.clone());
        let found: Vec<SnapshotProcess> =
            vec![seen(20, 10, CLAUDE, TERMINAL), seen(30, 20, SERVER, WIRE), seen(31, 30, OWN, INNER)];
        assert_eq!(is_ended(next(&gateway, "", found)), ended, "after a restart: {message:?}");
    }
}

/// A rule knows it, and it is started for a call only. The twins are a command, and a link of the server's own launch chain.
#[test]
fn who_ever_had_a_server_behind_it_is_a_gateway() {
    const NAMED: &[&str] = &["/usr/bin/mcp-server-memory"];
    for (argv, streams, ended) in
        [(NAMED, INNER, false), (&["/usr/bin/rg"], INNER, true), (NAMED, WIRE, true)]
    {
        for lives in [true, false] {
            let mut story = Story::agent_with_server(Policy::default());
            story.start(30, 31, argv, streams);
            story.pass_secs(1);
            if !lives {
                story.end(31);
            }
            let found = vec![seen(20, 10, CLAUDE, TERMINAL), seen(30, 20, SERVER, WIRE)];
            let next = next(&story, "", found);
            assert_eq!(is_ended(story), ended, "{argv:?} {lives}");
            assert_eq!(is_ended(next), ended, "after a restart: {argv:?} {lives}");
        }
    }
}

/// What was read before anybody looked may have been a message.
#[test]
fn who_is_looked_at_late_may_have_been_spoken_to() {
    for (wait, ended) in [(50, true), (150, false)] {
        let mut story = Story::agent_with_server(Policy::default());
        story.late = Some(Vec::new());
        story.start(30, 31, OWN, INNER);
        story.pass(Duration::from_millis(wait));
        story.answer_late();
        story.late = None;
        story.pass_secs(60);
        assert_eq!(is_ended(story), ended, "{wait} ms");
    }
}

/// What has ended since was a command, or may have been a server: the other one lasted.
#[test]
fn a_command_that_is_looked_at_late_makes_nobody_a_gateway() {
    for (lasts, ended) in [(50, true), (70, false)] {
        let mut story = Story::agent_with_server(Policy::default());
        story.late = Some(Vec::new());
        story.start(30, 31, OWN, INNER);
        story.pass(Duration::from_millis(150));
        story.answer_late();
        story.late = None;
        story.pass_secs(lasts);
        story.end(31);
        assert_eq!(is_ended(story), ended, "{lasts} s");
    }
}

/// The daemon is late: the agent has ended when the gateway is recognised, and its server has read its first message.
#[test]
fn a_gateway_that_is_recognised_late_may_have_spoken() {
    const GATEWAY: &[&str] = &["/usr/bin/python3", "-m", "acme.gateway"];
    const MODULE: &[&str] = &["/usr/bin/python3", "-m", "acme.weather"];
    for (wait, ended) in [(50, true), (150, false)] {
        let mut story = Story::with_agent();
        story.messages.insert(30, mcp());
        story.late = Some(Vec::new());
        story.start(20, 30, GATEWAY, WIRE);
        story.start(30, 31, MODULE, INNER);
        story.pass(Duration::from_millis(wait));
        story.answer_late();
        story.late = None;
        story.sockets.listens = true;
        story.end(20);
        story.pass_secs(14);
        assert_eq!(!story.sent().is_empty(), ended, "{wait} ms {:?}", story.told());
    }
}

/// It is recognised so late that its server is hardly looked at any more, and has but a second.
#[test]
fn a_gateway_that_is_recognised_very_late_may_have_spoken_long_ago() {
    for (wait, ended) in [(50, true), (150, false)] {
        let mut story = Story::new(Policy { grace: Duration::from_secs(1), ..Policy::default() });
        story.exec(20, 10, CLAUDE, TERMINAL);
        story.messages.insert(30, mcp());
        story.late = Some(Vec::new());
        story.start(20, 30, &["/usr/bin/python3", "-m", "acme.gateway"], WIRE);
        let about_the_gateway = story.late.replace(Vec::new());
        story.start(30, 31, &["/usr/bin/python3", "-m", "acme.weather"], INNER);
        story.pass(Duration::from_millis(wait));
        story.answer_late();
        story.late = None;
        story.pass_secs(9);
        story.late = about_the_gateway;
        story.answer_late();
        story.late = None;
        story.sockets.listens = true;
        story.end(20);
        story.pass_secs(4);
        assert_eq!(!story.sent().is_empty(), ended, "{wait} ms {:?}", story.told());
    }
}

/// Of a user who starts very many programs at a time, some are not looked at.
#[test]
fn who_is_not_looked_at_may_have_been_spoken_to() {
    for (others, ended) in [(0, true), (128, false)] {
        let mut story = Story::agent_with_server(Policy::default());
        for other in 0..others {
            story.exec(1000 + other, 10, OWN, INNER);
        }
        story.start(30, 31, OWN, INNER);
        story.pass_secs(60);
        assert_eq!(is_ended(story), ended, "{others} others");
    }
}

/// Aggregators start servers of their own package: `fastmcp run` another file, a company's servers in one. Each may have a session of
/// its own, as those that Python's SDK starts.
#[test]
fn a_gateway_may_run_servers_of_its_own_package() {
    const GATEWAY: &[&str] = &["/usr/bin/python3", "-m", "acme_mcp.gateway"];
    const MODULE: &[&str] = &["/usr/bin/python3", "-m", "acme_mcp.weather"];
    let spoken = |message: &FirstMessage, apart| {
        let mut story = Story::with_agent();
        story.messages.insert(30, mcp());
        story.start(20, 30, GATEWAY, WIRE);
        story.messages.insert(31, message.clone());
        story.fork(30, 31);
        if apart {
            story.setsid(31);
        }
        story.exec(31, 30, MODULE, INNER);
        story
    };
    for (message, ended) in [(mcp(), false), (FirstMessage::Other, true)] {
        for apart in [false, true] {
            assert_eq!(is_ended(spoken(&message, apart)), ended, "{message:?} {apart}");
        }
        // What was read long ago is not known after a restart.
        let found =
            vec![seen(20, 10, CLAUDE, TERMINAL), seen(30, 20, GATEWAY, WIRE), seen(31, 30, MODULE, INNER)];
        assert!(!is_ended(next(&spoken(&message, false), "", found)), "after a restart: {message:?}");
    }
}

/// Nothing is looked at on the wires of the server, nor where another process made the output.
#[test]
fn what_only_inherits_is_not_spoken_to() {
    for streams in [[WIRE[0], Stdio::Pipe(4), Stdio::Null], [Stdio::Pipe(3), WIRE[1], Stdio::Null]] {
        let mut story = Story::agent_with_server(Policy::default());
        story.messages.insert(31, mcp());
        story.start(30, 31, OWN, streams);
        story.pass_secs(60);
        assert_eq!(story.message_looks, []);
    }
}

/// A job that is named like a server is none because it speaks to one.
#[test]
fn what_is_said_to_an_inner_server_confirms_nothing() {
    let mut story = Story::new(Policy::default());
    story.creator = Some(seen(20, 10, &["/opt/acme/host"], TERMINAL));
    story.exec(30, 20, &["/opt/acme/mcp-evals"], WIRE);
    story.messages.insert(31, mcp());
    story.start(30, 31, OWN, INNER);
    story.end(20);
    story.pass_secs(60);
    assert_eq!(story.sent(), []);
    assert!(story.told().contains(&"orphan_unproven only_named".to_owned()));
}

/// A tool of the server with these streams, which talks to a server of its own.
#[test]
fn an_assistant_below_a_server_is_an_agent() {
    let apart = [Stdio::Null, Stdio::Pipe(5), Stdio::Null];
    let inherits = [WIRE[0], Stdio::Pipe(5), Stdio::Null];
    for (streams, own) in [(apart, OWN), (inherits, OWN), (inherits, SERVER)] {
        for message in [mcp(), FirstMessage::Other] {
            let is_agent = own == SERVER || message == mcp();
            let mut story = Story::agent_with_server(Policy::default());
            story.start(30, 31, ASSISTANT, streams);
            story.messages.insert(32, message);
            story.start(31, 32, own, INNER);
            assert_eq!(story.engine.report().agents.len(), 1 + usize::from(is_agent));
            story.end(20);
            story.pass_secs(60);
            assert_eq!(story.sent().is_empty(), is_agent, "{streams:?} {own:?}");
            assert_eq!(story.told().contains(&"orphan_spared live_agent_below".to_owned()), is_agent);
        }
    }
}
