//! Tests of bursts: of agents, and of new servers whose owners are unknown.

use super::story::{CLAUDE, SERVER, Story, TERMINAL, WIRE};
use crate::model::{Input, Notice, Policy, Stdio};

/// Starts `count` agents of this user, one after the other. Each lives for a moment.
fn burst(story: &mut Story, user: u32, first: u32, count: u32) {
    for pid in first..first + count {
        story.exec_as(user, pid, 10, CLAUDE, TERMINAL);
        story.end(pid);
    }
}

/// How many agents were reported one by one, how many exits were reported, and how many agents were counted.
fn told(story: &Story) -> (usize, usize, u64) {
    let started = story.notices.iter().filter(|n| matches!(n, Notice::AgentStarted { .. })).count();
    let exited = story.notices.iter().filter(|n| matches!(n, Notice::AgentExited { .. })).count();
    let folded =
        story.notices.iter().map(|n| if let Notice::AgentsFolded { count, .. } = n { *count } else { 0 });
    (started, exited, folded.sum())
}

#[test]
fn what_is_beyond_the_burst_is_counted() {
    let mut story = Story::new(Policy::default());
    burst(&mut story, 1000, 1000, 5000);
    assert_eq!(told(&story), (64, 64, 0));
    story.pass_secs(60);
    assert_eq!(told(&story), (64, 64, 4936));
    let lines = story.notices.iter().filter(|n| matches!(n, Notice::AgentsFolded { .. })).count();
    assert_eq!(lines, 1);
    // An agent that starts at an ordinary pace again is reported again.
    burst(&mut story, 1000, 7000, 1);
    assert_eq!(told(&story), (65, 65, 4936));
}

#[test]
fn nobody_elses_agent_is_folded() {
    let mut story = Story::new(Policy::default());
    burst(&mut story, 1000, 1000, 500);
    burst(&mut story, 1001, 2000, 1);
    assert_eq!(told(&story), (65, 65, 0));
}

#[test]
fn the_numbers_of_a_range_are_one_user() {
    let mut story = Story::new(Policy::default());
    burst(&mut story, 100_000, 1000, 60);
    burst(&mut story, 165_535, 2000, 60);
    assert_eq!(told(&story), (64, 64, 0));
}

#[test]
fn one_that_starts_a_server_is_told_of_before_it_and_with_its_number() {
    let mut story = Story::new(Policy::default());
    burst(&mut story, 1000, 1000, 100);
    story.exec_as(1000, 3000, 10, CLAUDE, TERMINAL);
    assert_eq!(told(&story).0, 64);
    story.fork(3000, 3001);
    story.exec_as(1000, 3001, 3000, SERVER, WIRE);
    let [.., Notice::AgentStarted { agent, .. }, Notice::ServerStarted { owner, .. }] = &*story.notices
    else {
        panic!("{:?}", story.notices);
    };
    assert_eq!((agent.pid, agent.generation), (3000, Some(65)));
    assert_eq!(owner.as_ref().and_then(|owner| owner.generation), Some(65));
    story.end(3000);
    story.uid = 1000;
    story.pass_secs(60);
    let judged = story.notices.iter().filter(|n| matches!(n, Notice::OrphanDetected { .. })).count();
    assert_eq!((judged, told(&story).2), (1, 36));
}

#[test]
fn one_that_lives_on_is_told_of_a_moment_later() {
    let mut story = Story::new(Policy::default());
    burst(&mut story, 1000, 1000, 100);
    story.exec_as(1000, 3000, 10, CLAUDE, TERMINAL);
    story.pass_secs(2);
    let notices = &story.notices;
    assert!(
        notices.iter().any(|n| matches!(n, Notice::AgentStarted { agent, .. } if agent.pid == 3000)),
        "{notices:?}"
    );
    story.end(3000);
    assert_eq!(told(&story), (65, 65, 36));
}

#[test]
fn what_was_not_told_yet_is_told_at_the_stop() {
    let mut story = Story::new(Policy::default());
    burst(&mut story, 1000, 1000, 100);
    story.hand_in(Input::Stop);
    assert_eq!(told(&story), (64, 64, 36));
}

/// Who started them has ended, so their owners are unknown. They are inspected in turn beside the loop.
#[test]
fn servers_without_a_known_owner_leave_the_loop_to_others() {
    let mut story = Story::new(Policy::default());
    story.hand_in(Input::Ready { kernel: String::new(), hooks: Vec::new() });
    story.told();
    story.late = Some(Vec::new());
    let start = |story: &mut Story, user: u32, pid: u32| {
        story.gone.insert(pid + 1000);
        let wires = [Stdio::Pipe(u64::from(pid)), Stdio::Pipe(u64::from(pid) + 1000), Stdio::Null];
        story.exec_as(user, pid, pid + 1000, SERVER, wires);
        story.told().iter().filter(|line| *line == "server_started").count()
    };
    let at_once: usize = (0..20).map(|n| start(&mut story, 1000, 300 + n)).sum();
    assert_eq!(at_once, 0);
    story.answer_late();
    let later = story.told().iter().filter(|line| *line == "server_started").count();
    assert_eq!(later, 20);
}
