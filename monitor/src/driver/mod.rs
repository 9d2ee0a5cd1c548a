//! The driver: the only way into the engine and out of it, for the daemon, for the commands that work without a daemon, and for
//! replay.
//!
//! It gives each input its time, records it, hands it to the engine, and has the effects of the engine carried out in their order
//! by an [`EffectHandler`]. Invariants: the time of live inputs never goes back, and an input is in the recording before the
//! engine has it.

mod scope;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use crate::{
    host::{HostError, Proc, Scope},
    os::clock,
    probe::Probe,
    source::trace::TraceWriter,
};
use orphand_core::{
    engine::Engine,
    model::{
        BootTime, Effect, Image, Input, Notice, ProcessId, Signal, Snapshot, SnapshotProcess, TraceEntry,
    },
    recognise::{Role, Rules},
};

/// Carries out the effects of an engine, in their order.
pub trait EffectHandler {
    /// The outcome is fed to the driver, now or later; its effects follow those that wait already. A handler without a kernel
    /// side, or without a store, lets effects on those be.
    fn carry_out(&mut self, driver: &mut Driver, effect: Effect) -> anyhow::Result<()>;

    /// All effects are carried out.
    fn finish(&mut self) {}
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalRequest {
    pub process: ProcessId,
    pub uid: Option<u32>,
    pub signal: Signal,
}

/// The shortest sleep of the host that counts.
const SLEEP: Duration = Duration::from_secs(1);

pub struct Driver {
    engine: Engine,
    last: BootTime,
    /// For how long the host had been asleep then.
    asleep: Duration,
    trace: Option<TraceWriter>,
    /// What it keeps to; everything without one.
    scope: Option<Scope>,
}

impl Driver {
    pub fn new(engine: Engine, trace: Option<TraceWriter>) -> Self {
        Self { engine, last: BootTime::default(), asleep: clock::asleep(), trace, scope: None }
    }

    /// With a scope: its engine recognises nothing outside of it.
    pub fn within(self, scope: Option<Scope>) -> Self {
        Self { scope, ..self }
    }

    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    pub const fn last(&self) -> BootTime {
        self.last
    }

    /// When the engine next waits for time to pass.
    pub fn due(&self) -> Option<BootTime> {
        self.engine.poll_timeout()
    }

    /// Tells the engine something that has happened now, and has all effects carried out.
    pub fn handle(&mut self, handler: &mut impl EffectHandler, input: Input) -> anyhow::Result<()> {
        self.feed(input);
        self.perform(handler)
    }

    /// Tells the engine something that has happened now. Its effects wait for [`Driver::perform`].
    pub fn feed(&mut self, input: Input) {
        self.feed_at(clock::now(), input);
    }

    /// If the engine waits for a time that is not after `until`, tells it that the time has come. Returns whether it did.
    /// The engine acts on whatever is due by then: `until` must not be after what it has been told about.
    pub fn pass_time(&mut self, until: BootTime) -> bool {
        let is_due = self.due().is_some_and(|due| due <= until);
        if is_due {
            self.feed_at(until, Input::Timeout);
        }
        is_due
    }

    /// Tells the engine what is no input. For a driver without a recording.
    pub fn tell(&mut self, tell: impl FnOnce(&mut Engine)) {
        tell(&mut self.engine);
    }

    /// The next effect, if it is a signal.
    pub fn next_signal(&mut self) -> Option<SignalRequest> {
        match self.engine.poll_signal()? {
            Effect::Signal { process, uid, signal } => Some(SignalRequest { process, uid, signal }),
            _ => None,
        }
    }

    pub fn perform(&mut self, handler: &mut impl EffectHandler) -> anyhow::Result<()> {
        while let Some(effect) = self.engine.poll_effect() {
            let outside = match &effect {
                Effect::Ask { token, about, .. } => self.answer_outside(about).map(|answer| (*token, answer)),
                _ => None,
            };
            match outside {
                Some((token, answer)) => self.feed(Input::Answered { token, answer }),
                None => handler.carry_out(self, effect)?,
            }
        }
        handler.finish();
        Ok(())
    }

    /// The one place where live time comes in. If `now` is before the time of the latest input, that time is used.
    pub fn feed_at(&mut self, now: BootTime, mut input: Input) {
        let now = now.max(self.last);
        let asleep = clock::asleep();
        if asleep > self.asleep + SLEEP {
            let slept = asleep.saturating_sub(std::mem::replace(&mut self.asleep, asleep));
            self.dispatch(now, Input::Woke { slept });
        }
        self.hide_outside(&mut input);
        self.dispatch(now, input);
    }

    /// Puts into the file what was recorded so far.
    pub fn flush_trace(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.flush();
        }
    }

    /// [`replay`] comes here with the times of the recording, whatever they are: the engine must do what it did then.
    fn dispatch(&mut self, now: BootTime, input: Input) {
        self.last = now;
        if let Some(trace) = &mut self.trace {
            trace.record(now, &input);
        }
        self.engine.handle(now, input);
    }
}

/// Announces again what a recorded trace announced: hands its inputs to `engine` and the notices to `listen`, until the trace ends
/// or is broken, or `listen` fails. A trace has every input, the passing of time included, and the outcome of every effect: so
/// nothing is added, and nothing else carried out.
pub fn replay(
    trace: impl IntoIterator<Item = anyhow::Result<TraceEntry>>,
    engine: Engine,
    mut listen: impl FnMut(BootTime, Notice) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut driver = Driver::new(engine, None);
    for entry in trace {
        let TraceEntry { at, input } = entry?;
        driver.dispatch(at, input);
        driver.perform(&mut listen)?;
    }
    Ok(())
}

impl<T: FnMut(BootTime, Notice) -> anyhow::Result<()>> EffectHandler for T {
    fn carry_out(&mut self, _: &mut Driver, effect: Effect) -> anyhow::Result<()> {
        let Effect::Emit { at, notice } = effect else { return Ok(()) };
        self(at, *notice)
    }
}

/// Reads all of /proc, from now on: the standard streams of what is an agent, or is or may be a server or launch one, the units of
/// agents, and those of all processes where rules name units. Those in `known` are not read again ([`Proc::snapshot`]).
pub fn read_proc(
    procfs: &Proc,
    probe: &Probe,
    rules: &Rules,
    known: BTreeMap<ProcessId, SnapshotProcess>,
) -> Result<Snapshot, HostError> {
    let by = rules.clone();
    let wired = move |image: &Image| by.may_have_wires(image);
    let mut snapshot = procfs.snapshot(clock::now(), wired, known)?;
    for process in &mut snapshot.processes {
        let is_agent = matches!(rules.role(&process.image), Role::Agent { .. });
        if is_agent || rules.name_units() {
            process.unit = probe.unit(process.id);
            let (place, slices) = probe.place_of(process.id).unzip();
            (process.place, process.slices) = (place, slices.unwrap_or_default());
        }
        if is_agent {
            process.hints = probe.agent_hints(process.id).map(Box::new);
        }
    }
    Ok(snapshot)
}
