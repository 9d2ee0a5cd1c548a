//! Sessions that expire while their owner lives.

use super::story_scene::{ProcessFacts, WireState};
use std::time::Duration;

use super::story::{CLAUDE, SERVER, Story, TERMINAL, WIRE};
use crate::model::{
    BootTime, Evidence, Input, KeyState, Mode, Notice, Policy, RegistryLife, SessionMark, SessionPolicy,
    SessionState, SessionsSeen, Signal, Stdio, Work,
};

pub const ACTIVE: KeyState = KeyState::Active;
pub const MISSING: KeyState = KeyState::Missing;
const UNKNOWN: KeyState = KeyState::Unknown;
const EVERY: u64 = 15;

pub fn settings() -> Policy {
    let sessions = SessionPolicy {
        registry: "localhost".to_owned(),
        mark: SessionMark::Variable("MCP_SESSION_ID".to_owned()),
        idle: Duration::from_secs(300),
        every: Duration::from_secs(EVERY),
    };
    Policy { sessions: Some(sessions), ..Policy::default() }
}

/// The manager 20 holds the wires of its servers 30 and 40, of the sessions `a` and `b`.
pub fn manager(settings: Policy) -> Story {
    let mut story = Story::new(settings);
    story.sessions.insert(30, "a".to_owned());
    story.sessions.insert(40, "b".to_owned());
    story.facts.stdin = WireState::held_by(&[20]);
    story.facts.stdout = WireState::held_by(&[20]);
    story.exec(20, 10, CLAUDE, TERMINAL);
    for pid in [30, 40] {
        did(&mut story, pid, 1);
        story.start(20, pid, SERVER, WIRE);
    }
    did(&mut story, 20, 1);
    story.told();
    story.polite.insert(30);
    story
}

/// What a process has done so far.
pub fn did(story: &mut Story, pid: u32, cpu_ns: u64) {
    story.work.insert(pid, Work { cpu_ns, ..Work::default() });
}

/// One answer of the registry in this life.
fn answer(story: &mut Story, life: Option<&str>, states: &[(&str, KeyState)]) {
    let registry = life.map(|name| RegistryLife { name: name.to_owned(), began: Some(BootTime::default()) });
    let sessions = states.iter().map(|(id, state)| ((*id).to_owned(), *state)).collect();
    let seen = SessionsSeen { asked: story.now, registry, sessions };
    story.hand_in(Input::Sessions { seen });
}

/// The same answer again and again, for so many seconds.
pub fn answers(story: &mut Story, seconds: u64, states: &[(&str, KeyState)]) {
    for _ in 0..seconds / EVERY {
        answer(story, Some("1"), states);
        story.pass_secs(EVERY);
    }
}

fn counts(story: &Story) -> [u64; 4] {
    let counts = story.engine.session_counts().unwrap();
    SessionState::ALL.map(|state| counts[&state])
}

#[test]
fn the_server_of_an_expired_session_is_ended_and_the_other_one_lives() {
    let mut story = manager(settings());
    story.polite.clear();
    assert!(story.engine.session_ids().eq(["a", "b"]));
    answers(&mut story, 30, &[("a", ACTIVE), ("b", ACTIVE)]);
    assert_eq!(counts(&story), [2, 0, 0, 0]);
    answers(&mut story, 300, &[("a", MISSING), ("b", ACTIVE)]);
    assert_eq!((story.told().len(), counts(&story)), (0, [1, 1, 0, 0]), "not missing for long enough");
    answer(&mut story, Some("1"), &[("a", MISSING), ("b", ACTIVE)]);
    assert_eq!((story.told(), counts(&story)), (vec!["orphan_suspected".to_owned()], [1, 0, 1, 0]));
    story.pass_secs(EVERY);
    answers(&mut story, 15, &[("a", MISSING), ("b", ACTIVE)]);
    assert_eq!(story.notices.len(), 1, "{:?}", story.notices);
    let Notice::OrphanDetected { server, evidence, .. } = &story.notices[0] else { panic!() };
    assert_eq!((server.session.as_deref(), &evidence[..]), (Some("a"), &[Evidence::SessionExpired][..]));
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    // What it does to end is no use.
    did(&mut story, 30, 2);
    answer(&mut story, Some("1"), &[("a", MISSING), ("b", ACTIVE)]);
    story.pass_secs(6);
    assert_eq!(story.sent()[0], (30, Signal::Kill));
    story.end(30);
    assert_eq!(story.told()[1..], ["orphan_reaped KILL"]);
    assert!(story.engine.session_ids().eq(["b"]));
}

#[test]
fn a_key_that_comes_back_clears_the_case() {
    let mut story = manager(settings());
    answers(&mut story, 15, &[("a", ACTIVE), ("b", ACTIVE)]);
    answers(&mut story, 315, &[("a", MISSING), ("b", ACTIVE)]);
    assert_eq!(story.told(), ["orphan_suspected"]);
    answer(&mut story, Some("1"), &[("a", ACTIVE), ("b", ACTIVE)]);
    assert_eq!(story.told(), ["orphan_cleared session_lives"]);
    story.pass_secs(3600);
    assert_eq!((story.told().len(), story.sent().len()), (0, 0));
}

#[test]
fn what_is_no_answer_is_never_read_as_expired() {
    let states = [("a", MISSING), ("b", MISSING)];
    for life in [None, Some("1")] {
        let mut story = manager(settings());
        answers(&mut story, 15, &[("a", ACTIVE), ("b", ACTIVE)]);
        for _ in 0..1000 {
            let states = if life.is_some() { [("a", UNKNOWN), ("b", UNKNOWN)] } else { states };
            answer(&mut story, life, &states);
            story.pass_secs(EVERY);
        }
        assert_eq!((story.told().len(), counts(&story)), (0, [0, 0, 0, 2]));
    }
}

#[test]
fn time_in_which_nobody_asked_does_not_count() {
    let mut story = manager(settings());
    answers(&mut story, 15, &[("a", ACTIVE), ("b", ACTIVE)]);
    answer(&mut story, Some("1"), &[("a", MISSING), ("b", ACTIVE)]);
    story.pass_secs(3600);
    answer(&mut story, Some("1"), &[("a", MISSING), ("b", ACTIVE)]);
    answer(&mut story, None, &[]);
    story.pass_secs(3600);
    answer(&mut story, Some("1"), &[("a", MISSING), ("b", ACTIVE)]);
    assert_eq!((story.told().len(), counts(&story)), (0, [1, 1, 0, 0]));
}

#[test]
fn an_answer_that_is_too_old_decides_nothing() {
    let mut story = manager(settings());
    answers(&mut story, 15, &[("a", ACTIVE), ("b", ACTIVE)]);
    answers(&mut story, 315, &[("a", MISSING), ("b", ACTIVE)]);
    assert_eq!(story.told(), ["orphan_suspected"]);
    answer(&mut story, None, &[("a", UNKNOWN), ("b", UNKNOWN)]);
    story.pass_secs(3600);
    assert_eq!((story.told().len(), story.sent().len(), counts(&story)), (0, 0, [0, 0, 0, 2]));
    // The registry is back.
    answers(&mut story, 60, &[("a", MISSING), ("b", ACTIVE)]);
    assert_eq!(story.told(), ["orphan_detected", "orphan_reaped TERM"]);
}

#[test]
fn a_registry_that_restarted_or_was_emptied_says_nothing() {
    for life in ["2", "1"] {
        let mut story = manager(settings());
        answers(&mut story, 15, &[("a", ACTIVE), ("b", ACTIVE)]);
        for _ in 0..1000 {
            answer(&mut story, Some(life), &[("a", MISSING), ("b", MISSING)]);
            story.pass_secs(EVERY);
        }
        assert_eq!((story.told().len(), counts(&story)), (0, [0, 0, 0, 2]), "{life}");
        // A session that was seen again is known again.
        answer(&mut story, Some(life), &[("a", ACTIVE), ("b", ACTIVE)]);
        for _ in 0..30 {
            answer(&mut story, Some(life), &[("a", MISSING), ("b", ACTIVE)]);
            story.pass_secs(EVERY);
        }
        assert_eq!(story.told(), ["orphan_suspected", "orphan_detected", "orphan_reaped TERM"], "{life}");
    }
}

#[test]
fn a_restart_begins_the_time_of_a_missing_key_anew() {
    let mut story = manager(settings());
    answers(&mut story, 15, &[("a", ACTIVE), ("b", ACTIVE)]);
    answers(&mut story, 315, &[("a", MISSING), ("b", ACTIVE)]);
    answer(&mut story, Some("2"), &[("a", MISSING), ("b", ACTIVE)]);
    assert_eq!(story.told(), ["orphan_suspected", "orphan_cleared session_lives"]);
}

#[test]
fn a_key_that_its_owner_could_not_renew_says_nothing() {
    let gone = [("a", MISSING), ("b", ACTIVE)];
    // Stopped or frozen when the key ran out, it may go on some day.
    let mut story = manager(settings());
    answers(&mut story, 15, &[("a", ACTIVE), ("b", ACTIVE)]);
    story.work.remove(&20);
    answers(&mut story, 3600, &gone);
    assert_eq!((story.told().len(), counts(&story)), (0, [1, 0, 0, 1]));
    did(&mut story, 20, 2);
    answers(&mut story, 3600, &gone);
    assert_eq!((story.told().len(), counts(&story)), (0, [1, 0, 0, 1]), "nobody has seen the key since");
    // It goes on, and lets the session end: the time in which it is stopped once more does not count.
    answers(&mut story, 15, &[("a", ACTIVE), ("b", ACTIVE)]);
    answers(&mut story, 315, &gone);
    assert_eq!(story.told(), ["orphan_suspected"]);
    story.work.remove(&20);
    answers(&mut story, 3600, &gone);
    did(&mut story, 20, 3);
    answers(&mut story, 300, &gone);
    assert_eq!(story.told(), ["orphan_cleared session_lives"]);
    answers(&mut story, 60, &gone);
    assert_eq!(story.told(), ["orphan_suspected", "orphan_detected", "orphan_reaped TERM"]);
}

#[test]
fn a_key_that_nobody_saw_may_have_another_name() {
    // No key of this owner was ever seen.
    let mut story = manager(settings());
    answers(&mut story, 3000, &[("a", MISSING), ("b", MISSING)]);
    assert_eq!((story.told().len(), counts(&story)), (0, [0, 2, 0, 0]));
    // The key of another session shows that the name is right.
    answers(&mut story, 60, &[("a", MISSING), ("b", ACTIVE)]);
    assert_eq!(story.told(), ["orphan_suspected", "orphan_detected", "orphan_reaped TERM"]);
    // The registry was emptied since: the key may have existed.
    let mut story = manager(settings());
    for _ in 0..100 {
        let registry = Some(RegistryLife { name: "1".to_owned(), began: None });
        let sessions = vec![("a".to_owned(), MISSING), ("b".to_owned(), ACTIVE)];
        let seen = SessionsSeen { asked: story.now, registry, sessions };
        story.hand_in(Input::Sessions { seen });
        story.pass_secs(EVERY);
    }
    assert_eq!((story.told().len(), counts(&story)), (0, [1, 1, 0, 0]));
}

/// The session of 30 expires, and its grace passes.
fn expired(mut story: Story) -> Story {
    answers(&mut story, 15, &[("a", ACTIVE), ("b", ACTIVE)]);
    answers(&mut story, 360, &[("a", MISSING), ("b", ACTIVE)]);
    story
}

#[test]
fn any_other_user_of_the_server_is_a_doubt() {
    let doubt = |change: &dyn Fn(&mut Story)| {
        let mut story = manager(settings());
        change(&mut story);
        story = expired(story);
        assert_eq!(story.sent(), []);
        story.told().pop().unwrap()
    };
    assert_eq!(
        doubt(&|story| story.facts.stdin = WireState::held_by(&[40])),
        "orphan_unproven wire_held",
        "a sibling"
    );
    assert_eq!(doubt(&|story| story.facts.stdout = WireState::held_by(&[50])), "orphan_unproven stdout_read");
    assert_eq!(doubt(&|story| story.facts.stdin = WireState::Unknown), "orphan_unproven wire_unknown");
    let traced = || ProcessFacts { traced: true, ..ProcessFacts::default() };
    assert_eq!(doubt(&|story| _ = story.apart.insert(30, traced())), "orphan_unproven traced");
    assert_eq!(doubt(&|story| story.sockets.clients = true), "orphan_unproven clients");
    assert_eq!(doubt(&|story| _ = story.work.remove(&30)), "orphan_unproven active");
}

#[test]
fn a_server_that_works_is_in_use() {
    let mut story = manager(settings());
    answers(&mut story, 15, &[("a", ACTIVE), ("b", ACTIVE)]);
    answers(&mut story, 315, &[("a", MISSING), ("b", ACTIVE)]);
    for work in 2..100 {
        did(&mut story, 30, work);
        answers(&mut story, 15, &[("a", MISSING), ("b", ACTIVE)]);
    }
    assert_eq!(story.told(), ["orphan_suspected", "orphan_unproven active"]);
    assert_eq!(story.sent(), []);
    // It has done nothing for a while: the last doubt is gone.
    answers(&mut story, 1500, &[("a", MISSING), ("b", ACTIVE)]);
    assert_eq!(story.told(), ["orphan_detected", "orphan_reaped TERM"]);
    assert_eq!(story.sent()[0], (30, Signal::Term));
}

#[test]
fn one_that_reads_a_request_after_its_session_expired_is_never_ended_for_it() {
    let mut story = manager(settings());
    answers(&mut story, 15, &[("a", ACTIVE), ("b", ACTIVE)]);
    answers(&mut story, 315, &[("a", MISSING), ("b", ACTIVE)]);
    story.work.insert(30, Work { cpu_ns: 2, read_bytes: 100, ..Work::default() });
    answers(&mut story, 15_000, &[("a", MISSING), ("b", ACTIVE)]);
    assert_eq!(story.told(), ["orphan_suspected", "orphan_unproven active"]);
    assert_eq!(story.sent(), []);
    // Its session lives again, and expires: what it did before says nothing.
    answers(&mut story, 15, &[("a", ACTIVE), ("b", ACTIVE)]);
    answers(&mut story, 360, &[("a", MISSING), ("b", ACTIVE)]);
    let again = ["orphan_cleared session_lives", "orphan_suspected", "orphan_detected", "orphan_reaped TERM"];
    assert_eq!(story.told(), again);
}

#[test]
fn a_use_before_the_session_expired_is_none_since() {
    // Its thread has ended long before, which opens no case without a rule, and it was used since.
    let mut story = manager(settings());
    story.fork_by(21, 20, 50);
    story.sessions.insert(50, "c".to_owned());
    story.work.insert(50, Work { cpu_ns: 1, ..Work::default() });
    story.exec(50, 20, SERVER, [Stdio::Pipe(5), Stdio::Pipe(6), Stdio::Null]);
    story.end_thread(20, 21);
    let all = |c| [("a", ACTIVE), ("b", ACTIVE), ("c", c)];
    answers(&mut story, 15, &all(ACTIVE));
    story.work.insert(50, Work { cpu_ns: 2, read_bytes: 100, ..Work::default() });
    answers(&mut story, 360, &all(MISSING));
    assert_eq!(story.sent()[0], (50, Signal::Term));
}

#[test]
fn the_owner_exits_meanwhile() {
    let mut story = expired(manager(Policy { mode: Mode::Observe, ..settings() }));
    assert_eq!(story.told(), ["orphan_suspected", "orphan_detected observe", "orphan_spared observe"]);
    story.facts.stdin = WireState::HungUp;
    story.facts.stdout = WireState::HungUp;
    story.end(20);
    story.pass_secs(3600);
    // The other one is suspected as ever; nothing is said twice.
    assert_eq!(
        story.told(),
        ["agent_exited", "orphan_suspected", "orphan_detected observe", "orphan_spared observe"]
    );
}

#[test]
fn a_person_may_end_it_and_nothing_else_changes_that() {
    let mut story = manager(settings());
    answers(&mut story, 15, &[("a", ACTIVE), ("b", ACTIVE)]);
    answers(&mut story, 315, &[("a", MISSING), ("b", ACTIVE)]);
    story.hand_in(Input::Reap {
        request: crate::model::ReapRequest {
            include_active: true,
            targets: vec![crate::model::Asked::Pid(30)],
            ..Default::default()
        },
        by: "alice".to_owned(),
    });
    assert_eq!(story.sent(), [(30, Signal::Term)]);
}

#[test]
fn without_sessions_nothing_is_asked_and_another_configuration_forgets() {
    let mut story = manager(Policy::default());
    assert_eq!((story.engine.session_ids().count(), story.engine.session_counts()), (0, None));
    answer(&mut story, Some("1"), &[("a", MISSING)]);
    assert_eq!(story.told().len(), 0);
    let mut story = manager(settings());
    answers(&mut story, 15, &[("a", ACTIVE), ("b", ACTIVE)]);
    answers(&mut story, 315, &[("a", MISSING), ("b", ACTIVE)]);
    let policy = crate::model::Policy { grace: Duration::from_secs(10), ..Default::default() };
    story.hand_in(Input::Configured { policy });
    assert_eq!(story.told(), ["orphan_suspected", "orphan_cleared session_lives", "reconfigured"]);
    assert_eq!((story.engine.session_ids().count(), story.engine.session_counts()), (0, None));
}
