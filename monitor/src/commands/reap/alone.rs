//! Ending servers without a daemon: the same engine in this process, on one look through /proc.

use std::time::Duration;

use anyhow::Context;

use super::{Hand, MARGIN, settled};
use crate::{
    actuator::reaper::Reaper,
    config::Config,
    daemon::snapshot,
    host::Procfs,
    os::clock::{self, Timer},
    probe::Probe,
};
use orphand_core::{
    engine::{Engine, Settings},
    model::{Effect, Input, Mode, Planned, ReapRequest, Report, SignalError, Snapshot},
    recognise::Rules,
};

/// Until a second look through /proc finds who ended without having been signalled.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// An engine that has looked through /proc, and what it needs to act.
pub(super) struct Alone {
    engine: Engine,
    rules: Rules,
    procfs: Procfs,
    probe: Probe,
    term_timeout: Duration,
}

impl Alone {
    /// Looks and judges. Nothing is signalled until somebody asks: by itself this engine only observes.
    pub(super) fn look(config: &Config) -> anyhow::Result<Self> {
        let rules = config.rules();
        let procfs = Procfs::system()?;
        let probe = Probe::new()?;
        let snapshot = snapshot(&procfs, &probe, &rules)?;
        let engine = Engine::new(Settings {
            mode: Mode::Observe,
            grace: Duration::ZERO,
            term_timeout: config.term_timeout,
            other_uids: config.other_uids,
            rules: rules.clone(),
            ourselves: procfs.ourselves()?,
            ..Settings::default()
        });
        let term_timeout = config.term_timeout;
        let mut alone = Self { engine, rules, procfs, probe, term_timeout };
        alone.hand_in(None, Input::Snapshot { snapshot })?;
        let now = clock::now();
        while alone.engine.poll_timeout().is_some_and(|due| due <= now) {
            alone.hand_in(None, Input::Timeout)?;
        }
        alone.engine.measure();
        alone.carry_out(None)?;
        Ok(alone)
    }

    fn hand_in(&mut self, reaper: Option<&mut Reaper>, input: Input) -> anyhow::Result<()> {
        self.engine.handle(clock::now(), input);
        self.carry_out(reaper)
    }

    fn carry_out(&mut self, mut reaper: Option<&mut Reaper>) -> anyhow::Result<()> {
        while let Some(effect) = self.engine.poll_effect() {
            match effect {
                Effect::Ask { token, about } => {
                    let answer = self.probe.answer(&about, &|| self.engine.judged_wires());
                    self.engine.handle(clock::now(), Input::Answered { token, answer });
                }
                Effect::Signal { process, signal, uid } => {
                    let Some(reaper) = reaper.as_deref_mut() else { continue };
                    let error = reaper.signal(process, uid, signal).err();
                    let gone = error == Some(SignalError::Gone);
                    self.engine.handle(clock::now(), Input::Signalled { process, signal, error });
                    if gone {
                        self.engine.handle(clock::now(), Input::Gone { process });
                    }
                }
                Effect::Resync => {
                    let snapshot = self.snapshot()?;
                    self.engine.handle(clock::now(), Input::Snapshot { snapshot });
                }
                // There is no kernel side, no store and no stream.
                Effect::Emit { .. }
                | Effect::Persist { .. }
                | Effect::Track { .. }
                | Effect::Untrack { .. } => {}
            }
        }
        Ok(())
    }

    fn snapshot(&self) -> anyhow::Result<Snapshot> {
        Ok(snapshot(&self.procfs, &self.probe, &self.rules)?)
    }

    async fn end(&mut self, request: &ReapRequest) -> anyhow::Result<Report> {
        let mut reaper = Reaper::new()?;
        let timer = Timer::new()?;
        let patience = clock::now() + self.term_timeout + MARGIN;
        self.hand_in(Some(&mut reaper), Input::Reap { request: request.clone() })?;
        loop {
            // What was forked meanwhile, and who ended without having been signalled.
            let snapshot = self.snapshot()?;
            self.hand_in(Some(&mut reaper), Input::Snapshot { snapshot })?;
            let report = self.engine.report();
            let now = clock::now();
            if settled(&report, request) || now >= patience {
                return Ok(report);
            }
            timer.set([Some(now + LOOK_AGAIN), self.engine.poll_timeout()].into_iter().flatten().min())?;
            tokio::select! {
                process = reaper.wait_any() => self.hand_in(Some(&mut reaper), Input::Gone { process: process? })?,
                expired = timer.expired() => expired?,
            }
            // Only some are looked at at a time.
            while self.engine.poll_timeout().is_some_and(|due| due <= clock::now()) && clock::now() < patience
            {
                self.hand_in(Some(&mut reaper), Input::Timeout)?;
            }
        }
    }
}

impl Hand for Alone {
    fn plan(&mut self, request: &ReapRequest) -> anyhow::Result<Vec<Planned>> {
        Ok(self.engine.plan(request))
    }

    fn report(&mut self) -> anyhow::Result<Report> {
        Ok(self.engine.report())
    }

    fn reap(&mut self, request: &ReapRequest) -> anyhow::Result<Report> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.context("cannot start the event loop")?.block_on(self.end(request))
    }
}
