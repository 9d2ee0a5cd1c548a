//! How an orphan is ended: SIGTERM to the main process, an inspection, SIGTERM to the rest, an inspection, then
//! SIGKILL in rounds.
//!
//! A doubt or a guard that one of these inspections finds stops the procedure. A signal is sent only to processes
//! that the facts list as targets.

use std::time::Duration;

use super::{
    Action, Announcement, Facts, Failure, INSPECT_AGAIN, Stage, Verdict,
    phase::{KILL_EVERY, KILL_ROUNDS},
};
use crate::model::{BootTime, ContainerId, ProcessId, Signal};

/// The time that a container has to end beyond the time that its engine gives it.
const FOR_THE_ENGINE: Duration = Duration::from_secs(20);

/// Carries out what the last inspection allowed.
pub(super) fn proceed(verdict: &mut Verdict, facts: &Facts<'_>) -> Vec<Action> {
    match verdict.stage {
        // Its engine was asked to stop it, and had the time. The container, or its client, is still there.
        stage if stage.is_terminating() && verdict.attempt.container.is_some() => {
            let error = "the container engine was asked to stop its container, and it is still there";
            fail(verdict, facts, error)
        }
        Stage::Spared if verdict.guards.is_empty() => begin(verdict, facts),
        Stage::MainProcess => terminate_rest(verdict, facts),
        Stage::Rest => {
            verdict.attempt.rounds = 0;
            kill(verdict, facts)
        }
        Stage::Kill => kill(verdict, facts),
        Stage::Unproven | Stage::Spared | Stage::Failed => Vec::new(),
    }
}

/// Sends SIGTERM to the main process first, so that it can close its browser and unlink its pid file. Those that are not asked
/// end before it, all at once.
fn begin(verdict: &mut Verdict, facts: &Facts<'_>) -> Vec<Action> {
    if let Some(container) = verdict.attempt.container.clone() {
        return stop_container(verdict, container, facts);
    }
    if facts.targets.is_empty() {
        return untouchable(verdict, facts);
    }
    verdict.attempt.first_signal.get_or_insert(facts.now);
    let mut actions = vec![Action::RememberReaping];
    let Some(main) = facts.main_process else {
        actions.extend(terminate_rest(verdict, facts));
        return actions;
    };
    verdict.stage = Stage::MainProcess;
    actions.push(Action::SetDeadline(Some(facts.now + facts.pace.main_process())));
    let others = verdict.attempt.not_to_be_asked.clone();
    let others = facts.targets.iter().filter(|process| others.contains(process));
    actions.extend(send_to_all(verdict, Signal::Term, others, facts));
    // Once more, if a guard stopped an earlier attempt.
    let is_asked = facts.targets.contains(&main)
        && !verdict.attempt.refused.contains(&main)
        && !verdict.attempt.not_to_be_asked.contains(&main);
    actions.extend(is_asked.then(|| send(verdict, main, Signal::Term, facts)).flatten());
    actions
}

/// Has the container stopped by its engine. Its client ends with it and gets no signal.
fn stop_container(verdict: &mut Verdict, container: ContainerId, facts: &Facts<'_>) -> Vec<Action> {
    verdict.attempt.first_signal.get_or_insert(facts.now);
    // The engine sends it.
    verdict.attempt.signalled.insert(facts.known_by, Signal::Term);
    verdict.stage = Stage::MainProcess;
    let patience = facts.pace.term_timeout + FOR_THE_ENGINE;
    vec![
        Action::RememberReaping,
        Action::SetDeadline(Some(facts.now + patience)),
        Action::StopContainer(container),
    ]
}

fn terminate_rest(verdict: &mut Verdict, facts: &Facts<'_>) -> Vec<Action> {
    // Who is asked, is from the top down: who waits for another one shall not go on when that has ended.
    let not_asked = verdict.attempt.not_to_be_asked.clone();
    let (killed, asked): (Vec<_>, Vec<_>) =
        facts.targets.iter().partition(|process| not_asked.contains(process));
    let all = killed.into_iter().chain(asked.into_iter().rev());
    let mut actions = send_to_all(verdict, Signal::Term, all, facts);
    verdict.stage = Stage::Rest;
    actions.push(Action::SetDeadline(Some(facts.now + facts.pace.rest())));
    actions
}

fn kill(verdict: &mut Verdict, facts: &Facts<'_>) -> Vec<Action> {
    let mut actions = send_to_all(verdict, Signal::Kill, facts.targets.iter(), facts);
    let attempt = &mut verdict.attempt;
    attempt.rounds = attempt.rounds.saturating_add(1);
    let left = &facts.targets;
    let hopeless = !left.is_empty() && left.iter().all(|process| attempt.refused.contains(process));
    if attempt.rounds < KILL_ROUNDS && !hopeless {
        verdict.stage = Stage::Kill;
        actions.push(Action::SetDeadline(Some(facts.now + KILL_EVERY)));
    } else if left.is_empty() {
        actions.extend(untouchable(verdict, facts));
    } else {
        let after = KILL_EVERY * KILL_ROUNDS;
        let error = format!("still there {} s after SIGKILL (blocked in the kernel?)", after.as_secs());
        let first = left.iter().find(|process| !attempt.refused.contains(process)).copied();
        attempt.refused.extend(left);
        let failure = first.map(|process| Failure { process, error, errno: None });
        attempt.failure = attempt.failure.take().or(failure);
        actions.extend(give_up(verdict));
    }
    actions
}

/// Sends SIGKILL to a process that was forked while its server is being killed.
pub(super) fn kill_new_child(verdict: &mut Verdict, child: ProcessId, facts: &Facts<'_>) -> Vec<Action> {
    let is_target = facts.targets.contains(&child) && !verdict.attempt.refused.contains(&child);
    if verdict.stage != Stage::Kill || !is_target {
        return Vec::new();
    }
    send(verdict, child, Signal::Kill, facts).into_iter().collect()
}

/// A signal was not sent, because the process may not be the one that was judged. Asks for an inspection and then
/// takes the same step again.
pub(super) fn retry(verdict: &mut Verdict, process: ProcessId, signal: Signal, now: BootTime) -> Vec<Action> {
    verdict.attempt.signalled.remove(&process);
    match verdict.stage {
        // Its container was not stopped. The procedure begins anew if the inspection still allows it.
        stage if stage.is_terminating() && verdict.attempt.container.is_some() => {
            (verdict.stage, verdict.inspections) = (Stage::Spared, 0);
        }
        Stage::Rest | Stage::Kill if signal == Signal::Kill => verdict.stage = Stage::Rest,
        // The inspection that follows sends SIGTERM to every process that did not get it yet.
        Stage::MainProcess | Stage::Rest | Stage::Kill => verdict.stage = Stage::MainProcess,
        Stage::Failed => return Vec::new(),
        Stage::Spared | Stage::Unproven => {}
    }
    vec![Action::SetDeadline(Some(now + INSPECT_AGAIN))]
}

/// The system refused a signal. The failure is announced when the other processes have been tried, too.
pub(super) fn refused(verdict: &mut Verdict, failure: Failure, last: bool) -> Vec<Action> {
    verdict.attempt.signalled.remove(&failure.process);
    verdict.attempt.refused.insert(failure.process);
    verdict.attempt.failure.get_or_insert(failure);
    // A guard or a doubt may have stopped the procedure before: then the phase does not change.
    let has_stopped = verdict.stage == Stage::Spared && !verdict.guards.is_empty();
    if last && !has_stopped { give_up(verdict) } else { Vec::new() }
}

/// No guard holds, but no process that is left may be signalled.
fn untouchable(verdict: &mut Verdict, facts: &Facts<'_>) -> Vec<Action> {
    fail(
        verdict,
        facts,
        "not signalled: orphand itself was started below it, or it is the client of a container",
    )
}

/// Gives up because of this error with the process that identifies it, unless there was one before.
fn fail(verdict: &mut Verdict, facts: &Facts<'_>, error: &str) -> Vec<Action> {
    let (process, error) = (facts.known_by, error.to_owned());
    verdict.attempt.refused.insert(process);
    verdict.attempt.failure.get_or_insert(Failure { process, error, errno: None });
    give_up(verdict)
}

/// Gives up: nothing more is tried.
fn give_up(verdict: &mut Verdict) -> Vec<Action> {
    verdict.stage = Stage::Failed;
    [Action::SetDeadline(None)].into_iter().chain(announce_failure(verdict)).collect()
}

/// Announces what could not be ended, unless that was announced before. It is one event, however many processes are
/// concerned.
pub(super) fn announce_failure(verdict: &mut Verdict) -> Option<Action> {
    let failure = verdict.attempt.failure.take()?;
    let failed = verdict.attempt.refused.len() as u64;
    Some(Action::Announce(Announcement::Failed { failure, failed }))
}

fn send_to_all<'p>(
    verdict: &mut Verdict,
    signal: Signal,
    processes: impl Iterator<Item = &'p ProcessId>,
    facts: &Facts<'_>,
) -> Vec<Action> {
    processes.filter_map(|process| send_once(verdict, *process, signal, facts)).collect()
}

/// The same, unless this signal, or a stronger one, was sent to it, or cannot be.
fn send_once(verdict: &mut Verdict, process: ProcessId, signal: Signal, facts: &Facts<'_>) -> Option<Action> {
    if verdict.attempt.is_settled(process, signal) { None } else { send(verdict, process, signal, facts) }
}

/// Asks for a signal. A process that the inspection did not see is signalled after the next inspection.
fn send(verdict: &mut Verdict, process: ProcessId, signal: Signal, facts: &Facts<'_>) -> Option<Action> {
    if facts.unseen.contains(&process) {
        return None;
    }
    let signal = if verdict.attempt.not_to_be_asked.contains(&process) { Signal::Kill } else { signal };
    verdict.attempt.signalled.insert(process, signal);
    Some(Action::Signal { process, signal })
}
