//! Tests of what was there before the first start on a host: a person decides.

use std::time::Duration;

use super::story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id, seen};
use crate::model::{
    Found, Guard, Input, Knowledge, Policy, ReapRequest, RememberedServer, Signal, SnapshotProcess, State,
    Tracked, TrackedOwner, TrackedStart,
};

pub(super) fn ready() -> Input {
    Input::Ready { kernel: String::new(), hooks: Vec::new() }
}

/// A daemon that is started now, after a first start of all at this number of seconds.
pub(super) fn daemon(
    first_start: Option<u64>,
    settings: Policy,
    knowledge: Knowledge,
    found: Vec<SnapshotProcess>,
) -> Story {
    let mut story = Story::new(settings);
    let first_start = first_start.map(|seconds| crate::model::BootTime(seconds * 1_000_000_000));
    story.creator = found.iter().find(|one| one.id == id(20)).cloned();
    story.hand_in(Input::Remembered { knowledge: Knowledge { first_start, ..knowledge } });
    story.snapshot(found);
    story.hand_in(ready());
    story
}

/// A server without an owner, which nobody can reach: it was born at 300 ms.
fn left() -> Vec<SnapshotProcess> {
    vec![seen(30, 1, SERVER, WIRE)]
}

fn first(settings: Policy) -> Story {
    daemon(Some(1000), settings, Knowledge::default(), left())
}

fn all() -> ReapRequest {
    ReapRequest::default()
}

#[test]
fn the_first_daemon_tells_of_it_once_and_touches_nothing() {
    let mut story = first(Policy::default());
    assert_eq!(story.told(), ["server_started", "ready"]);
    story.pass_secs(10_000);
    assert_eq!(story.told(), ["orphan_detected found", "orphan_spared found"]);
    assert_eq!(story.sent(), []);
    let report = story.engine.report();
    assert_eq!((report.totals().kept, report.totals().found), (1, 1));
    assert!(report.unowned[0].found);
}

/// The host was busy when the daemon started.
#[test]
fn what_is_left_is_looked_at_again_before_ready_if_the_first_look_is_too_old() {
    let mut story = Story::new(Policy::default());
    story.late = Some(Vec::new());
    story.snapshot(left());
    for waited in [300, 0] {
        assert!(story.engine.is_inspecting());
        story.answer_after(Duration::from_millis(waited));
    }
    assert!(!story.engine.is_inspecting());
    assert!(story.engine.world.servers().values().all(|server| !server.phase.is_clear()));
}

#[test]
fn a_person_ends_it() {
    let mut story = first(Policy::default());
    story.polite.insert(30);
    story.pass_secs(100);
    let planned = story.engine.plan(&all());
    assert_eq!((planned[0].state, planned[0].guards.len()), (State::Orphan, 0));
    story.hand_in(Input::Reap { request: all(), by: "alice".to_owned() });
    story.pass_secs(1);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    assert_eq!(story.engine.report().totals().found, 0);
}

/// The twins: the setting, and a first start in an earlier boot or before the server.
#[test]
fn elsewhere_it_is_ended() {
    let end = Policy { found: Found::End, ..Policy::default() };
    let none = Knowledge::default;
    for mut story in [
        first(end),
        daemon(None, Policy::default(), none(), left()),
        daemon(Some(0), Policy::default(), none(), left()),
    ] {
        story.pass_secs(100);
        assert!(story.sent().contains(&(30, Signal::Term)), "{:?}", story.told());
    }
}

/// What was there before and is left behind under the daemon's eyes is ended, and so is what came later.
#[test]
fn what_is_witnessed_is_ended() {
    let found = vec![seen(20, 10, CLAUDE, TERMINAL), seen(30, 20, SERVER, WIRE)];
    let mut story = daemon(Some(1000), Policy::default(), Knowledge::default(), found);
    assert_eq!(story.told(), ["agent_started", "server_started", "ready"]);
    story.end(20);
    story.pass_secs(10);
    assert_eq!(story.told(), ["agent_exited", "orphan_suspected", "orphan_detected"]);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
}

/// What let go and guards were there is not known of what began before: also where its owner ends under the daemon's eyes, or had an
/// earlier daemon. The twins: all is known; it began later; the setting.
#[test]
fn of_what_not_all_is_known_a_person_decides() {
    let at = |seconds: u64| Some(crate::model::BootTime(seconds * 1_000_000_000));
    let knows = |incomplete_before| Knowledge { incomplete_before, restarted: true, ..Knowledge::default() };
    let found = || vec![seen(20, 10, CLAUDE, TERMINAL), seen(30, 20, SERVER, WIRE)];
    let owner = || TrackedOwner { main: id(20), name: "claude".to_owned(), ..TrackedOwner::default() };
    let end = Policy { found: Found::End, ..Policy::default() };
    for (incomplete_before, settings, is_ended) in [
        (at(1), Policy::default(), false),
        (None, Policy::default(), true),
        (at(0), Policy::default(), true),
        (at(1), end, true),
    ] {
        let mut story = daemon(None, settings.clone(), knows(incomplete_before), found());
        story.end(20);
        story.pass_secs(10);
        assert_eq!(story.sent().contains(&(30, Signal::Term)), is_ended, "{:?}", story.told());
        let mut story =
            daemon(None, settings, Knowledge { incomplete_before, ..followed(Some(owner())) }, left());
        story.pass_secs(100);
        assert_eq!(story.sent().contains(&(30, Signal::Term)), is_ended, "{:?}", story.told());
        assert_eq!(story.engine.report().totals().found, u64::from(!is_ended));
    }
}

/// What the next daemon is told of a server that an earlier one followed.
fn followed(owner: Option<TrackedOwner>) -> Knowledge {
    let start = Some(TrackedStart { seeks_owner: owner.is_none(), adopted: true, ..TrackedStart::default() });
    let server = Tracked { id: id(30), processes: vec![id(30)], owner, start, ..Tracked::default() };
    Knowledge {
        servers: vec![RememberedServer { server, orphan: None }],
        restarted: true,
        ..Knowledge::default()
    }
}

/// After a restart: what the earlier daemon knew an owner of is ended when that has exited; what it had found is left to a
/// person still.
#[test]
fn a_restart_changes_nothing() {
    let owner = TrackedOwner { main: id(20), name: "claude".to_owned(), ..TrackedOwner::default() };
    let mut known = daemon(Some(900), Policy::default(), followed(Some(owner)), left());
    known.pass_secs(100);
    assert!(known.sent().contains(&(30, Signal::Term)), "{:?}", known.told());
    let mut found = daemon(Some(900), Policy::default(), followed(None), left());
    found.pass_secs(1000);
    assert_eq!(found.sent(), []);
    assert!(found.told().contains(&"orphan_spared found".to_owned()));
}

/// Nobody watched when it began: the earlier daemon had stopped. The twins: it began before that, or nobody knows until when that watched.
#[test]
fn what_began_and_was_left_while_no_daemon_ran_is_ended() {
    for (watched_until, is_ended) in [(Some(200), true), (Some(301), false), (None, false)] {
        let watched_until = watched_until.map(|ms| crate::model::BootTime(ms * 1_000_000));
        let knowledge = Knowledge { restarted: true, watched_until, ..Knowledge::default() };
        let mut story = daemon(None, Policy::default(), knowledge, left());
        story.pass_secs(100);
        assert_eq!(story.sent().contains(&(30, Signal::Term)), is_ended, "{:?}", story.told());
    }
}

#[test]
fn the_setting_is_taken_into_use_while_the_daemon_runs() {
    let mut story = first(Policy::default());
    story.pass_secs(100);
    story.told();
    let policy =
        Policy { found: Found::End, term_timeout: std::time::Duration::from_secs(5), ..Policy::default() };
    story.hand_in(Input::Configured { policy });
    story.pass_secs(1);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
}

/// Another guard holds whoever asks; both are told.
#[test]
fn a_person_overrules_no_other_guard() {
    let mut story = first(Policy::default());
    story.facts.opted_out = true;
    story.pass_secs(100);
    story.hand_in(Input::Reap { request: all(), by: "alice".to_owned() });
    story.pass_secs(100);
    assert_eq!(story.sent(), []);
    let report = story.engine.report();
    assert_eq!(report.unowned[0].guards, [Guard::OptedOut, Guard::Found]);
    assert_eq!(report.totals().found, 0, "`orphand reap` would not end it");
}
