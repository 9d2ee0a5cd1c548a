//! Steps of a server's work, for whose end it looks from time to time.

use super::{
    proof::{PLAIN, apart},
    story::{Story, WIRE},
    story_scene::ProcessFacts,
    tools::{with_tool, work},
};

/// The server waits for a time, or is told of ends.
fn server(looks: bool) -> ProcessFacts {
    ProcessFacts { busy: looks, hears_of_ends: !looks, ..apart(10, WIRE) }
}

fn ends(story: &mut Story, pid: u32) {
    story.end(pid);
    story.apart.remove(&pid);
}

/// It looks each few seconds. The twin is told at once.
#[test]
fn who_looks_seldom_has_until_it_looks() {
    for looks in [true, false] {
        let mut story = with_tool();
        story.apart.extend([(30, server(looks)), (31, apart(10, PLAIN))]);
        story.end(20);
        work(&mut story, 31, 30);
        ends(&mut story, 31);
        story.pass_secs(14);
        assert_eq!(story.sent().is_empty(), looks, "{:?}", story.told());
        story.pass_secs(20);
        assert_eq!(story.sent().is_empty(), !looks, "it has looked, and begun nothing");
    }
}

/// The grace ends between two steps. In the twin none has lived since it began.
#[test]
fn a_step_that_ended_since_the_look_before_the_verdict_counts() {
    for lived in [true, false] {
        let mut story = with_tool();
        story.apart.extend([(30, server(true)), (31, apart(10, PLAIN))]);
        if !lived {
            ends(&mut story, 31);
        }
        story.end(20);
        story.pass_secs(9);
        if lived {
            ends(&mut story, 31);
        }
        story.pass_secs(2);
        assert_eq!(story.sent().is_empty(), lived, "{:?}", story.told());
    }
}
