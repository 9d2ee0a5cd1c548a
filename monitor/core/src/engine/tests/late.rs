//! Tests of answers that come late: nothing is judged by a state that has changed since.

use super::story_scene::WireState;
use std::time::Duration;

use super::story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id};
use crate::model::{Input, Policy, ProcessEvent, Signal};

/// A server whose owner has exited. Its inspection was made, and the answer was not passed in yet.
fn being_looked_at() -> Story {
    let mut story = Story::agent_with_server(Policy {
        grace: Duration::from_secs(2),
        work_grace: Duration::ZERO,
        ..Policy::default()
    });
    story.fork(30, 31);
    story.late = Some(Vec::new());
    story.end(20);
    assert_eq!(story.told(), ["agent_exited", "orphan_suspected"]);
    story.pass_secs(2);
    assert_eq!(story.looks.len(), 1);
    story
}

/// Something happened before the answer came. The server is inspected again, a moment later.
fn is_looked_at_again(mut story: Story) {
    assert!(story.told().iter().all(|told| told == "server_detached"));
    story.answer_late();
    assert_eq!((story.told(), story.sent()), (vec![], vec![]));
    assert_eq!(story.looks.len(), 1);
    story.pass(Duration::from_millis(100));
    assert_eq!(story.looks.len(), 2);
    story.answer_late();
    assert_eq!(story.told(), ["orphan_detected"]);
    assert_eq!(story.sent().len(), 1);
}

#[test]
fn a_late_answer_about_what_is_still_so_is_judged_by() {
    let mut story = being_looked_at();
    assert_eq!((story.told(), story.sent()), (vec![], vec![]));
    story.answer_late();
    assert_eq!(story.told(), ["orphan_detected"]);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
}

#[test]
fn whatever_it_does_meanwhile_makes_it_stale() {
    let changes: [fn(&mut Story); 4] = [
        |story| story.fork(31, 32),
        |story| story.exec(31, 30, &["/usr/bin/firefox"], TERMINAL),
        |story| story.setsid(31),
        |story| story.end(31),
    ];
    for change in changes {
        let mut story = being_looked_at();
        change(&mut story);
        is_looked_at_again(story);
    }
}

#[test]
fn one_look_is_under_way_at_a_time() {
    let mut story = being_looked_at();
    // The queue may be long.
    story.pass_secs(600);
    assert_eq!(story.looks.len(), 1);
    story.answer_late();
    assert_eq!(story.told(), ["orphan_detected"]);
}

/// A further inspection may show that the server is in use. What was found before does not count.
#[test]
fn what_came_into_use_meanwhile_is_left_alone() {
    let mut story = being_looked_at();
    story.setsid(31);
    story.sockets.clients = true;
    story.answer_late();
    story.pass_secs(1);
    story.answer_late();
    assert_eq!(story.sent(), []);
    assert!(story.told().contains(&"orphan_unproven clients".to_owned()));
}

/// An inspection comes before the rest gets SIGTERM and before it gets SIGKILL. That inspection must be up to date,
/// too.
#[test]
fn every_step_rests_on_a_look_of_its_own_time() {
    let mut story = being_looked_at();
    story.answer_late();
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    story.pass_secs(1);
    story.fork(31, 32);
    story.answer_late();
    assert_eq!(story.sent(), []);
    story.pass_secs(1);
    story.answer_late();
    assert!(story.sent().contains(&(32, Signal::Term)));
}

/// The server forks during every inspection. It is judged nevertheless, and a process that no inspection has seen
/// gets no signal.
#[test]
fn one_that_never_holds_still_is_judged_in_the_end() {
    let mut story = being_looked_at();
    let mut child = 32;
    for _ in 0..3 {
        story.fork(31, child);
        child += 1;
        story.answer_late();
        assert_eq!((story.told(), story.sent()), (vec![], vec![]));
        story.pass_secs(1);
    }
    story.fork(31, child);
    story.answer_late();
    assert_eq!(story.told(), ["orphan_detected"]);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    story.pass_secs(1);
    story.fork(31, child + 1);
    story.answer_late();
    let asked: Vec<u32> = story.sent().into_iter().map(|(pid, _)| pid).collect();
    assert!(asked.contains(&31) && asked.contains(&child) && !asked.contains(&(child + 1)), "{asked:?}");
}

/// The main process of the server must be the one that was inspected, however often it changes.
#[test]
fn one_that_runs_anew_without_a_pause_gets_no_signal() {
    let mut story = being_looked_at();
    for _ in 0..10 {
        story.exec(30, 20, SERVER, WIRE);
        story.answer_late();
        assert_eq!((story.told(), story.sent()), (vec![], vec![]));
        story.pass_secs(1);
    }
    story.answer_late();
    assert_eq!(story.told(), ["orphan_detected"]);
}

/// The process that held the wire at the inspection has exited. Its number belongs to a living agent by now.
#[test]
fn a_number_that_was_handed_on_is_not_taken_for_its_older_holder() {
    use crate::model::{ProcessId, scene::ProcessRow};
    let mut story = being_looked_at();
    let image = super::story::image(CLAUDE);
    let older = ProcessRow { process: ProcessId::new(40, 7), image, ..ProcessRow::default() };
    // What was found before is stale.
    story.fork(31, 32);
    story.answer_late();
    story.facts.stdin = WireState::Held { holders: vec![older], unseen: false };
    story.pass(Duration::from_millis(100));
    story.exec(40, 10, CLAUDE, TERMINAL);
    story.told();
    story.answer_late();
    assert_eq!(story.told(), Vec::<String>::new());
    story.hand_in(Input::Process { event: ProcessEvent::Setsid { at: story.now, process: id(40), sid: 40 } });
    assert_eq!(story.engine.counts()[0], 1, "the agent is there");
}

const YOUNG: Duration = Duration::from_millis(200);
const OLD: Duration = Duration::from_millis(201);

/// A client has connected since: no record tells of that, only a look.
#[test]
fn an_answer_that_has_waited_too_long_is_no_evidence() {
    for (waited, is_ended) in [(YOUNG, true), (OLD, false)] {
        let mut story = being_looked_at();
        story.sockets.clients = true;
        story.answer_after(waited);
        assert_eq!(!story.sent().is_empty(), is_ended);
        story.pass(Duration::ZERO);
        story.answer_late();
        assert_eq!(story.told().contains(&"orphan_unproven clients".to_owned()), !is_ended);
    }
}

/// Each signal rests on a look of its own, which may not be old either.
#[test]
fn no_step_is_taken_by_an_old_answer() {
    for (waited, is_ended) in [(YOUNG, true), (OLD, false)] {
        let mut story = being_looked_at();
        story.answer_late();
        assert_eq!(story.sent(), [(30, Signal::Term)]);
        story.pass_secs(1);
        story.answer_after(waited);
        assert_eq!(story.sent().contains(&(31, Signal::Term)), is_ended);
    }
}

/// On a host on which each look takes long orphans are ended all the same, after some of them. The next old answer counts as one of
/// a host that is fast again.
#[test]
fn where_each_look_takes_long_a_few_are_enough() {
    let mut story = being_looked_at();
    let mut looks = 1;
    while story.sent().is_empty() {
        story.answer_after(Duration::from_secs(10));
        story.pass(Duration::ZERO);
        looks += 1;
        assert!(looks < 12);
    }
    assert_eq!(story.told(), ["orphan_detected"]);
    story.pass_secs(1);
    story.answer_after(OLD);
    assert_eq!(story.sent(), []);
}
