//! Which processes started a server, and which are part of one. A verdict asks this about processes outside of the
//! server that it judges.

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
        // A fork of the server that never ran a program may have gone into the background. Such a process has been
        // let go, and it may use the wire. The same holds for a process whose exec was not witnessed: /proc cannot
        // tell a fork from a process that ran a program.
        let runs_on_its_wire = || {
            node.witnessed
                && node.stdin() == other.stdin
                && node.sid == other.session
                && node.origin().process == process
        };
        // The process that started the server may talk to it: a bridge whose exec record was lost looks like a
        // second server beside it.
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
