//! Short histories of one case: what a phase keeps, and what a person's request changes.

use super::*;
use crate::case::{Announcement, Outcome};

fn play(mut phase: Phase, events: Vec<Event>, facts: &Facts<'_>) -> (Phase, Vec<Action>) {
    let mut all = Vec::new();
    for event in events {
        let (next, actions) = step(phase, event, facts);
        phase = next;
        all.extend(actions);
    }
    (phase, all)
}

fn signals(actions: &[Action]) -> Vec<(u32, Signal)> {
    let sent = actions.iter().filter_map(|action| match action {
        Action::Signal { process, signal } => Some((process.pid, *signal)),
        _ => None,
    });
    sent.collect()
}

#[test]
fn an_orphan_ends_step_by_step() {
    let next = || [inspected(finding()), Event::Proceed];
    let grace = Phase::Grace { cause: cause(), deadline: at(NOW) };
    let events = next().into_iter().chain(next()).chain(next()).collect();
    let (phase, actions) = play(grace, events, &facts());
    assert_eq!(phase.stage(), Some(Stage::Kill));
    let (term, kill) = (Signal::Term, Signal::Kill);
    assert_eq!(signals(&actions), [(30, term), (31, term), (31, kill), (30, kill)]);
    let (_, actions) = step(phase, Event::Ended, &facts());
    let reaped =
        Outcome::Reaped { signal: kill, first_signal: at(NOW), rss_bytes: 8, pss_bytes: None, asked: false };
    assert_eq!(actions, [Action::Close(reaped)]);
}

#[test]
fn what_does_not_end_by_sigkill_is_given_up_once() {
    let mut phase = terminating(Stage::Rest);
    let mut said = Vec::new();
    for _ in 0..200 {
        let (next, actions) = step(phase, Event::Proceed, &facts());
        phase = next;
        said.extend(actions.into_iter().filter(|a| matches!(a, Action::Announce(_))));
    }
    assert_eq!(phase.stage(), Some(Stage::Failed));
    let [Action::Announce(Announcement::Failed { failure, failed: 2 })] = &said[..] else {
        panic!("{said:?}")
    };
    assert_eq!((failure.process, failure.errno), (id(31), None));
    assert!(failure.error.contains("5 s"), "{}", failure.error);
}

#[test]
fn a_person_overrules_doubts_and_no_guards() {
    let grace = || step(Phase::Clear, Event::Asked { anyway: true }, &facts()).0;
    let (phase, actions) = step(grace(), inspected(doubt()), &facts());
    assert!(phase.asked() && actions.contains(&Action::Proceed), "{actions:?}");
    // It is no orphan and is not reported as one.
    assert!(!actions.iter().any(|a| matches!(a, Action::Announce(_))), "{actions:?}");
    let alive = Facts { owner: Owner::Alive, ..facts() };
    let (phase, actions) = step(grace(), inspected(guard()), &alive);
    assert_eq!(phase, Phase::Clear);
    let told = Announcement::Spared { guards: vec![Guard::LiveAgentBelow] };
    assert_eq!(actions, [Action::SetDeadline(None), Action::Announce(told)]);
    // Its owner exited while the inspection was under way: it is a suspect like any other.
    let (phase, _) = step(grace(), inspected(guard()), &facts());
    assert_eq!(phase, Phase::Grace { cause: cause(), deadline: at(NOW + 10) });
    for phase in phases().into_iter().skip(2) {
        let stage = phase.stage();
        let (phase, actions) = step(asked(phase), inspected(guard()), &facts());
        assert_eq!((phase.stage(), phase.asked(), signals(&actions)), (stage, false, vec![]));
    }
}

#[test]
fn a_wish_ends_with_the_case() {
    let (phase, _) = step(asked(unproven()), Event::OwnerFound, &facts());
    assert!(!phase.asked());
    let suspected = Event::Suspected { reason: Reason::OwnerExited, since: at(NOW), deadline: at(NOW) };
    let (phase, _) = play(phase, vec![suspected, inspected(doubt())], &facts());
    assert_eq!(phase.stage(), Some(Stage::Unproven));
}

#[test]
fn what_was_done_is_known_after_a_guard_stopped_it() {
    let (phase, _) = step(terminating(Stage::Rest), inspected(guard()), &facts());
    assert_eq!((phase.stage(), phase.strongest_signal()), (Some(Stage::Spared), Some(Signal::Term)));
    // The guard disappears: the main process gets SIGTERM again.
    let (phase, actions) = play(phase, vec![inspected(finding()), Event::Proceed], &facts());
    assert_eq!((phase.stage(), signals(&actions)), (Some(Stage::MainProcess), vec![(30, Signal::Term)]));
    let first = phase.orphan().and_then(|verdict| verdict.attempt.first_signal);
    assert_eq!(first, Some(at(NOW - 1)));
}

#[test]
fn a_refused_process_gets_no_signal_until_a_person_asks() {
    let (phase, _) = step(terminating(Stage::MainProcess), refused(Signal::Term, false), &facts());
    let (phase, _) = step(phase, inspected(guard()), &facts());
    let next = || vec![inspected(finding()), Event::Proceed];
    let (phase, actions) = play(phase, [next(), next(), next()].concat(), &facts());
    assert_eq!(signals(&actions), [(31, Signal::Term), (31, Signal::Kill)]);
    let (phase, _) = step(phase, refused(Signal::Kill, true), &facts());
    let (phase, _) = step(phase, Event::Asked { anyway: true }, &facts());
    let (_, actions) = play(phase, next(), &facts());
    assert_eq!(signals(&actions), [(30, Signal::Term)]);
}

#[test]
fn delays_double_up_to_ten_minutes() {
    let mut phase = spared(&[Guard::LiveAgentBelow]);
    let mut delays = Vec::new();
    for _ in 0..6 {
        let (next, actions) = step(phase, inspected(guard()), &facts());
        phase = next;
        delays.extend(actions.iter().filter_map(|action| match action {
            Action::SetDeadline(Some(deadline)) => Some(deadline.since(at(NOW)).as_secs()),
            _ => None,
        }));
    }
    assert_eq!(delays, [60, 120, 240, 480, 600, 600]);
}

#[test]
fn an_orphan_that_was_in_doubt_is_an_orphan_again() {
    let orphans = |events: Vec<Event>| {
        let grace = Phase::Grace { cause: cause(), deadline: at(NOW) };
        let told = play(grace, events, &facts()).1.into_iter().filter_map(|action| match action {
            Action::Announce(Announcement::Orphan { again, .. }) => Some(again),
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    assert_eq!(orphans(vec![inspected(doubt()), inspected(finding())]), [false]);
    let back = || [inspected(finding()), inspected(doubt())];
    assert_eq!(orphans(back().into_iter().chain(back()).collect()), [false, true]);
    assert_eq!(orphans(vec![inspected(guard()), inspected(doubt()), inspected(guard())]), [false, true]);
    // Another case is counted anew.
    let other = Event::Suspected { reason: Reason::OwnerExited, since: at(SINCE), deadline: at(NOW) };
    let events = back().into_iter().chain([Event::OwnerFound, other, inspected(finding())]).collect();
    assert_eq!(orphans(events), [false, false]);
}
