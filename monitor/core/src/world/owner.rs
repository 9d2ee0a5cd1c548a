//! The owner of a server. It is found once, at the birth of the server, from the records and the wire.
//!
//! The process that made the wire talks to the server and is its owner. The records name that process ([`Maker`]),
//! dead or alive. If they do not, the processes that share the server's standard input are its launch chain, and the
//! first creator with another standard input made the wire. If a shell made the wire, the shell is the maker, even
//! if an agent is above the shell: a shell's job has no owner. An agent that had exited before cannot have made the
//! wire.

use std::sync::Arc;

use super::{Agent, World};
use crate::{
    lineage::{AgentKey, Maker, Node, Program, ServerKey},
    model::ProcessId,
    recognise::Role,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The process is part of a server that existed before: a deeper link of its launch chain.
    Joins(ServerKey),
    /// A process of that server made the wire. It is a bridge, and the new process is a part of the same server.
    Inside(ServerKey, ProcessId),
    /// This agent is the owner. It may have exited since it made the wire.
    Agent(AgentKey),
    /// This process made the wire, and no rule recognises it. It becomes an agent.
    Implied(ProcessId),
    /// The process that made the wire has exited already, and it was not known as an agent.
    Gone(Arc<Maker>),
    /// The answer depends on what this process runs, which has to be asked for.
    Ask(ProcessId),
    /// The owner is not known: init or a service manager adopted the process before it became what it is, or started
    /// it.
    Adopted,
    /// The server has no owner: it is a shell's job, or it was started on a terminal, by a service manager, or
    /// inside a multiplexer.
    Nobody,
    /// It has none: what answers into a file is no server, whatever passes its answers on.
    Elsewhere,
}

#[derive(Clone, Copy, Debug)]
struct Search<'a> {
    world: &'a World,
    server: &'a Node,
}

/// Finds the owner of the server that runs in `process`, and the launchers and shells with the same wire between the two, nearest
/// first.
pub fn trace(world: &World, process: &Node) -> (Claim, Vec<ProcessId>) {
    let search = Search { world, server: process };
    let (wrappers, joined) = search.chain();
    let claim = match (joined, &process.exec.makers[0]) {
        (Some(key), _) => Claim::Joins(key),
        (None, Some(maker)) if maker.process == process.id => search.made_by_itself(maker),
        (None, Some(maker)) => search.made_by(maker),
        (None, None) => search.climb(),
    };
    let answers_elsewhere = || search.passes_on_elsewhere(&wrappers);
    let claim =
        if matches!(claim, Claim::Joins(_)) || !answers_elsewhere() { claim } else { Claim::Elsewhere };
    (claim, wrappers)
}

/// The reloader that made the standard input of the server that runs in `process`, and feeds it.
pub fn feeder(world: &World, process: &Node) -> Option<ProcessId> {
    let maker = process.exec.makers[0].as_ref().filter(|maker| maker.program.role == Role::ServiceManager)?;
    let reloader = world.node(maker.process).filter(|node| node.origin() == maker.origin)?;
    feeds(reloader, process).then_some(reloader.id)
}

/// Whether a reloader may pass on to the server what it is told on a wire of its own: it has handed it the wire for the answers.
fn feeds(reloader: &Node, server: &Node) -> bool {
    let [stdin, stdout] = reloader.wires();
    stdin.is_wire() && stdout.is_wire() && stdout == server.stdout()
}

impl Search<'_> {
    /// The launchers and shells around the server that share its wire, nearest first, and the server whose launch
    /// chain that is, if there is one.
    fn chain(&self) -> (Vec<ProcessId>, Option<ServerKey>) {
        let mut wrappers = Vec::new();
        for node in self.world.graph.ancestors(self.server.id) {
            let launches = match node.role() {
                Some(Role::Launcher | Role::Shell) => true,
                // A company's own launcher, or an init or a reloader around one server: its name tells that it is no owner.
                Some(Role::Other { .. } | Role::ServiceManager) => self.hands_on(node),
                _ => false,
            };
            if !launches || node.protected || node.stdin() != self.server.stdin() {
                break;
            }
            // One launch chain on one wire is one server.
            if let Some(key) = node.wraps.or(node.server) {
                return (wrappers, Some(key));
            }
            wrappers.push(node.id);
        }
        (wrappers, None)
    }

    /// Whether a launcher reads what the server answers, as one that masks secrets does, and its own output is no wire. Who made
    /// the output of what was found in /proc is not known: one that has another output than such a launcher is read by it.
    fn passes_on_elsewhere(&self, wrappers: &[ProcessId]) -> bool {
        let maker = self.server.exec.makers[1].as_ref().map(|maker| maker.process);
        let is_reader = |wrapper: &&ProcessId| {
            maker.map_or(self.server.provenance.is_found(), |maker| **wrapper == maker)
        };
        let mut readers = wrappers.iter().filter(is_reader).filter_map(|reader| self.world.node(*reader));
        readers.any(|node| !node.stdout().is_wire())
    }

    /// Whether a process hands both of its wires on to the server. What makes a wire of its own talks to the server
    /// instead.
    fn hands_on(&self, node: &Node) -> bool {
        let wires = node.wires();
        wires == self.server.wires()
            && wires.iter().all(|wire| wire.is_wire())
            && node.id.pid != 1
            && node.server.is_none()
            && self.world.agent_run_by(node).is_none()
    }

    /// The owner, where the records name the process that made the wire.
    fn made_by(&self, maker: &Arc<Maker>) -> Claim {
        if let Some(node) = self.world.node(maker.process) {
            return self.belongs_to(node, &maker.program);
        }
        // The maker has exited. A dead agent owns what it made itself, and not what is started below it later.
        if let Some(key) = self.agent_of(maker) {
            return Claim::Agent(key);
        }
        match maker.program.role {
            Role::ServiceManager => Claim::Adopted,
            Role::Agent { .. } | Role::Server { .. } | Role::Other { .. }
                if self.server.stdout().is_wire() && !self.server.protected =>
            {
                Claim::Gone(Arc::clone(maker))
            }
            _ => Claim::Nobody,
        }
    }

    /// The owner, where the process seems to have made its own wire. A process found in /proc between its fork and
    /// its exec only looks so: it ran the program of its creator. Any other process has no owner, because no process
    /// can be its own owner.
    fn made_by_itself(&self, maker: &Maker) -> Claim {
        let creator = self.server.creator.and_then(|creator| self.world.node(creator));
        match creator.and_then(Node::image) {
            Some(image) if *image == maker.program.image => self.climb(),
            _ => Claim::Nobody,
        }
    }

    /// The agent that ran as `maker`, or that `maker` is a copy of.
    fn agent_of(&self, maker: &Maker) -> Option<AgentKey> {
        let key = self.server.agent?;
        let agent = self.world.agent(key)?;
        (agent.origin == maker.origin || agent.main() == maker.process).then_some(key)
    }

    /// The owner, where this living process decides that, whatever program it ran.
    fn by_itself(&self, node: &Node) -> Option<Claim> {
        match self.world.agent_run_by(node) {
            _ if node.protected => Some(Claim::Nobody),
            _ if node.id.pid == 1 => Some(Claim::Adopted),
            agent => agent.map(Claim::Agent),
        }
    }

    /// The owner, where this living process made the wire and ran this program at that time.
    fn belongs_to(&self, node: &Node, program: &Program) -> Claim {
        if let Some(claim) = self.by_itself(node) {
            return claim;
        }
        match program.role {
            Role::ServiceManager => return self.fed_by(node).unwrap_or(Claim::Adopted),
            Role::Launcher | Role::Shell | Role::Multiplexer | Role::Exempt { .. } => return Claim::Nobody,
            Role::Server { .. } | Role::Agent { .. } | Role::Other { .. } => {}
        }
        match node.server {
            Some(server) => Claim::Inside(server, node.id),
            None if self.server.stdout().is_wire() => Claim::Implied(node.id),
            None => Claim::Nobody,
        }
    }

    /// The owner, where a reloader feeds the server: who made the wire of that.
    fn fed_by(&self, reloader: &Node) -> Option<Claim> {
        let maker = reloader.exec.makers[0].as_ref().filter(|maker| maker.process != reloader.id);
        let inside = reloader.server.map(|server| Claim::Inside(server, reloader.id));
        let maker = maker.filter(|_| feeds(reloader, self.server));
        maker.map(|maker| inside.unwrap_or_else(|| self.made_by(maker)))
    }

    /// The owner, where no record names the maker: the nearest creator with another standard input made the wire.
    fn climb(&self) -> Claim {
        for node in self.world.graph.ancestors(self.server.id) {
            if let Some(claim) = self.by_itself(node) {
                return claim;
            }
            let Some(program) = &node.exec.program else { return Claim::Ask(node.id) };
            if node.stdin() == self.server.stdin()
                && (program.role != Role::ServiceManager || self.hands_on(node))
            {
                // The process passes its own standard input on, so it does not talk to the server.
                if let Some(server) = node.server {
                    return Claim::Joins(server);
                }
                continue;
            }
            return self.belongs_to(node, program);
        }
        // The remaining creators are dead or not tracked: all that was met, supervisors too, only hands the wire on. An
        // agent that was killed while this process was on its way to its exec is still the owner.
        let top = self.world.graph.ancestors(self.server.id).last().unwrap_or(self.server);
        let made = |agent: &Agent| agent.is_alive() || (top.witnessed && top.creator == Some(agent.main()));
        match (self.server.agent, top.creator) {
            (Some(key), _) if self.world.agent(key).is_some_and(made) => Claim::Agent(key),
            // It exited before anybody could ask what it was.
            (None, Some(creator)) => Claim::Implied(creator),
            _ => Claim::Nobody,
        }
    }
}
