//! Tests of membership, and that whatever is broken in a world is found.

use std::sync::Arc;

use super::*;
use crate::{
    invariants::of_world,
    lineage::{Left, Origin, Program},
    model::{BootTime, Image, RunView, Stdio},
    recognise::Role,
};

fn id(pid: u32) -> ProcessId {
    ProcessId::new(pid, u64::from(pid))
}

fn agent(main: u32) -> Agent {
    let mut agent = Agent::new(id(main), Origin { process: id(main), execs: 1 }, "claude".to_owned());
    agent.account = RunView::unknown("claude", 0);
    agent
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
        main: id(31),
        name: "files".to_owned(),
        rule: "files".to_owned(),
        owner: Some(agent),
        wrappers: vec![id(30)],
        ..NewServer::default()
    });
    let server = server.expect("its main process is there");
    assert_eq!(of_world(&world, &[], |_| false), Vec::<String>::new());
    (world, agent, server)
}

#[test]
fn each_change_keeps_both_directions() {
    let (mut world, agent, server) = world();
    assert_eq!(world.exit(id(30), Left::Whole).and_then(|exited| exited.wrapped), Some(server));
    assert_eq!(world.exit(id(31), Left::Whole).and_then(|exited| exited.server), Some((server, true)));
    assert_eq!(of_world(&world, &[], |_| false), Vec::<String>::new());
    assert_eq!(world.leave(id(32)), Some(server), "nothing is left of it");
    assert!(world.end_server(server).is_some());
    assert!(world.agent(agent).is_some_and(|agent| agent.servers().is_empty()));
    assert_eq!(of_world(&world, &[], |_| false), Vec::<String>::new());
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
        |world, agent, _| world.agents.get_mut(&agent).expect("there").servers.clear(),
        |world, _, key| _ = world.servers.get_mut(&key).expect("there").recognised.insert(id(20)),
        |world, agent, _| _ = world.end_agent(agent, BootTime(1), false),
        |world, _, _| _ = world.graph.remove(id(20)),
        |world, _, _| world.graph.get_mut(id(32)).expect("there").protected = true,
    ];
    for (number, break_it) in breaks.into_iter().enumerate() {
        let (mut world, agent, server) = world();
        break_it(&mut world, agent, server);
        assert_ne!(of_world(&world, &[], |_| false), Vec::<String>::new(), "break {number}");
    }
}

/// Below no agent, a creator that exited before anybody could ask what it was may have made the wire.
#[test]
fn a_creator_that_nobody_could_ask_may_have_made_the_wire() {
    let mut node = Node::bare(id(31));
    let claim = |node: &Node| trace(&World::default(), node).0;
    assert_eq!(claim(&node), Claim::Nobody);
    node.creator = Some(id(30));
    assert_eq!(claim(&node), Claim::Implied(id(30)));
}

/// `producer | tini server | consumer`: the shell is not followed, and tini only hands on what that made.
#[test]
fn a_supervisor_that_hands_both_wires_on_has_made_none() {
    let mut world = World::default();
    let node = |pid, up, role| {
        let mut node = Node::bare(id(pid));
        node.creator = Some(id(up));
        node.correct(|exec| {
            exec.streams = [Stdio::Pipe(1), Stdio::Pipe(2), Stdio::Other];
            exec.program = Some(Arc::new(Program { image: Image::default(), role, runs_itself: false }));
        });
        node
    };
    world.graph.insert(node(30, 20, Role::ServiceManager), None);
    let server = node(31, 30, Role::Launcher);
    world.graph.insert(server.clone(), Some(id(30)));
    assert_eq!(trace(&world, &server), (Claim::Implied(id(20)), vec![id(30)]));
}
