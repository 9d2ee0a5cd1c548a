//! Ending orphans against resistance.

use std::time::Duration;

use super::story::{Story, id};
use crate::{
    engine::Settings,
    model::{Notice, Signal},
};

const EPERM: i32 = 1;

/// The owner of server 30 has been gone for the grace; what was told and sent is forgotten.
fn orphaned(mut story: Story) -> Story {
    story.end(20);
    story.told();
    story.pass_secs(10);
    story
}

fn failures(story: &Story) -> Vec<(u32, Option<i32>)> {
    let failed = story.notices.iter().filter_map(|notice| match notice {
        Notice::ReapFailed { pid, errno, .. } => Some((*pid, *errno)),
        _ => None,
    });
    failed.collect()
}

#[test]
fn a_refused_signal_is_told_once_and_not_tried_again() {
    let mut story = Story::agent_with_server(Settings::default());
    story.errno = Some(EPERM);
    let mut story = orphaned(story);
    story.pass_secs(3600);
    assert_eq!(failures(&story), [(30, Some(EPERM))]);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    // It ends by itself: nobody may claim to have ended it.
    story.told();
    story.end(30);
    assert_eq!(story.told(), ["orphan_exited"]);
}

#[test]
fn what_was_refused_does_not_count_as_killed_in_vain() {
    let mut story = Story::agent_with_server(Settings::default());
    story.fork(30, 31);
    story.errno = Some(EPERM);
    let mut story = orphaned(story);
    story.errno = None;
    story.pass_secs(60);
    // The first was refused SIGTERM; the second got both and did not end.
    assert_eq!(failures(&story), [(30, Some(EPERM)), (31, None)]);
    assert_eq!(story.sent(), [(30, Signal::Term), (31, Signal::Term), (31, Signal::Kill)]);
}

#[test]
fn who_may_be_another_one_is_looked_at_again_and_gets_both_signals() {
    let mut story = Story::agent_with_server(Settings { other_uids: true, ..Settings::default() });
    story.fork(30, 31);
    story.unsure = [(30, Signal::Term), (31, Signal::Term), (31, Signal::Kill)].into();
    story.uid = 1000;
    let mut story = orphaned(story);
    let looks = story.looks.len();
    // The server proper was meant, and nothing was sent: the next thing is a look.
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    story.pass_secs(1);
    assert_eq!(story.looks.len(), looks + 1);
    story.pass_secs(60);
    let sent = story.sent();
    let of = |pid| sent.iter().filter(|(p, _)| *p == pid).map(|(_, s)| *s).collect::<Vec<_>>();
    // The first of each came to nothing. SIGKILL only after SIGTERM was sent.
    assert_eq!(of(30), [Signal::Term, Signal::Kill]);
    assert_eq!(of(31), [Signal::Term, Signal::Term, Signal::Kill, Signal::Kill]);
    // The look knows better than the fork record whose they are.
    assert!(story.users.iter().all(|uid| *uid == Some(1000)), "{:?}", story.users);
    assert_eq!(failures(&story), [(31, None), (30, None)]);
}

#[test]
fn a_guard_that_the_look_finds_stops_what_was_not_sent() {
    let mut story = Story::agent_with_server(Settings::default());
    story.unsure = [(30, Signal::Term)].into();
    let mut story = orphaned(story);
    story.facts.opted_out = true;
    story.pass_secs(60);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    story.told();
    story.end(30);
    assert_eq!(story.told(), ["orphan_exited"]);
}

#[test]
fn what_survives_sigkill_is_told_after_a_hundred_rounds() {
    let mut story = orphaned(Story::agent_with_server(Settings::default()));
    story.pass(Duration::from_millis(5_000 + 98 * 50));
    assert_eq!(failures(&story), []);
    story.pass_secs(3600);
    assert_eq!(failures(&story), [(30, None)]);
    assert_eq!(story.sent(), [(30, Signal::Term), (30, Signal::Kill)]);
    assert_eq!(story.told(), ["orphan_detected", "reap_failed"]);
    // The kernel lets go of it at last: that was the signal's doing.
    story.end(30);
    assert_eq!(story.told(), ["orphan_reaped KILL"]);
}

#[test]
fn a_polite_server_gets_one_signal() {
    let mut story = Story::agent_with_server(Settings::default());
    story.fork(30, 31);
    story.polite = [30, 31].into();
    let mut story = orphaned(story);
    story.pass_secs(60);
    assert_eq!(story.sent(), [(30, Signal::Term), (31, Signal::Term)]);
    assert_eq!(story.told(), ["orphan_detected", "orphan_reaped TERM"]);
}

#[test]
fn a_doubt_in_between_stops_it_and_the_next_try_is_as_patient_as_the_first() {
    let mut story = Story::agent_with_server(Settings::default());
    story.fork(30, 31);
    let mut story = orphaned(story);
    story.sockets.clients = true;
    story.pass_secs(20);
    assert_eq!(story.told(), ["orphan_detected", "orphan_unproven clients"]);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    story.sockets.clients = false;
    story.pass_secs(60);
    let at = |pid, signal| {
        story.signals.iter().find(|(p, s, _)| (*p, *s) == (pid, signal)).map(|(.., at)| *at).unwrap()
    };
    let patience = at(31, Signal::Kill).since(at(31, Signal::Term));
    assert!(patience >= Duration::from_secs(4), "{patience:?} from SIGTERM to SIGKILL");
}

#[test]
fn a_server_above_orphand_itself_is_told_and_not_ended() {
    let ourselves = vec![id(40), id(30)];
    let mut story = orphaned(Story::agent_with_server(Settings { ourselves, ..Settings::default() }));
    story.pass_secs(3600);
    assert_eq!(story.sent(), []);
    assert_eq!(story.told(), ["orphan_detected", "reap_failed"]);
}
