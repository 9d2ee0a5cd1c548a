//! Who started servers, and who is part of one: what a verdict asks about other processes than the server's own.

use super::Engine;
use crate::{
    lineage::ServerKey,
    model::ProcessId,
    verdict::{Makers, Server},
};

impl Makers for Engine {
    fn made_a_server(&self, process: ProcessId) -> bool {
        let made = |key: &ServerKey| self.servers.get(*key).is_some_and(|s| s.maker == Some(process));
        self.servers.keys().iter().any(made)
    }

    fn is_of_sibling(&self, process: ProcessId, server: &Server) -> bool {
        let Some(node) = self.graph.get(process) else { return false };
        let Some(other) = node.server.and_then(|key| self.servers.get(key)) else { return false };
        other.id != server.id
            && other.owner.is_some()
            && other.owner == server.owner
            && (other.recognised.contains(&process) || (node.stdin == other.stdin && node.sid == other.session))
    }
}
