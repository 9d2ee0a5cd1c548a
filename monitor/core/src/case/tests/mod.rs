//! Tests of the state machine alone, without the engine.

mod pairs;
mod properties;
mod stories;

use std::{collections::BTreeSet, time::Duration};

use super::{Action, By, Cause, Event, Facts, Finding, Owner, Pace, Phase, Reason, Stage, Verdict, Wish};
use crate::model::{BootTime, Doubt, Evidence, Guard, ProcessId, Signal, SignalError};

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
        pace: Pace { grace: secs(10), longest: secs(600), term_timeout: secs(5) },
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
    Cause { reason: Reason::OwnerExited, since: at(SINCE), asked: Wish::None }
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
    Phase::Judged(Box::new(Verdict { stage: Stage::Spared, guards: guards.to_vec(), ..*verdict() }))
}

fn unproven() -> Phase {
    Phase::Judged(Box::new(Verdict { doubts: vec![Doubt::WireHeld], ..*verdict() }))
}

fn terminating(stage: Stage) -> Phase {
    Phase::Judged(Box::new(Verdict { stage, ..*begun() }))
}

/// The phase in words.
fn name(phase: &Phase) -> String {
    match phase {
        Phase::Clear => "Clear".to_owned(),
        Phase::Grace { .. } => "Grace".to_owned(),
        Phase::Judged(verdict) => format!("{:?}", verdict.stage),
    }
}

fn step(mut phase: Phase, event: Event, facts: &Facts<'_>) -> (Phase, Vec<Action>) {
    let actions = super::step(&mut phase, event, facts);
    (phase, actions)
}

/// Every phase.
fn phases() -> Vec<Phase> {
    vec![
        Phase::Clear,
        Phase::Grace { cause: cause(), deadline: at(NOW) },
        unproven(),
        spared(&[Guard::OptedOut]),
        terminating(Stage::MainProcess),
        terminating(Stage::Rest),
        terminating(Stage::Kill),
        terminating(Stage::Failed),
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
    let error = SignalError::System { errno: 1, message: "no".to_owned() };
    Event::SignalRefused { process: id(30), signal, error, last }
}

fn retryable(signal: Signal) -> Event {
    let error = SignalError::Unsure { message: "no".to_owned() };
    Event::SignalRefused { process: id(30), signal, error, last: false }
}

/// The same case, with this change to its cause.
fn with_cause(mut phase: Phase, change: impl FnOnce(&mut Cause)) -> Phase {
    match &mut phase {
        Phase::Clear => {}
        Phase::Grace { cause, .. } => change(cause),
        Phase::Judged(verdict) => change(&mut verdict.cause),
    }
    phase
}

/// The same case, opened by a person's request.
fn asked(phase: Phase) -> Phase {
    with_cause(phase, |cause| cause.asked = Wish::Anyway)
}
