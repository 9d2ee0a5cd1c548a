//! Tests of times in which somebody could do nothing: the host was asleep, or a process was stopped or frozen.

use std::time::Duration;

use super::{super::cases::CaseOf, story::Story};
use crate::model::{Input, Policy, Signal};

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
