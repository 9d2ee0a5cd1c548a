//! The world: which processes, agents, servers and runs there are, and who belongs to whom. Pure.
//!
//! [`World`] owns all of it and is the only one that changes it. Used by `verdict` and `engine` only.

mod agents;
mod left;
mod owner;
mod runs;
mod servers;
mod view;

pub use agents::{Agent, Agents, Newcomer};
pub use left::{Left, LeftStage};
pub use owner::{Claim, Ownership, program_name, trace};
pub use runs::{Account, Held, Runs, TopMost};
pub use servers::{Asked, Case, Failure, Server, Servers, Stage, State};
pub use view::{agent_as_server, agent_view, process_view, server_view, short_view};

use crate::{
    lineage::{AgentKey, Graph, Node, ServerKey},
    model::{BootTime, ProcessId, ServerView},
};

/// All processes, agents, servers and runs that matter.
#[derive(Debug, Default)]
pub struct World {
    graph: Graph,
    agents: Agents,
    servers: Servers,
    runs: Runs,
}

impl World {
    /// The lineage graph.
    pub const fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The agents.
    pub const fn agents(&self) -> &Agents {
        &self.agents
    }

    /// The servers.
    pub const fn servers(&self) -> &Servers {
        &self.servers
    }

    /// The runs.
    pub const fn runs(&self) -> &Runs {
        &self.runs
    }

    /// The runs, to be changed.
    pub const fn runs_mut(&mut self) -> &mut Runs {
        &mut self.runs
    }

    /// The process with this identity, if it is alive and tracked.
    pub fn node(&self, id: ProcessId) -> Option<&Node> {
        self.graph.get(id)
    }

    /// The same, to be changed.
    pub fn node_mut(&mut self, id: ProcessId) -> Option<&mut Node> {
        self.graph.get_mut(id)
    }

    /// The agent with this key.
    pub fn agent(&self, key: AgentKey) -> Option<&Agent> {
        self.agents.get(key)
    }

    /// The same, to be changed.
    pub fn agent_mut(&mut self, key: AgentKey) -> Option<&mut Agent> {
        self.agents.get_mut(key)
    }

    /// The living agent whose main process this is.
    pub fn agent_of(&self, main: ProcessId) -> Option<AgentKey> {
        self.agents.of(main)
    }

    /// The server with this key.
    pub fn server(&self, key: ServerKey) -> Option<&Server> {
        self.servers.get(key)
    }

    /// The same, to be changed.
    pub fn server_mut(&mut self, key: ServerKey) -> Option<&mut Server> {
        self.servers.get_mut(key)
    }

    /// The owner of a server, if it is known.
    pub fn owner(&self, key: ServerKey) -> Option<&Agent> {
        self.server(key)?.owner.and_then(|owner| self.agent(owner))
    }

    /// The server as events show it.
    pub fn view(&self, key: ServerKey) -> Option<ServerView> {
        self.servers.get(key).map(|server| server_view(server, &self.graph))
    }

    /// The server as events show it now, which is what its end will be reported with.
    pub fn show(&mut self, key: ServerKey) -> Option<ServerView> {
        let server = self.servers.get_mut(key)?;
        let view = server_view(server, &self.graph);
        server.last_view = Some(view.clone());
        Some(view)
    }

    /// Enters a process below `up`, its nearest living creator.
    pub fn insert(&mut self, node: Node, up: Option<ProcessId>) {
        self.graph.insert(node, up);
    }

    /// Takes a process out of the graph; what it created moves up.
    pub fn remove(&mut self, id: ProcessId) {
        self.graph.remove(id);
    }

    /// Enters an agent.
    pub fn start_agent(&mut self, new: Newcomer) -> AgentKey {
        self.agents.start(new)
    }

    /// `successor` continues the agent's work.
    pub fn transfer(&mut self, key: AgentKey, successor: ProcessId) {
        self.agents.hand_over(key, successor);
    }

    /// The agent exited.
    pub fn end_agent(&mut self, key: AgentKey, at: BootTime, killed: bool) {
        self.agents.end(key, at, killed);
    }

    /// The agent that may have been left behind and whose time for an inspection has come, the timer removed.
    pub fn left_due(&mut self, now: BootTime) -> Option<AgentKey> {
        self.agents.left_due(now)
    }

    /// Forgets the dead agents that have no living servers and that nothing refers to.
    pub fn forget_dead(&mut self, is_referenced: impl Fn(AgentKey) -> bool) {
        self.agents.forget_dead(is_referenced);
    }

    /// Enters a server.
    pub fn start_server(&mut self, server: Server) -> ServerKey {
        self.servers.start(server)
    }

    /// Takes a server out.
    pub fn remove_server(&mut self, key: ServerKey) -> Option<Server> {
        self.servers.remove(key)
    }

    /// When to inspect a server again.
    pub fn set_timer(&mut self, key: ServerKey, at: Option<BootTime>) {
        self.servers.set_timer(key, at);
    }

    /// The user on whose turn a server is inspected.
    pub fn set_user(&mut self, key: ServerKey, user: u32) {
        self.servers.set_user(key, user);
    }

    /// A server whose timer has run out, the timer removed.
    pub fn due(&mut self, now: BootTime) -> Option<ServerKey> {
        self.servers.due(now)
    }

    /// An inspection of a server is under way from now on.
    pub fn begin_look(&mut self, key: ServerKey, token: u64, since: BootTime) {
        self.servers.begin_look(key, token, since);
    }

    /// It is not any more.
    pub fn end_look(&mut self, key: ServerKey) {
        self.servers.end_look(key);
    }

    /// Changes who owns a server, or says who does.
    pub fn set_owner(&mut self, key: ServerKey, owner: Option<AgentKey>) {
        let account = owner.and_then(|a| self.agents.get(a)).map(|a| a.account.clone());
        let Some(server) = self.servers.get_mut(key) else { return };
        let before = std::mem::replace(&mut server.owner, owner);
        server.account = account.or_else(|| server.account.take());
        if let Some(before) = before.and_then(|a| self.agents.get_mut(a)) {
            before.servers.remove(&key);
        }
        if let Some(agent) = owner.and_then(|a| self.agents.get_mut(a)) {
            agent.servers.insert(key);
            self.servers.set_user(key, agent.uid);
        }
    }

    /// `id` and what it created belong to the server.
    pub fn claim_subtree(&mut self, key: ServerKey, id: ProcessId) {
        let mut claimed = Vec::new();
        for process in [id].into_iter().chain(self.graph.descendants(id)) {
            if let Some(node) = self.graph.get_mut(process)
                && node.server.is_none()
                && !node.protected
                && self.agents.of(process).is_none()
            {
                node.server = Some(key);
                claimed.push(process);
            }
        }
        if let Some(server) = self.servers.get_mut(key) {
            server.processes.extend(claimed);
        }
    }
}
