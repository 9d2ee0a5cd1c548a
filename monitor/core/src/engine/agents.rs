//! The life of agents: how they are recognised, implied by a server that they started, taken over by a copy, and
//! ended.

use std::time::Duration;

use super::{Engine, lives::has_wires};
use crate::{
    case::{Event, Reason},
    lineage::{AgentKey, Node, ObservedUnit, ServerKey, in_order},
    model::{
        About, AgentView, Answer, BootTime, CopyFacts, Effect, Ending, Fact, Notice, ProcessId, RunView,
        Tracking, scene::ProcessRow,
    },
    recognise::Role,
    world::{Agent, Server, TopMost, agent_view},
};

#[derive(Clone, Debug)]
pub(super) struct AgentExit {
    pub(super) agent: AgentKey,
    pub(super) at: BootTime,
    pub(super) ending: Ending,
}

impl Engine {
    /// A process turned out to be an agent: a rule recognised it, or it started a server.
    pub(super) fn agent_recognised(&mut self, at: BootTime, id: ProcessId, name: String, implied: bool) {
        let Some(node) = self.world.node(id) else { return };
        let (unit, unsettled) = match &node.unit {
            ObservedUnit::Known(unit) => (unit.clone(), false),
            ObservedUnit::Gone => (None, true),
            ObservedUnit::Unasked => {
                self.ask_process(id, move |engine, _| {
                    // An inspection that was answered meanwhile may have found out what it is.
                    let known = engine.world.agent_of(id).and_then(|key| engine.world.agent(key));
                    if known.is_none_or(|agent| agent.withheld.is_some()) {
                        engine.agent_recognised(at, id, name, implied);
                    }
                });
                return;
            }
        };
        let known = self.world.agent_of(id).and_then(|key| Some((key, self.world.agent(key)?)));
        let above = known.map_or(node.agent, |(_, agent)| agent.above);
        let withheld = known.filter(|(_, agent)| agent.withheld.is_some()).map(|(key, _)| key);
        let (origin, uid, sid) = (node.origin(), node.uid, node.sid);
        // Nothing is reported of what a host leaves that no rule knows.
        let place = node.place.clone().filter(|_| !implied);
        let hints = node.hints.as_deref().cloned().unwrap_or_default();
        let daemon = self.is_daemon(node);
        // A daemon does not belong to the run of whoever started it. Its launcher is a part of the same daemon.
        let alien = |above: &&Agent| daemon && !(above.daemon && above.name == name && above.is_alive());
        let starter = above.and_then(|a| self.world.agent(a));
        let on_its_own = starter.as_ref().is_some_and(alien);
        let account = if let Some(above) = starter.filter(|_| !on_its_own) {
            above.account.clone()
        } else if unsettled {
            RunView::unknown(&name, uid)
        } else {
            let witnessed = !node.provenance.is_found();
            // The unit of a daemon is that of whoever started it.
            let unit = unit.as_deref().filter(|_| !on_its_own);
            self.account(at, &TopMost { name: &name, uid, main: id, unit, witnessed })
        };
        // What the process created before it was known as an agent belongs to it, too.
        let key = if let Some(key) = withheld {
            self.world.change_agent(key, |agent| {
                (agent.account, agent.unit, agent.withheld) = (account, unit, None);
            });
            self.world.assign(key, id, above, implied);
            key
        } else {
            let mut new = Agent::new(id, origin, name);
            (new.implied, new.uid, new.sid) = (implied, uid, sid);
            (new.above, new.unit, new.account) = (above, unit, account);
            self.world.start_agent(new, implied)
        };
        if let Some(agent) = self.world.agent_mut(key) {
            agent.unsettled = unsettled && agent.above.is_none();
            agent.daemon = daemon;
            (agent.place, agent.hints) = (place, hints);
            if on_its_own {
                agent.above = None;
            }
        }
        self.add_placement(key, id);
        self.unit_started_anew(at, key);
        self.leave_server(at, id);
        self.claim_made(at, key, id);
        self.confirm(at, id);
        self.effects.push_back(Effect::Track { process: id, tracking: Tracking::Agent });
        self.report_agent_started(at, key, None);
    }

    /// The account of a top-most agent. If its run is new, or alive again, that is stored.
    pub(super) fn account(&mut self, at: BootTime, agent: &TopMost<'_>) -> RunView {
        let (account, run) = self.world.runs_mut().account(agent);
        if let Some(run) = run {
            self.persist(at, Fact::Run { run });
        }
        account
    }

    /// The agents, oldest first, of which this holds.
    pub(super) fn agents_where(&self, holds: impl Fn(AgentKey, &Agent) -> bool) -> Vec<AgentKey> {
        let all = self.world.agents();
        all.filter(|(key, agent)| holds(*key, agent)).map(|(key, _)| key).collect()
    }

    /// Takes a process, and what it started, out of the server that started it.
    pub(super) fn leave_server(&mut self, at: BootTime, id: ProcessId) {
        if let Some(emptied) = self.world.leave(id) {
            self.end_if_done(at, emptied);
        }
    }

    /// Whether a process was found in /proc, and the kernel did not report that it ran its program.
    pub(super) fn is_found(&self, process: ProcessId) -> bool {
        self.world.node(process).is_some_and(|node| node.provenance.is_found())
    }

    pub(super) fn report_agent_started(&mut self, at: BootTime, key: AgentKey, continues: Option<ProcessId>) {
        if let Some(agent) = self.world.agent(key) {
            let (main, found) = (agent.main(), self.is_found(agent.main()));
            self.emit(at, Notice::AgentStarted { agent: agent_view(agent), continues, found });
            self.remember_agent_hints(at, key);
            self.guards(at, main);
        }
    }

    /// The process of an agent ran another program. The agent usually goes on: the program is a new version of
    /// itself, or the process was a wrapper that ends in the real program. The exception is a copy that took over,
    /// because no rule recognised its program. If such a copy runs another program, it was a child on its way to its
    /// own exec and never took over.
    pub(super) fn agent_ran(&mut self, now: BootTime, at: BootTime, key: AgentKey, id: ProcessId) {
        let node = self.world.node(id);
        let role = node.and_then(Node::role).cloned();
        let origin = node.map(Node::origin);
        let has_wire = node.is_some_and(has_wires);
        let program = node.and_then(Node::name);
        let daemon = node.is_some_and(|node| self.is_daemon(node));
        let Some(agent) = self.world.agent_mut(key) else { return };
        let itself = program.is_some_and(|p| p == agent.name);
        // A process that was found in /proc between its fork and its exec never took over either.
        let a_server = matches!(role, Some(Role::Server { .. })) && has_wire && agent.servers().is_empty();
        if a_server || (agent.took_over && !itself && !matches!(role, Some(Role::Agent { .. }))) {
            self.agent_ended(now, AgentExit { agent: key, at, ending: Ending::default() });
            return;
        }
        if let Some(origin) = origin {
            agent.origin = origin;
        }
        agent.daemon = daemon;
        self.forget_spawners(at, Some(key));
    }

    /// Whether an agent that runs as this process is a daemon by design.
    pub(super) fn is_daemon(&self, node: &Node) -> bool {
        node.image().is_some_and(|image| self.rules.is_daemon(image, node.stdin().is_wire()))
    }

    /// The main process of an agent exited, or is no longer its main process.
    pub(super) fn agent_ended(&mut self, now: BootTime, exit: AgentExit) {
        let copies = self.copies(exit.agent);
        if let Some(successor) = self.successor(&exit, &copies) {
            self.transfer(&exit, successor);
            return;
        }
        let Some(agent) = self.world.agent(exit.agent) else { return };
        if copies.is_empty() || agent.servers().is_empty() {
            self.agent_is_over(now, exit, Vec::new());
            return;
        }
        // Records what the copies have done so far. A copy that does more from now on continues the agent's work.
        self.ask_about_exit(exit.agent, About::Copies(copies), move |engine, now, answer| {
            let copies = if let Answer::Copies { copies } = answer { copies } else { Vec::new() };
            engine.copies_answered(now, exit, copies);
        });
    }

    /// The answer to the question what the copies of an agent do after its main process has exited.
    fn copies_answered(&mut self, now: BootTime, exit: AgentExit, copies: Vec<CopyFacts>) {
        // A setsid(2) of the copy may not have been reported.
        for copy in &copies {
            self.world.change(copy.process, |node| node.sid = copy.sid);
        }
        let lives =
            |copy: &ProcessId| self.world.node(*copy).is_some() && self.world.agent_of(*copy).is_none();
        let alive: Vec<ProcessId> = copies.iter().map(|copy| copy.process).filter(lives).collect();
        match self.successor(&exit, &alive) {
            Some(successor) => self.transfer(&exit, successor),
            None => self.agent_is_over(now, exit, copies),
        }
    }

    /// The agent has exited, and no copy continues its work. `copies`: its forked copies that are still alive.
    fn agent_is_over(&mut self, now: BootTime, exit: AgentExit, copies: Vec<CopyFacts>) {
        let AgentExit { agent: key, at, .. } = exit;
        let killed = exit.ending.signal.is_some();
        let Some(agent) = self.world.agent_mut(key) else { return };
        agent.copies = copies;
        let withheld = agent.withheld.is_some() && agent.servers().is_empty();
        if withheld {
            self.withheld_ended(at, key);
        } else {
            self.left_ended(at, key);
        }
        let servers = self.world.end_agent(key, at, killed);
        self.run_may_have_ended(at, key);
        if !withheld {
            self.await_leftovers(at, Some(key));
        }
        let deadline = at + self.grace_of(self.world.agent(key));
        let left = servers.iter().filter_map(|server| self.world.server(*server));
        let processes: Vec<ProcessId> = left.flat_map(Server::own).collect();
        for server in &servers {
            let suspected = Event::Suspected { reason: Reason::OwnerExited, since: at, deadline };
            self.server_event(now, *server, suspected);
            self.remember_server(at, *server);
        }
        if withheld {
            self.world.forget_dead_agents();
        } else if servers.is_empty() {
            self.report_agent_exit(&exit, &servers);
        } else {
            self.ask_about_exit(key, About::Memory(processes), move |engine, _, answer| {
                engine.remember_memory(&servers, answer);
                engine.report_agent_exit(&exit, &servers);
            });
        }
        self.other_ended(now);
    }

    /// How long the servers of this agent may outlive it.
    pub(super) fn grace_of(&self, owner: Option<&Agent>) -> Duration {
        let named = owner.filter(|owner| !owner.implied);
        named.and_then(|owner| self.rules.grace_of(&owner.name)).unwrap_or(self.policy.grace)
    }

    /// Assigns what a process started to this process, because it turns out to be an agent. Until now it belonged to
    /// the agent whose copy the process seemed to be.
    fn claim_made(&mut self, at: BootTime, key: AgentKey, id: ProcessId) {
        for server in self.world.server_keys() {
            let head = self.world.server(server).and_then(|s| self.world.node(s.id));
            let others = self.world.server(server).and_then(Server::owner).is_some_and(|owner| owner != key);
            if others && head.is_some_and(|h| h.witnessed && h.creator == Some(id)) {
                self.world.set_owner(server, Some(key));
                self.compare(at, server);
                self.remember_server(at, server);
                self.server_event(at, server, Event::OwnerFound);
                self.follow_spawner(server);
            }
        }
    }

    /// A live host was found for a suspect, for a judged server, or for a server that existed before the daemon
    /// started.
    pub(super) fn owner_found(&mut self, now: BootTime, key: ServerKey, host: &ProcessRow) {
        self.adopt_host(now, key, host);
        self.server_event(now, key, Event::OwnerFound);
    }

    /// Forked copies of the agent that never ran another program, oldest first. The list does not contain its main
    /// process. Nor does it contain copies that are agents themselves, because they started a server before it was
    /// known whose copy they are.
    fn copies(&self, key: AgentKey) -> Vec<ProcessId> {
        let Some(agent) = self.world.agent(key) else { return Vec::new() };
        let is_agent = |n: &Node| self.world.agent_of(n.id).is_some();
        let is_copy = |n: &&Node| {
            n.origin() == agent.origin && n.id != agent.main() && n.server.is_none() && !is_agent(n)
        };
        let is_first =
            !agent.took_over && self.world.node(agent.main()).is_some_and(|n| n.origin() == agent.origin);
        // Only descendants of the first main process can be copies of it, so the whole graph need not be searched.
        let ids: Vec<ProcessId> = if is_first {
            self.world.graph().descendants(agent.main())
        } else {
            self.world.graph().ids().collect()
        };
        in_order(ids.into_iter().filter_map(|id| self.world.node(id)).filter(is_copy))
    }

    /// The copy that continues the agent's work, if there is one. That is a copy in a session of its own (it went
    /// into the background) or a copy that started servers of its own. If the agent exited by itself, now or before,
    /// it may be any copy. A pool worker whose host was killed does not continue the work.
    fn successor(&self, exit: &AgentExit, copies: &[ProcessId]) -> Option<ProcessId> {
        let agent = self.world.agent(exit.agent)?;
        let left_session = |copy: &&ProcessId| {
            self.world.node(**copy).is_some_and(|n| n.sid == n.id.pid || n.sid != agent.sid)
        };
        let background = copies.iter().find(left_session);
        let host = || copies.iter().find(|copy| self.world.made_a_server(**copy));
        let goes_on = |copy: &&ProcessId| exit.ending.signal.is_none() || agent.peers.contains(*copy);
        background.or_else(host).or_else(|| copies.iter().find(goes_on)).copied()
    }

    fn transfer(&mut self, exit: &AgentExit, successor: ProcessId) {
        let (key, at) = (exit.agent, exit.at);
        let Some((agent, exited)) = self.world.agent(key).zip(self.exit_notice(exit)) else { return };
        let (before, withheld) = (agent.main(), agent.withheld.is_some());
        if exit.ending.signal.is_none() {
            let peers = self.copies(key);
            self.world.change_agent(key, |agent| {
                agent.peers.extend(peers.into_iter().filter(|copy| *copy != successor));
            });
        }
        self.world.transfer(key, successor);
        let servers: Vec<ServerKey> =
            self.world.agent(key).into_iter().flat_map(Agent::servers).copied().collect();
        for server in servers {
            self.remember_server(at, server);
        }
        self.forget_spawners(at, Some(key));
        if withheld {
            return;
        }
        self.effects.push_back(Effect::Track { process: successor, tracking: Tracking::Agent });
        self.emit(at, exited);
        self.report_agent_started(at, key, Some(before));
    }

    /// The exit of an agent, with what its servers use.
    fn exit_notice(&self, exit: &AgentExit) -> Option<Notice> {
        let agent = self.world.agent(exit.agent)?;
        let servers = || agent.servers().iter().filter_map(|server| self.world.server(*server));
        Some(Notice::AgentExited {
            agent: AgentView { alive: false, ..agent_view(agent) },
            ending: exit.ending.clone(),
            servers_left: agent.servers().len() as u64,
            rss_bytes: servers().filter_map(|server| server.rss_bytes).fold(0, u64::saturating_add),
            cpu_ms: servers().filter_map(|server| server.cpu_ms).fold(0, u64::saturating_add),
        })
    }

    fn report_agent_exit(&mut self, exit: &AgentExit, servers: &[ServerKey]) {
        let Some((agent, exited)) = self.world.agent(exit.agent).zip(self.exit_notice(exit)) else { return };
        let owner = agent_view(agent);
        self.emit(exit.at, exited);
        for key in servers {
            let deadline = self.world.server(*key).and_then(|server| server.phase.grace());
            if let Some((deadline, server)) = deadline.zip(self.world.show(*key)) {
                let owner = Some(owner.clone());
                self.emit(exit.at, Notice::OrphanSuspected { recovered: false, server, owner, deadline });
            }
        }
        self.world.forget_dead_agents();
    }
}
