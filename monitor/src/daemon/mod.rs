//! The daemon's loop: waits for the ring, the timer, signals and pidfds; hands what happened to the engine
//! and carries out its effects.
//!
//! One task, no lock, no channel before the engine: the ring is the queue. Every question of the engine is
//! answered before anything else is handed in, but for looks at servers, which may take seconds: those answers are handed in when
//! they come, behind what the ring had by then. Whatever stalls behind the engine (a reader of stdout, a full
//! disk, a scraper, a client of the control socket) never delays it.

mod answers;
pub mod complete;
pub mod crowd;
pub mod looks;
pub mod memory;
pub mod moment;
pub mod reload;
pub mod unanswered;
pub mod want;

use std::{os::fd::AsFd, time::Duration};

use anyhow::Context;
use rustix::system::uname;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};

use crate::{
    actuator::{hook::Hook, reaper::Reaper},
    control::Query,
    host::{Procfs, ProcfsError},
    os::{
        clock::{self, Timer},
        readable,
        systemd_notify::Notify,
    },
    probe::Probe,
    sink::{event_writers::EventWriters, metrics::Metrics},
    source::{kernel::KernelSource, trace::TraceWriter},
};
use orphand_core::{
    engine::Engine,
    model::{
        BootTime, Effect, Image, Input, Knowledge, Losses, Mode, ProcessEvent, ProcessId, SignalError,
        Snapshot, Status, text,
    },
    recognise::{Role, Rules},
};

/// Between two drains while records flow. A record that matters at once wakes the daemon at once.
const DRAIN: Duration = Duration::from_millis(20);

/// Told to stop, the hook is still run for what it has not heard of, so long.
const LAST_RUNS: Duration = Duration::from_secs(3);

/// All parts of a running daemon.
pub struct Daemon {
    /// The core.
    pub engine: Engine,
    /// The configuration in effect.
    pub configuration: reload::Configuration,
    /// The rules, to know whose standard streams a look at /proc must read.
    pub rules: Rules,
    /// The kernel side, attached and self-tested.
    pub kernel: KernelSource,
    /// /proc.
    pub procfs: Procfs,
    /// Answers the engine's questions.
    pub probe: Probe,
    /// Sends signals.
    pub reaper: Reaper,
    /// Tells the world.
    pub stream: EventWriters,
    /// Runs a program for events.
    pub hook: Hook,
    /// What must outlive us.
    pub memory: memory::Memory,
    /// What earlier daemons knew, until the engine has been told.
    pub knowledge: Knowledge,
    /// Counts what is told to the world.
    pub metrics: Metrics,
    /// Tells the service manager.
    pub notify: Notify,
    /// What is asked of us.
    pub queries: mpsc::Receiver<Query>,
    /// What every answer to "how do you stand" says, and what is counted for it.
    pub standing: Status,
    /// When `ready` was told.
    pub ready_at: Option<BootTime>,
    /// Records were lost since /proc was read.
    pub doubtful: bool,
    /// Records the inputs.
    pub trace: Option<TraceWriter>,
    /// Everything that was reported before this moment has been handed in.
    pub seen_until: BootTime,
    /// The last signal found no room: the log hears of the first of a row.
    pub no_room: bool,
    /// Processes that turned out to have ended: told after the next drain.
    pub gone: Vec<ProcessId>,
    /// Completes what does not fit into a record.
    pub completer: complete::Completer,
    /// Who cannot be followed.
    pub crowd: crowd::Crowd,
    /// Whether descriptors have run out.
    pub want: want::Want,
    /// Taken from the ring, not handed in yet.
    pub waiting: moment::Waiting,
    /// Processes that do not answer.
    pub unanswered: unanswered::Unanswered,
    /// Looks at servers that are under way.
    pub looks: looks::Looks,
}

impl Daemon {
    /// Reconciles with /proc, says `ready`, and runs until it is told to stop. `early` is what was reported
    /// during the self-test.
    pub async fn run(mut self, early: Vec<ProcessEvent>) -> anyhow::Result<()> {
        let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
        let mut hangup = signal(SignalKind::hangup()).context("cannot wait for SIGHUP")?;
        let ring =
            self.kernel.as_fd().try_clone_to_owned().context("cannot duplicate the ring's descriptor")?;
        let ring = readable(ring).context("cannot wait for the kernel's records")?;
        let timer = Timer::new()?;

        // Attached already: what happens from now on is reported. The first look enters who matters, the second
        // finds what they forked before the kernel side followed them.
        let knowledge = std::mem::take(&mut self.knowledge);
        self.hand_in(Input::Remembered { knowledge })?;
        for event in early {
            self.hand_in(Input::Process { event })?;
        }
        self.look_at_proc()?;
        self.look_at_proc()?;
        let kernel = uname().release().to_string_lossy().into_owned();
        let hooks = self.kernel.hooks();
        self.standing.kernel.clone_from(&kernel);
        self.standing.hooks.clone_from(&hooks);
        self.ready_at = Some(clock::now());
        self.hand_in(Input::Ready { kernel, hooks })?;
        self.notify.ready(&in_short(self.standing.mode, &self.engine));

        let mut late = Vec::new();
        loop {
            let gone = std::mem::take(&mut self.gone);
            while let Ok(answered) = self.looks.answers.try_recv() {
                late.push(answered);
            }
            let busy = self.drain()?;
            // What they did before they ended has been handed in.
            for process in gone {
                self.hand_in(Input::Gone { process })?;
            }
            for (token, answer) in late.drain(..) {
                self.answered(token, answer);
                self.carry_out()?;
            }
            self.want_over()?;
            self.ease()?;
            self.pass_time();
            self.carry_out()?;
            self.see_to_unanswered(clock::now())?;
            self.standing.blind = self.memory.blind().into_iter().collect();
            let short = || in_short(self.standing.mode, &self.engine);
            self.notify.alive(clock::now(), short);
            // Before it sleeps for good the daemon asks for a wake-up and drains once more.
            let idle = !busy && self.gone.is_empty() && {
                self.kernel.set_idle(true)?;
                !self.drain()?
            };
            if idle && let Some(trace) = &mut self.trace {
                trace.flush();
            }
            let drain = (!idle).then(|| clock::now() + DRAIN);
            let unanswered = self.unanswered.due(clock::now());
            let outside =
                [self.notify.due(), self.crowd.due(), self.want.due(), self.memory.due(), unanswered];
            let wake = [drain, self.engine.poll_timeout()].into_iter().chain(outside);
            timer.set(wake.flatten().min())?;
            tokio::select! {
                biased;
                () = told(&mut terminate) => break,
                () = told(&mut interrupt) => break,
                () = told(&mut hangup) => self.reload(None),
                ready = ring.readable() => ready.context("cannot wait for the kernel's records")?.clear_ready(),
                process = self.reaper.wait_any() => self.gone.push(process?),
                expired = timer.expired() => expired?,
                Some(answered) = self.looks.answers.recv() => late.push(answered),
                loaded = reload::Configuration::loaded(&mut self.configuration.loading) => self.loaded(loaded)?,
                // The last: whoever asks without end gets one answer between two drains. The other side never ends first.
                Some(query) = self.queries.recv() => self.answer(query)?,
            }
        }
        self.notify.stopping();
        self.drain()?;
        self.hand_in(Input::Stop)?;
        self.memory.close();
        if let Some(trace) = &mut self.trace {
            trace.flush();
        }
        self.stream.finish(Duration::from_secs(1));
        self.hook.finish(LAST_RUNS);
        Ok(())
    }

    /// Hands what the kernel side reported to the engine. Whether there was anything.
    fn drain(&mut self) -> anyhow::Result<bool> {
        self.seen_until = clock::now();
        // The engine's effects on the kernel side follow each record: taken out first, since both need it. What signals add to
        // them is for the next time: a storm cannot keep this busy.
        let waiting = self.waiting.drain(&mut self.kernel);
        let mut any = waiting > 0;
        for _ in 0..waiting {
            let Some(event) = self.next_record() else { break };
            self.hand_in(Input::Process { event })?;
        }
        let mut losses = self.kernel.losses()?;
        let refused = std::mem::take(&mut losses.member);
        if refused > 0 {
            any = true;
            let users = self.kernel.refused()?;
            self.refused(&users, refused);
            self.carry_out()?;
        }
        if losses != Losses::default() {
            any = true;
            self.doubtful = true;
            answers::add(&mut self.standing.lost, &losses);
            self.hand_in(Input::Lost { losses })?;
        }
        Ok(any)
    }

    /// The oldest record that was taken from the ring, to be handed in.
    fn next_record(&mut self) -> Option<ProcessEvent> {
        let event = self.waiting.take()?;
        answers::count(&mut self.standing.records, &event);
        Some(self.completer.whole(&self.procfs, &self.rules, event))
    }

    fn hand_in(&mut self, input: Input) -> anyhow::Result<()> {
        self.tell_engine(input);
        self.carry_out()
    }

    fn tell_engine(&mut self, input: Input) {
        self.tell_engine_at(clock::now(), input);
    }

    fn tell_engine_at(&mut self, now: BootTime, input: Input) {
        if let Some(trace) = &mut self.trace {
            trace.record(now, &input);
        }
        self.engine.handle(now, input);
    }

    /// Tells the engine that a time it waited for has come, if one has: only up to the last look into the
    /// ring, so that no verdict runs ahead of records that are still in it.
    fn pass_time(&mut self) {
        if self.engine.poll_timeout().is_some_and(|due| due <= self.seen_until) {
            self.tell_engine_at(self.seen_until, Input::Timeout);
        }
    }

    fn carry_out(&mut self) -> anyhow::Result<()> {
        while let Some(effect) = self.engine.poll_effect() {
            match effect {
                Effect::Emit { at, notice } => {
                    self.memory.settle();
                    self.metrics.observe(&notice);
                    self.hook.push(at, &notice);
                    self.stream.push(at, notice);
                }
                Effect::Persist { at, fact } => self.memory.note(at, &fact),
                Effect::Ask { token, about } => {
                    let Some(about) = self.ask_later(token, about) else { continue };
                    let answer = self.probe.answer(&about, &|| self.engine.judged_wires());
                    self.answered(token, answer);
                }
                Effect::Signal { process, signal, uid } => {
                    self.memory.settle();
                    self.signal(moment::Shot { process, uid, signal })?;
                }
                Effect::Track { process, tracking } => self.follow(process, tracking)?,
                Effect::Untrack { process } => {
                    self.crowd.forget(process);
                    self.kernel.untrack(process.pid)?;
                }
                Effect::Resync => self.resync()?,
            }
        }
        self.memory.settle();
        Ok(())
    }

    /// Signals a process, unless the last moment shows that it should not be.
    fn signal(&mut self, shot: moment::Shot) -> anyhow::Result<()> {
        let moment::Shot { process, signal, .. } = shot;
        let error = self.waiting.signal(&mut self.kernel, &mut self.reaper, self.doubtful, shot)?.err();
        match &error {
            // Its record tells, if it waits; whoever has its number now may have the same identity.
            Some(SignalError::Gone) if !self.waiting.has_exit(process) => self.gone.push(process),
            Some(SignalError::Unsure { message }) => {
                tracing::info!("not signalled, to be looked at again: {message}");
            }
            // There may be thousands.
            Some(SignalError::NoRoom { message }) if !self.no_room => {
                tracing::warn!("no room to signal processes now, they are tried again: {message}");
            }
            _ => {}
        }
        self.no_room = matches!(error, Some(SignalError::NoRoom { .. }));
        self.tell_engine(Input::Signalled { process, signal, error });
        Ok(())
    }

    /// The repair after a loss.
    fn resync(&mut self) -> anyhow::Result<()> {
        self.waiting.drain(&mut self.kernel);
        while let Some(event) = self.next_record() {
            self.tell_engine(Input::Process { event });
        }
        if self.read_proc()? {
            self.standing.resyncs += 1;
            self.doubtful = false;
        }
        Ok(())
    }

    fn look_at_proc(&mut self) -> anyhow::Result<()> {
        self.drain()?;
        self.read_proc()?;
        self.carry_out()
    }

    /// One look at /proc, handed to the engine. Whether it could be made: if not it will be.
    fn read_proc(&mut self) -> anyhow::Result<bool> {
        match snapshot(&self.procfs, &self.probe, &self.rules) {
            Ok(snapshot) => {
                self.unanswered.lacks(clock::now(), &snapshot.unread);
                self.tell_engine(Input::Snapshot { snapshot });
                Ok(true)
            }
            Err(error) => self.not_read(error).map(|()| false),
        }
    }
}

/// One look at /proc from now on: the standard streams of servers and of what may launch one, the units of agents, and of all
/// processes where rules name units.
pub fn snapshot(procfs: &Procfs, probe: &Probe, rules: &Rules) -> Result<Snapshot, ProcfsError> {
    let by = rules.clone();
    let wired = move |image: &Image| {
        matches!(by.role_but_for_exemption(image), Role::Server { .. } | Role::Launcher | Role::Shell)
            || matches!(by.role(image), Role::Launcher | Role::Shell)
    };
    let mut snapshot = procfs.snapshot(clock::now(), wired)?;
    for process in &mut snapshot.processes {
        if rules.name_units() || matches!(rules.role(&process.image), Role::Agent { .. }) {
            process.unit = probe.unit(process.id);
        }
    }
    Ok(snapshot)
}

/// How the daemon stands, for `systemctl status`.
fn in_short(mode: Mode, engine: &Engine) -> String {
    let doing = match mode {
        Mode::Reap => "watching",
        Mode::Observe => "observing",
    };
    let [agents, servers, orphans] = engine.counts();
    let (agents, servers, orphans) = (
        text::count(agents, "agent", "agents"),
        text::count(servers, "server", "servers"),
        text::count(orphans, "orphan", "orphans"),
    );
    format!("{doing}: {agents}, {servers}, {orphans}")
}

async fn told(signal: &mut Signal) {
    if signal.recv().await.is_none() {
        // The runtime is going down; there is nothing to wait for any more.
        std::future::pending::<()>().await;
    }
}
