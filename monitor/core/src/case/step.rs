//! The transition function: the phase, an event and the facts give the next phase and the actions.

use std::mem;

use super::{
    Action, Announcement, By, Cause, Event, Facts, Finding, INSPECT_AGAIN, Outcome, Owner, Phase, Reason,
    Record, Refusal, Step, Verdict, ending,
    pace::{CLOSING, WHILE_REPAIRED},
};
use crate::model::{BootTime, Guard};

/// The next phase, and the actions in the order in which they must be carried out.
pub fn step(phase: Phase, event: Event, facts: &Facts<'_>) -> (Phase, Vec<Action>) {
    match event {
        // A person asked to end it while its owner was alive. That continues.
        Event::Suspected { .. } if phase.is_terminating() && !holds_under_living_owner(&phase) => {
            (phase, Vec::new())
        }
        // It was judged while its owner was alive: it is inspected again, and not judged again.
        Event::Suspected { reason, since, .. }
            if phase.orphan().is_some() && holds_under_living_owner(&phase) =>
        {
            // A step that was taken waits for what it waits for.
            let waits = phase.is_terminating();
            let at_once = (!waits).then_some(Action::SetDeadline(Some(facts.now)));
            (another_cause(phase, reason, since), at_once.into_iter().collect())
        }
        Event::Suspected { reason, since, deadline } => {
            let cause = Cause { reason, since, asked: phase.asked() };
            (Phase::Grace { cause, deadline }, vec![Action::SetDeadline(Some(deadline))])
        }
        Event::OwnerFound => match phase.since() {
            None => (phase, Vec::new()),
            Some(since) => {
                let cleared = Action::Announce(Announcement::Cleared { since });
                (Phase::Clear, vec![Action::SetDeadline(None), cleared])
            }
        },
        Event::SessionLives => match phase.cause() {
            Some(Cause { reason: Reason::Released(By::Session), since, .. }) => {
                let announced = Action::Announce(Announcement::SessionLives { since: *since });
                (Phase::Clear, vec![Action::SetDeadline(None), announced])
            }
            _ => (phase, Vec::new()),
        },
        Event::Asked => asked(phase, facts),
        Event::DeadlineReached => {
            let actions = match &phase {
                Phase::Failed { .. } if !facts.main_ended => Vec::new(),
                Phase::Terminating { step: Step::Kill { .. }, .. } => vec![Action::Proceed],
                _ if facts.doubtful => vec![Action::SetDeadline(Some(facts.now + WHILE_REPAIRED))],
                _ => vec![Action::Inspect],
            };
            (phase, actions)
        }
        Event::Inspected(finding) => inspected(phase, *finding, facts),
        Event::Inconclusive { again } => (phase, vec![Action::SetDeadline(Some(facts.now + again))]),
        Event::Proceed => ending::proceed(phase, facts),
        Event::SignalRefused { process, signal, refusal: Refusal::Retryable, .. } => {
            ending::retry(phase, process, signal, facts)
        }
        Event::SignalRefused { process, refusal: Refusal::Final { error, errno }, last, .. } => {
            ending::refused(phase, process, error, errno, last)
        }
        Event::NewChild { process } => ending::kill_new_child(phase, process, facts),
        Event::RulesChanged => match phase {
            // There is no inspection between rounds of SIGKILL, so the case goes back to the inspection before them.
            Phase::Terminating { verdict, step: Step::Kill { .. } } => {
                (Phase::Terminating { verdict, step: Step::Rest }, vec![Action::SetDeadline(Some(facts.now))])
            }
            Phase::Spared { .. } => (phase, vec![Action::SetDeadline(Some(facts.now))]),
            _ => (phase, Vec::new()),
        },
        Event::OtherEnded => {
            let may_change = match &phase {
                Phase::Unproven { .. } => true,
                // What waits for a person does not change when a process ends.
                Phase::Spared { verdict, .. } => verdict.guards.iter().any(|guard| !guard.yields_to_person()),
                _ => false,
            };
            (phase, may_change.then_some(Action::SetDeadline(Some(facts.now))).into_iter().collect())
        }
        Event::Ended => ended(phase, facts),
    }
}

/// Whether there is a case, and its reason holds though the owner lives.
fn holds_under_living_owner(phase: &Phase) -> bool {
    phase.cause().is_some_and(|cause| cause.reason.under_living_owner())
}

/// There is another reason for the case of an orphan, because its owner exited, too. What was done stays done.
fn another_cause(mut phase: Phase, reason: Reason, since: BootTime) -> Phase {
    if let Phase::Spared { verdict, .. } | Phase::Terminating { verdict, .. } | Phase::Failed { verdict } =
        &mut phase
    {
        verdict.cause = Cause { reason, since, asked: verdict.cause.asked };
    }
    phase
}

/// A person asked to end it. It is inspected first, as in any other case.
fn asked(phase: Phase, facts: &Facts<'_>) -> (Phase, Vec<Action>) {
    let now = facts.now;
    let again = |mut verdict: Box<Verdict>| {
        verdict.cause.asked = true;
        verdict.attempt.refused.clear();
        verdict
    };
    let phase = match phase {
        Phase::Clear => {
            let cause = Cause { reason: Reason::Asked, since: now, asked: true };
            Phase::Grace { cause, deadline: now }
        }
        Phase::Grace { cause, .. } => Phase::Grace { cause: Cause { asked: true, ..cause }, deadline: now },
        Phase::Unproven { verdict, inspections } => Phase::Unproven { verdict: again(verdict), inspections },
        Phase::Spared { verdict, inspections } => Phase::Spared { verdict: again(verdict), inspections },
        Phase::Failed { verdict } => Phase::Spared { verdict: again(verdict), inspections: 0 },
        phase @ Phase::Terminating { .. } => return (phase, Vec::new()),
    };
    (phase, vec![Action::Inspect])
}

/// The host was inspected.
fn inspected(phase: Phase, finding: Finding, facts: &Facts<'_>) -> (Phase, Vec<Action>) {
    let asked = phase.asked();
    if asked && !finding.guards.is_empty() {
        return stop_asked(phase, finding.guards, facts);
    }
    let Some(cause) = phase.cause().copied() else { return (phase, Vec::new()) };
    if !asked {
        // It may be inspected during its grace because its main process exited. That inspection was only about what
        // the main process left.
        if let Some(deadline) = phase.grace().filter(|deadline| facts.now < *deadline) {
            return (phase, vec![Action::SetDeadline(Some(deadline))]);
        }
        if finding.too_early {
            // Wait a moment, unless the owner hangs while its files are being closed.
            let hangs = facts.now.since(cause.since) >= facts.pace.grace + INSPECT_AGAIN;
            let delay = if hangs { INSPECT_AGAIN } else { CLOSING };
            return (phase, vec![Action::SetDeadline(Some(facts.now + delay))]);
        }
        if finding.has_owner {
            return (phase, vec![Action::AdoptOwner]);
        }
    }
    let update = phase.verdict().map(|_| Action::UpdateMemory);
    let (phase, actions) = if !finding.doubts.is_empty() && !asked {
        unproven(phase, cause, finding, facts)
    } else {
        match phase {
            Phase::Clear => (phase, Vec::new()),
            Phase::Grace { deadline, .. } => {
                mark_orphan(Box::new(Verdict::new(cause)), deadline, finding, facts)
            }
            // Until now it was unproven. The last doubt has just disappeared.
            Phase::Unproven { verdict, .. } => mark_orphan(verdict, facts.now, finding, facts),
            phase => advance(phase, finding, facts),
        }
    };
    (phase, update.into_iter().chain(actions).collect())
}

/// An inspection for a person's request found a guard. The case returns to what it was before.
fn stop_asked(phase: Phase, guards: Vec<Guard>, facts: &Facts<'_>) -> (Phase, Vec<Action>) {
    let spared = Action::Announce(Announcement::Spared { guards });
    let not_asked = |mut verdict: Box<Verdict>| {
        verdict.cause.asked = false;
        verdict
    };
    // New guards are reported after the next inspection.
    let soon = Action::SetDeadline(Some(facts.now));
    // The request is the only reason for the case, so the procedure stops for good.
    let only_asked = phase.cause().is_some_and(|cause| cause.reason == Reason::Asked)
        && !matches!(facts.owner, Owner::Exited(_));
    match phase {
        _ if only_asked => {
            let deadline = facts.owner_wanted.then_some(facts.now + facts.pace.grace);
            (Phase::Clear, vec![Action::SetDeadline(deadline), spared])
        }
        // A case under a living owner goes on. Its next inspection is due when its grace is over.
        Phase::Grace { cause, deadline } if cause.reason.under_living_owner() => {
            let deadline = deadline.max(facts.now);
            let phase = Phase::Grace { cause: Cause { asked: false, ..cause }, deadline };
            (phase, vec![Action::SetDeadline(Some(deadline)), spared])
        }
        Phase::Clear | Phase::Grace { .. } => {
            let deadline = facts.now + facts.pace.grace;
            let (phase, deadline) = match facts.owner {
                Owner::Exited(since) => {
                    let cause = Cause { reason: Reason::OwnerExited, since, asked: false };
                    (Phase::Grace { cause, deadline }, Some(deadline))
                }
                Owner::Alive | Owner::Unknown => (Phase::Clear, facts.owner_wanted.then_some(deadline)),
            };
            (phase, vec![Action::SetDeadline(deadline), spared])
        }
        Phase::Unproven { verdict, inspections } => {
            (Phase::Unproven { verdict: not_asked(verdict), inspections }, vec![soon, spared])
        }
        Phase::Spared { verdict, inspections } => {
            (Phase::Spared { verdict: not_asked(verdict), inspections }, vec![soon])
        }
        Phase::Terminating { verdict, step } => {
            (Phase::Terminating { verdict: not_asked(verdict), step }, vec![soon])
        }
        Phase::Failed { verdict } => (Phase::Failed { verdict: not_asked(verdict) }, vec![soon]),
    }
}

/// Its owner is gone, but somebody may still use it.
fn unproven(phase: Phase, cause: Cause, finding: Finding, facts: &Facts<'_>) -> (Phase, Vec<Action>) {
    let (mut verdict, before) = match phase {
        Phase::Clear | Phase::Grace { .. } => (Box::new(Verdict::new(cause)), None),
        Phase::Unproven { verdict, inspections } => (verdict, Some(inspections)),
        Phase::Spared { verdict, .. } | Phase::Terminating { verdict, .. } | Phase::Failed { verdict } => {
            (verdict, None)
        }
    };
    let inspections =
        before.filter(|_| verdict.doubts == finding.doubts).map(|before| before.saturating_add(1));
    verdict.evidence = finding.evidence;
    verdict.doubts = finding.doubts;
    // The guards are reported to a person who asks what may be ended.
    verdict.guards = finding.guards;
    verdict.rss_bytes = finding.rss_bytes;
    let deadline = facts.now + facts.pace.unproven.after(inspections.unwrap_or_default());
    let mut actions = vec![Action::KeepView, Action::SetDeadline(Some(deadline))];
    if inspections.is_none() {
        actions.extend([Action::Persist(Record::Subject), Action::Announce(Announcement::Unproven)]);
    }
    (Phase::Unproven { verdict, inspections: inspections.unwrap_or_default() }, actions)
}

/// Marks it as an orphan. `due`: the earliest time at which this could have been reported.
fn mark_orphan(
    mut verdict: Box<Verdict>,
    due: BootTime,
    finding: Finding,
    facts: &Facts<'_>,
) -> (Phase, Vec<Action>) {
    verdict.evidence.clone_from(&finding.evidence);
    verdict.guards.clone_from(&finding.guards);
    verdict.doubts.clear();
    (verdict.rss_bytes, verdict.pss_bytes) = (finding.rss_bytes, finding.pss_bytes);
    let mut actions = vec![Action::KeepView, Action::Persist(Record::Subject)];
    // If there is a doubt or a living owner, it is ended because a person wants it, not because it is an orphan.
    let left_behind = matches!(facts.owner, Owner::Exited(_)) || verdict.cause.reason.under_living_owner();
    let is_orphan = finding.doubts.is_empty() && left_behind;
    if is_orphan || !verdict.cause.asked {
        let again = mem::replace(&mut verdict.announced, true);
        actions.push(Action::Announce(Announcement::Orphan { due, again }));
    }
    let (phase, more) = if finding.guards.is_empty() {
        let phase = Phase::Spared { verdict: ready(verdict, finding), inspections: 0 };
        (phase, vec![Action::Release, Action::EndIfGone, Action::Proceed])
    } else {
        spare(verdict, finding.guards, None, facts)
    };
    actions.extend(more);
    (phase, actions)
}

/// An orphan was inspected again.
fn advance(phase: Phase, finding: Finding, facts: &Facts<'_>) -> (Phase, Vec<Action>) {
    if !finding.guards.is_empty() {
        let (verdict, before) = match phase {
            Phase::Clear | Phase::Grace { .. } | Phase::Unproven { .. } => return (phase, Vec::new()),
            Phase::Spared { verdict, inspections } => (verdict, inspections),
            Phase::Terminating { verdict, .. } | Phase::Failed { verdict } => (verdict, 0),
        };
        let before = (verdict.guards == finding.guards).then_some(before);
        return spare(verdict, finding.guards, before, facts);
    }
    match phase {
        Phase::Spared { verdict, inspections } => {
            let phase = Phase::Spared { verdict: ready(verdict, finding), inspections };
            (phase, vec![Action::Release, Action::Proceed, Action::EndIfGone])
        }
        Phase::Terminating { step: Step::MainProcess | Step::Rest, .. } => {
            (phase, vec![Action::Release, Action::Proceed, Action::EndIfGone])
        }
        Phase::Failed { .. } => (phase, vec![Action::SetDeadline(None), Action::EndIfGone]),
        phase => (phase, vec![Action::EndIfGone]),
    }
}

/// No guard forbids ending it. Stores what belongs to it before the first signal.
fn ready(mut verdict: Box<Verdict>, finding: Finding) -> Box<Verdict> {
    verdict.guards.clear();
    (verdict.attempt.sessions, verdict.attempt.tied) = (finding.sessions, finding.tied);
    verdict.attempt.container = finding.container;
    verdict
}

/// A guard forbids ending it. `before`: how many inspections in a row found the same guards; zero if the guards are
/// new.
fn spare(
    mut verdict: Box<Verdict>,
    guards: Vec<Guard>,
    before: Option<u32>,
    facts: &Facts<'_>,
) -> (Phase, Vec<Action>) {
    verdict.guards.clone_from(&guards);
    let inspections = before.map_or(0, |before| before.saturating_add(1));
    let mut actions = vec![Action::SetDeadline(Some(facts.now + facts.pace.spared.after(inspections)))];
    if before.is_none() {
        actions.push(Action::Announce(Announcement::Spared { guards }));
    }
    (Phase::Spared { verdict, inspections }, actions)
}

/// All of its processes have ended: the outcome of the case.
fn ended(mut phase: Phase, facts: &Facts<'_>) -> (Phase, Vec<Action>) {
    let mut actions = Vec::new();
    if let Phase::Spared { verdict, .. } | Phase::Terminating { verdict, .. } | Phase::Failed { verdict } =
        &mut phase
    {
        actions.extend(ending::announce_failure(verdict));
    }
    let outcome = match (&phase, phase.strongest_signal()) {
        (Phase::Clear, _) => Outcome::Exited,
        (Phase::Grace { .. }, _) if facts.owner == Owner::Unknown => Outcome::Exited,
        (Phase::Grace { cause, .. }, _) => Outcome::Cleared { since: cause.since },
        (Phase::Unproven { verdict, .. }, None) => Outcome::Cleared { since: verdict.cause.since },
        (
            Phase::Spared { verdict, .. } | Phase::Terminating { verdict, .. } | Phase::Failed { verdict },
            None,
        ) => Outcome::OrphanExited { rss_bytes: verdict.rss_bytes },
        (
            Phase::Unproven { verdict, .. }
            | Phase::Spared { verdict, .. }
            | Phase::Terminating { verdict, .. }
            | Phase::Failed { verdict },
            Some(signal),
        ) => Outcome::Reaped {
            signal,
            first_signal: verdict.attempt.first_signal.unwrap_or(facts.now),
            rss_bytes: verdict.rss_bytes,
            pss_bytes: verdict.pss_bytes,
            asked: verdict.cause.asked,
        },
    };
    actions.push(Action::Close(outcome));
    (Phase::Clear, actions)
}
