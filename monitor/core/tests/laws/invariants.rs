//! What always holds in the world of an engine. The laws and the stories of the core check it after every input; the core has
//! this file in its own tests, too.

use orphand_core::{
    case::{Cause, Wish},
    engine::Engine,
    lineage::{AgentKey, Node, ServerKey},
    model::ProcessId,
    world::World,
};

/// The invariants that are broken, each as a sentence.
pub fn broken(engine: &Engine) -> Vec<String> {
    of_world(engine.world(), &engine.exiting(), |key| engine.is_being_stopped(key))
}

/// Likewise. `leaving`: agents whose main process has exited and for which it is not yet decided whether a copy continues.
pub fn of_world(world: &World, leaving: &[AgentKey], stopping: impl Fn(ServerKey) -> bool) -> Vec<String> {
    let mut broken = Vec::new();
    check_graph(world, &mut broken);
    check_processes(world, &mut broken);
    check_servers(world, stopping, &mut broken);
    check_agents(world, leaving, &mut broken);
    broken
}

/// Each link has its counterpart, and creators are older than what they created, so there is no cycle.
fn check_graph(world: &World, broken: &mut Vec<String>) {
    let graph = world.graph();
    for node in graph.ids().filter_map(|id| graph.get(id)) {
        let is_linked =
            |up: &Node| up.order < node.order && graph.children(up.id).any(|child| child.id == node.id);
        let below = |child: &Node| graph.up(child.id).map(|up| up.id) == Some(node.id);
        if !graph.up(node.id).is_none_or(is_linked) || !graph.children(node.id).all(below) {
            broken.push(format!("the links of {} do not agree", node.id));
        }
    }
}

/// A process names a server exactly if the server names the process; the same holds for wrappers. The agent of a
/// process is known.
fn check_processes(world: &World, broken: &mut Vec<String>) {
    for node in world.graph().ids().filter_map(|id| world.node(id)) {
        let id = node.id;
        if node.server.is_some_and(|key| world.server(key).is_none_or(|s| !s.processes().contains(&id))) {
            broken.push(format!("{id} is a part of {:?}, which does not know it", node.server));
        }
        if node.wraps.is_some_and(|key| world.server(key).is_none_or(|s| !s.wrappers().contains(&id))) {
            broken.push(format!("{id} launched {:?}, which does not know it", node.wraps));
        }
        if node.agent.is_some_and(|key| world.agent(key).is_none()) {
            broken.push(format!("{id} belongs to {:?}, which is forgotten", node.agent));
        }
        if node.pending && (node.server.is_some() || world.agent_of(id).is_some()) {
            broken.push(format!("{id} is a part of a server or an agent, and not known to matter"));
        }
        if node.protected && (node.server.is_some() || node.agent.is_some()) {
            broken.push(format!("{id} is protected and belongs to somebody"));
        }
    }
}

/// The processes that a server names are alive and name the server. A server has processes, or wrappers while it
/// is being ended. It is in the list of its owner's servers. With an owner, it has a case exactly if the owner
/// has exited or abandoned it, its session has expired, or a person asked to end it.
fn check_servers(world: &World, stopping: impl Fn(ServerKey) -> bool, broken: &mut Vec<String>) {
    for (key, server) in world.servers() {
        let (key, id) = (*key, server.id);
        let node = |process: &ProcessId| world.node(*process);
        if !server.processes().iter().all(|p| node(p).is_some_and(|n| n.server == Some(key))) {
            broken.push(format!("server {id} names a process that is not a part of it"));
        }
        if !server.wrappers().iter().all(|p| node(p).is_some_and(|n| n.wraps == Some(key))) {
            broken.push(format!("server {id} names a wrapper that did not launch it"));
        }
        if !server.recognised().is_subset(server.processes()) {
            broken.push(format!("server {id} has a recognised process that is not a part of it"));
        }
        if server.processes().is_empty()
            && !stopping(key)
            && (server.wrappers().is_empty() || server.phase.orphan().is_none())
        {
            broken.push(format!("server {id} has no process and is not being ended"));
        }
        let Some(owner) = server.owner() else { continue };
        let Some(agent) = world.agent(owner) else {
            broken.push(format!("server {id} belongs to {owner:?}, which is forgotten"));
            continue;
        };
        if !agent.servers().contains(&key) {
            broken.push(format!("server {id} belongs to {owner:?}, which does not know it"));
        }
        let suspected = !server.phase.is_clear();
        if !agent.is_alive() && !suspected {
            broken.push(format!("server {id} is under no suspicion, though its owner has exited"));
        }
        let may_live = |cause: &Cause| cause.asked != Wish::None || cause.reason.released().is_some();
        if agent.is_alive() && suspected && !server.phase.cause().is_some_and(may_live) {
            broken.push(format!("server {id} is under suspicion, though its owner lives"));
        }
    }
}

/// Each living agent is found by its own main process, which is in the graph. An agent's servers name it as their owner. The
/// run of a living top-most agent is alive.
fn check_agents(world: &World, leaving: &[AgentKey], broken: &mut Vec<String>) {
    let alive = world.runs().alive();
    let living = world.agents().filter(|(_, agent)| agent.is_alive());
    if living.count() != world.living_agents() {
        broken.push("the living agents are not those that are listed".to_owned());
    }
    for (key, agent) in world.agents() {
        let main = agent.main();
        if agent.is_alive() && world.agent_of(main) != Some(key) {
            broken.push(format!("agent {main} lives and is not found by its main process"));
        }
        if agent.is_alive() && world.node(main).is_none() && !leaving.contains(&key) {
            broken.push(format!("agent {main} lives and is not in the graph"));
        }
        let owned = |server| world.server(server).is_some_and(|s| s.owner() == Some(key));
        if !agent.servers().iter().all(|server| owned(*server)) {
            broken.push(format!("agent {main} has a server that names another owner"));
        }
        let top = agent.is_alive() && agent.above.is_none();
        if let Some(run) = agent.account.run().filter(|run| top && !alive.contains(run)) {
            broken.push(format!("agent {main} lives, and its run {run:?} is over"));
        }
    }
}
