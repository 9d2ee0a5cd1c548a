//! A living owner that runs each job in a thread, and the server of a job whose thread has ended.
//!
//! The user says of such an owner, by `thread_scoped = true` in its rule, that a server ends with the thread that
//! started it. The owner itself still holds the wires of a server that a thread left behind. That alone is no use of
//! the server, unless the server was used since.

use super::inspection::Inspection;
use crate::{
    lineage::{Graph, Node},
    recognise::{Rule, Rules},
    world::Agent,
};

/// The rule of the configuration that recognises this agent; `None` for an implied agent.
pub fn rule_of<'r>(rules: &'r Rules, graph: &Graph, agent: &Agent) -> Option<&'r Rule> {
    let unit = agent.unit.as_ref().map(|facts| &facts.unit);
    let image = graph.get(agent.main()).and_then(Node::image);
    rules.rule_of(&agent.name, image, unit).filter(|_| !agent.implied)
}

/// Whether the thread that started the server has ended, and its owner, to which the thread belonged, lives.
pub fn thread_has_ended(inspection: &Inspection<'_>) -> bool {
    let spawner = inspection.server.spawner.as_ref();
    spawner.is_some_and(|spawner| {
        spawner.ended().is_some()
            && inspection.owner().is_some_and(|owner| owner.is_alive() && owner.main() == spawner.process)
    })
}
