//! By what persons recognise agents and servers. A room of its own: it is shown, and nothing else of the engine reads it.
//!
//! An agent's folder and terminal are read with its unit. The rest is asked for when a server has started: the name of the
//! server in the settings, its folder, and the session that its environment names, which is its owner's.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Engine, Purpose};
use crate::{
    lineage::ServerKey,
    model::{
        About, AgentHints, AgentView, BootTime, Fact, FoundHints, ProcessId, Report, ServerHints, ServerView,
    },
    world::Agent,
};

/// How many more may be kept than are needed.
const SPARE: usize = 1024;

/// What is known, by process of an agent and by id of a server.
#[derive(Debug, Default)]
pub(super) struct Hints {
    agents: FxHashMap<ProcessId, AgentHints>,
    servers: FxHashMap<String, ServerHints>,
    /// How many there may be before those that are over are forgotten.
    most: usize,
}

impl Hints {
    /// A process that is an agent, or becomes one, was read.
    pub(super) fn of_agent(&mut self, process: ProcessId, hints: Option<Box<AgentHints>>) {
        if let Some(hints) = hints {
            let session = self.agents.get(&process).and_then(|known| known.session.clone());
            self.agents.insert(process, AgentHints { session, ..*hints });
        }
    }

    /// Adds what is known of them.
    pub(super) fn add_to(&self, (agent, server): (Option<&mut AgentView>, Option<&mut ServerView>)) {
        if let Some(agent) = agent
            && let Some(known) = self.agents.get(&ProcessId::new(agent.pid, agent.start))
        {
            agent.hints.clone_from(known);
        }
        if let Some(server) = server
            && let Some(known) = self.servers.get(&server.id)
        {
            server.hints.clone_from(known);
        }
    }

    /// Adds what is known to all in a report.
    pub(super) fn add_to_report(&self, report: &mut Report) {
        for one in &mut report.agents {
            self.add_to((Some(&mut one.agent), None));
        }
        for one in &mut report.leftovers {
            self.add_to((Some(&mut one.agent), None));
        }
        for one in report.servers_mut() {
            self.add_to((None, Some(&mut one.server)));
        }
    }
}

impl Engine {
    /// Asks by what a person recognises a server that has started.
    pub(super) fn ask_hints(&mut self, key: ServerKey) {
        let Some(server) = self.world.server(key) else { return };
        let chain = server.wrappers().iter().rev().chain(server.recognised());
        let images = chain.filter_map(|process| self.world.node(*process)?.image());
        let lines = images.filter(|image| !image.argv_truncated).map(|image| image.argv.clone()).collect();
        let owner = self.world.owner(key).map(Agent::main);
        let about = About::Hints { server: server.id, owner, lines, turn: server.user() };
        self.ask(about, Purpose::Hints { server: key });
    }

    /// What a server is recognised by is known.
    pub(super) fn hints_answered(&mut self, now: BootTime, key: ServerKey, found: FoundHints) {
        self.forget_hints();
        let Some(server) = self.world.server(key) else { return };
        let FoundHints { server: hints, session } = found;
        let (id, owner) = (server.id, self.world.owner(key).map(Agent::main));
        if let (Some(owner), true) = (owner, session.is_some()) {
            self.hints.agents.entry(owner).or_default().session = session;
            self.remember_agent_hints(now, owner);
        }
        if hints != ServerHints::default() {
            self.hints.servers.insert(id.to_string(), hints.clone());
            self.persist(now, Fact::ServerHints { server: id, hints });
        }
    }

    /// Stores what an agent is recognised by, if anything is known.
    pub(super) fn remember_agent_hints(&mut self, at: BootTime, agent: ProcessId) {
        if let Some(hints) = self.hints.agents.get(&agent).cloned() {
            self.persist(at, Fact::AgentHints { agent, hints });
        }
    }

    /// Forgets whoever has ended, now and then.
    pub(super) fn forget_hints(&mut self) {
        if self.hints.agents.len() + self.hints.servers.len() <= self.hints.most {
            return;
        }
        let agents: FxHashSet<ProcessId> =
            self.world.agents().all().into_iter().map(|(_, agent)| agent.main()).collect();
        let servers: FxHashSet<String> =
            self.world.servers().all().map(|server| server.id.to_string()).collect();
        self.hints.agents.retain(|process, _| agents.contains(process));
        self.hints.servers.retain(|id, _| servers.contains(id));
        self.hints.most = self.hints.agents.len() + self.hints.servers.len() + SPARE;
    }
}
