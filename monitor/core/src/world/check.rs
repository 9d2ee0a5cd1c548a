//! The invariants of the world.

use super::World;
use crate::{
    case::Cause,
    lineage::{AgentKey, ServerKey},
    model::ProcessId,
};

impl World {
    /// The invariants that are broken, each as a sentence. `leaving`: agents whose main process has exited and for
    /// which it is not yet decided whether a copy continues.
    ///
    /// For tests: it walks through the whole world.
    pub fn check(&self, leaving: &[AgentKey], stopping: impl Fn(ServerKey) -> bool) -> Vec<String> {
        let mut broken = self.graph.check();
        broken.extend(self.agents.check());
        self.check_processes(&mut broken);
        self.check_servers(stopping, &mut broken);
        self.check_agents(leaving, &mut broken);
        broken
    }

    /// A process names a server exactly if the server names the process; the same holds for wrappers. The agent of a
    /// process is known.
    fn check_processes(&self, broken: &mut Vec<String>) {
        for node in self.graph.ids().filter_map(|id| self.graph.get(id)) {
            let id = node.id;
            let server = |key| self.servers.get(&key);
            if node.server.is_some_and(|key| server(key).is_none_or(|s| !s.processes.contains(&id))) {
                broken.push(format!("{id} is a part of {:?}, which does not know it", node.server));
            }
            if node.wraps.is_some_and(|key| server(key).is_none_or(|s| !s.wrappers.contains(&id))) {
                broken.push(format!("{id} launched {:?}, which does not know it", node.wraps));
            }
            if node.agent.is_some_and(|key| self.agents.get(key).is_none()) {
                broken.push(format!("{id} belongs to {:?}, which is forgotten", node.agent));
            }
            if node.pending && (node.server.is_some() || self.agents.of(id).is_some()) {
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
    fn check_servers(&self, stopping: impl Fn(ServerKey) -> bool, broken: &mut Vec<String>) {
        for (key, server) in &self.servers {
            let (key, id) = (*key, server.id);
            let node = |process: &ProcessId| self.graph.get(*process);
            if !server.processes.iter().all(|p| node(p).is_some_and(|n| n.server == Some(key))) {
                broken.push(format!("server {id} names a process that is not a part of it"));
            }
            if !server.wrappers.iter().all(|p| node(p).is_some_and(|n| n.wraps == Some(key))) {
                broken.push(format!("server {id} names a wrapper that did not launch it"));
            }
            if !server.recognised.is_subset(&server.processes) {
                broken.push(format!("server {id} has a recognised process that is not a part of it"));
            }
            if server.processes.is_empty()
                && !stopping(key)
                && (server.wrappers.is_empty() || server.phase.orphan().is_none())
            {
                broken.push(format!("server {id} has no process and is not being ended"));
            }
            let Some(owner) = server.owner else { continue };
            let Some(agent) = self.agents.get(owner) else {
                broken.push(format!("server {id} belongs to {owner:?}, which is forgotten"));
                continue;
            };
            if !agent.servers.contains(&key) {
                broken.push(format!("server {id} belongs to {owner:?}, which does not know it"));
            }
            let suspected = !server.phase.is_clear();
            if !agent.is_alive() && !suspected {
                broken.push(format!("server {id} is under no suspicion, though its owner has exited"));
            }
            let may_live = |cause: &Cause| cause.asked || cause.reason.under_living_owner();
            if agent.is_alive() && suspected && !server.phase.cause().is_some_and(may_live) {
                broken.push(format!("server {id} is under suspicion, though its owner lives"));
            }
        }
    }

    /// The main process of a living agent is in the graph. An agent's servers name it as their owner. The run of a
    /// living top-most agent is alive.
    fn check_agents(&self, leaving: &[AgentKey], broken: &mut Vec<String>) {
        for (key, agent) in self.agents.all() {
            let main = agent.main();
            if agent.is_alive() && self.graph.get(main).is_none() && !leaving.contains(&key) {
                broken.push(format!("agent {main} lives and is not in the graph"));
            }
            let owned = |server| self.servers.get(&server).is_some_and(|s| s.owner == Some(key));
            if !agent.servers().iter().all(|server| owned(*server)) {
                broken.push(format!("agent {main} has a server that names another owner"));
            }
            let top = agent.is_alive() && agent.above.is_none();
            if let Some((run, number)) = agent.account.run().filter(|_| top)
                && !self.runs.is_alive(&run, number)
            {
                broken.push(format!("agent {main} lives, and its run {number} of {run:?} is over"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AgentKey, ProcessId, World};
    use crate::{
        lineage::{Node, Origin, Provenance, ServerKey},
        model::{BootTime, RunView, Stdio},
        world::{NewAgent, NewServer, Remains},
    };

    fn id(pid: u32) -> ProcessId {
        ProcessId::new(pid, u64::from(pid))
    }

    fn agent(main: u32) -> NewAgent {
        NewAgent {
            name: "claude".to_owned(),
            implied: false,
            main: id(main),
            origin: Origin { process: id(main), execs: 1 },
            uid: 0,
            sid: 0,
            above: None,
            unit: None,
            account: RunView::unknown("claude", 0),
        }
    }

    /// Agent 20 with a server: wrapper 30, main process 31 and its child 32.
    fn world() -> (World, AgentKey, ServerKey) {
        let mut world = World::default();
        for (pid, up) in [(20, None), (30, Some(20)), (31, Some(30)), (32, Some(31))] {
            let mut node = Node::bare(id(pid));
            node.pending = false;
            node.correct(|exec| exec.streams[0] = Stdio::Pipe(u64::from(pid)));
            world.enter(node, up.map(id));
        }
        let agent = world.start_agent(agent(20), true);
        let server = world.start_server(NewServer {
            only_named: false,
            main: id(31),
            name: "files".to_owned(),
            rule: "files".to_owned(),
            client: None,
            owner: Some(agent),
            wrappers: vec![id(30)],
            provenance: Provenance::Witnessed,
            seeks_owner: false,
        });
        let server = server.expect("its main process is there");
        assert_eq!(world.check(&[], |_| false), Vec::<String>::new());
        (world, agent, server)
    }

    #[test]
    fn each_change_keeps_both_directions() {
        let (mut world, agent, server) = world();
        assert_eq!(world.exit(id(30)).and_then(|exited| exited.wrapped), Some(server));
        assert_eq!(world.exit(id(31)).and_then(|exited| exited.server), Some((server, Remains::Descendants)));
        assert_eq!(world.check(&[], |_| false), Vec::<String>::new());
        assert_eq!(world.leave(id(32)), Some(server), "nothing is left of it");
        assert!(world.end_server(server).is_some());
        assert!(world.agent(agent).is_some_and(|agent| agent.servers().is_empty()));
        assert_eq!(world.check(&[], |_| false), Vec::<String>::new());
    }

    #[test]
    fn a_protected_process_leaves_and_what_it_created_stays_unless_its_exec_was_lost() {
        for (descendants, left) in [(false, 1), (true, 0)] {
            let (mut world, _, server) = world();
            assert_eq!(world.protect(id(31), descendants).is_some(), left == 0);
            assert_eq!(world.server(server).map(|server| server.processes().len()), Some(left));
        }
    }

    #[test]
    fn the_exit_of_an_agent_tells_its_servers() {
        let (mut world, agent, server) = world();
        assert_eq!(world.end_agent(agent, BootTime(1), false), [server]);
    }

    #[test]
    fn whatever_is_broken_is_found() {
        let breaks: [fn(&mut World, AgentKey, ServerKey); 10] = [
            |world, _, _| world.graph.get_mut(id(32)).expect("there").server = None,
            |world, _, key| _ = world.servers.get_mut(&key).expect("there").processes.remove(&id(32)),
            |world, _, _| world.graph.get_mut(id(30)).expect("there").wraps = None,
            |world, _, key| world.servers.get_mut(&key).expect("there").wrappers.clear(),
            |world, _, key| world.servers.get_mut(&key).expect("there").owner = None,
            |world, agent, _| world.agents.get_mut(agent).expect("there").servers.clear(),
            |world, _, key| _ = world.servers.get_mut(&key).expect("there").recognised.insert(id(20)),
            |world, agent, _| world.agents.end(agent, BootTime(1), false),
            |world, _, _| _ = world.graph.remove(id(20)),
            |world, _, _| world.graph.get_mut(id(32)).expect("there").protected = true,
        ];
        for (number, break_it) in breaks.into_iter().enumerate() {
            let (mut world, agent, server) = world();
            break_it(&mut world, agent, server);
            assert_ne!(world.check(&[], |_| false), Vec::<String>::new(), "break {number}");
        }
    }
}
