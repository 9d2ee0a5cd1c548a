//! Agents and their runs.
//!
//! An agent is a process, or a chain of processes: each process of the chain took over from the one before, which
//! forked into the background. A run is one life of an agent that has no agent above it; see [`super::Runs`].

use std::{collections::BTreeSet, num::NonZeroU32};

use super::World;
use crate::{
    case::Phase,
    lineage::{AgentKey, Node, Origin, ServerKey},
    model::{AgentHints, BootTime, CopyFacts, Image, Placement, ProcessId, RunKey, RunView, UnitFacts},
};

/// Dead agents are forgotten only if there are more of them than this.
const DEAD_MIN: usize = 32;
/// The most ended processes that are remembered of a dead agent.
pub(super) const ENDED: usize = 256;

/// The most places that are remembered of an agent.
const PLACEMENTS: usize = 8;

/// An agent: alive, or remembered because some of its servers are alive.
#[derive(Clone, Debug, Default)]
pub struct Agent {
    /// The name that events and reports show.
    pub name: String,
    /// Whether it is an agent only because it started a server.
    pub implied: bool,
    /// The main process: the agent exits when it exits.
    main: ProcessId,
    /// Whether `main` is a copy that took over from the process that was recognised.
    pub took_over: bool,
    /// The exec that brought its program. A process of the same origin is a copy of the agent.
    pub origin: Origin,
    pub uid: u32,
    /// Session id when it was recognised.
    pub sid: u32,
    /// The nearest agent among its creators.
    pub above: Option<AgentKey>,
    /// The unit it ran in when it was recognised.
    pub unit: Option<Box<UnitFacts>>,
    /// Its place among the units; absent if it could not be read.
    pub place: Option<Box<str>>,
    /// Where it ran when it was recognised, and the agents above it: what an exempt place starts is exempt anywhere.
    pub placements: Vec<Placement>,
    /// By what a person recognises it.
    pub hints: AgentHints,
    /// The run it belongs to: its own run, or that of its top-most agent.
    pub account: RunView,
    /// Whether it exited before its unit could be asked for. Its first server will show the unit.
    pub unsettled: bool,
    /// When it started, if it is withheld because of a burst. A withheld agent is neither reported nor counted.
    pub withheld: Option<BootTime>,
    /// Whether it is a daemon by design: nobody leaves it behind.
    pub daemon: bool,
    /// The state of its own case: the agent may have been left behind itself.
    pub phase: Phase,
    /// How many answers about it in a row were too old when they came.
    pub old_answers: u32,
    /// When it exited. Absent while it is alive.
    exited: Option<BootTime>,
    /// Whether a signal ended it. In that case its remaining copies are workers, not successors.
    pub killed: bool,
    /// Its forked copies at the time it exited, and what each had done until then.
    pub copies: Vec<CopyFacts>,
    /// Processes of its orphans that orphand has ended, the first 256: what they called, nobody calls on their behalf any
    /// more.
    pub ended: BTreeSet<ProcessId>,
    /// Forked copies that were alive when an earlier main process exited by itself. Each of them may continue the
    /// agent's work.
    pub peers: BTreeSet<ProcessId>,
    /// Whether the present configuration exempts it. orphand ends nothing that such an agent leaves behind.
    pub exempt: bool,
    /// What it ran when it ended, as far as that was seen, and shortened.
    pub ran: Option<Image>,
    pub(super) servers: BTreeSet<ServerKey>,
}

impl Agent {
    /// A living agent of which only this is known.
    pub fn new(main: ProcessId, origin: Origin, name: String) -> Self {
        Self { name, main, origin, ..Self::default() }
    }

    pub const fn main(&self) -> ProcessId {
        self.main
    }

    pub const fn exited(&self) -> Option<BootTime> {
        self.exited
    }

    pub const fn servers(&self) -> &BTreeSet<ServerKey> {
        &self.servers
    }

    pub const fn is_alive(&self) -> bool {
        self.exited.is_none()
    }
}

impl World {
    pub fn agent(&self, key: AgentKey) -> Option<&Agent> {
        self.agents.get(&key)
    }

    pub fn agent_mut(&mut self, key: AgentKey) -> Option<&mut Agent> {
        self.agents.get_mut(&key)
    }

    /// All agents, oldest first.
    pub fn agents(&self) -> impl Iterator<Item = (AgentKey, &Agent)> {
        self.agents.iter().map(|(key, agent)| (*key, agent))
    }

    /// The living agent with this main process.
    pub fn agent_of(&self, main: ProcessId) -> Option<AgentKey> {
        self.by_main.get(&main).copied()
    }

    /// The living agent that this process is, or is a copy of.
    pub fn agent_run_by(&self, node: &Node) -> Option<AgentKey> {
        let is_copied = |key: &AgentKey| {
            self.agent(*key).is_some_and(|agent| agent.is_alive() && agent.origin == node.origin())
        };
        self.agent_of(node.id).or_else(|| node.agent.filter(is_copied))
    }

    /// How many agents live.
    pub fn living_agents(&self) -> usize {
        self.by_main.len()
    }

    /// Whether a top-most agent of this run is alive.
    pub fn run_lives(&self, key: &RunKey, generation: u64) -> bool {
        let of_run = |a: &Agent| a.account.generation == Some(generation) && a.account.key() == *key;
        self.agents.values().any(|a| a.is_alive() && a.above.is_none() && of_run(a))
    }

    pub(super) fn enter_agent(&mut self, mut agent: Agent) -> AgentKey {
        agent.above = agent.above.filter(|above| self.agents.contains_key(above));
        let above = agent.above.and_then(|above| self.agent(above));
        agent.placements = above.map(|above| above.placements.clone()).unwrap_or_default();
        let key = AgentKey(self.last_agent.map_or(NonZeroU32::MIN, |last| last.0.saturating_add(1)));
        self.last_agent = Some(key);
        self.by_main.insert(agent.main, key);
        self.agents.insert(key, agent);
        key
    }

    /// The agent runs here.
    pub fn add_placement(&mut self, key: AgentKey, placement: Placement) {
        if let Some(agent) = self.agents.get_mut(&key)
            && agent.placements.len() < PLACEMENTS
            && !agent.placements.contains(&placement)
        {
            agent.placements.push(placement);
        }
    }

    /// Makes `successor` continue the work of the agent. Returns whether it can: it must be alive and must not be an
    /// agent itself, and the agent must not have exited.
    pub fn transfer(&mut self, key: AgentKey, successor: ProcessId) -> bool {
        let sid = self.node(successor).filter(|_| self.agent_of(successor).is_none()).map(|node| node.sid);
        let agent = self.agents.get_mut(&key).filter(|agent| agent.is_alive());
        let Some((agent, sid)) = agent.zip(sid) else { return false };
        self.by_main.remove(&agent.main);
        self.by_main.insert(successor, key);
        (agent.main, agent.took_over, agent.sid) = (successor, true, sid);
        true
    }

    /// Marks the agent as exited. Returns the servers that it leaves behind.
    pub fn end_agent(&mut self, key: AgentKey, at: BootTime, killed: bool) -> Vec<ServerKey> {
        let Some(agent) = self.agents.get_mut(&key) else { return Vec::new() };
        agent.ran = self.graph.get(agent.main).and_then(Node::image).cloned().map(Image::shortened);
        (agent.exited, agent.killed) = (Some(at), killed);
        self.by_main.remove(&agent.main);
        agent.servers.iter().copied().collect()
    }

    /// Forgets dead agents without a living server and without a living process, if enough have exited since the last
    /// time: this searches the whole graph. A process on its way to its exec may still turn out to be a server of a dead
    /// agent.
    pub fn forget_dead_agents(&mut self) {
        if self.agents.len() - self.living_agents() > 2 * self.dead_kept + DEAD_MIN {
            let referenced = self.graph.agents();
            self.agents.retain(|key, a| a.is_alive() || !a.servers.is_empty() || referenced.contains(key));
            self.dead_kept = self.agents.len() - self.living_agents();
        }
    }
}
