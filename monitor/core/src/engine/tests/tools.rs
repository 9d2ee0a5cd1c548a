//! Tests of tools that go on with their work below an orphan: its end waits for them, for a bounded time.

use super::{
    proof::{PLAIN, with_child},
    story::{CLAUDE, SERVER, Story, TERMINAL, id},
    story_scene::WireState,
};
use crate::model::{BootTime, Doubt, Notice, Policy, Signal, Stdio, Work};

/// Agent 20, its server 30, and a tool of that, 31.
fn with_tool() -> Story {
    let mut story = Story::agent_with_server(Policy::default());
    story.start(30, 31, &["/srv/migrate"], PLAIN);
    for pid in [30, 31] {
        story.work.insert(pid, Work { process: id(pid), cpu_ns: 7, ..Work::default() });
    }
    story.told();
    story
}

/// Lets time pass while this process works.
fn work(story: &mut Story, pid: u32, seconds: u64) {
    for _ in 0..seconds {
        if let Some(work) = story.work.get_mut(&pid) {
            work.written_bytes += 1;
        }
        story.pass_secs(1);
    }
}

fn deadline(story: &Story) -> Option<BootTime> {
    story.notices.iter().find_map(|notice| match notice {
        Notice::OrphanUnproven { doubts, deadline, .. } if doubts == &[Doubt::Working] => *deadline,
        _ => None,
    })
}

#[test]
fn a_tool_at_work_comes_to_its_end() {
    let mut story = with_tool();
    story.end(20);
    work(&mut story, 31, 10);
    assert_eq!(deadline(&story), Some(story.now + Policy::default().work_grace));
    work(&mut story, 31, 100);
    assert_eq!(story.sent(), []);
    assert!(story.told().contains(&"orphan_unproven working".to_owned()));
    story.end(31);
    story.pass_secs(20);
    assert!(story.sent().contains(&(30, Signal::Term)));
}

#[test]
fn a_tool_that_works_for_ever_is_ended_at_its_deadline() {
    let mut story = with_tool();
    story.polite.insert(30);
    story.end(20);
    work(&mut story, 31, 305);
    assert_eq!(story.sent(), []);
    work(&mut story, 31, 20);
    let sent = story.sent();
    assert!(sent.contains(&(30, Signal::Term)) && sent.contains(&(31, Signal::Term)), "{sent:?}");
}

/// A server of another dead agent, 40, on whose wire the server at work has a hand, may be asked for something until that is done.
#[test]
fn what_a_server_at_work_uses_stays_as_long() {
    let mut story = with_tool();
    story.exec(21, 10, CLAUDE, TERMINAL);
    story.start(21, 40, SERVER, [Stdio::Pipe(41), Stdio::Pipe(42), Stdio::Null]);
    story.work.insert(40, Work { process: id(40), ..Work::default() });
    story.facts.stdin = WireState::held_by(&[30]);
    story.end(20);
    work(&mut story, 31, 15);
    story.end(21);
    work(&mut story, 31, 60);
    assert_eq!(story.sent(), []);
    story.end(31);
    story.pass_secs(100);
    let sent = story.sent();
    assert!([30, 40].iter().all(|pid| sent.contains(&(*pid, Signal::Term))), "{sent:?}");
}

#[test]
fn what_does_nothing_is_not_waited_for_nor_is_the_server_itself() {
    for pid in [0, 30] {
        let mut story = with_tool();
        story.end(20);
        work(&mut story, pid, 11);
        assert!(story.sent().contains(&(30, Signal::Term)), "{pid}: {:?}", story.told());
    }
}

#[test]
fn a_tool_that_cannot_be_read_may_be_at_work() {
    let mut story = with_tool();
    story.work.remove(&31);
    story.end(20);
    story.pass_secs(300);
    assert_eq!(story.sent(), []);
    story.pass_secs(20);
    assert!(story.sent().contains(&(30, Signal::Term)));
}

#[test]
fn a_browser_is_no_tool() {
    let mut story = with_child(PLAIN);
    for pid in [30, 31] {
        story.work.insert(pid, Work { process: id(pid), cpu_ns: 7, ..Work::default() });
    }
    story.end(20);
    work(&mut story, 31, 11);
    assert!(story.sent().contains(&(30, Signal::Term)), "{:?}", story.told());
}
