//! What the next daemon says of an orphan that an earlier one kept.

use super::{
    memory::knowledge,
    restarts::next,
    story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id, seen},
};
use crate::model::{Input, Knowledge, Mode, Notice, Policy, ProcessId, Signal, SnapshotProcess};

const EXEMPT: &str = "[[exempt]]\nname = 'mine'\nprogram = 'mcp-server-filesystem'";

fn policy(rules: &str) -> Policy {
    Policy { rules: rules.to_owned(), ..Policy::default() }
}

fn left() -> Vec<SnapshotProcess> {
    vec![seen(30, 1, SERVER, WIRE)]
}

/// Whether an earlier daemon followed it or not. When the rule has gone, whose it was is known still.
#[test]
fn an_exempt_server_is_followed_also_if_it_was_there_before() {
    let mut story = Story::agent_with_server(policy(EXEMPT));
    story.end(20);
    story.pass_secs(30);
    let mut kept = next(&story, EXEMPT, left());
    kept.pass_secs(30);
    assert!(kept.told().contains(&"orphan_spared exempt_rule".to_owned()), "{:?}", kept.told());
    assert_eq!((kept.engine.report().totals().kept, kept.sent()), (1, vec![]));
    kept.hand_in(Input::Configured { policy: policy("") });
    kept.pass_secs(30);
    assert!(kept.sent().contains(&(30, Signal::Term)), "{:?}", kept.told());

    let found = vec![seen(20, 10, CLAUDE, TERMINAL), seen(30, 20, SERVER, WIRE)];
    let mut first = super::found::daemon(Some(0), policy(EXEMPT), Knowledge::default(), found);
    assert_eq!(first.told(), ["agent_started", "server_started", "ready"]);
    first.end(20);
    first.pass_secs(30);
    assert_eq!((first.engine.report().totals().kept, first.sent()), (1, vec![]));
}

/// The next daemon, after as many seconds as this one passed and these.
fn later(story: &Story, secs: u64, found: Vec<SnapshotProcess>) -> Story {
    let mut next = Story::new(Policy { mode: Mode::Observe, ..Policy::default() });
    next.now = story.now + std::time::Duration::from_secs(secs);
    next.hand_in(Input::Remembered { knowledge: knowledge(&story.facts_persisted) });
    next.snapshot(found);
    next.hand_in(Input::Ready { kernel: String::new(), hooks: Vec::new() });
    next
}

/// `recovered` and the time of each notice that it is suspected, `again` and the time since the exit of each that it is an orphan.
fn told(story: &Story) -> (Vec<bool>, Vec<(bool, u64)>) {
    let suspected = story.notices.iter().filter_map(|notice| match notice {
        Notice::OrphanSuspected { recovered, .. } => Some(*recovered),
        _ => None,
    });
    let detected = story.notices.iter().filter_map(|notice| match notice {
        Notice::OrphanDetected { again, after_ms, .. } => Some((*again, after_ms / 1000)),
        _ => None,
    });
    (suspected.collect(), detected.collect())
}

#[test]
fn a_kept_orphan_is_detected_again_and_its_owner_exited_when_it_did() {
    let mut story = Story::agent_with_server(Policy { mode: Mode::Observe, ..Policy::default() });
    story.end(20);
    let (exited, grace) = (story.now, 10);
    story.pass_secs(grace);
    assert_eq!(told(&story), (vec![false], vec![(false, grace)]));
    for _ in 0..2 {
        story = later(&story, 100, left());
        story.pass_secs(grace);
        let since = (story.now.since(exited)).as_secs();
        assert_eq!(told(&story), (vec![false], vec![(true, since)]));
        let detached = |notice: &Notice| matches!(notice, Notice::ServerDetached { .. });
        assert!(!story.notices.iter().any(detached));
    }
}

/// The twins: the daemon ended before the verdict, and before the owner did.
#[test]
fn what_was_not_detected_before_is_detected_for_the_first_time() {
    for ends in [true, false] {
        let mut story = Story::agent_with_server(Policy { mode: Mode::Observe, ..Policy::default() });
        if ends {
            story.end(20);
        }
        let mut next = later(&story, 100, left());
        next.pass_secs(10);
        let since = if ends { 110 } else { 10 };
        assert_eq!(told(&next), (vec![!ends], vec![(false, since)]));
    }
}

/// What adopted it did not create it.
#[test]
fn who_created_it_is_history() {
    let creator = |story: &Story, process: ProcessId| {
        story.engine.world().node(process).map(|node| (node.creator, node.witnessed))
    };
    let story = Story::agent_with_server(Policy::default());
    let next = later(&story, 1, left());
    assert_eq!(creator(&next, id(30)), Some((Some(id(20)), true)));
    let found = super::found::daemon(Some(0), Policy::default(), Knowledge::default(), left());
    assert_eq!(creator(&found, id(30)), Some((Some(id(1)), false)));
}

/// It left the session of nobody.
#[test]
fn a_session_that_is_not_known_was_not_left() {
    let story = Story::agent_with_server(Policy::default());
    let one = SnapshotProcess { sid: 20, ..seen(30, 1, SERVER, WIRE) };
    let mut next = later(&story, 1, vec![one]);
    assert_eq!(next.told(), ["server_started", "orphan_suspected", "ready"]);
}
