//! Agents that were left behind: alive, although the agent above them has exited or their unit was stopped or started anew.
//!
//! Always told. Ended only where the unit itself proves it (`stale_invocation`, `unit_stopped`) and a rule says so. Its servers are
//! nobody's orphans while it lives.

use std::time::Duration;

use super::{Engine, Purpose, ends::millis, looks::LeftSight, units::tracked_owner};
use crate::{
    lineage::AgentKey,
    model::{
        About, BootTime, Class, Effect, End, Evidence, Fact, Guard, Mode, Notice, ProcessId, ServerFacts,
        Signal, Subject, Tracked,
    },
    world::{Account, Left, LeftStage, agent_as_server, agent_view},
};

/// Between two looks: its unit may be stopped only later, or a guard go.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// After a look that failed.
const LOOK_SOON: Duration = Duration::from_secs(1);

impl Engine {
    /// An agent lives in a unit: those of earlier invocations of that unit were left behind by now, and so may itself be.
    pub(super) fn unit_started_anew(&mut self, at: BootTime, key: AgentKey) {
        let Some(facts) = self.world.agent(key).and_then(|a| a.unit.clone()) else { return };
        let earlier: Vec<AgentKey> = self
            .world
            .agents()
            .all()
            .into_iter()
            .filter(|(other, a)| {
                let unit = a.unit.as_ref().filter(|u| u.unit == facts.unit);
                let left = *other == key && facts.left_behind();
                a.is_alive() && unit.is_some_and(|u| left || u.invocation_id != facts.invocation_id)
            })
            .map(|(other, _)| other)
            .collect();
        self.suspect(at, &earlier);
    }

    /// An agent is about to end: what it leaves behind, and what becomes of its own case.
    pub(super) fn left_ended(&mut self, at: BootTime, key: AgentKey) {
        let Some(agent) = self.world.agent(key) else { return };
        let below = |a: &crate::world::Agent| {
            a.is_alive() && a.above.is_some() && a.account.run() == agent.account.run()
        };
        let left: Vec<AgentKey> = match agent.above {
            None => self
                .world
                .agents()
                .all()
                .iter()
                .filter(|(k, a)| *k != key && below(a))
                .map(|(k, _)| *k)
                .collect(),
            Some(_) => Vec::new(),
        };
        self.suspect(at, &left);
        self.close_left(at, key);
    }

    fn suspect(&mut self, at: BootTime, agents: &[AgentKey]) {
        let due = at + self.settings.grace;
        for key in agents {
            if let Some(agent) = self.world.agent_mut(*key).filter(|a| a.left.since.is_none()) {
                (agent.left.since, agent.left.timer) = (Some(at), Some(due));
            }
        }
    }

    fn close_left(&mut self, at: BootTime, key: AgentKey) {
        let Some(agent) = self.world.agent_mut(key) else { return };
        let left = std::mem::take(&mut agent.left);
        if !left.is_orphan() {
            return;
        }
        let Some(agent) = self.world.agent(key) else { return };
        let mut server = agent_as_server(agent, self.world.graph());
        server.rss_bytes = Some(left.rss_bytes);
        let (id, owner) = (agent.main(), self.above(key));
        let class = Class::Agent;
        let LeftStage::Signalled { signal, first } = left.stage else {
            self.persist(at, Fact::Ended { server: id, end: End::OrphanExited });
            self.emit(at, Notice::OrphanExited { class, server, owner, let_go: Vec::new() });
            return;
        };
        let took_ms = Some(millis(at, first));
        let (freed_bytes, freed_pss_bytes) = (left.rss_bytes, left.pss_bytes);
        let end = End::Reaped { signal: Some(signal), took_ms, freed_bytes, freed_pss_bytes };
        self.persist(at, Fact::Ended { server: id, end });
        let notice = Notice::OrphanReaped {
            class,
            recovered: false,
            asked: false,
            server,
            owner,
            signal: Some(signal),
            took_ms,
            freed_bytes,
            freed_pss_bytes,
            let_go: Vec::new(),
        };
        self.emit(at, notice);
    }

    /// The time has come to look at an agent.
    pub(super) fn look_at_left(&mut self, key: AgentKey) {
        let Some(agent) = self.world.agent(key) else { return };
        let (processes, turn) = (vec![agent.main()], Some(agent.uid));
        let about = About::Server(Subject { processes, turn, ..Subject::default() });
        let sight = self.left_sight(key);
        self.ask(about, Purpose::Left { agent: key, sight });
    }

    /// The host answered. It may have been something else by then.
    pub(super) fn left_answered(
        &mut self,
        now: BootTime,
        key: AgentKey,
        asked: Option<&LeftSight>,
        facts: &ServerFacts,
    ) {
        if asked == self.left_sight(key).as_ref() {
            self.take_users(facts);
            self.left_looked(now, key, facts);
        } else if let Some(agent) = self.world.agent_mut(key).filter(|agent| agent.is_alive()) {
            agent.left.timer = Some(now + LOOK_SOON);
        }
    }

    /// What the host says about an agent that nobody above is left of.
    pub(super) fn left_looked(&mut self, now: BootTime, key: AgentKey, facts: &ServerFacts) {
        let guards = self.left_guards(key, facts);
        let Some(agent) = self.world.agent_mut(key).filter(|a| a.is_alive()) else { return };
        let unseen = self.doubtful || self.crowded.contains(&agent.uid);
        let left = &mut agent.left;
        if unseen || facts.blind.is_some() || facts.processes.is_empty() {
            left.timer = Some(now + LOOK_SOON);
            return;
        }
        left.timer = Some(now + LOOK_AGAIN);
        let Some(unit) = facts.unit.as_ref().filter(|unit| unit.left_behind()) else { return };
        let evidence = if unit.is_stopped() { Evidence::UnitStopped } else { Evidence::StaleInvocation };
        let changed = left.guards != guards;
        left.guards.clone_from(&guards);
        left.evidence = vec![evidence];
        if let LeftStage::Signalled { .. } = left.stage {
            if guards.is_empty() {
                self.end_left(now, key, Signal::Kill);
            }
            return;
        }
        let news = left.stage == LeftStage::None;
        if news {
            left.stage = LeftStage::Told;
            left.rss_bytes = facts.processes.iter().map(|p| p.rss_bytes).sum();
            left.pss_bytes = facts.processes.iter().filter_map(|p| p.pss_bytes).reduce(|a, b| a + b);
            self.tell_left(now, key);
        }
        if guards.is_empty() {
            self.end_left(now, key, Signal::Term);
        } else if news || changed {
            let Some(agent) = self.world.agent(key) else { return };
            let server = agent_as_server(agent, self.world.graph());
            let owner = self.above(key);
            self.emit(now, Notice::OrphanSpared { class: Class::Agent, server, owner, guards });
        }
    }

    fn tell_left(&mut self, now: BootTime, key: AgentKey) {
        self.report_withheld(key);
        let Some(agent) = self.world.agent(key) else { return };
        let Left { since, evidence, guards, rss_bytes, pss_bytes, .. } = agent.left.clone();
        let server = agent_as_server(agent, self.world.graph());
        let tracked = Tracked {
            id: agent.main(),
            name: agent.name.clone(),
            rule: server.rule.clone(),
            uid: Some(agent.uid),
            processes: vec![agent.main()],
            owner: agent.above.and_then(|a| self.world.agent(a)).map(tracked_owner),
            run: Account::run(&agent.account),
        };
        let id = agent.main();
        self.persist(now, Fact::Server { server: tracked });
        let fact = Fact::Orphan {
            server: id,
            evidence: evidence.clone(),
            guards: guards.clone(),
            rss_bytes,
            pss_bytes,
        };
        self.persist(now, fact);
        let due = since.unwrap_or(now) + self.settings.grace;
        let notice = Notice::OrphanDetected {
            class: Class::Agent,
            recovered: false,
            server,
            owner: self.above(key),
            evidence,
            guards,
            rss_bytes,
            pss_bytes,
            after_ms: since.map_or(0, |since| millis(now, since)),
            latency_ms: now.since(due).as_secs_f64() * 1e3,
        };
        self.emit(now, notice);
    }

    fn above(&self, key: AgentKey) -> Option<crate::model::AgentView> {
        self.world.agent(key)?.above.and_then(|a| self.world.agent(a)).map(agent_view)
    }

    /// What forbids to end an agent.
    fn left_guards(&self, key: AgentKey, facts: &ServerFacts) -> Vec<Guard> {
        let Some(agent) = self.world.agent(key) else { return Vec::new() };
        let mut guards = Vec::new();
        let mut add = |holds: bool, guard| {
            if holds {
                guards.push(guard);
            }
        };
        let below = self.world.graph().descendants(agent.main());
        let protected = |p: &ProcessId| self.world.node(*p).is_some_and(|n| n.protected);
        add(below.iter().chain([&agent.main()]).any(protected), Guard::ExemptRule);
        add(facts.opted_out, Guard::OptedOut);
        let foreign = facts.processes.iter().any(|p| p.uid != agent.uid);
        add(foreign && !self.settings.other_uids, Guard::OtherUid);
        // Without a rule that says so the agent itself is the live agent that nobody ends.
        // One with clients is in use: alive, as far as anybody can tell.
        let used = facts.processes.iter().any(|p| p.sockets.clients || p.traced);
        let lives = used || below.iter().any(|p| self.world.agent_of(*p).is_some());
        add(lives || !self.settings.rules.reap_agent(&agent.name), Guard::LiveAgentBelow);
        add(self.settings.mode == Mode::Observe, Guard::Observe);
        guards
    }

    /// The gate for signals to agents.
    fn may_end(&self, key: AgentKey) -> bool {
        self.world.agent(key).is_some_and(|agent| {
            let by_unit = |e: &Evidence| matches!(e, Evidence::StaleInvocation | Evidence::UnitStopped);
            let main = agent.main();
            agent.is_alive()
                && main.pid > 1
                && agent.left.guards.is_empty()
                && agent.left.evidence.iter().any(by_unit)
                && self.settings.mode == Mode::Reap
                && self.settings.rules.reap_agent(&agent.name)
                && !self.settings.ourselves.contains(&main)
                && self.world.node(main).is_some_and(|n| !n.protected)
                && self.world.graph().descendants(main).iter().all(|p| self.world.agent_of(*p).is_none())
        })
    }

    fn end_left(&mut self, now: BootTime, key: AgentKey, signal: Signal) {
        let patience = self.settings.term_timeout;
        if !self.may_end(key) {
            return;
        }
        let Some(agent) = self.world.agent_mut(key) else { return };
        let process = agent.main();
        let first = match agent.left.stage {
            LeftStage::Signalled { signal: Signal::Kill, .. } | LeftStage::Failed => return,
            LeftStage::Signalled { first, .. } => first,
            LeftStage::None | LeftStage::Told => now,
        };
        agent.left.stage = LeftStage::Signalled { signal, first };
        agent.left.timer = Some(now + patience);
        self.persist(now, Fact::Reaping { server: process });
        let uid = self.user(process);
        self.effects.push_back(Effect::Signal { process, signal, uid });
    }

    /// A signal to an agent was not sent, because it may not be what was judged: it is looked at again. Whether it was to one.
    pub(super) fn left_unsure(&mut self, now: BootTime, process: ProcessId, signal: Signal) -> bool {
        let Some(agent) = self.world.agent_of(process).and_then(|key| self.world.agent_mut(key)) else {
            return false;
        };
        let LeftStage::Signalled { first, .. } = agent.left.stage else { return false };
        agent.left.stage = match signal {
            Signal::Term => LeftStage::Told,
            Signal::Kill => LeftStage::Signalled { signal: Signal::Term, first },
        };
        agent.left.timer = Some(now + LOOK_SOON);
        true
    }

    /// A signal to an agent was refused. Whether it was to one.
    pub(super) fn left_refused(
        &mut self,
        now: BootTime,
        process: ProcessId,
        error: &str,
        errno: i32,
    ) -> bool {
        let Some(key) = self.world.agent_of(process) else { return false };
        let Some(agent) = self.world.agent_mut(key) else { return false };
        if !matches!(agent.left.stage, LeftStage::Signalled { .. }) {
            return false;
        }
        (agent.left.stage, agent.left.timer) = (LeftStage::Failed, None);
        let Some(agent) = self.world.agent(key) else { return false };
        let server = agent_as_server(agent, self.world.graph());
        let fact = Fact::ReapFailed { server: process, pid: process.pid, error: error.to_owned() };
        self.persist(now, fact);
        let error = error.to_owned();
        self.emit(now, Notice::ReapFailed { server, pid: process.pid, error, errno: Some(errno), failed: 1 });
        true
    }
}
