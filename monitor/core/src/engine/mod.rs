//! The engine: it turns inputs into effects. It is total, synchronous and deterministic; it has no I/O and no clock.
//!
//! It owns all state of the daemon that matters: the lineage graph, the agents, the servers and the cases. The shell
//! passes every event to [`Engine::handle`], and [`Input::Timeout`] when the time of [`Engine::poll_timeout`] has come. The
//! shell then carries out what [`Engine::poll_effect`] returns. The same inputs at the same times give the same effects, byte
//! for byte, so a recorded trace is a complete bug report.

mod abandoned;
mod agenda;
mod agents;
mod alerts;
mod awaited;
mod bursts;
mod cases;
mod containers;
mod duplicates;
mod findings;
mod first_messages;
mod guarded;
mod hints;
mod idle;
mod inspections;
mod left_agents;
mod leftovers;
mod lives;
mod managers;
mod pending;
mod questions;
mod recall;
mod reinspections;
mod released;
mod repair;
mod report;
mod requests;
mod servers;
mod sessions;
mod settings;
mod targets;
#[cfg(test)]
mod tests;
mod threads;
mod trials;
mod units;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    num::NonZeroU64,
};

use crate::{
    lineage::ServerKey,
    model::{
        BootTime, Effect, Fact, Ignored, Input, KilledBy, Notice, Policy, ProcessEvent, ProcessId, Share,
        SnapshotProcess, Tracking,
    },
    recognise::{Rules, is_nohup},
    world::World,
};

/// The engine: all state of the daemon, and the queue of effects that the shell has not fetched yet.
#[derive(Debug, Default)]
pub struct Engine {
    policy: Policy,
    /// Those of the policy.
    rules: Rules,
    /// The daemon and its ancestors. They never get a signal.
    ourselves: Vec<ProcessId>,
    world: World,
    recall: recall::Recall,
    /// When orphand was started for the first time; absent if that was in an earlier boot.
    first_start: Option<BootTime>,
    /// [`crate::model::Knowledge::incomplete_before`].
    incomplete_before: Option<BootTime>,
    bursts: bursts::Bursts,
    sessions: sessions::Sessions,
    wire_watch: abandoned::WireWatch,
    containers: BTreeMap<ServerKey, containers::Inside>,
    tools: BTreeMap<ServerKey, findings::Tools>,
    duplicates: BTreeMap<ServerKey, duplicates::Entry>,
    /// What those do whose owner's rule says that idle ones are ended.
    idle: idle::IdleDuplicates,
    first_messages: awaited::FirstMessages,
    queue: awaited::Queue,
    leftovers: leftovers::Leftovers,
    alarms: alerts::Alarms,
    /// Service managers. The kernel side reports the execs of their children, because rules may name units.
    managers: BTreeSet<ProcessId>,
    questions: questions::Questions,
    effects: VecDeque<Effect>,
    /// Records were lost and the graph is not repaired yet. The engine judges nothing in this state.
    doubtful: bool,
    /// Exec records were among the lost ones. A process that looks like a copy of its creator may have run the
    /// program again.
    execs_lost: bool,
    /// Users of whom the kernel side does not follow all processes. The engine judges nothing that belongs to them.
    crowded: BTreeSet<Share>,
    /// Processes that the current inspection did not see in their present state. They get no signal for that
    /// inspection.
    unseen: BTreeSet<ProcessId>,
    /// How many configurations have been in effect so far.
    policies: u64,
    /// Whether there were no servers, and which configuration was in effect, when the watches were last begun or ended.
    watched: Option<(bool, u64)>,
    last_repair: Option<BootTime>,
    reinspections: reinspections::Reinspections,
    /// Until then nobody looks into containers because a client has ended.
    containers_until: BootTime,
    agenda: agenda::Agenda,
    /// Bootstrap is over: a process that is found in /proc from now on was missed, and is younger than the daemon.
    ready: bool,
}

impl Engine {
    /// An engine that knows no process yet; an error if the rules of the policy are not TOML. `ourselves`: the daemon and
    /// its ancestors.
    pub fn new(policy: Policy, ourselves: Vec<ProcessId>) -> Result<Self, toml::de::Error> {
        let rules = Rules::from_source(&policy.rules)?;
        let mut engine = Self { rules, ourselves, ..Self::default() };
        engine.change_alerts(BootTime::default(), &policy.alerts);
        engine.policy = policy;
        Ok(engine)
    }

    /// Handles one event. `now` is the time at which the shell passes it in.
    pub fn handle(&mut self, now: BootTime, input: Input) {
        self.dispatch(now, input);
        let watched = Some((self.world.servers().is_empty(), self.policies));
        if self.watched != watched {
            self.watched = watched;
            self.begin_wire_watch(now);
            self.begin_idle_watch(now);
        }
        self.begin_processor_watch(now);
        self.evaluate_alerts(now);
    }

    fn dispatch(&mut self, now: BootTime, input: Input) {
        if !matches!(input, Input::Answered { .. }) {
            self.report_unanswered_exits(now);
        }
        match input {
            Input::Process { event } => self.process(now, event),
            Input::Lost { losses } => self.lost(now, losses),
            Input::Crowded { users } => self.crowded(now, users),
            Input::Snapshot { snapshot } => self.reconcile(now, snapshot),
            Input::Signalled { process, signal, error: None } => self.signalled(now, process, signal),
            Input::Signalled { process, signal, error: Some(error) } => {
                self.signal_refused(now, process, signal, error);
            }
            // Its exit record has usually come before. In that case there is nothing left to do.
            Input::Gone { process } => self.exit(now, now, process, None),
            Input::Answered { token, answer } => self.answered(now, token, answer),
            Input::Ready { kernel, hooks } => self.ready(now, kernel, hooks),
            Input::Timeout => self.handle_timeout(now),
            Input::Woke { slept } => self.woke(now, slept),
            Input::Remembered { knowledge } => self.remember(knowledge),
            Input::Reap { request, by } => self.reap_on_request(now, &request, &by),
            Input::Release { request, user } => self.release_on_request(now, &request, user),
            Input::Configured { policy } => self.reconfigure(now, policy),
            Input::Sessions { seen } => self.sessions_seen(seen),
            Input::Stop => self.stop(now),
        }
    }

    /// The next effect for the shell to carry out, oldest first.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// The same, if it is a signal: those of one step are sent together.
    pub fn poll_signal(&mut self) -> Option<Effect> {
        let is_next = matches!(self.effects.front(), Some(Effect::Signal { .. }));
        if is_next { self.effects.pop_front() } else { None }
    }

    /// When the engine wants [`Input::Timeout`] if nothing else happens before. `None`: it waits for no deadline.
    pub fn poll_timeout(&self) -> Option<BootTime> {
        self.agenda.next()
    }

    pub const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The number of processes in the lineage graph.
    pub fn processes(&self) -> usize {
        self.world.graph().count()
    }

    pub const fn world(&self) -> &World {
        &self.world
    }

    fn process(&mut self, now: BootTime, event: ProcessEvent) {
        match event {
            ProcessEvent::Fork { at, creator, thread, child, uid, sid } => {
                self.fork(at, (creator, thread), child, uid, sid);
            }
            ProcessEvent::Exec { at, process, parent, uid, sid, image, stdio, ignored } => {
                let (id, parent) = (process, Some(parent));
                let seen =
                    SnapshotProcess { id, parent, uid, sid, image, stdio, ..SnapshotProcess::default() };
                let is_below_nohup = ignored.hangup
                    && self
                        .world
                        .node(process)
                        .is_none_or(|node| !node.exec.ignored.hangup || node.image().is_some_and(is_nohup));
                if is_below_nohup {
                    self.world.change(process, |node| node.outlives = NonZeroU64::new(node.order + 1));
                }
                self.exec(now, at, &seen);
                if is_below_nohup {
                    self.remember_below_nohup(at, process);
                }
                if ignored != Ignored::default() {
                    self.world.change(process, |node| node.correct(|exec| exec.ignored = ignored));
                }
            }
            ProcessEvent::Exit { at, process, status } => self.exit(now, at, process, Some(status)),
            ProcessEvent::Setsid { at, process, sid } => self.setsid(at, process, sid),
            ProcessEvent::ThreadExit { at, process, thread } => self.thread_ended(now, at, process, thread),
            // It ends by it: its exit follows.
            ProcessEvent::Signal { process, signal, mut killer, .. } => {
                // The first one is the daemon, the others are its ancestors.
                let daemon = self.ourselves.first().map(|daemon| daemon.pid);
                if killer.pid.is_some() && killer.pid == daemon {
                    killer.by = KilledBy::Orphand;
                }
                self.world.change(process, |node| node.strike = Some(Box::new((signal, *killer))));
            }
        }
    }

    fn emit(&mut self, at: BootTime, notice: Notice) {
        self.alarms.observe(at, &notice);
        self.effects.push_back(Effect::Emit { at, notice: Box::new(notice) });
    }

    /// Asks the shell to store a fact. Events that are reported from here on rely on it being stored.
    fn persist(&mut self, at: BootTime, fact: Fact) {
        self.effects.push_back(Effect::Persist { at, fact: Box::new(fact) });
    }

    /// Tells the kernel side to stop reporting this process, unless it is a service manager.
    fn untrack(&mut self, process: ProcessId) {
        self.effects.push_back(if self.managers.contains(&process) {
            Effect::Track { process, tracking: Tracking::Manager }
        } else {
            Effect::Untrack { process }
        });
    }

    fn stop(&mut self, now: BootTime) {
        self.report_all_coalesced(now);
        let [agents, servers, orphans] = self.counts();
        self.emit(now, Notice::Stopping { agents, servers, orphans });
    }

    fn ready(&mut self, now: BootTime, kernel: String, hooks: Vec<String>) {
        self.resolve_recalled(now);
        self.ready = true;
        let notice = Notice::Ready {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            mode: self.policy.mode,
            kernel,
            hooks,
            processes: self.world.graph().count() as u64,
            agents: self.world.living_agents() as u64,
            servers: self.world.servers().len() as u64,
            found: self.world.servers().values().filter(|server| self.waits_for_person(server)).count()
                as u64,
        };
        self.emit(now, notice);
    }
}
