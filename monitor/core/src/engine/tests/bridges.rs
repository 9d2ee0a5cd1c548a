//! What a bridge spoke to, that only its first message shows, when the bridge has ended: a server of its own.

use super::{
    first_messages::OWN,
    story::{SERVER, Story, WIRE, id},
    story_scene::{ProcessFacts, SocketUse, WireState},
    tools::work,
};
use crate::model::{ExitStatus, FirstMessage, Policy, Signal, Stdio, Work};

const INNER: [Stdio; 3] = [Stdio::Pipe(3), Stdio::Pipe(4), Stdio::Null];

fn says(client: &str) -> FirstMessage {
    FirstMessage::Mcp { client: Some(client.to_owned()) }
}

/// Server 30 of agent 20 is a bridge: it runs this program, 31, on these streams, in a session of its own, and says this to it.
fn bridge(message: FirstMessage, streams: [Stdio; 3]) -> Story {
    let mut story = Story::agent_with_server(Policy::default());
    story.messages.insert(31, message);
    story.fork(30, 31);
    story.setsid(31);
    story.exec(31, 30, OWN, streams);
    story.told();
    story.apart.insert(31, ProcessFacts { stdio: streams, sid: 31, ..ProcessFacts::default() });
    story
}

/// The bridge ends, and its agent, unless that `lives`. Nobody has the wires between the two.
fn ends(story: &mut Story, lives: bool) {
    if !lives {
        story.end(20);
    }
    story.end_with(30, ExitStatus::Code(0));
    story.hung_up.insert(31);
}

fn is_ended(mut story: Story, lives: bool) -> bool {
    ends(&mut story, lives);
    story.pass_secs(90);
    story.sent().contains(&(31, Signal::Term))
}

/// As one that a rule knows. The twin was told something else.
#[test]
fn what_a_bridge_spoke_to_is_a_server_of_its_own() {
    let pair = [Stdio::Socket(3), Stdio::Socket(3), Stdio::Null];
    for (lives, streams) in [(true, INNER), (false, INNER), (true, pair), (false, pair)] {
        assert!(is_ended(bridge(says("mcp"), streams), lives), "{lives} {streams:?}");
        assert!(!is_ended(bridge(FirstMessage::Other, streams), lives), "{lives} {streams:?}");
    }
}

#[test]
fn who_uses_it_over_the_wires_keeps_it() {
    for lives in [true, false] {
        for input in [true, false] {
            let mut story = bridge(says("mcp"), INNER);
            let wire = if input { &mut story.facts.stdin } else { &mut story.facts.stdout };
            *wire = WireState::held_by(&[40]);
            assert!(!is_ended(story, lives), "{lives} {input}");
        }
        let mut story = bridge(says("mcp"), INNER);
        let sockets = SocketUse { listens: true, ..SocketUse::default() };
        story.apart.get_mut(&31).unwrap().sockets = sockets;
        assert!(!is_ended(story, lives), "{lives}");
    }
}

/// It may be a tool that is at work for what the agent last asked.
#[test]
fn it_has_the_time_of_a_tool() {
    for lives in [true, false] {
        let mut story = bridge(says("mcp"), INNER);
        for pid in [30, 31] {
            story.work.insert(pid, Work { process: id(pid), cpu_ns: 7, ..Work::default() });
        }
        ends(&mut story, lives);
        work(&mut story, 31, 200);
        assert_eq!(story.sent(), []);
        assert!(story.told().contains(&"orphan_unproven working".to_owned()));
        work(&mut story, 31, 200);
        assert!(story.sent().contains(&(31, Signal::Term)));
    }
}

/// It has put its output into a log since, or its input away; or what it prints is for another one (`job | logger`).
#[test]
fn a_job_is_none() {
    for lives in [true, false] {
        for stdio in [[INNER[0], Stdio::File, Stdio::File], [Stdio::Null, INNER[1], Stdio::Null]] {
            let mut story = bridge(says("mcp"), INNER);
            story.apart.get_mut(&31).unwrap().stdio = stdio;
            assert!(!is_ended(story, lives), "{stdio:?}");
        }
        for logger in [4, 5] {
            let mut story = bridge(says("mcp"), INNER);
            story.start(30, 32, &["/usr/bin/logger"], [Stdio::Pipe(logger), Stdio::Null, Stdio::Null]);
            story.apart.insert(
                32,
                ProcessFacts {
                    stdio: [Stdio::Pipe(logger), Stdio::Null, Stdio::Null],
                    ..ProcessFacts::default()
                },
            );
            assert_eq!(is_ended(story, lives), logger != 4);
        }
    }
}

/// Whoever can write to a bridge may have had that write to somebody's job, which reads nothing of it.
#[test]
fn what_waits_to_be_read_shows_nothing() {
    for (waits, ended) in [(says("mcp"), false), (FirstMessage::Nothing, true), (says("another"), true)] {
        for lives in [true, false] {
            let mut story = bridge(says("mcp"), INNER);
            story.facts.unread_input = Some(waits.clone());
            assert_eq!(is_ended(story, lives), ended, "{waits:?} {lives}");
        }
    }
}

/// A copy of the bridge goes on with the wires of its agent; what launched the bridge ends after it. Whatever shows the inner server.
#[test]
fn the_wires_between_count_when_nobody_has_those_of_the_bridge() {
    for (inner, copies) in [(OWN, true), (OWN, false), (SERVER, true), (SERVER, false)] {
        let mut story = Story::with_agent();
        story.start(20, 29, &["/bin/sh", "-c", "mcp-server-bridge; true"], WIRE);
        story.start(29, 30, &["/usr/bin/mcp-server-bridge"], WIRE);
        story.messages.insert(31, says("mcp"));
        story.start(30, 31, inner, INNER);
        if copies {
            story.fork(30, 33);
        }
        let wire = |story: &Story| story.engine.world.servers().values().next().unwrap().stdin;
        story.end(30);
        assert_eq!(wire(&story), WIRE[0], "{inner:?}");
        story.end(29);
        assert_eq!(wire(&story) == INNER[0], !copies, "{inner:?}");
        story.end(33);
        assert_eq!(wire(&story), INNER[0], "{inner:?}");
    }
}

/// It has a server of its own: an assistant at work.
#[test]
fn an_agent_is_none() {
    for lives in [true, false] {
        let mut story = bridge(says("mcp"), INNER);
        story.messages.insert(32, says("assistant"));
        story.start(31, 32, OWN, [Stdio::Pipe(5), Stdio::Pipe(6), Stdio::Null]);
        assert!(!is_ended(story, lives));
    }
}

/// The same below a bridge with several: each in its turn.
#[test]
fn all_that_a_bridge_spoke_to_are_one_server() {
    let mut story = bridge(says("mcp"), INNER);
    story.messages.insert(32, says("mcp"));
    let streams = [Stdio::Pipe(5), Stdio::Pipe(6), Stdio::Null];
    story.start(30, 32, OWN, streams);
    story.apart.insert(32, ProcessFacts { stdio: streams, ..ProcessFacts::default() });
    ends(&mut story, false);
    story.polite.extend([31, 32]);
    story.pass_secs(90);
    let sent = story.sent();
    assert!(sent.contains(&(31, Signal::Term)) && sent.contains(&(32, Signal::Term)), "{sent:?}");
}
