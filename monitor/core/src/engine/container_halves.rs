//! Servers in containers are recognised twice: the client that the agent started, and the process in the container, which
//! nobody started that is known. Both are one server, as soon as it is certain whose container it is.

use rustc_hash::FxHashMap;

use super::Engine;
use crate::{
    lineage::{Node, ServerKey},
    model::{ProcessId, ServerReport},
    recognise::{container_client, keeps_container},
    world::Server,
};

impl Engine {
    /// The servers without an owner that are the inner halves of servers with a living client, by their key. Each is
    /// below the first process that the engine told of the client's container, or below the conmon that the client
    /// started.
    pub(super) fn inner_halves(&self) -> FxHashMap<ServerKey, ServerKey> {
        let all = self.world.servers().keys();
        let servers = || all.iter().filter_map(|key| Some((*key, self.world.server(*key)?)));
        let told: FxHashMap<ProcessId, ServerKey> = servers()
            .filter(|(_, server)| self.has_client(server))
            .flat_map(|(key, server)| server.container_processes.iter().map(move |process| (*process, key)))
            .collect();
        let inner = servers().filter(|(_, server)| server.owner().is_none() && !self.has_client(server));
        inner
            .filter_map(|(key, server)| {
                let above = self.world.graph().ancestors(server.main_process()).map(|node| node.id);
                let by_engine = || {
                    let mut all = server.processes().iter().copied().chain(above);
                    all.find_map(|process| told.get(&process).copied())
                };
                Some((key, self.below_conmon_of(server).or_else(by_engine)?))
            })
            .filter(|(inner, outer)| inner != outer)
            .collect()
    }

    fn has_client(&self, server: &Server) -> bool {
        let mut nodes = server.processes().iter().chain(server.wrappers()).map(|id| self.world.node(*id));
        nodes.any(|node| node.is_some_and(is_client))
    }

    /// The server whose client started the conmon above this one.
    fn below_conmon_of(&self, server: &Server) -> Option<ServerKey> {
        let mut above = self.world.graph().ancestors(server.main_process());
        above.find(|node| node.image().is_some_and(keeps_container))?;
        above.find(|node| is_client(node)).and_then(|client| client.server.or(client.wraps))
    }
}

fn is_client(node: &Node) -> bool {
    node.image().and_then(container_client).is_some()
}

/// Adds the inner half of a server to the report of that with the client, with at most `shown` of its processes.
pub(super) fn add_inner(outer: &mut ServerReport, inner: ServerReport, shown: usize) {
    let (all, added) = (outer.server.count(), inner.server.count());
    outer.server.processes_total = all + added;
    let room = shown.saturating_sub(outer.server.processes.len());
    outer.server.processes.extend(inner.server.processes.into_iter().take(room));
    let sum = |one: [Option<u64>; 2]| one.into_iter().flatten().reduce(u64::saturating_add);
    outer.server.rss_bytes = sum([outer.server.rss_bytes, inner.server.rss_bytes]);
    outer.server.cpu_ms = sum([outer.server.cpu_ms, inner.server.cpu_ms]);
    outer.members.extend(inner.members);
}
