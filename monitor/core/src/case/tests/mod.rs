//! Tests of the state machine alone, without the engine.

mod pairs;
mod properties;
mod stories;

use std::{collections::BTreeSet, time::Duration};

use super::{By, Cause, Event, Facts, Finding, Owner, Pace, Phase, Reason, Refusal, Step, Verdict};
use crate::model::{BootTime, Doubt, Evidence, Guard, ProcessId, Signal};

const NOBODY: &BTreeSet<ProcessId> = &BTreeSet::new();

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn at(seconds: u64) -> BootTime {
    BootTime::default() + secs(seconds)
}

fn id(pid: u32) -> ProcessId {
    ProcessId::new(pid, 1)
}

const SINCE: u64 = 990;
const NOW: u64 = 1000;

/// The owner exited; the main process 30 and its child 31 live.
fn facts() -> Facts<'static> {
    Facts {
        now: at(NOW),
        pace: Pace::server(secs(10), secs(5)),
        owner: Owner::Exited(at(SINCE)),
        owner_wanted: false,
        doubtful: false,
        main_ended: false,
        known_by: id(30),
        main_process: Some(id(30)),
        targets: vec![id(31), id(30)],
        unseen: NOBODY,
    }
}

fn cause() -> Cause {
    Cause { reason: Reason::OwnerExited, since: at(SINCE), asked: false }
}

fn verdict() -> Box<Verdict> {
    Box::new(Verdict { evidence: vec![Evidence::OwnerExited], rss_bytes: 7, ..Verdict::new(cause()) })
}

/// A verdict with a signal to the main process.
fn begun() -> Box<Verdict> {
    let mut verdict = verdict();
    verdict.attempt.first_signal = Some(at(NOW - 1));
    verdict.attempt.signalled.insert(id(30), Signal::Term);
    verdict
}

fn spared(guards: &[Guard]) -> Phase {
    let verdict = Box::new(Verdict { guards: guards.to_vec(), ..*verdict() });
    Phase::Spared { verdict, inspections: 0 }
}

fn unproven() -> Phase {
    let verdict = Box::new(Verdict { doubts: vec![Doubt::WireHeld], ..*verdict() });
    Phase::Unproven { verdict, inspections: 0 }
}

fn terminating(step: Step) -> Phase {
    Phase::Terminating { verdict: begun(), step }
}

/// Every phase.
fn phases() -> Vec<Phase> {
    vec![
        Phase::Clear,
        Phase::Grace { cause: cause(), deadline: at(NOW) },
        unproven(),
        spared(&[Guard::OptedOut]),
        terminating(Step::MainProcess),
        terminating(Step::Rest),
        terminating(Step::Kill { rounds: 1 }),
        Phase::Failed { verdict: begun() },
    ]
}

fn finding() -> Finding {
    Finding { evidence: vec![Evidence::OwnerExited], rss_bytes: 8, ..Finding::default() }
}

fn inspected(finding: Finding) -> Event {
    Event::Inspected(Box::new(finding))
}

fn doubt() -> Finding {
    Finding { doubts: vec![Doubt::StdoutRead], ..finding() }
}

fn guard() -> Finding {
    Finding { guards: vec![Guard::LiveAgentBelow], ..finding() }
}

fn refused(signal: Signal, last: bool) -> Event {
    let refusal = Refusal::Final { error: "no".to_owned(), errno: 1 };
    Event::SignalRefused { process: id(30), signal, refusal, last }
}

fn retryable(signal: Signal) -> Event {
    Event::SignalRefused { process: id(30), signal, refusal: Refusal::Retryable, last: false }
}

/// The same case, opened by a person's request.
fn asked(mut phase: Phase) -> Phase {
    match &mut phase {
        Phase::Clear => {}
        Phase::Grace { cause, .. } => cause.asked = true,
        Phase::Unproven { verdict, .. }
        | Phase::Spared { verdict, .. }
        | Phase::Terminating { verdict, .. }
        | Phase::Failed { verdict } => verdict.cause.asked = true,
    }
    phase
}
