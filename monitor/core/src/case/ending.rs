//! How an orphan is ended: SIGTERM to the main process, an inspection, SIGTERM to the rest, an inspection, then
//! SIGKILL in rounds.
//!
//! A doubt or a guard that one of these inspections finds stops the procedure. A signal is sent only to processes
//! that the facts list as targets.

use std::time::Duration;

use super::{Action, Announcement, Facts, Failure, INSPECT_AGAIN, Phase, Record, Step, Verdict};
use crate::model::{ContainerId, ProcessId, Signal};

type Next = (Phase, Vec<Action>);

/// Carries out what the last inspection allowed.
pub(super) fn proceed(phase: Phase, facts: &Facts<'_>) -> Next {
    match phase {
        // Its engine was asked to stop it, and had the time.
        Phase::Terminating { verdict, .. } if verdict.attempt.container.is_some() => {
            still_runs(verdict, facts)
        }
        Phase::Spared { verdict, .. } if verdict.guards.is_empty() => begin(verdict, facts),
        Phase::Terminating { verdict, step: Step::MainProcess } => match facts.pace.rest {
            Some(_) => terminate_rest(verdict, facts),
            // The signal to the main process was not sent.
            None if verdict.attempt.signalled.is_empty() => begin(verdict, facts),
            None => kill(verdict, 0, facts),
        },
        Phase::Terminating { verdict, step: Step::Rest } => kill(verdict, 0, facts),
        Phase::Terminating { verdict, step: Step::Kill { rounds } } => kill(verdict, rounds, facts),
        phase @ (Phase::Clear
        | Phase::Grace { .. }
        | Phase::Unproven { .. }
        | Phase::Spared { .. }
        | Phase::Failed { .. }) => (phase, Vec::new()),
    }
}

/// Sends SIGTERM to the main process first, so that it can close its browser and unlink its pid file.
fn begin(mut verdict: Box<Verdict>, facts: &Facts<'_>) -> Next {
    if let Some(container) = verdict.attempt.container.clone() {
        return stop_container(verdict, container, facts);
    }
    if facts.targets.is_empty() {
        return untouchable(verdict, facts);
    }
    verdict.attempt.first_signal.get_or_insert(facts.now);
    let mut actions = vec![Action::Persist(Record::Terminating)];
    let Some(main) = facts.main_process else {
        let (phase, more) = terminate_rest(verdict, facts);
        actions.extend(more);
        return (phase, actions);
    };
    actions.push(Action::SetDeadline(Some(facts.now + facts.pace.main_process)));
    if facts.targets.contains(&main) && !verdict.attempt.refused.contains(&main) {
        actions.extend(send(&mut verdict, main, Signal::Term, facts));
    }
    (Phase::Terminating { verdict, step: Step::MainProcess }, actions)
}

/// The time that a container has to end beyond the time that its engine gives it.
const FOR_THE_ENGINE: Duration = Duration::from_secs(10);

/// Has the container stopped by its engine. Its client ends with it and gets no signal.
fn stop_container(mut verdict: Box<Verdict>, container: ContainerId, facts: &Facts<'_>) -> Next {
    verdict.attempt.first_signal.get_or_insert(facts.now);
    // The engine sends it.
    verdict.attempt.signalled.insert(facts.known_by, Signal::Term);
    let patience = facts.pace.main_process + facts.pace.rest.unwrap_or_default() + FOR_THE_ENGINE;
    let actions = vec![
        Action::Persist(Record::Terminating),
        Action::SetDeadline(Some(facts.now + patience)),
        Action::StopContainer(container),
    ];
    (Phase::Terminating { verdict, step: Step::MainProcess }, actions)
}

/// The container, or its client, is still there although its engine was asked to stop it.
fn still_runs(mut verdict: Box<Verdict>, facts: &Facts<'_>) -> Next {
    let process = facts.known_by;
    verdict.attempt.signalled.remove(&process);
    verdict.attempt.refused.insert(process);
    let error = "the container engine was asked to stop its container, and it is still there".to_owned();
    verdict.attempt.failure.get_or_insert(Failure { process, error, errno: None });
    give_up(verdict)
}

fn terminate_rest(mut verdict: Box<Verdict>, facts: &Facts<'_>) -> Next {
    let mut actions = send_to_all(&mut verdict, Signal::Term, facts);
    let patience = facts.pace.rest.unwrap_or_default();
    actions.push(Action::SetDeadline(Some(facts.now + patience)));
    (Phase::Terminating { verdict, step: Step::Rest }, actions)
}

/// Sends one round of SIGKILL.
fn kill(mut verdict: Box<Verdict>, rounds: u32, facts: &Facts<'_>) -> Next {
    let mut actions = send_to_all(&mut verdict, Signal::Kill, facts);
    let rounds = rounds.saturating_add(1);
    let left = &facts.targets;
    let refused = &mut verdict.attempt.refused;
    let hopeless = !left.is_empty() && left.iter().all(|process| refused.contains(process));
    let patient = facts.pace.kill_rounds.is_none_or(|most| rounds < most);
    let (phase, more) = if patient && !hopeless {
        let next = Action::SetDeadline(Some(facts.now + facts.pace.kill_every));
        (Phase::Terminating { verdict, step: Step::Kill { rounds } }, vec![next])
    } else if left.is_empty() {
        untouchable(verdict, facts)
    } else {
        let after = facts.pace.kill_every * facts.pace.kill_rounds.unwrap_or_default();
        let error = format!("still there {} s after SIGKILL (blocked in the kernel?)", after.as_secs());
        let first = left.iter().find(|process| !refused.contains(process)).copied();
        refused.extend(left);
        let failure = first.map(|process| Failure { process, error, errno: None });
        verdict.attempt.failure = verdict.attempt.failure.take().or(failure);
        give_up(verdict)
    };
    actions.extend(more);
    (phase, actions)
}

/// Sends SIGKILL to a process that was forked while its server is being killed.
pub(super) fn kill_new_child(phase: Phase, child: ProcessId, facts: &Facts<'_>) -> Next {
    match phase {
        Phase::Terminating { mut verdict, step: step @ Step::Kill { .. } }
            if facts.targets.contains(&child) && !verdict.attempt.refused.contains(&child) =>
        {
            let signal = send(&mut verdict, child, Signal::Kill, facts);
            (Phase::Terminating { verdict, step }, signal.into_iter().collect())
        }
        phase => (phase, Vec::new()),
    }
}

/// A signal was not sent, because the process may not be the one that was judged. Asks for an inspection and then
/// takes the same step again.
pub(super) fn retry(phase: Phase, process: ProcessId, signal: Signal, facts: &Facts<'_>) -> Next {
    let soon = vec![Action::SetDeadline(Some(facts.now + INSPECT_AGAIN))];
    let unsent = |mut verdict: Box<Verdict>| {
        verdict.attempt.signalled.remove(&process);
        verdict
    };
    match phase {
        // Its container was not stopped. The procedure begins anew if the inspection still allows it.
        Phase::Terminating { verdict, .. } if verdict.attempt.container.is_some() => {
            (Phase::Spared { verdict: unsent(verdict), inspections: 0 }, soon)
        }
        Phase::Terminating { verdict, step } => {
            let step = match (signal, step) {
                // The inspection that follows sends SIGTERM to every process that did not get it yet.
                (Signal::Term, _) | (Signal::Kill, Step::MainProcess) => Step::MainProcess,
                (Signal::Kill, Step::Rest | Step::Kill { .. }) => Step::Rest,
            };
            (Phase::Terminating { verdict: unsent(verdict), step }, soon)
        }
        Phase::Spared { verdict, inspections } => {
            (Phase::Spared { verdict: unsent(verdict), inspections }, soon)
        }
        Phase::Failed { verdict } => (Phase::Failed { verdict: unsent(verdict) }, Vec::new()),
        phase @ (Phase::Clear | Phase::Grace { .. } | Phase::Unproven { .. }) => (phase, Vec::new()),
    }
}

/// The system refused a signal. The failure is announced when the other processes have been tried, too.
pub(super) fn refused(phase: Phase, process: ProcessId, error: String, errno: i32, last: bool) -> Next {
    let mark = |mut verdict: Box<Verdict>| {
        let attempt = &mut verdict.attempt;
        attempt.signalled.remove(&process);
        attempt.refused.insert(process);
        attempt.failure.get_or_insert(Failure { process, error, errno: Some(errno) });
        verdict
    };
    match phase {
        // A guard or a doubt stopped the procedure before: the phase does not change.
        Phase::Spared { verdict, inspections } if !last || !verdict.guards.is_empty() => {
            (Phase::Spared { verdict: mark(verdict), inspections }, Vec::new())
        }
        Phase::Terminating { verdict, step } if !last => {
            (Phase::Terminating { verdict: mark(verdict), step }, Vec::new())
        }
        Phase::Failed { verdict } if !last => (Phase::Failed { verdict: mark(verdict) }, Vec::new()),
        Phase::Spared { verdict, .. } | Phase::Terminating { verdict, .. } | Phase::Failed { verdict } => {
            give_up(mark(verdict))
        }
        phase @ (Phase::Clear | Phase::Grace { .. } | Phase::Unproven { .. }) => (phase, Vec::new()),
    }
}

/// No guard holds, but no process that is left may be signalled.
fn untouchable(mut verdict: Box<Verdict>, facts: &Facts<'_>) -> Next {
    let process = facts.known_by;
    let error =
        "not signalled: orphand itself was started below it, or it is the client of a container".to_owned();
    verdict.attempt.refused.insert(process);
    verdict.attempt.failure.get_or_insert(Failure { process, error, errno: None });
    give_up(verdict)
}

/// Gives up: nothing more is tried.
fn give_up(mut verdict: Box<Verdict>) -> Next {
    let mut actions = vec![Action::SetDeadline(None)];
    actions.extend(announce_failure(&mut verdict));
    (Phase::Failed { verdict }, actions)
}

/// Announces what could not be ended, unless that was announced before. It is one event, however many processes are
/// concerned.
pub(super) fn announce_failure(verdict: &mut Verdict) -> Option<Action> {
    let failure = verdict.attempt.failure.take()?;
    let failed = verdict.attempt.refused.len() as u64;
    Some(Action::Announce(Announcement::Failed { failure, failed }))
}

fn send_to_all(verdict: &mut Verdict, signal: Signal, facts: &Facts<'_>) -> Vec<Action> {
    let mut actions = Vec::new();
    for process in &facts.targets {
        if !verdict.attempt.was_sent(*process, signal) {
            actions.extend(send(verdict, *process, signal, facts));
        }
    }
    actions
}

/// Asks for a signal. A process that the inspection did not see is signalled after the next inspection.
fn send(verdict: &mut Verdict, process: ProcessId, signal: Signal, facts: &Facts<'_>) -> Option<Action> {
    if facts.unseen.contains(&process) {
        return None;
    }
    verdict.attempt.signalled.insert(process, signal);
    Some(Action::Signal { process, signal })
}
