//! The wires that will be asked about next.

use super::Engine;
use crate::{model::Stdio, verdict::State};

impl Engine {
    /// The wires of all servers whose owner is gone, both ways: one pass of the kernel over all open files tells about all of them.
    pub fn judged_wires(&self) -> Vec<Stdio> {
        let judged = |key: &_| {
            let server = self.servers.get(*key).filter(|server| !matches!(server.state, State::Live))?;
            Some([Some(server.wire), self.graph.get(server.proper).map(|node| node.stdout)])
        };
        let wires = self.servers.keys().iter().filter_map(judged).flatten().flatten().collect::<Vec<_>>();
        wires.into_iter().filter(|wire| wire.is_wire()).collect()
    }
}
