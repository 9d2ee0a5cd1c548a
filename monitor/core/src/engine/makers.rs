//! Which processes started servers, and which are part of one: what a verdict asks about processes outside of the server.

use super::Engine;
use crate::{model::ProcessId, verdict::Makers, world::Server};

impl Makers for Engine {
    fn made_a_server(&self, process: ProcessId) -> bool {
        self.world.servers().all().any(|server| server.maker == Some(process))
    }

    fn is_of_sibling(&self, process: ProcessId, server: &Server) -> bool {
        let Some(node) = self.world.node(process) else { return false };
        let part_of = node.server.or(node.wraps);
        let Some(other) = part_of.and_then(|key| self.world.server(key)) else { return false };
        // A fork of it that never ran a program may have gone into the background: that is let go, and may be who uses the wire.
        // Nor may one whose exec was not witnessed: a look at /proc cannot tell a fork from who ran a program.
        let runs_on_its_wire = || {
            node.witnessed
                && node.stdin() == other.stdin
                && node.sid == other.session
                && node.origin().process == process
        };
        // Whoever started it may talk to it: a bridge whose exec was lost seems to be a server beside it.
        let started_it = || self.world.graph().ancestors(server.id).any(|above| above.id == process);
        other.id != server.id
            && other.owner().is_some()
            && other.owner() == server.owner()
            && (other.recognised().contains(&process)
                || other.wrappers().contains(&process)
                || runs_on_its_wire())
            && !started_it()
    }
}
