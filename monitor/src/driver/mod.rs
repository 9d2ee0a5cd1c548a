//! The driver: the only way into the engine and out of it, for the daemon, for the commands that work without a daemon, and for
//! replay.
//!
//! It gives each input its time, records it, hands it to the engine, and has the effects of the engine carried out in their order
//! by an [`EffectHandler`]. Invariants: the time of live inputs never goes back, and an input is in the recording before the
//! engine has it.

mod proc_read;
pub mod replay;
mod scope;
#[cfg(test)]
mod tests;

pub use self::proc_read::read_proc;

use std::{num::NonZeroU32, time::Duration};

use crate::{host::Scope, os::clock, source::trace::TraceWriter};
use orphand_core::{
    engine::Engine,
    model::{About, BootTime, Effect, Fact, Input, Notice, ProcessId, Signal, Tracking},
};

/// Carries out the effects of an engine: one method for each kind of effect, called in their order.
///
/// The outcome of an effect is fed to the driver that the method gets. The effects of that outcome follow those that wait already.
/// A handler without a kernel side, or without a store, keeps the default of those methods: then nothing happens.
pub trait EffectHandler {
    type Error;

    fn emit(&mut self, _at: BootTime, _notice: Box<Notice>) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Keeps a fact for the next daemon. It must be safe before any later effect is carried out that rests on it.
    fn persist(&mut self, _at: BootTime, _fact: &Fact) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Answers a question about the host, now or later, with [`Input::Answered`].
    fn ask(&mut self, _driver: &mut Driver, _token: u64, _about: About) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Signals a process, and feeds the outcome as [`Input::Signalled`].
    fn signal(&mut self, _driver: &mut Driver, _request: SignalRequest) -> Result<(), Self::Error> {
        Ok(())
    }

    fn track(
        &mut self,
        _driver: &mut Driver,
        _process: ProcessId,
        _tracking: Tracking,
    ) -> Result<(), Self::Error> {
        Ok(())
    }

    /// The kernel side need not report this process any more.
    fn untrack(&mut self, _process: ProcessId) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Has the kernel side report the end of a thread, and feeds it if the thread has ended already.
    fn follow_thread(&mut self, _driver: &mut Driver, _thread: SpawnerThread) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Reads /proc, and feeds it as [`Input::Snapshot`].
    fn resync(&mut self, _driver: &mut Driver) -> Result<(), Self::Error> {
        Ok(())
    }

    /// All effects are carried out.
    fn finish(&mut self) {}
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalRequest {
    pub process: ProcessId,
    /// Its real user, if known.
    pub uid: Option<u32>,
    pub signal: Signal,
}

/// The thread that had this number when it started a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpawnerThread {
    /// The process that it belongs to.
    pub process: ProcessId,
    pub thread: NonZeroU32,
    /// When the started process began, in clock ticks since boot: the thread began no later.
    pub until: u64,
}

/// The shortest sleep of the host that counts.
const SLEEP: Duration = Duration::from_secs(1);

/// An engine, its clock and its recording.
#[derive(Debug)]
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
    pub fn handle<H: EffectHandler>(&mut self, handler: &mut H, input: Input) -> Result<(), H::Error> {
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

    /// Asks for the memory of all servers; the answer goes into the next report. For a driver without a recording: this is
    /// no input.
    pub fn measure<H: EffectHandler>(&mut self, handler: &mut H) -> Result<(), H::Error> {
        self.engine.measure();
        self.perform(handler)
    }

    /// Makes the question which servers a living owner abandoned due at once.
    pub fn watch_wires_at_once(&mut self) {
        self.engine.watch_wires_at_once();
    }

    /// Carries out effects until none is left.
    pub fn perform<H: EffectHandler>(&mut self, handler: &mut H) -> Result<(), H::Error> {
        while let Some(effect) = self.engine.poll_effect() {
            match effect {
                Effect::Emit { at, notice } => handler.emit(at, notice)?,
                Effect::Persist { at, fact } => handler.persist(at, &fact)?,
                Effect::Ask { token, about } => match self.answer_outside(&about) {
                    Some(answer) => self.feed(Input::Answered { token, answer }),
                    None => handler.ask(self, token, about)?,
                },
                Effect::Signal { process, signal, uid } => {
                    handler.signal(self, SignalRequest { process, uid, signal })?;
                }
                Effect::Track { process, tracking } => handler.track(self, process, tracking)?,
                Effect::Untrack { process } => handler.untrack(process)?,
                Effect::FollowThread { process, thread, until } => {
                    handler.follow_thread(self, SpawnerThread { process, thread, until })?;
                }
                Effect::Resync => handler.resync(self)?,
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
            self.asleep = asleep;
            self.dispatch(now, Input::Woke);
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

    /// Replay comes here with the times of the recording, whatever they are: the engine must do what it did then.
    fn dispatch(&mut self, now: BootTime, input: Input) {
        self.last = now;
        if let Some(trace) = &mut self.trace {
            trace.record(now, &input);
        }
        self.engine.handle(now, input);
    }
}
