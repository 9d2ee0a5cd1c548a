//! Every event in every phase: which phase follows, and what is to be done.

use super::*;
use crate::case::Announcement;

/// What follows from an event in each phase, in words: the kind of the phase, then the actions.
fn table(event: &Event, facts: &Facts<'_>) -> Vec<String> {
    phases().into_iter().map(|phase| row(phase, event, facts)).collect()
}

fn row(phase: Phase, event: &Event, facts: &Facts<'_>) -> String {
    let (phase, actions) = step(phase, event.clone(), facts);
    let words: Vec<String> = actions.iter().map(word).collect();
    format!("{} {}", name(&phase), words.join(" ")).trim_end().to_owned()
}

/// The first step against an orphan that no guard holds.
fn first(facts: &Facts<'_>) -> String {
    row(spared(&[]), &Event::Proceed, facts)
}

fn word(action: &Action) -> String {
    match action {
        Action::SetDeadline(Some(deadline)) => format!("+{}ms", deadline.since(at(NOW)).as_millis()),
        Action::SetDeadline(None) => "never".to_owned(),
        Action::Signal { process, signal } => format!("{signal:?}:{}", process.pid),
        Action::Remember => "remember".to_owned(),
        Action::RememberReaping => "terminating".to_owned(),
        Action::Announce(Announcement::Cleared { reason, .. }) => format!("!{reason}"),
        Action::Announce(Announcement::Unproven) => "!unproven".to_owned(),
        Action::Announce(Announcement::Orphan { .. }) => "!orphan".to_owned(),
        Action::Announce(Announcement::Spared { .. }) => "!spared".to_owned(),
        Action::Announce(Announcement::Failed { failed, .. }) => format!("!failed:{failed}"),
        Action::Close(outcome) => {
            format!("{outcome:?}").split([' ', '{']).next().unwrap_or_default().to_owned()
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn the_table_begins_with_every_phase() {
    let names: Vec<String> = phases().iter().map(name).collect();
    assert_eq!(names, ["Clear", "Grace", "Unproven", "Spared", "MainProcess", "Rest", "Kill", "Failed"]);
}

#[test]
fn a_case_is_opened_and_cleared() {
    let suspected = Event::Suspected { reason: Reason::OwnerExited, since: at(NOW), deadline: at(NOW + 10) };
    let grace = "Grace +10000ms";
    let after = table(&suspected, &facts());
    assert_eq!(after, [grace, grace, grace, grace, "MainProcess", "Rest", "Kill", grace]);
    let cleared = "Clear never !owner_found";
    let after = table(&Event::OwnerFound, &facts());
    assert_eq!(after, ["Clear", cleared, cleared, cleared, cleared, cleared, cleared, cleared]);
}

#[test]
fn a_session_lives_and_only_its_case_is_cleared() {
    let kinds = |phase: Phase| row(phase, &Event::SessionLives, &facts());
    assert_eq!(phases().into_iter().map(kinds).filter(|row| row.contains("!session_lives")).count(), 0);
    for phase in phases().into_iter().filter(|phase| !phase.is_clear()) {
        assert_eq!(row(of_session(phase), &Event::SessionLives, &facts()), "Clear never !session_lives");
    }
}

#[test]
fn the_owner_of_an_expired_session_exits() {
    let suspected = Event::Suspected { reason: Reason::OwnerExited, since: at(NOW), deadline: at(NOW + 10) };
    let after: Vec<String> = phases()
        .into_iter()
        .map(|phase| {
            let (next, _) = step(of_session(phase.clone()), suspected.clone(), &facts());
            assert_eq!(next.cause().map(|cause| cause.reason), Some(Reason::OwnerExited));
            row(of_session(phase), &suspected, &facts())
        })
        .collect();
    // It is not announced as an orphan twice, and what was begun goes on.
    let grace = "Grace +10000ms";
    assert_eq!(after, [grace, grace, grace, "Spared +0ms", "MainProcess", "Rest", "Kill", "Failed +0ms"]);
}

/// The same phase, of a server whose session has expired.
fn of_session(phase: Phase) -> Phase {
    with_cause(phase, |cause| cause.reason = Reason::Released(By::Session))
}

#[test]
fn a_person_asks() {
    let after = table(&Event::Asked { anyway: true }, &facts());
    assert_eq!(
        after,
        [
            "Grace Inspect",
            "Grace Inspect",
            "Unproven Inspect",
            "Spared Inspect",
            "MainProcess",
            "Rest",
            "Kill",
            "Spared Inspect"
        ]
    );
}

#[test]
fn a_deadline_comes() {
    let after = table(&Event::DeadlineReached, &facts());
    assert_eq!(
        after,
        [
            "Clear Inspect",
            "Grace Inspect",
            "Unproven Inspect",
            "Spared Inspect",
            "MainProcess Inspect",
            "Rest Inspect",
            "Kill Proceed",
            "Failed"
        ]
    );
    // While records are missing nothing is inspected. SIGKILL goes on where it had begun.
    let doubtful = table(&Event::DeadlineReached, &Facts { doubtful: true, ..facts() });
    assert_eq!(doubtful[1..4], ["Grace +50ms", "Unproven +50ms", "Spared +50ms"]);
    assert_eq!(doubtful[6..], ["Kill Proceed", "Failed"]);
    // What the main process left when it exited by itself is inspected in every phase.
    let left = table(&Event::DeadlineReached, &Facts { main_ended: true, ..facts() });
    assert_eq!(left[7], "Failed Inspect");
}

#[test]
fn an_inspection_finds_an_orphan() {
    let after = table(&inspected(finding()), &facts());
    let new = "KeepView remember !orphan Release EndIfGone Proceed";
    assert_eq!(
        after,
        [
            "Clear".to_owned(),
            format!("Spared {new}"),
            format!("Spared UpdateMemory {new}"),
            "Spared UpdateMemory Release Proceed EndIfGone".to_owned(),
            "MainProcess UpdateMemory Release Proceed EndIfGone".to_owned(),
            "Rest UpdateMemory Release Proceed EndIfGone".to_owned(),
            "Kill UpdateMemory EndIfGone".to_owned(),
            "Failed UpdateMemory never EndIfGone".to_owned(),
        ]
    );
}

#[test]
fn an_inspection_finds_a_doubt_and_whatever_was_begun_stops() {
    let after = table(&inspected(doubt()), &facts());
    let news = "KeepView +5000ms remember !unproven";
    let judged = format!("Unproven UpdateMemory {news}");
    assert_eq!(after[..2], ["Clear".to_owned(), format!("Unproven {news}")]);
    assert!(after[2..].iter().all(|row| *row == judged), "{after:?}");
    // The same doubt again is not reported, and the next inspection is further away.
    let same = Finding { doubts: vec![Doubt::WireHeld], ..finding() };
    let (phase, actions) = step(unproven(), inspected(same), &facts());
    let words: Vec<String> = actions.iter().map(word).collect();
    assert_eq!(
        (phase.stage(), words.join(" ")),
        (Some(Stage::Unproven), "UpdateMemory KeepView +10000ms".to_owned())
    );
}

#[test]
fn an_inspection_finds_a_guard_and_whatever_was_begun_stops() {
    let after = table(&inspected(guard()), &facts());
    let news = "+30000ms !spared";
    assert_eq!(after[0], "Clear");
    assert_eq!(after[1], format!("Spared KeepView remember !orphan {news}"));
    assert_eq!(after[2], format!("Spared UpdateMemory KeepView remember !orphan {news}"));
    assert!(after[3..].iter().all(|row| *row == format!("Spared UpdateMemory {news}")), "{after:?}");
    let same = Finding { guards: vec![Guard::OptedOut], ..finding() };
    let (_, actions) = step(spared(&[Guard::OptedOut]), inspected(same), &facts());
    assert_eq!(actions.iter().map(word).collect::<Vec<_>>().join(" "), "UpdateMemory +60000ms");
}

#[test]
fn an_inspection_comes_too_early_or_finds_an_owner() {
    let early = table(&inspected(Finding { too_early: true, ..finding() }), &facts());
    assert_eq!(early[1..3], ["Grace +100ms", "Unproven +100ms"]);
    // The owner hangs while it closes its files.
    let late = Facts { now: at(NOW + 1), ..facts() };
    let late = table(&inspected(Finding { too_early: true, ..finding() }), &late);
    assert_eq!(late[1], "Grace +2000ms");
    let owned = table(&inspected(Finding { has_owner: true, ..finding() }), &facts());
    assert_eq!(owned[0], "Clear");
    assert!(owned[1..].iter().all(|row| row.ends_with(" AdoptOwner")), "{owned:?}");
    // Nothing is concluded during the grace period.
    let in_grace = Phase::Grace { cause: cause(), deadline: at(NOW + 3) };
    let (phase, actions) = step(in_grace, inspected(finding()), &facts());
    assert_eq!((name(&phase).as_str(), actions), ("Grace", vec![Action::SetDeadline(Some(at(NOW + 3)))]));
}

#[test]
fn an_inspection_says_nothing() {
    let after = table(&Event::Inconclusive { again: secs(3) }, &facts());
    for (row, phase) in after.iter().zip(phases()) {
        assert_eq!(*row, format!("{} +3000ms", name(&phase)));
    }
}

#[test]
fn what_was_allowed_is_done() {
    let after = table(&Event::Proceed, &facts());
    assert_eq!(
        after,
        [
            "Clear",
            "Grace",
            "Unproven",
            "Spared",
            "Rest Term:31 +4000ms",
            "Kill Kill:31 Kill:30 +50ms",
            "Kill Kill:31 Kill:30 +50ms",
            "Failed"
        ]
    );
    // No guard holds any more.
    assert_eq!(first(&facts()), "MainProcess terminating +1000ms Term:30");
    // No process may be signalled: this is reported once, and nothing more is tried.
    assert_eq!(first(&Facts { targets: Vec::new(), ..facts() }), "Failed never !failed:1");
    // The main process has exited: the rest gets SIGTERM at once.
    let headless = Facts { main_process: None, targets: vec![id(31)], ..facts() };
    assert_eq!(first(&headless), "Rest terminating Term:31 +4000ms");
    // A process that the inspection did not see gets no signal for it.
    let unseen = BTreeSet::from([id(31)]);
    let unseen = Facts { unseen: &unseen, ..facts() };
    assert_eq!(table(&Event::Proceed, &unseen)[5], "Kill Kill:30 +50ms");
}

#[test]
fn a_signal_is_refused() {
    let last = table(&refused(Signal::Term, true), &facts());
    let failed = "Failed never !failed:1";
    // A guard stopped the procedure before: the phase does not change.
    assert_eq!(last, ["Clear", "Grace", "Unproven", "Spared", failed, failed, failed, failed]);
    let others = table(&refused(Signal::Term, false), &facts());
    assert_eq!(others, ["Clear", "Grace", "Unproven", "Spared", "MainProcess", "Rest", "Kill", "Failed"]);
    let retry = table(&retryable(Signal::Term), &facts());
    let again = "MainProcess +1000ms";
    assert_eq!(retry, ["Clear", "Grace", "Unproven", "Spared +1000ms", again, again, again, "Failed"]);
    let retry = table(&retryable(Signal::Kill), &facts());
    assert_eq!(retry[4..], [again, "Rest +1000ms", "Rest +1000ms", "Failed"]);
}

#[test]
fn a_child_is_born() {
    let after = table(&Event::NewChild { process: id(31) }, &facts());
    assert_eq!(
        after,
        ["Clear", "Grace", "Unproven", "Spared", "MainProcess", "Rest", "Kill Kill:31", "Failed"]
    );
    let stranger = table(&Event::NewChild { process: id(32) }, &facts());
    assert_eq!(stranger[6], "Kill");
}

#[test]
fn the_world_around_it_changes() {
    let rules = table(&Event::RulesChanged, &facts());
    assert_eq!(
        rules,
        ["Clear", "Grace", "Unproven +0ms", "Spared +0ms", "MainProcess", "Rest", "Rest +0ms", "Failed"]
    );
    let other = table(&Event::OtherEnded, &facts());
    assert_eq!(
        other,
        ["Clear", "Grace", "Unproven +0ms", "Spared +0ms", "MainProcess", "Rest", "Kill", "Failed"]
    );
    let (_, actions) = step(spared(&[Guard::Observe]), Event::OtherEnded, &facts());
    assert_eq!(actions, []);
}

#[test]
fn all_of_it_has_ended() {
    let after = table(&Event::Ended, &facts());
    let outcomes = ["Exited", "Cleared", "Cleared", "OrphanExited", "Reaped", "Reaped", "Reaped", "Reaped"];
    assert_eq!(after, outcomes.map(|outcome| format!("Clear {outcome}")));
    let unowned = table(&Event::Ended, &Facts { owner: Owner::Unknown, ..facts() });
    assert_eq!(unowned[1], "Clear Exited");
}
