//! Tests of idle duplicates: the older of two servers of one identity does nothing while the newer one is in use.

use std::time::Duration;

use super::{
    story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id},
    story_scene::WireState,
};
use crate::model::{
    Doubt, FirstMessage, Input, NextStep, Notice, Policy, ServerReport, Signal, Stdio, Whereabouts,
};

const RULE: &str = "[[agent]]\nname = 'claude'\nprogram = 'claude'\nidle_duplicates = '1h'";
const HERE: Whereabouts = Whereabouts { directory: 1, command: Some(10), environment: Some(5) };
const OTHER: [Stdio; 3] = [Stdio::Pipe(3), Stdio::Pipe(4), Stdio::Null];
const HOUR: u64 = 60;

/// Agent 20, without a server, of which these rules may say something.
fn agent(rules: &str) -> Story {
    let mut story = Story::new(Policy { rules: rules.to_owned(), ..Policy::default() });
    story.exec(20, 10, CLAUDE, TERMINAL);
    (story.facts.stdin, story.facts.stdout) =
        (WireState::held_as(&[20], CLAUDE), WireState::held_as(&[20], CLAUDE));
    did(&mut story, 20, [1, 1]);
    story
}

/// An agent starts a server that works in `place`.
fn start(story: &mut Story, [owner, pid]: [u32; 2], argv: &[&str], place: Whereabouts) {
    story.places.insert(pid, place);
    did(story, pid, [100, 100]);
    story.start(owner, pid, argv, if pid == 30 { WIRE } else { OTHER });
}

/// Agent 20 has the servers 30 and 31, of one identity.
fn two(rules: &str) -> Story {
    let mut story = agent(rules);
    start(&mut story, [20, 30], SERVER, HERE);
    start(&mut story, [20, 31], SERVER, HERE);
    story.pass_secs(60);
    story.told();
    story.polite.extend([30, 31]);
    story
}

/// A process goes on: it computes, and reads and writes so many bytes.
fn did(story: &mut Story, pid: u32, [read, written]: [u64; 2]) {
    let work = story.work.entry(pid).or_default();
    work.cpu_ns += 1;
    work.read_bytes += read;
    work.written_bytes += written;
    work.writes += 1;
}

/// The agent works for so many minutes, and calls this server in each.
fn call(story: &mut Story, server: u32, minutes: u64) {
    for _ in 0..minutes {
        did(story, 20, [300, 300]);
        did(story, server, [300, 300]);
        story.pass_secs(60);
    }
}

/// What was told and done since the last call.
fn outcome(story: &mut Story) -> (Vec<String>, Vec<(u32, Signal)>) {
    (story.told(), story.sent())
}

fn nothing() -> (Vec<String>, Vec<(u32, Signal)>) {
    (Vec::new(), Vec::new())
}

fn report(story: &Story, pid: u32) -> ServerReport {
    let report = story.engine.report();
    report.servers().find(|(_, server)| server.server.id == id(pid).to_string()).unwrap().1.clone()
}

/// It is told so much and never ended, however long the newer one is in use.
fn stays(mut story: Story, told: &[&str]) {
    call(&mut story, 31, 3 * HOUR);
    assert_eq!(story.sent(), []);
    assert_eq!(story.told(), told);
}

// ---- it is ended -----------------------------------------------------------------------------------------------

#[test]
fn an_idle_duplicate_is_ended_and_the_newer_one_is_not() {
    let mut story = two(RULE);
    call(&mut story, 31, HOUR - 5);
    assert_eq!(outcome(&mut story), nothing());
    let (next, due) = (report(&story, 30).next, report(&story, 30).deadline);
    assert_eq!((next, report(&story, 31).next), (Some(NextStep::Idle), Some(NextStep::OwnerEnds)));
    let left = due.unwrap().since(story.now);
    assert!((Duration::from_secs(200)..Duration::from_secs(500)).contains(&left), "{left:?}");
    call(&mut story, 31, 9);
    assert_eq!(story.event("orphan_detected")["evidence"], serde_json::json!(["idle_duplicate"]));
    assert_eq!(story.told(), ["orphan_suspected", "orphan_detected", "orphan_reaped TERM"]);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    // Its successor has none, however long it rests.
    call(&mut story, 20, 3 * HOUR);
    assert_eq!(outcome(&mut story), nothing());
}

#[test]
fn of_three_those_are_ended_that_are_idle_behind_a_newer_one() {
    let mut story = two(RULE);
    start(&mut story, [20, 32], SERVER, HERE);
    story.pass_secs(60);
    story.told();
    // The newest is idle, too: the one in the middle is in use.
    call(&mut story, 31, 2 * HOUR);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
}

// ---- nothing says that it is to be ended -----------------------------------------------------------------------

#[test]
fn without_a_rule_nothing_is_asked_and_nothing_follows() {
    let mut story = two("");
    let asked = story.engine.questions.last;
    call(&mut story, 31, 3 * HOUR);
    assert_eq!(outcome(&mut story), nothing());
    // Four questions a minute about wires are all there is.
    assert_eq!(story.engine.questions.last - asked, 4 * 3 * HOUR);
    let other = RULE.replace("claude", "codex");
    stays(two(&other), &[]);
}

#[test]
fn another_environment_is_no_duplicate() {
    for environment in [Some(6), None] {
        let mut story = agent(RULE);
        start(&mut story, [20, 30], SERVER, HERE);
        start(&mut story, [20, 31], SERVER, Whereabouts { environment, ..HERE });
        story.pass_secs(60);
        story.told();
        stays(story, &[]);
    }
}

#[test]
fn the_newer_one_must_be_in_use() {
    // It does nothing at all; it computes; it wakes its own threads; it reads, or writes, and does not both.
    for done in [None, Some([0, 0]), Some([8, 8]), Some([300, 0]), Some([0, 300])] {
        let mut story = two(RULE);
        for _ in 0..3 * HOUR {
            did(&mut story, 20, [300, 300]);
            if let Some(done) = done {
                did(&mut story, 31, done);
            }
            story.pass_secs(60);
        }
        assert_eq!(outcome(&mut story), nothing(), "{done:?}");
        assert_eq!(report(&story, 30).next, Some(NextStep::OwnerEnds));
    }
    // It was in use before the older one was.
    let mut story = two(RULE);
    call(&mut story, 31, 5);
    call(&mut story, 30, 5);
    call(&mut story, 20, 3 * HOUR);
    assert_eq!(outcome(&mut story), nothing());
}

// ---- its clock begins anew -------------------------------------------------------------------------------------

#[test]
fn whatever_it_does_begins_its_time_anew() {
    for done in [[0, 0], [8, 8], [48, 72], [48, 0], [0, 72]] {
        let mut story = two(RULE);
        for _ in 0..3 {
            call(&mut story, 31, HOUR - 5);
            did(&mut story, 30, done);
        }
        assert_eq!(outcome(&mut story), nothing(), "{done:?}");
        call(&mut story, 31, HOUR + 5);
        assert_eq!(story.sent(), [(30, Signal::Term)]);
    }
}

#[test]
fn what_cannot_be_read_begins_its_time_anew() {
    let mut story = two(RULE);
    call(&mut story, 31, HOUR - 5);
    let work = story.work.remove(&30).unwrap();
    call(&mut story, 31, 3 * HOUR);
    story.work.insert(30, work);
    call(&mut story, 31, HOUR - 5);
    assert_eq!(outcome(&mut story), nothing());
    call(&mut story, 31, 10);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
}

/// The owner is stopped or frozen, or cannot be read: nobody could use the server meanwhile.
#[test]
fn time_in_which_its_owner_does_nothing_does_not_count() {
    for unreadable in [false, true] {
        let mut story = two(RULE);
        call(&mut story, 31, HOUR / 2);
        let work = story.work[&20];
        if unreadable {
            story.work.remove(&20);
        }
        for _ in 0..3 * HOUR {
            did(&mut story, 31, [300, 300]);
            story.pass_secs(60);
        }
        story.work.insert(20, work);
        call(&mut story, 31, HOUR / 2 - 5);
        assert_eq!(outcome(&mut story), nothing());
        call(&mut story, 31, 10);
        assert_eq!(story.sent(), [(30, Signal::Term)]);
    }
}

/// The clock of the kernel goes on while a computer sleeps.
#[test]
fn time_in_which_nobody_looked_does_not_count() {
    let mut story = two(RULE);
    call(&mut story, 31, HOUR / 2);
    for _ in 0..10 {
        story.now = story.now + Duration::from_secs(10 * 3600);
        call(&mut story, 31, 1);
    }
    assert_eq!(outcome(&mut story), nothing());
}

// ---- somebody may use it ---------------------------------------------------------------------------------------

/// What its processes wait for, and whom it asked, the judgement table plays.
#[test]
fn one_that_has_not_read_its_input_stays() {
    for unread in [Some(FirstMessage::Unknown), None] {
        let mut story = two(RULE);
        story.facts.unread_input = unread;
        stays(story, &["orphan_suspected", "orphan_unproven active"]);
    }
}

/// Runs until the older one is suspected.
fn suspected() -> Story {
    let mut story = two(RULE);
    while story.notices.is_empty() {
        did(&mut story, 20, [300, 300]);
        did(&mut story, 31, [300, 300]);
        story.pass_secs(10);
    }
    assert_eq!(outcome(&mut story), (vec!["orphan_suspected".to_owned()], vec![]));
    story
}

#[test]
fn one_that_is_used_in_its_grace_is_cleared_and_has_all_its_time_again() {
    for done in [[0, 0], [8, 8], [48, 72], [48, 0]] {
        let mut story = suspected();
        did(&mut story, 30, done);
        call(&mut story, 31, 1);
        assert_eq!(story.told(), ["orphan_cleared owner_found"], "{done:?}");
        call(&mut story, 31, HOUR - 5);
        assert_eq!(outcome(&mut story), nothing());
        call(&mut story, 31, 10);
        assert_eq!(story.sent(), [(30, Signal::Term)]);
    }
}

#[test]
fn the_end_of_the_newer_one_clears_it() {
    let mut story = suspected();
    story.end(31);
    call(&mut story, 20, 3 * HOUR);
    assert_eq!(story.sent(), []);
    assert_eq!(story.told(), ["server_exited", "orphan_cleared owner_found"]);
}

#[test]
fn a_rule_that_is_gone_clears_it() {
    let mut story = suspected();
    let rules = RULE.replace("idle_duplicates = '1h'", "");
    story.hand_in(Input::Configured { policy: Policy { rules, ..Policy::default() } });
    call(&mut story, 31, 3 * HOUR);
    assert_eq!(story.sent(), []);
    assert_eq!(story.told(), ["reconfigured", "orphan_cleared owner_found"]);
}

#[test]
fn a_doubt_that_goes_away_leads_to_its_end_and_a_use_before_to_none() {
    for used in [false, true] {
        let mut story = two(RULE);
        story.facts.unread_input = Some(FirstMessage::Unknown);
        let is_told = |notice: &Notice| matches!(notice, Notice::OrphanUnproven { doubts, .. } if doubts[..] == [Doubt::Active]);
        while !story.notices.iter().any(is_told) {
            call(&mut story, 31, 1);
        }
        if used {
            did(&mut story, 30, [48, 72]);
        }
        story.facts.unread_input = Some(FirstMessage::Nothing);
        call(&mut story, 31, HOUR / 2);
        assert_eq!(story.sent().is_empty(), used);
    }
}

#[test]
fn the_exit_of_its_owner_is_another_reason() {
    let mut story = suspected();
    story.hang_up();
    story.end(20);
    story.pass_secs(30);
    assert_eq!(story.sent(), [(30, Signal::Term), (31, Signal::Term)]);
}
