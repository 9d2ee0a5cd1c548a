//! Cases of agents that may have been left behind: they are alive although what started them has exited, or although
//! their unit was stopped or restarted.
//!
//! Two things show it, and both are reported: the unit itself (`stale_invocation`, `unit_stopped`), or both streams of
//! the agent, which have hung up (`stdin_hangup`). They are ended only if the unit proves it and a rule allows it. While
//! such an agent is alive, its servers are not orphans.
//!
//! A daemon by design is never left behind: it is meant to outlive whoever started it, and there is no case for it.

use std::time::Duration;

use super::{
    Engine,
    cases::{CaseOf, LONGEST},
    inspections::Observed,
    units::tracked_owner,
};
use crate::{
    case::{Event, Finding, INSPECT_AGAIN, Outcome, Reason},
    lineage::{AgentKey, Node},
    model::{
        About, Answer, BootTime, Evidence, Fact, Guard, Haste, Mode, ProcessId, ServerFacts, Share, Subject,
        Tracked,
        scene::{ProcessRow, Scene, SceneQuestion, SceneServer},
    },
    verdict::{is_cut_off, is_used},
    world::{Agent, agent_as_server},
};

/// The longest time between two looks at an agent in a unit.
const IN_UNIT: Duration = Duration::from_secs(60);
/// The most processes below one that has ended among which an agent is looked for.
const BELOW: usize = 64;

impl Engine {
    /// An agent runs in a unit. Agents of earlier invocations of that unit have been left behind by now, and the
    /// agent itself may have been, too.
    pub(super) fn unit_started_anew(&mut self, at: BootTime, key: AgentKey) {
        let Some(facts) = self.world.agent(key).and_then(|a| a.unit.clone()) else { return };
        let earlier = self.agents_where(|other, agent| {
            let unit = agent.unit.as_ref().filter(|unit| unit.unit == facts.unit);
            let left = other == key && facts.left_behind();
            agent.is_alive() && unit.is_some_and(|unit| left || unit.invocation_id != facts.invocation_id)
        });
        self.suspect(at, Reason::UnitRestarted, &earlier);
    }

    /// An agent is about to end: handles what it leaves behind, and closes its own case.
    pub(super) fn left_ended(&mut self, at: BootTime, key: AgentKey) {
        let Some(agent) = self.world.agent(key) else { return };
        let run = agent.account.run();
        let below =
            |other, a: &Agent| other != key && a.is_alive() && a.above.is_some() && a.account.run() == run;
        let left = if agent.above.is_none() { self.agents_where(below) } else { Vec::new() };
        self.suspect(at, Reason::OwnerExited, &left);
        self.agent_event(at, key, Event::Ended);
    }

    /// A process is about to leave the graph: whoever spoke to the agents that it started may be gone. A launcher between
    /// them waits for the agent.
    pub(super) fn starter_ended(&mut self, at: BootTime, id: ProcessId) {
        let above = self.world.node(id).and_then(|node| node.agent);
        let below = self.world.graph().below(id).take(BELOW).filter(|node| node.stdin().is_wire());
        let is_left = |agent: &Agent| agent.above == above && !agent.took_over;
        let left = below.filter_map(|node| self.world.agent_of(node.id));
        let left: Vec<_> = left.filter(|key| self.world.agent(*key).is_some_and(is_left)).collect();
        self.suspect(at, Reason::OwnerExited, &left);
    }

    pub(super) fn suspect(&mut self, since: BootTime, reason: Reason, agents: &[AgentKey]) {
        let deadline = since + self.policy.grace;
        for key in agents {
            if self.world.agent(*key).is_some_and(|agent| agent.phase.is_clear() && !agent.daemon) {
                self.agent_event(since, *key, Event::Suspected { reason, since, deadline });
            }
        }
    }

    pub(super) fn close_agent(&mut self, at: BootTime, key: AgentKey, outcome: Outcome) {
        self.set_deadline(CaseOf::Agent(key), None);
        let (Outcome::OrphanExited { rss_bytes } | Outcome::Reaped { rss_bytes, .. }) = outcome else {
            return;
        };
        let Some(mut ended) = self.reported(CaseOf::Agent(key)) else { return };
        ended.server.rss_bytes = Some(rss_bytes);
        // `agent_exited` tells how.
        self.announce_end(at, ended, outcome);
    }

    pub(super) fn inspect_agent(&mut self, key: AgentKey) {
        let Some(agent) = self.world.agent(key) else { return };
        let (processes, turn) = (vec![agent.main()], (Share::of(agent.uid), Haste::InTurn));
        let [stdin, stdout] = self.world.node(agent.main()).map(Node::wires).unwrap_or_default();
        let servers = vec![SceneServer { processes: processes.clone(), stdin, stdout }];
        let question = SceneQuestion { servers, ..SceneQuestion::default() };
        let about = About::Server(Subject { processes, question, ..Subject::default() });
        let Some(observed) = self.observe_agent(key) else { return };
        self.ask(Some(turn), about, move |engine, now, answer| {
            if let Answer::Server { facts } = answer {
                engine.agent_inspected(now, key, &observed, &facts);
            }
        });
    }

    /// The inspection of an agent was answered. The agent may have changed since it was asked for.
    fn agent_inspected(&mut self, now: BootTime, key: AgentKey, asked: &Observed, facts: &ServerFacts) {
        let Some(agent) = self.world.agent(key).filter(|agent| agent.is_alive()) else { return };
        let missing = self.doubtful || self.is_crowded(agent.uid);
        let row = facts.scene.full(&[agent.main()]).next().cloned();
        let unseen = missing || facts.scene.blind(|one| one == agent.main()).is_some() || row.is_none();
        let unchanged = self.observe_agent(key).as_ref() == Some(asked)
            && !self.is_too_old(now, CaseOf::Agent(key), facts);
        if unchanged {
            self.update_users(facts);
        }
        let Some(agent) = self.world.agent(key) else { return };
        let row = row.unwrap_or_default();
        let proof =
            row.unit.as_ref().filter(|unit| unit.left_behind()).map(|unit| {
                if unit.is_stopped() { Evidence::UnitStopped } else { Evidence::StaleInvocation }
            });
        let below = self.world.graph().descendants(agent.main());
        let is_cut_off = || is_cut_off(&facts.scene, agent.main(), &below);
        let event = match proof.or_else(|| is_cut_off().then_some(Evidence::StdinHangup)) {
            _ if !unchanged || unseen => Event::Inconclusive { again: INSPECT_AGAIN },
            None => {
                let so_far = agent.phase.since().map_or(INSPECT_AGAIN, |since| now.since(since));
                Event::Inconclusive { again: so_far.clamp(INSPECT_AGAIN, between_looks(agent)) }
            }
            Some(evidence) => Event::Inspected(Box::new(Finding {
                evidence: vec![evidence],
                guards: self.agent_guards(key, &row, &facts.scene, proof.is_some()),
                rss_bytes: row.rss_bytes,
                pss_bytes: row.pss_bytes,
                ..Finding::default()
            })),
        };
        self.agent_event(now, key, event);
    }

    /// Stores what the next daemon must know of an agent.
    pub(super) fn remember_agent(&mut self, now: BootTime, key: AgentKey) {
        self.report_withheld(key);
        let Some(agent) = self.world.agent(key) else { return };
        let tracked = Tracked {
            id: agent.main(),
            name: agent.name.clone(),
            rule: agent_as_server(agent, self.world.graph()).rule,
            uid: Some(agent.uid),
            processes: vec![agent.main()],
            owner: agent.above.and_then(|a| self.world.agent(a)).map(tracked_owner),
            run: agent.account.run(),
            start: None,
        };
        self.persist(now, Fact::Server { server: tracked });
    }

    /// `proven`: by its unit.
    fn agent_guards(&self, key: AgentKey, row: &ProcessRow, scene: &Scene, proven: bool) -> Vec<Guard> {
        let Some(agent) = self.world.agent(key) else { return Vec::new() };
        let below = self.world.graph().descendants(agent.main());
        let protected = |p: &ProcessId| self.world.node(*p).is_some_and(|n| n.protected);
        let unit = row.unit.as_ref().map(|unit| &unit.unit);
        let exempt = agent.exempt
            || self.rules.exempts_by(unit, &row.slices, row.uid).is_some()
            || below.iter().chain([&agent.main()]).any(protected);
        // Without a rule that allows it no agent is ended. Nor is one in use, and one that may be at work although nobody
        // listens.
        let lives = !proven || is_used(scene, agent.main(), &below) || !self.rules.reap_agent(&agent.name);
        let guards = [
            (exempt, Guard::ExemptRule),
            (row.opted_out, Guard::OptedOut),
            (row.uid != agent.uid && !self.policy.other_uids, Guard::OtherUid),
            (lives, Guard::LiveAgent),
            (below.iter().any(|p| self.world.agent_of(*p).is_some()), Guard::LiveAgentBelow),
            (self.policy.mode == Mode::Observe, Guard::Observe),
        ];
        guards.into_iter().filter(|(holds, _)| *holds).map(|(_, guard)| guard).collect()
    }

    /// Whether an agent may be signalled. Every signal to an agent goes through this check.
    pub(super) fn may_end(&self, key: AgentKey) -> bool {
        self.world.agent(key).is_some_and(|agent| {
            let main = agent.main();
            agent.is_alive()
                && !agent.daemon
                && main.pid > 1
                && self.policy.mode == Mode::Enforce
                && self.rules.reap_agent(&agent.name)
                && !self.ourselves.contains(&main)
                && self.world.node(main).is_some_and(|n| !n.protected)
                && self.world.graph().below(main).all(|below| self.world.agent_of(below.id).is_none())
        })
    }
}

/// The longest time between two looks at an agent: the unit that it runs in may be stopped later.
pub(super) fn between_looks(agent: &Agent) -> Duration {
    if agent.unit.is_some() { IN_UNIT } else { LONGEST }
}
