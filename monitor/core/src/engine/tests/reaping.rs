//! Tests of ending orphans that resist.

use super::story_scene::ProcessFacts;
use std::time::Duration;

use super::story::{SERVER, Story, WIRE, id};
use crate::model::{Input, Mode, Notice, Policy, Signal};

const EPERM: i32 = 1;

/// The owner of server 30 has been gone for the grace period. Reports and signals so far are cleared.
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
    let mut story = Story::agent_with_server(Policy::default());
    story.errno = Some(EPERM);
    let mut story = orphaned(story);
    story.pass_secs(3600);
    assert_eq!(failures(&story), [(30, Some(EPERM))]);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    // It exits by itself, so nothing may be reported as ended by orphand.
    story.told();
    story.end(30);
    assert_eq!(story.told(), ["orphan_exited"]);
}

#[test]
fn who_may_be_another_one_is_looked_at_again_and_gets_both_signals() {
    let mut story = Story::agent_with_server(Policy { other_uids: true, ..Policy::default() });
    story.fork(30, 31);
    story.unsure = [(30, Signal::Term), (31, Signal::Term), (31, Signal::Kill)].into();
    story.uid = 1000;
    let mut story = orphaned(story);
    let looks = story.looks.len();
    // The signal was for the server's main process, and it was not sent. The next step is an inspection.
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    story.pass_secs(1);
    assert_eq!(story.looks.len(), looks + 1);
    story.pass_secs(60);
    let sent = story.sent();
    let of = |pid| sent.iter().filter(|(p, _)| *p == pid).map(|(_, s)| *s).collect::<Vec<_>>();
    // The first attempt of each was not sent. SIGKILL comes only after SIGTERM was sent.
    assert_eq!(of(30), [Signal::Term, Signal::Kill]);
    assert_eq!(of(31), [Signal::Term, Signal::Term, Signal::Kill, Signal::Kill]);
    // The inspection knows the user of each process better than the fork record.
    assert!(story.users.iter().all(|uid| *uid == Some(1000)), "{:?}", story.users);
    assert_eq!(failures(&story), [(31, None)]);
    assert!(
        matches!(story.notices.last(), Some(Notice::ReapFailed { failed: 2, .. })),
        "{:?}",
        story.notices
    );
}

#[test]
fn without_room_for_signals_the_case_waits_and_goes_on() {
    let mut story = Story::agent_with_server(Policy::default());
    story.fork(30, 31);
    story.no_room = true;
    let mut story = orphaned(story);
    story.pass_secs(600);
    assert_eq!(failures(&story), []);
    assert_eq!(story.told(), ["orphan_detected"]);
    // There is room again: the procedure continues where it stopped, with an inspection first.
    story.no_room = false;
    let looks = story.looks.len();
    assert!(!story.sent().is_empty());
    story.pass_secs(60);
    assert!(story.looks.len() > looks);
    let sent = story.sent();
    let of = |pid| sent.iter().filter(|(p, _)| *p == pid).map(|(_, s)| *s).collect::<Vec<_>>();
    assert_eq!([of(30), of(31)], [[Signal::Term, Signal::Kill], [Signal::Term, Signal::Kill]]);
}

#[test]
fn users_are_judged_in_turn() {
    let mut story = Story::new(Policy::default());
    let mut agent = |of: u32, pid: u32, servers: std::ops::Range<u32>| {
        story.exec_as(of, pid, 10, super::story::CLAUDE, super::story::TERMINAL);
        for server in servers {
            story.fork(pid, server);
            story.exec_as(of, server, pid, super::story::SERVER, super::story::WIRE);
        }
    };
    agent(1000, 20, 100..140);
    agent(1001, 21, 200..201);
    story.uid = 1000;
    story.end(20);
    story.end(21);
    story.now = story.now + Duration::from_secs(10);
    // Only one pass. The first in line all belong to one user, and the server of the other user is handled
    // nevertheless.
    story.hand_in(Input::Timeout);
    let judged = |notice: &Notice| match notice {
        Notice::OrphanDetected { server, .. } => Some(server.id.clone()),
        _ => None,
    };
    let judged: Vec<String> = story.notices.iter().filter_map(judged).collect();
    assert!(judged.len() < 10 && judged.iter().take(2).any(|id| id == "200@200"), "{judged:?}");
}

#[test]
fn of_a_server_of_hundreds_a_few_are_shown_and_all_are_counted() {
    let mut story = Story::agent_with_server(Policy::default());
    for child in 1000..1199 {
        story.fork(30, child);
    }
    let mut story = orphaned(story);
    story.pass_secs(3600);
    let (mut seen, mut failed) = (Vec::new(), Vec::new());
    for notice in &story.notices {
        match notice {
            Notice::OrphanDetected { server, .. } => seen.push((server.processes.len(), server.count())),
            Notice::ReapFailed { failed: count, .. } => failed.push(*count),
            _ => {}
        }
    }
    assert_eq!((seen, failed), (vec![(64, 200)], vec![200]));
    let request =
        crate::model::ReapRequest { targets: vec![crate::model::Asked::Pid(1190)], ..Default::default() };
    assert_eq!(story.engine.plan(&request).len(), 1, "one that is not shown is a process of it all the same");
}

#[test]
fn a_guard_that_the_look_finds_stops_what_was_not_sent() {
    let mut story = Story::agent_with_server(Policy::default());
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
fn a_polite_server_gets_one_signal() {
    let mut story = Story::agent_with_server(Policy::default());
    story.fork(30, 31);
    story.polite = [30, 31].into();
    let mut story = orphaned(story);
    story.pass_secs(60);
    assert_eq!(story.sent(), [(30, Signal::Term), (31, Signal::Term)]);
    assert_eq!(story.told(), ["orphan_detected", "orphan_reaped TERM"]);
}

#[test]
fn a_doubt_in_between_stops_it_and_the_next_try_is_as_patient_as_the_first() {
    let mut story = Story::agent_with_server(Policy::default());
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
    let mut story = Story::agent_with_server(Policy::default());
    story.engine.ourselves = vec![id(40), id(30)];
    let mut story = orphaned(story);
    story.pass_secs(3600);
    assert_eq!(story.sent(), []);
    assert_eq!(story.told(), ["orphan_detected", "reap_failed"]);
}

#[test]
fn a_replaced_executable_is_marked_from_the_inspection_on_and_not_after_the_next_exec() {
    let mut story = Story::agent_with_server(Policy { mode: Mode::Observe, ..Policy::default() });
    let marked = |story: &Story| {
        let report = story.engine.report();
        report.servers().any(|(_, server)| server.has_stale_binary())
    };
    story.apart.insert(30, ProcessFacts { stale_binary: true, ..ProcessFacts::default() });
    assert!(!marked(&story));
    let story = &mut orphaned(story);
    assert!(marked(story));
    let told = story.notices.iter().find_map(|notice| match notice {
        Notice::OrphanDetected { server, .. } => Some(serde_json::to_value(&server.processes[0]).unwrap()),
        _ => None,
    });
    assert_eq!(told.unwrap()["stale_binary"], true);
    story.exec(30, 20, SERVER, WIRE);
    assert!(!marked(story));
    let now = serde_json::to_value(&story.engine.report().unowned).unwrap().to_string();
    assert!(!now.contains("stale_binary"), "absent when false: {now}");
}
