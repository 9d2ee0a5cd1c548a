//! A living owner that runs each job in a thread, and the server of a job whose thread has ended.
//!
//! The user says of such an owner, by `thread_scoped = true` in its rule, that a server ends with the thread that
//! started it. The owner itself still holds the wires of a server that a thread left behind. That alone is no use of
//! the server, unless the server was used since.

use std::time::Duration;

use super::inspection::Inspection;
use crate::{
    lineage::{Graph, Node},
    model::Image,
    recognise::Rules,
    world::Agent,
};

/// Whether a rule says of this agent that its servers end with the threads that started them.
pub fn is_thread_scoped(rules: &Rules, graph: &Graph, agent: &Agent) -> bool {
    let unit = agent.unit.as_ref().map(|facts| &facts.unit);
    !agent.implied && rules.is_thread_scoped(&agent.name, image(graph, agent), unit)
}

/// How long a duplicate server of this agent must do nothing until it is ended; `None` if no rule says so.
pub fn idle_duplicates_of(rules: &Rules, graph: &Graph, agent: &Agent) -> Option<Duration> {
    let unit = agent.unit.as_ref().map(|facts| &facts.unit);
    rules.idle_duplicates_of(&agent.name, image(graph, agent), unit).filter(|_| !agent.implied)
}

fn image<'a>(graph: &'a Graph, agent: &Agent) -> Option<&'a Image> {
    graph.get(agent.main()).and_then(Node::image)
}

/// Whether the thread that started the server has ended, and its owner, to which the thread belonged, lives.
pub fn thread_has_ended(inspection: &Inspection<'_>) -> bool {
    let spawner = inspection.server.spawner.as_ref();
    spawner.is_some_and(|spawner| {
        spawner.ended().is_some()
            && inspection.owner().is_some_and(|owner| owner.is_alive() && owner.main() == spawner.process)
    })
}
