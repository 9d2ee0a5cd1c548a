//! The transition function: the phase, an event and the facts give the next phase and the actions.

use std::mem;

use super::{
    Action, Announcement, By, Cause, Event, Facts, Failure, Finding, INSPECT_AGAIN, Outcome, Owner, Phase,
    Reason, Stage, Verdict, Wish, ending,
    phase::{CLOSING, SPARED, UNPROVEN, WHILE_REPAIRED},
};
use crate::model::{BootTime, Guard, SignalError};

/// Moves a case to its next phase. Returns the actions in the order in which they must be carried out.
pub fn step(phase: &mut Phase, event: Event, facts: &Facts<'_>) -> Vec<Action> {
    let now = facts.now;
    match (event, phase) {
        (Event::Suspected { reason, since, deadline }, phase) => {
            let asked = phase.cause().map(|cause| cause.asked).unwrap_or_default();
            let cause = Cause { reason, since, asked };
            suspected(phase, cause, deadline, now)
        }
        (Event::OwnerFound, phase) => clear(phase, "owner_found"),
        (Event::SessionLives, phase) => match phase.cause() {
            Some(Cause { reason: Reason::Released(By::Session), .. }) => clear(phase, "session_lives"),
            _ => Vec::new(),
        },
        (Event::Asked { anyway }, phase) => {
            asked(phase, if anyway { Wish::Anyway } else { Wish::Orphan }, now)
        }
        (Event::DeadlineReached, phase) => match phase.stage() {
            Some(Stage::Failed) if !facts.main_ended => Vec::new(),
            Some(Stage::Kill) => vec![Action::Proceed],
            _ if facts.doubtful => vec![Action::SetDeadline(Some(now + WHILE_REPAIRED))],
            _ => vec![Action::Inspect],
        },
        (Event::Inspected(finding), phase) => inspected(phase, *finding, facts),
        (Event::Inconclusive { again }, _) => vec![Action::SetDeadline(Some(now + again))],
        (Event::Ended, phase) => ended(mem::take(phase), facts),
        (_, Phase::Clear | Phase::Grace { .. }) => Vec::new(),
        (Event::Proceed, Phase::Judged(verdict)) => ending::proceed(verdict, facts),
        (Event::SignalRefused { process, signal, error, last }, Phase::Judged(verdict)) => match error {
            _ if verdict.stage == Stage::Unproven => Vec::new(),
            SignalError::Gone => Vec::new(),
            SignalError::Unsure { .. } | SignalError::NoRoom { .. } => {
                ending::retry(verdict, process, signal, now)
            }
            SignalError::System { errno, message: error } => {
                ending::refused(verdict, Failure { process, error, errno: Some(errno) }, last)
            }
        },
        (Event::NewChild { process }, Phase::Judged(verdict)) => {
            ending::kill_new_child(verdict, process, facts)
        }
        (Event::RulesChanged, Phase::Judged(verdict)) => {
            // There is no inspection between rounds of SIGKILL, so the case goes back to the inspection before them.
            let goes_back = verdict.stage == Stage::Kill;
            if goes_back {
                verdict.stage = Stage::Rest;
            }
            let stays = matches!(verdict.stage, Stage::Unproven | Stage::Spared);
            (goes_back || stays).then_some(Action::SetDeadline(Some(now))).into_iter().collect()
        }
        (Event::OtherEnded, Phase::Judged(verdict)) => {
            let may_change = match verdict.stage {
                Stage::Unproven => true,
                // What waits for a person does not change when a process ends.
                Stage::Spared => verdict.guards.iter().any(|guard| !guard.yields_to_person()),
                _ => false,
            };
            may_change.then_some(Action::SetDeadline(Some(now))).into_iter().collect()
        }
    }
}

fn suspected(phase: &mut Phase, cause: Cause, deadline: BootTime, now: BootTime) -> Vec<Action> {
    let released = phase.released().is_some();
    let terminating = phase.is_terminating();
    match phase {
        // A person asked to end it while its owner was alive. That continues.
        Phase::Judged(_) if terminating && !released => Vec::new(),
        // It was judged while its owner was alive: it is inspected again, and not judged again. What was done stays
        // done, and a step that was taken waits for what it waits for.
        Phase::Judged(verdict) if released && verdict.stage != Stage::Unproven => {
            verdict.cause = cause;
            (!terminating).then_some(Action::SetDeadline(Some(now))).into_iter().collect()
        }
        phase => {
            *phase = Phase::Grace { cause, deadline };
            vec![Action::SetDeadline(Some(deadline))]
        }
    }
}

fn clear(phase: &mut Phase, reason: &'static str) -> Vec<Action> {
    let Some(since) = mem::take(phase).since() else { return Vec::new() };
    vec![Action::SetDeadline(None), Action::Announce(Announcement::Cleared { since, reason })]
}

/// A person asked to end it. It is inspected first, as in any other case.
fn asked(phase: &mut Phase, wish: Wish, now: BootTime) -> Vec<Action> {
    match phase {
        Phase::Clear => {
            let cause = Cause { reason: Reason::Asked, since: now, asked: wish };
            *phase = Phase::Grace { cause, deadline: now };
        }
        Phase::Grace { cause, deadline } => (cause.asked, *deadline) = (wish, now),
        Phase::Judged(verdict) if verdict.stage.is_terminating() => return Vec::new(),
        Phase::Judged(verdict) => {
            if verdict.stage == Stage::Failed {
                (verdict.stage, verdict.inspections) = (Stage::Spared, 0);
            }
            verdict.cause.asked = wish;
            verdict.attempt.refused.clear();
        }
    }
    vec![Action::Inspect]
}

fn inspected(phase: &mut Phase, finding: Finding, facts: &Facts<'_>) -> Vec<Action> {
    let (now, anyway) = (facts.now, phase.asked_anyway());
    if phase.asked() && !finding.guards.is_empty() {
        return stop_asked(phase, finding.guards, facts);
    }
    let Some(cause) = phase.cause().copied() else { return Vec::new() };
    if !anyway {
        // It may be inspected during its grace because its main process exited. That inspection was only about what
        // the main process left.
        if let Some(deadline) = phase.grace().filter(|deadline| now < *deadline) {
            return vec![Action::SetDeadline(Some(deadline))];
        }
        if finding.too_early {
            // Wait a moment, unless the owner hangs while its files are being closed.
            let hangs = now.since(cause.since) >= facts.pace.grace + INSPECT_AGAIN;
            return vec![Action::SetDeadline(Some(now + if hangs { INSPECT_AGAIN } else { CLOSING }))];
        }
        if finding.has_owner {
            return vec![Action::AdoptOwner];
        }
    }
    let update = phase.verdict().map(|_| Action::UpdateMemory);
    let due = phase.grace().unwrap_or(now);
    if phase.verdict().is_none() {
        *phase = Phase::Judged(Box::new(Verdict::new(cause)));
    }
    let Phase::Judged(verdict) = phase else { return Vec::new() };
    let actions = if !finding.doubts.is_empty() && !anyway {
        unproven(verdict, finding, facts)
    } else if verdict.stage == Stage::Unproven {
        // Either it is judged for the first time, or the last doubt has just disappeared.
        mark_orphan(verdict, due, finding, facts)
    } else {
        advance(verdict, finding, facts)
    };
    update.into_iter().chain(actions).collect()
}

/// An inspection for a person's request found a guard. The case returns to what it was before.
fn stop_asked(phase: &mut Phase, guards: Vec<Guard>, facts: &Facts<'_>) -> Vec<Action> {
    let spared = Action::Announce(Announcement::Spared { guards });
    let grace = facts.now + facts.pace.grace;
    // The request may be the only reason for the case. Then the procedure stops for good.
    let only_asked = phase.cause().is_some_and(|cause| cause.reason == Reason::Asked);
    let deadline = match (phase, facts.owner) {
        (Phase::Judged(verdict), owner) if !only_asked || matches!(owner, Owner::Exited(_)) => {
            verdict.cause.asked = Wish::None;
            // New guards are reported after the next inspection.
            let soon = Action::SetDeadline(Some(facts.now));
            let is_news = verdict.stage == Stage::Unproven;
            return [soon].into_iter().chain(is_news.then_some(spared)).collect();
        }
        // A case under a living owner goes on. Its next inspection is due when its grace is over.
        (Phase::Grace { cause, deadline }, _) if cause.reason.released().is_some() => {
            (cause.asked, *deadline) = (Wish::None, facts.now.max(*deadline));
            Some(*deadline)
        }
        (phase, Owner::Exited(since)) => {
            let cause = Cause { reason: Reason::OwnerExited, since, asked: Wish::None };
            *phase = Phase::Grace { cause, deadline: grace };
            Some(grace)
        }
        (phase, Owner::Alive | Owner::Unknown) => {
            *phase = Phase::Clear;
            facts.owner_wanted.then_some(grace)
        }
    };
    vec![Action::SetDeadline(deadline), spared]
}

/// Its owner is gone, but somebody may still use it.
fn unproven(verdict: &mut Verdict, finding: Finding, facts: &Facts<'_>) -> Vec<Action> {
    let is_news = verdict.doubts != finding.doubts;
    (verdict.stage, verdict.cause.asked) = (Stage::Unproven, Wish::None);
    verdict.inspections = if is_news { 0 } else { verdict.inspections.saturating_add(1) };
    // The guards are reported to a person who asks what may be ended.
    (verdict.evidence, verdict.doubts, verdict.guards) = (finding.evidence, finding.doubts, finding.guards);
    verdict.rss_bytes = finding.rss_bytes;
    let deadline = facts.now + facts.pace.after(UNPROVEN, verdict.inspections);
    let mut actions = vec![Action::KeepView, Action::SetDeadline(Some(deadline))];
    if is_news {
        actions.extend([Action::Remember, Action::Announce(Announcement::Unproven)]);
    }
    actions
}

/// Marks it as an orphan. `due`: the earliest time at which this could have been reported.
fn mark_orphan(verdict: &mut Verdict, due: BootTime, finding: Finding, facts: &Facts<'_>) -> Vec<Action> {
    verdict.evidence.clone_from(&finding.evidence);
    verdict.guards.clone_from(&finding.guards);
    verdict.doubts.clear();
    (verdict.rss_bytes, verdict.pss_bytes) = (finding.rss_bytes, finding.pss_bytes);
    let mut actions = vec![Action::KeepView, Action::Remember];
    // If there is a doubt or a living owner, it is ended because a person wants it, not because it is an orphan.
    let left_behind = matches!(facts.owner, Owner::Exited(_)) || verdict.cause.reason.released().is_some();
    let is_orphan = finding.doubts.is_empty() && left_behind;
    if is_orphan || verdict.cause.asked == Wish::None {
        let again = mem::replace(&mut verdict.announced, true);
        actions.push(Action::Announce(Announcement::Orphan { due, again }));
    }
    if finding.guards.is_empty() {
        (verdict.stage, verdict.inspections) = (Stage::Spared, 0);
        ready(verdict, finding);
        actions.extend([Action::Release, Action::EndIfGone, Action::Proceed]);
    } else {
        actions.extend(spare(verdict, finding.guards, true, facts));
    }
    actions
}

/// An orphan was inspected again.
fn advance(verdict: &mut Verdict, finding: Finding, facts: &Facts<'_>) -> Vec<Action> {
    if !finding.guards.is_empty() {
        let is_news = verdict.guards != finding.guards;
        return spare(verdict, finding.guards, is_news, facts);
    }
    match verdict.stage {
        Stage::Spared => {
            ready(verdict, finding);
            vec![Action::Release, Action::Proceed, Action::EndIfGone]
        }
        Stage::MainProcess | Stage::Rest => {
            verdict.attempt.not_to_be_asked.extend(finding.not_to_be_asked);
            vec![Action::Release, Action::Proceed, Action::EndIfGone]
        }
        Stage::Failed => vec![Action::SetDeadline(None), Action::EndIfGone],
        Stage::Unproven | Stage::Kill => vec![Action::EndIfGone],
    }
}

/// No guard forbids ending it. Stores what belongs to it before the first signal.
fn ready(verdict: &mut Verdict, finding: Finding) {
    verdict.guards.clear();
    (verdict.attempt.sessions, verdict.attempt.tied) = (finding.sessions, finding.tied);
    verdict.attempt.not_to_be_asked.extend(finding.not_to_be_asked);
    verdict.attempt.container = finding.container;
}

/// A guard forbids ending it.
fn spare(verdict: &mut Verdict, guards: Vec<Guard>, is_news: bool, facts: &Facts<'_>) -> Vec<Action> {
    verdict.stage = Stage::Spared;
    verdict.inspections = if is_news { 0 } else { verdict.inspections.saturating_add(1) };
    verdict.guards.clone_from(&guards);
    let deadline = facts.now + facts.pace.after(SPARED, verdict.inspections);
    let told = is_news.then_some(Action::Announce(Announcement::Spared { guards }));
    [Action::SetDeadline(Some(deadline))].into_iter().chain(told).collect()
}

/// All of its processes have ended: the outcome of the case.
fn ended(phase: Phase, facts: &Facts<'_>) -> Vec<Action> {
    let strongest = phase.strongest_signal();
    match phase {
        Phase::Clear => vec![Action::Close(Outcome::Exited)],
        Phase::Grace { .. } if facts.owner == Owner::Unknown => vec![Action::Close(Outcome::Exited)],
        Phase::Grace { cause, .. } => vec![Action::Close(Outcome::Cleared { since: cause.since })],
        Phase::Judged(mut verdict) => {
            let is_orphan = verdict.stage != Stage::Unproven;
            let failure = if is_orphan { ending::announce_failure(&mut verdict) } else { None };
            let outcome = match strongest {
                None if is_orphan => Outcome::OrphanExited { rss_bytes: verdict.rss_bytes },
                None => Outcome::Cleared { since: verdict.cause.since },
                Some(signal) => Outcome::Reaped {
                    signal,
                    first_signal: verdict.attempt.first_signal.unwrap_or(facts.now),
                    rss_bytes: verdict.rss_bytes,
                    pss_bytes: verdict.pss_bytes,
                    asked: verdict.cause.asked != Wish::None,
                },
            };
            failure.into_iter().chain([Action::Close(outcome)]).collect()
        }
    }
}
