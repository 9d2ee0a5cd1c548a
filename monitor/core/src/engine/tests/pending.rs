//! What a server had started before it was known as one, below a host that no rule knows: dismissed, and found again.

use super::{
    first_messages::{OWN, mcp},
    let_go::JOB,
    proof::{HOST, PLAIN, apart},
    story::{CLAUDE, Story, TERMINAL, WIRE, id, seen},
    story_scene::ProcessFacts,
};
use crate::{
    lineage::Left,
    model::{FirstMessage, Policy, Signal, SnapshotProcess, Stdio},
};

const SHELL: &[&str] = &["sh", "-c", "claude -p work; true"];

/// Process 30, a child of host 20, has not read its first message; `before` happens.
fn known_late(head: &[&str], before: impl FnOnce(&mut Story)) -> Story {
    let mut story = Story::new(Policy::default());
    story.creator = Some(seen(20, 10, HOST, TERMINAL));
    story.messages.insert(30, FirstMessage::Nothing);
    story.exec(30, 20, head, WIRE);
    before(&mut story);
    assert!(story.engine.world.node(id(31)).is_none_or(|node| node.pending), "dismissed");
    story.messages.insert(30, mcp());
    story.pass_secs(1);
    assert!(story.told().contains(&"server_started".to_owned()));
    story
}

fn read(story: &mut Story, below: Vec<SnapshotProcess>) {
    let above = vec![seen(20, 10, HOST, TERMINAL), seen(30, 20, OWN, WIRE)];
    story.snapshot([above, below].concat());
}

fn judged(story: &mut Story) {
    story.end(20);
    story.pass_secs(30);
}

/// It has let a job go, which its handler may end. The twin has started nothing.
#[test]
fn what_it_had_let_go_before_is_known_before_it_is_judged() {
    for starts in [true, false] {
        let mut story = known_late(OWN, |story| {
            if starts {
                story.start(30, 31, JOB, PLAIN);
            }
        });
        assert_eq!(story.resyncs, u32::from(starts), "nothing is read for the twin");
        story.apart.insert(30, ProcessFacts { catches_term: true, ..apart(0, WIRE) });
        story.apart.insert(31, apart(31, PLAIN));
        judged(&mut story);
        if starts {
            assert_eq!(story.sent(), [], "/proc was not read yet");
            // The job has ended, or lives where nobody finds it.
            story.snapshot(vec![seen(30, 1, OWN, WIRE)]);
            story.pass_secs(30);
        }
        let signal = if starts { Signal::Kill } else { Signal::Term };
        assert_eq!(story.sent().first(), Some(&(30, signal)));
    }
}

/// The shell was dismissed; the agent in it was recognised, below nobody. In the twin it has ended.
#[test]
fn an_agent_below_it_guards_it() {
    for lives in [true, false] {
        let mut story = known_late(OWN, |story| {
            story.start(30, 31, SHELL, PLAIN);
            story.exec(32, 31, CLAUDE, PLAIN);
        });
        read(&mut story, vec![seen(31, 30, SHELL, PLAIN), seen(32, 31, CLAUDE, PLAIN)]);
        if !lives {
            story.end(32);
            story.end(31);
        }
        story.told();
        judged(&mut story);
        assert_eq!(story.told().contains(&"orphan_spared live_agent_below".to_owned()), lives);
        assert_eq!(story.sent().is_empty(), lives);
    }
}

/// `sh -c "job & exec server"`: that job is none of the server's. The twin was started by the server.
#[test]
fn what_a_shell_had_left_before_it_became_the_server_is_not_ended() {
    let with_output = [Stdio::Null, WIRE[1], Stdio::Null];
    for (head, left) in [(&["sh", "-c", "job & exec server"][..], Left::Whole), (OWN, Left::No)] {
        let mut story = known_late(head, |story| {
            story.start(30, 31, JOB, with_output);
            if left == Left::Whole {
                story.exec(30, 20, OWN, WIRE);
            }
        });
        read(&mut story, vec![seen(31, 30, JOB, with_output)]);
        assert_eq!(story.engine.world.node(id(31)).map(|node| node.left), Some(left));
        story.apart.extend([(30, apart(0, WIRE)), (31, apart(0, with_output))]);
        judged(&mut story);
        assert_eq!(story.sent().iter().any(|(pid, _)| *pid == 31), left == Left::No);
    }
}
