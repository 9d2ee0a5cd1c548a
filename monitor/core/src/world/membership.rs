//! Membership: which process belongs to which server and to which agent. This is the only place that changes it.
//!
//! Each fact of membership is stored in both directions, so that both can be looked up quickly. Only the methods
//! below write them, and `invariants` of the laws states that the two directions agree. A method returns what its change
//! caused, and the engine acts on that.

use std::{collections::BTreeSet, num::NonZeroU32};

use super::{Agent, NewServer, Server, Spawner, World, agents::ENDED, is_run_by, process_view};
use crate::{
    lineage::{AgentKey, Left, Node, ServerKey},
    model::ProcessId,
};

/// How many processes that a server let go are kept for its report.
const LET_GO_MAX: usize = 16;

/// What the exit of a process caused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exited {
    /// Its nearest living creator.
    pub up: Option<ProcessId>,
    /// Whether it was a multiplexer, an exempt program, or a copy of one.
    pub protected: bool,
    /// The server that the process was part of, and whether only processes remain that it started: its main process and its
    /// launch chain have exited by themselves.
    pub server: Option<(ServerKey, bool)>,
    pub wrapped: Option<ServerKey>,
}

impl World {
    /// Enters a process below `up`, its nearest living creator. The process is a part of the server that its node
    /// names. Whoever had its process number has left before.
    pub fn enter(&mut self, mut node: Node, up: Option<ProcessId>) {
        let id = node.id;
        match node.server.and_then(|key| self.servers.get_mut(&key)) {
            Some(server) => {
                server.processes.insert(id);
            }
            None => node.server = None,
        }
        self.graph.insert(node, up);
    }

    /// Who created this process is known now: it was entered alone, and belongs to nobody.
    pub fn link(&mut self, id: ProcessId, up: ProcessId) {
        self.graph.link(id, up);
    }

    /// A process has ended, or does not matter. `how`: what it leaves, nothing unless it has ended.
    pub fn exit(&mut self, id: ProcessId, how: Left) -> Option<Exited> {
        if how != Left::No {
            self.leaves_below(id, how);
        }
        let up = self.graph.up(id).map(|node| node.id);
        let leaves = self.graph.children(id).next().is_some();
        let node = self.graph.get(id)?;
        let key = node.server;
        // A tool that it ran may have inherited its standard input alone, or both.
        let has_wires = key.and_then(|key| self.servers.get(&key)).is_some_and(|server| {
            server.stdin.is_wire() && server.wires() == node.wires() && !is_run_by(&self.graph, server, id)
        });
        if let Some(key) = key.filter(|_| leaves) {
            self.keep_who_ran(key, id);
        }
        let node = self.graph.remove(id)?;
        if let Some(server) = node.wraps.and_then(|key| self.servers.get_mut(&key)) {
            server.wrappers.retain(|wrapper| *wrapper != id);
        }
        let server = node.server.map(|key| (key, self.process_lost(key, &node, leaves, has_wires)));
        for key in [node.server, node.wraps].into_iter().flatten() {
            self.last_with_wires_lost(key, &node);
        }
        Some(Exited { up, protected: node.protected, server, wrapped: node.wraps })
    }

    /// The server has lost a process: finds out which process is its main process now. If orphand ended it, the dead owner
    /// remembers that. `leaves`: a process lives that it created; none else can have a stream that it made. `has_wires`: it
    /// had the server's wires, as a link of its launch chain. Returns whether only processes remain that the server started.
    fn process_lost(&mut self, key: ServerKey, lost: &Node, leaves: bool, has_wires: bool) -> bool {
        let Self { graph, servers, agents, .. } = self;
        let Some(server) = servers.get_mut(&key) else { return false };
        server.processes.remove(&lost.id);
        let is_ours = server.phase.is_signalled() && !server.phase.asked();
        let owner = server.owner.filter(|_| is_ours).and_then(|owner| agents.get_mut(&owner));
        if let Some(owner) = owner.filter(|owner| !owner.is_alive() && owner.ended.len() < ENDED) {
            owner.ended.insert(lost.id);
        }
        let was_core = server.recognised.remove(&lost.id) || has_wires;
        server.forget_name_by(lost.id);
        if was_core && leaves && server.ended.len() < ENDED {
            server.ended.insert(lost.id);
        }
        // A rule may have recognised a launcher only. A process that has the wire may still be the main process of
        // the server.
        let order = |p: &&ProcessId| graph.get(**p).map(|n| n.order);
        let on_wire = |p: &&ProcessId| {
            // A fork that never ran a program on the wire is a copy of the main process, not the server. A daemon
            // has left the session.
            graph.get(**p).is_some_and(|n| {
                server.stdin.is_wire()
                    && n.stdin() == server.stdin
                    && n.sid == server.session
                    && n.origin().process == n.id
                    && !is_run_by(graph, server, n.id)
            })
        };
        let was_main = server.main_process == lost.id;
        let main_lives = !was_main && (!server.recognised.is_empty() || on_wire(&&server.main_process));
        // Thousands may end after it: what is left of a server that has ended, or is being ended, is not searched for each of them.
        let is_ending = server.phase.is_signalled();
        if !was_main && !main_lives && (server.main_ended || is_ending) {
            return server.main_ended && !server.processes.is_empty() && was_core;
        }
        let next = Some(server.main_process).filter(|_| main_lives);
        let next = next.or_else(|| server.recognised.iter().max_by_key(order).copied());
        let next = next.or_else(|| server.processes.iter().filter(on_wire).max_by_key(order).copied());
        let behind = if next.is_none() && was_main && !is_ending { server.behind(graph) } else { None };
        match next.or(behind) {
            Some(next) if was_main => {
                server.main_process = next;
                server.heard = None;
                if let Some(node) = behind.and_then(|behind| graph.get_mut(behind)) {
                    node.ran_by = None;
                    server.heard.clone_from(&node.heard);
                    server.recognised.insert(next);
                }
                server.take_wires_of(next, graph);
            }
            Some(_) => {}
            None => server.main_ended |= !is_ending,
        }
        !server.processes.is_empty() && was_core && server.main_ended
    }

    /// What launched a bridge, or a worker of it, may end after the bridge: then what counts are the wires of what that left.
    fn last_with_wires_lost(&mut self, key: ServerKey, lost: &Node) {
        let Some(server) = self.servers.get_mut(&key).filter(|server| server.stdin == lost.stdin()) else {
            return;
        };
        let main = self.graph.get(server.main_process).filter(|main| main.stdin() != server.stdin);
        let maker = main.and_then(|main| main.exec.makers[0].as_ref());
        if maker.is_some_and(|maker| server.ended.contains(&maker.process)) {
            server.take_wires_of(server.main_process, &self.graph);
        }
    }

    /// Enters a server. Returns `None` if its main process has exited, is protected, is an agent, or belongs to a
    /// server already.
    pub fn start_server(&mut self, new: NewServer) -> Option<ServerKey> {
        let node = self.graph.get(new.main).filter(|node| node.server.is_none() && !node.protected)?;
        if self.agent_of(new.main).is_some() {
            return None;
        }
        let (main, owner) = (new.main, new.owner);
        let mut server = Server::new(new, node);
        server.spawner = self.graph.get(server.id).and_then(Spawner::of);
        let wrappers = server.wrappers.clone();
        let key = ServerKey(NonZeroU32::MIN.saturating_add(self.servers_ever));
        self.servers_ever = self.servers_ever.saturating_add(1);
        self.servers.insert(key, server);
        for wrapper in wrappers {
            self.wrap(key, wrapper);
        }
        self.claim(key, main);
        self.began_with(main);
        self.set_owner(key, owner);
        Some(key)
    }

    /// Records that `wrapper` launched this server and no other.
    fn wrap(&mut self, key: ServerKey, wrapper: ProcessId) {
        let before = self.graph.get_mut(wrapper).and_then(|node| node.wraps.replace(key));
        if let Some(before) = before.filter(|before| *before != key).and_then(|b| self.servers.get_mut(&b)) {
            before.wrappers.retain(|other| *other != wrapper);
        }
    }

    /// Removes a server and returns everything that is known of it.
    pub fn end_server(&mut self, key: ServerKey) -> Option<Server> {
        let server = self.servers.remove(&key)?;
        let is_left = server.owner.is_some_and(|owner| !self.agent(owner).is_some_and(Agent::is_alive));
        for wrapper in &server.wrappers {
            self.change(*wrapper, |node| (node.wraps, node.launched) = (None, is_left));
        }
        for process in &server.processes {
            self.change(*process, |node| node.server = None);
        }
        if let Some(owner) = server.owner.and_then(|owner| self.agents.get_mut(&owner)) {
            owner.servers.remove(&key);
        }
        Some(server)
    }

    pub fn set_owner(&mut self, key: ServerKey, owner: Option<AgentKey>) {
        let account = owner.and_then(|a| self.agents.get(&a)).map(|a| a.account.clone());
        let Some(server) = self.servers.get_mut(&key) else { return };
        let before = std::mem::replace(&mut server.owner, owner);
        server.account = account.or_else(|| server.account.take());
        if let Some(before) = before.and_then(|a| self.agents.get_mut(&a)) {
            before.servers.remove(&key);
        }
        if let Some(agent) = owner.and_then(|a| self.agents.get_mut(&a)) {
            agent.servers.insert(key);
            server.user = agent.uid;
        }
    }

    /// Makes a process that a rule recognises, and what it created, a part of the server. A process that had only
    /// launched the server is a part of it from now on.
    pub fn join(&mut self, key: ServerKey, id: ProcessId) {
        self.change(id, |node| node.wraps = node.wraps.filter(|launched| *launched != key));
        self.change_server(key, |server| server.wrappers.retain(|wrapper| *wrapper != id));
        self.claim(key, id);
        self.recognise(key, id);
    }

    /// What a server ignores from its beginning says nothing of it, nor of what it has started before it was recognised.
    fn began_with(&mut self, id: ProcessId) {
        let Some(mark) = self.graph.get(id).and_then(|node| node.outlives) else { return };
        let below: Vec<ProcessId> = [id].into_iter().chain(self.graph.descendants(id)).collect();
        for process in below {
            self.change(process, |node| node.outlives = node.outlives.filter(|own| *own != mark));
        }
    }

    /// A rule recognises a process of the server. If the process has the server's wire, it becomes the main process
    /// of the server.
    pub fn recognise(&mut self, key: ServerKey, id: ProcessId) {
        let Some(wire) = self.graph.get(id).filter(|node| node.server == Some(key)).map(Node::stdin) else {
            return;
        };
        self.change(id, |node| node.ran_by = None);
        self.began_with(id);
        if let Some(server) = self.servers.get_mut(&key) {
            server.recognised.insert(id);
            if server.stdin == wire {
                server.main_process = id;
            }
        }
    }

    /// Adds a process and what it created to the server, except for those that belong to a server already, are
    /// protected, or are agents.
    fn claim(&mut self, key: ServerKey, id: ProcessId) {
        let Some(server) = self.servers.get_mut(&key) else { return };
        // Who left the server itself left all that is below it.
        let left = self.graph.get(id).map(|node| node.left).unwrap_or_default();
        for process in [id].into_iter().chain(self.graph.descendants(id)) {
            if let Some(node) = self.graph.get_mut(process)
                && node.server.is_none()
                && !node.protected
                && !self.by_main.contains_key(&process)
            {
                (node.server, node.ran_by) = (Some(key), None);
                if node.left <= left {
                    node.left = Left::No;
                }
                server.processes.insert(process);
            }
        }
    }

    /// Takes a process, and what it created, out of its server. Returns the server if that leaves it without a
    /// process.
    pub fn leave(&mut self, id: ProcessId) -> Option<ServerKey> {
        let key = self.graph.get(id)?.server?;
        for process in [id].into_iter().chain(self.graph.descendants(id)) {
            self.part(key, process);
        }
        self.emptied(key)
    }

    /// Takes processes out of a server, because it has let them go. What they create from now on is not part of it
    /// either.
    pub fn release(&mut self, key: ServerKey, let_go: &BTreeSet<ProcessId>) {
        for process in let_go {
            if !self.part(key, *process) {
                continue;
            }
            let Some(view) = self.graph.get(*process).map(process_view) else { continue };
            if let Some(server) = self.servers.get_mut(&key).filter(|s| s.let_go.len() < LET_GO_MAX) {
                server.let_go.push(view);
            }
        }
    }

    /// Takes a process out of the server. Returns whether it was a part of it until now.
    fn part(&mut self, key: ServerKey, process: ProcessId) -> bool {
        let Some(node) = self.graph.get_mut(process).filter(|node| node.server == Some(key)) else {
            return false;
        };
        node.server = None;
        if let Some(server) = self.servers.get_mut(&key) {
            server.processes.remove(&process);
            server.recognised.remove(&process);
        }
        true
    }

    fn emptied(&self, key: ServerKey) -> Option<ServerKey> {
        self.servers.get(&key).is_some_and(|server| server.processes.is_empty()).then_some(key)
    }

    /// Marks a process as protected, because it is a multiplexer or an exempt program: it belongs to no agent and to
    /// no server. With `descendants`, the same applies to what it has created, because its exec was lost. Returns
    /// the server if that leaves it without a process.
    pub fn protect(&mut self, id: ProcessId, descendants: bool) -> Option<ServerKey> {
        let node = self.graph.get_mut(id)?;
        (node.protected, node.agent) = (true, None);
        let server = node.server;
        if let Some(key) = server {
            self.part(key, id);
        }
        let below = if descendants { self.graph.descendants(id) } else { Vec::new() };
        for process in below {
            let is_part = |node: &&mut Node| node.server == server && !self.by_main.contains_key(&process);
            let Some(node) = self.graph.get_mut(process).filter(is_part) else { continue };
            node.agent = None;
            if let Some(key) = server {
                self.part(key, process);
            }
        }
        server.and_then(|key| self.emptied(key))
    }

    /// Makes a process an agent. The process belongs to that agent from now on. With `descendants`, so does what it
    /// created, if it belonged to the agent above.
    pub fn start_agent(&mut self, new: Agent, descendants: bool) -> AgentKey {
        let (main, above) = (new.main(), new.above);
        // Whatever was said to it, it is no server behind a bridge.
        self.change(main, |node| node.heard = None);
        let key = self.enter_agent(new);
        self.assign(key, main, above, descendants);
        key
    }

    /// Assigns a process to this agent if it belonged to the agent `above`. With `descendants`, does the same for
    /// what it created.
    pub fn assign(&mut self, key: AgentKey, id: ProcessId, above: Option<AgentKey>, descendants: bool) {
        let below = if descendants { self.graph.descendants(id) } else { Vec::new() };
        for process in [id].into_iter().chain(below) {
            if let Some(node) = self.graph.get_mut(process).filter(|n| n.agent == above && !n.protected) {
                node.agent = Some(key);
            }
        }
    }
}
