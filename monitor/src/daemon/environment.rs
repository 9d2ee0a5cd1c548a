//! What the effects of the engine act on: the kernel side, /proc, processes, the store, and the sinks of events.

use super::{
    descriptor_shortage::DescriptorShortage,
    inspections::{Inspections, Request},
    last_check::PendingRecords,
    member_shares::MemberShares,
    records::Completer,
    stuck_reads::StuckReads,
};
use crate::{
    actuator::{hook::Hooks, reaper::Reaper},
    driver::{Driver, EffectHandler, SignalRequest},
    host::Proc,
    probe::{Probe, registry::Registry},
    sink::{event_writer::EventWriters, metrics::Metrics},
    source::{kernel::KernelSource, threads::Followed},
    store::StoreWriter,
};
use orphand_core::{
    engine::Engine,
    model::{
        About, Answer, BootTime, Effect, Haste, Input, Notice, ProcessEvent, ProcessId, Share, SignalError,
        Status,
    },
    recognise::Rules,
};

/// How many signals are checked, each with a descriptor, before the first is sent: those of one step.
const VOLLEY: usize = 4096;

pub struct Environment {
    /// The rules in effect: whose standard streams and units a reading of /proc must include.
    pub rules: Rules,
    pub kernel: KernelSource,
    pub procfs: Proc,
    pub probe: Probe,
    pub reaper: Reaper,
    pub stream: EventWriters,
    pub hooks: Hooks,
    pub metrics: Metrics,
    pub store: StoreWriter,
    /// What `status` answers, but for what is asked of the engine then.
    pub status: Status,
    pub pending: PendingRecords,
    /// Everything that was reported before this moment has been handed in.
    pub seen_until: BootTime,
    /// Records were lost since /proc was read.
    pub doubtful: bool,
    pub completer: Completer,
    /// Processes that turned out to have ended: handed in after the next drain.
    pub gone: Vec<ProcessId>,
    /// The last signal found no room: the log has one line for a row of such.
    pub no_room: bool,
    pub shares: MemberShares,
    pub descriptors: DescriptorShortage,
    pub stuck: StuckReads,
    pub inspections: Inspections,
    pub registry: Registry,
}

impl EffectHandler for Environment {
    fn carry_out(&mut self, driver: &mut Driver, effect: Effect) -> anyhow::Result<()> {
        match effect {
            Effect::Emit { at, notice } => self.emit(driver.engine(), at, notice),
            Effect::Persist { at, fact } => self.store.remember(at, &fact),
            Effect::Ask { token, about, turn } => self.ask(driver, token, about, turn),
            Effect::Signal { process, signal, uid } => {
                self.signal(driver, SignalRequest { process, uid, signal })?;
            }
            Effect::Track { process, tracking } => self.track_member(driver, process, tracking)?,
            Effect::Untrack { process } => {
                self.shares.forget(process);
                self.completer.command_lines.leave(process);
                self.kernel.members.untrack(process.pid)?;
            }
            Effect::FollowThread { process, thread, until } => {
                if let Followed::Ended { at } = self.kernel.threads.follow(process, thread, until)? {
                    driver.feed(Input::Process { event: ProcessEvent::ThreadExit { at, process, thread } });
                }
            }
            Effect::Resync => self.repair(driver)?,
        }
        Ok(())
    }

    fn finish(&mut self) {
        self.store.commit();
    }
}

impl Environment {
    fn emit(&mut self, engine: &Engine, at: BootTime, notice: Box<Notice>) {
        self.store.commit();
        self.metrics.observe(&notice);
        let orphans = |whose: Option<&str>| {
            engine
                .orphans(whose)
                .fold([0, 0_u64], |[number, bytes], one| [number + 1, bytes.saturating_add(one)])
        };
        self.hooks.push(at, &notice, &orphans);
        self.stream.push(at, notice);
    }

    /// At once, but for what a user can delay, such as inspections of servers: that is answered beside the loop.
    fn ask(&mut self, driver: &mut Driver, token: u64, about: About, turn: Option<(Share, Haste)>) {
        let answer = match turn {
            None => self.probe.answer_hastily(&about),
            Some((user, haste)) => {
                let request = Request { token, about: Box::new(about) };
                match self.inspections.ask(&self.probe, haste, user, request) {
                    Ok(()) => return,
                    Err(request) => self.probe.answer(&request.about),
                }
            }
        };
        self.answered(driver, token, answer);
    }

    /// Unless the last check before it shows that the process should not be signalled. What follows at once is sent in the same
    /// breath, when all are checked: nobody shall act on the end of the one before he ends himself.
    fn signal(&mut self, driver: &mut Driver, request: SignalRequest) -> anyhow::Result<()> {
        self.store.commit();
        let next = std::iter::from_fn(|| driver.next_signal()).take(VOLLEY - 1);
        let mut aimed = Vec::new();
        for request in std::iter::once(request).chain(next) {
            let doubtful = self.doubtful || request.uid.is_some_and(|uid| self.shares.is_short(uid));
            let aim = self.pending.aim(&mut self.kernel, &self.reaper, doubtful, request)?;
            aimed.push((request, aim));
        }
        let outcomes = self.pending.send_all(&mut self.kernel, &self.reaper, &aimed);
        for (request, error) in outcomes {
            self.signalled(driver, request, error);
        }
        Ok(())
    }

    fn signalled(&mut self, driver: &mut Driver, request: SignalRequest, error: Option<SignalError>) {
        let SignalRequest { process, signal, .. } = request;
        match &error {
            // An exit that waits to be handed in says so: another process may have the same number and identity by now.
            Some(SignalError::Gone) if !self.pending.has_exit(process) => self.gone.push(process),
            Some(SignalError::Unsure { message }) => {
                tracing::info!("not signalled, to be inspected again: {message}");
            }
            // There may be thousands.
            Some(SignalError::NoRoom { message }) if !self.no_room => {
                tracing::warn!("no room to signal processes now, they are tried again: {message}");
            }
            _ => {}
        }
        self.no_room = matches!(error, Some(SignalError::NoRoom { .. }));
        driver.feed(Input::Signalled { process, signal, error });
    }

    /// Feeds an answer. One that could not be found may be for want of descriptors.
    pub(super) fn answered(&mut self, driver: &mut Driver, token: u64, answer: Answer) {
        let unseen = match &answer {
            Answer::Server { facts } => !facts.scene.unread.is_empty(),
            Answer::Process { process } => process.is_none(),
            _ => false,
        };
        if unseen {
            self.note_shortage();
        }
        driver.feed(Input::Answered { token, answer });
    }
}
