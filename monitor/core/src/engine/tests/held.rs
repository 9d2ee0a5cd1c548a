//! Tests of times in which somebody could do nothing: the host was asleep, or a process was stopped or frozen.

use std::time::Duration;

use super::{
    super::cases::CaseOf,
    memory::knowledge,
    proof::{PLAIN, apart},
    story::{SERVER, Story, WIRE, id, seen},
    story_scene::ProcessFacts,
    tools::{with_tool, work},
};
use crate::model::{Fact, Input, Policy, Signal, Stdio, Work};

/// The host is asleep for a minute, or time passes while it is awake and nothing is read.
fn minute(story: &mut Story, asleep: bool) {
    let time = Duration::from_secs(60);
    story.now = story.now + time;
    let slept = if asleep { time } else { Duration::ZERO };
    story.hand_in(Input::Woke { slept });
    story.pass_secs(0);
}

#[test]
fn the_grace_does_not_pass_while_the_host_is_asleep() {
    for asleep in [true, false] {
        let mut story = Story::agent_with_server(Policy::default());
        story.end(20);
        story.pass_secs(2);
        minute(&mut story, asleep);
        if asleep {
            let (key, server) = story.engine.world.servers().iter().next().unwrap();
            let due = story.engine.deadline(CaseOf::Server(*key));
            assert_eq!([server.phase.grace(), due], [Some(story.now + Duration::from_secs(8)); 2]);
        }
        story.pass_secs(7);
        assert_eq!(story.sent().is_empty(), asleep);
        story.pass_secs(1);
        assert_eq!(story.sent().is_empty(), !asleep);
    }
}

/// A server that saves when it is asked to end.
#[test]
fn nor_does_the_time_to_end() {
    for asleep in [true, false] {
        let mut story = Story::agent_with_server(Policy::default());
        story.end(20);
        story.pass_secs(10);
        assert_eq!(story.sent(), [(30, Signal::Term)]);
        for _ in 0..2 {
            minute(&mut story, asleep);
        }
        assert_eq!(story.sent().contains(&(30, Signal::Kill)), !asleep);
        story.pass_secs(5);
        assert_eq!(story.sent().contains(&(30, Signal::Kill)), asleep);
    }
}

/// A migration that is paused with its container, or alone, for longer than it has.
#[test]
fn nor_does_the_time_of_a_tool_that_is_held() {
    for held in [true, false] {
        let mut story = with_tool();
        story.end(20);
        work(&mut story, 31, 20);
        assert_eq!(story.sent(), []);
        // What is held cannot be asked what it has done.
        story.work.remove(&31);
        let stdio = [Stdio::Null, Stdio::Pipe(9), Stdio::Null];
        story.apart.insert(31, ProcessFacts { held, ..apart(0, stdio) });
        story.pass_secs(400);
        assert_eq!(story.sent().is_empty(), held);
        if held {
            story.apart.clear();
            story.work.insert(31, Work { process: id(31), ..Work::default() });
            work(&mut story, 31, 290);
            assert_eq!(story.sent(), [], "all of its time begins");
            work(&mut story, 31, 30);
            assert!(story.sent().contains(&(31, Signal::Term)));
        }
    }
}

/// A daemon was killed when it had stopped those that end together: for the next one their time passes. The twins, in use: it had
/// not begun to end them; they go on once, and a person stops them.
#[test]
fn but_that_of_a_tool_that_an_earlier_daemon_has_stopped() {
    for [was_ending, goes_on] in [[true, false], [false, false], [true, true]] {
        let mut first = with_tool();
        first.end(20);
        first.pass_secs(20);
        assert!(first.sent().contains(&(30, Signal::Term)), "{:?}", first.told());
        first.facts_persisted.retain(|fact| was_ending || !matches!(fact, Fact::Reaping { .. }));
        let mut next = Story::new(Policy::default());
        next.hand_in(Input::Remembered { knowledge: knowledge(&first.facts_persisted) });
        next.snapshot(vec![seen(30, 1, SERVER, WIRE), seen(31, 30, &["/srv/migrate"], PLAIN)]);
        next.hand_in(Input::Ready { kernel: String::new(), hooks: Vec::new() });
        let stdio = [Stdio::Null, Stdio::Pipe(9), Stdio::Null];
        next.work.insert(30, Work { process: id(30), ..Work::default() });
        if goes_on {
            next.work.insert(31, Work { process: id(31), ..Work::default() });
            work(&mut next, 31, 20);
            next.work.remove(&31);
        }
        next.apart.insert(31, ProcessFacts { held: true, ..apart(0, stdio) });
        next.pass_secs(200);
        assert_eq!(next.sent(), [], "{:?}", next.told());
        next.pass_secs(200);
        assert_eq!(!next.sent().is_empty(), was_ending && !goes_on, "{:?}", next.told());
    }
}

/// Who is stopped and does not work is waited for by nobody.
#[test]
fn a_server_that_is_held_is_ended() {
    let mut story = Story::agent_with_server(Policy::default());
    story.apart.insert(30, ProcessFacts { held: true, ..ProcessFacts::default() });
    story.end(20);
    story.pass_secs(10);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
}
