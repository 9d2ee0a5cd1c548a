//! What a server runs on its own wires: a tool, and not the server.
//!
//! Who has the wires of a server is a link of its launch chain, or was run by the server. A launcher runs the server in its
//! place, so what it started on its streams is the server, also when the launcher has ended. What a recognised process that does
//! its work itself started is a tool of the server, also when that process has ended: then each of those it leaves
//! keeps who ran it ([`Node::ran_by`]).

use super::{Server, World};
use crate::{
    lineage::{Graph, Left, Node, ServerKey},
    model::ProcessId,
    recognise::{Role, are_of_one_package},
};

impl World {
    /// The recognised processes of a server that have its standard input: the links of its launch chain.
    pub fn links<'a>(&'a self, server: &'a Server) -> impl Iterator<Item = &'a Node> {
        self.recognised(server).filter(|node| node.stdin() == server.stdin)
    }

    /// The others: servers, or jobs, that it has started for itself. What a reloader feeds has its standard output.
    pub fn inner<'a>(&'a self, server: &'a Server) -> impl Iterator<Item = &'a Node> {
        self.recognised(server).filter(|node| node.stdin() != server.stdin && node.stdout() != server.stdout)
    }

    /// What it runs on wires of its own that may be servers, since nobody looked in time at what was said to them.
    pub fn unheard<'a>(&'a self, server: &'a Server) -> impl Iterator<Item = &'a Node> {
        let all = server.processes().iter().filter_map(|process| self.graph.get(*process));
        all.filter(|node| node.unheard.is_some() && node.stdin() != server.stdin)
    }

    /// Whether a process runs a program of the package that the server is of: by its name it may be a part of it.
    pub fn is_of_its_package(&self, server: &Server, node: &Node) -> bool {
        let main = self.graph.get(server.main_process).and_then(Node::image);
        main.zip(node.image()).is_some_and(|(main, image)| are_of_one_package(main, image))
    }

    fn recognised<'a>(&'a self, server: &'a Server) -> impl Iterator<Item = &'a Node> {
        server.recognised.iter().filter_map(|process| self.graph.get(*process))
    }

    /// A shell ends, or runs another program: what it leaves was started to go on without it (`job &`). Of which nobody knows what it
    /// ran, that may have been one. Of another program that ends by itself that is so in another session (`setsid -f job`). A server,
    /// and what this has started, was not left by who launched it.
    pub(super) fn leaves_below(&mut self, id: ProcessId, how: Left) {
        let Some(above) = self.graph.get(id).filter(|node| node.wraps.is_none()) else { return };
        let launches =
            |server: &Server| server.wires() == above.wires() && !is_run_by(&self.graph, server, id);
        if above.server.and_then(|key| self.servers.get(&key)).is_some_and(launches) {
            return;
        }
        let how = match (how, above.role()) {
            (how, Some(Role::Shell) | None) => how,
            (Left::Whole, _) if above.server.is_some() => Left::Apart,
            _ => return,
        };
        // Whoever was left before has left all that is below it.
        let is_left = |node: &&Node| {
            let above = self.graph.up(node.id).map(|above| above.id);
            node.creator == above && node.left < how && !self.is_recognised(node)
        };
        let left: Vec<ProcessId> = self.graph.below_while(id, is_left).map(|node| node.id).collect();
        for process in left {
            self.change(process, |node| node.left = how);
        }
        self.change(id, |node| node.forgot = node.forgot.map(|before| before.max(how)));
    }

    fn is_recognised(&self, node: &Node) -> bool {
        let server = node.server.and_then(|key| self.servers.get(&key));
        server.is_some_and(|server| server.recognised.contains(&node.id) || server.main_process == node.id)
    }

    /// A process is about to leave the graph: those below it keep that it ran them.
    pub(super) fn keep_who_ran(&mut self, key: ServerKey, id: ProcessId) {
        let Self { graph, servers, .. } = self;
        let is_recognised = |server: &&Server| server.recognised.contains(&id);
        let Some(server) = servers.get(&key).filter(is_recognised) else { return };
        if !graph.get(id).is_some_and(runs_itself) {
            return;
        }
        let is_run = |node: &&Node| {
            node.server == Some(key) && node.ran_by.is_none() && !server.recognised.contains(&node.id)
        };
        let run: Vec<ProcessId> = graph.below_while(id, is_run).map(|node| node.id).collect();
        for process in run {
            if let Some(node) = graph.get_mut(process) {
                node.ran_by = Some(id);
            }
        }
    }
}

/// Whether a process of the server was run by a recognised one that does its work itself, at whatever level, and is no copy of
/// that one.
pub fn is_run_by(graph: &Graph, server: &Server, process: ProcessId) -> bool {
    let is_recognised = |node: &&Node| server.recognised.contains(&node.id);
    let Some(node) = graph.get(process).filter(|node| !is_recognised(node)) else { return false };
    let is_copy_of = |by| node.origin().process == by;
    if let Some(by) = node.ran_by {
        return !is_copy_of(by);
    }
    let mut above = graph.near_ancestors(process);
    above.find(is_recognised).is_some_and(|above| runs_itself(above) && !is_copy_of(above.id))
}

fn runs_itself(node: &Node) -> bool {
    node.exec.reads_itself || node.exec.program.as_ref().is_some_and(|program| program.runs_itself)
}
