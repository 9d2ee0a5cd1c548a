//! What runs on the wires of a server that no rule knows: a link of its launch chain, or a tool.

use super::{
    first_messages::{OWN, agent, mcp, started},
    story::{SERVER, Story, WIRE, id},
};
use crate::{
    model::{FirstMessage, Stdio},
    world::is_run_by,
};

/// A helper that inherits both of the server's streams, before that has read its message, is not what the server is.
#[test]
fn a_helper_gives_its_name_for_its_own_life_only() {
    let mut story = agent();
    started(&mut story, 30, OWN, mcp());
    story.messages.insert(31, mcp());
    story.start(30, 31, &["/usr/bin/notify-send", "x"], WIRE);
    story.end(31);
    let shown = &story.engine.report().agents[0].servers[0].server;
    assert_eq!((shown.name.as_str(), shown.processes.len()), ("server.py", 1));
}

/// What a server runs on its own streams is a tool, also while its first message still waits: many start what they need before
/// they read it.
#[test]
fn what_a_server_runs_on_its_streams_is_no_link_of_its_chain() {
    for client in [None, Some("claude-code".to_owned())] {
        let mut story = agent();
        started(&mut story, 30, OWN, mcp());
        story.messages.insert(31, FirstMessage::Mcp { client });
        story.start(30, 31, &["/opt/acme/migrate"], WIRE);
        let shown = &story.engine.report().agents[0].servers[0].server;
        assert_eq!((shown.name.as_str(), shown.processes.len()), ("server.py", 2));
    }
}

/// The same of a server by its name, whatever the tool is called: a part of its own package, `mcp-foo-index`.
#[test]
fn what_a_named_server_runs_on_its_streams_is_a_tool_by_whatever_name() {
    for tool in [SERVER, &["/usr/bin/mcp-foo-index"]] {
        let mut story = Story::with_agent();
        story.start(20, 30, &["node", "/srv/node_modules/foo-mcp/index.js"], WIRE);
        story.start(30, 31, tool, WIRE);
        let world = &story.engine.world;
        let server = world.server(world.node(id(31)).unwrap().server.unwrap()).unwrap();
        assert_eq!(
            (server.main_process(), server.recognised().contains(&id(31))),
            (id(30), false),
            "{tool:?}"
        );
    }
}

/// The package has a name that no rule knows, and its module one that is known: subprocess hands the standard input on.
#[test]
fn a_module_of_the_servers_own_package_is_a_tool() {
    let mut story = agent();
    started(&mut story, 30, &["/usr/bin/python3", "-m", "foo"], mcp());
    story.start(
        30,
        31,
        &["/usr/bin/python3", "-m", "foo.mcp_server"],
        [WIRE[0], Stdio::Pipe(7), Stdio::Pipe(8)],
    );
    let world = &story.engine.world;
    let server = world.server(world.node(id(31)).unwrap().server.unwrap()).unwrap();
    assert!(!server.recognised().contains(&id(31)));
}

/// What a home-made server has read was for itself: what it runs then is a tool, whatever its name is.
#[test]
fn what_a_server_runs_that_has_read_its_message_is_a_tool_by_whatever_name() {
    for (waits, name) in [(false, "server.py"), (true, "mcp-db-migrate")] {
        let mut story = agent();
        started(&mut story, 30, OWN, mcp());
        story.messages.insert(31, if waits { mcp() } else { FirstMessage::Mcp { client: None } });
        story.start(30, 31, &["/usr/bin/mcp-db-migrate"], WIRE);
        let world = &story.engine.world;
        let server = world.server(world.node(id(31)).unwrap().server.unwrap()).unwrap();
        assert_eq!((server.name.as_str(), server.recognised().contains(&id(31))), (name, waits));
    }
}

/// Both were there when the client wrote its first message: the one that the agent started is the server.
#[test]
fn what_a_server_started_before_its_first_message_is_a_tool() {
    for tool_first in [false, true] {
        let mut story = agent();
        started(&mut story, 30, OWN, FirstMessage::Nothing);
        story.start(30, 31, &["/srv/backend"], WIRE);
        story.messages.insert(if tool_first { 31 } else { 30 }, mcp());
        story.pass_secs(1);
        story.messages.extend([(30, mcp()), (31, mcp())]);
        story.pass_secs(20);
        let world = &story.engine.world;
        let server = world.server(world.node(id(31)).unwrap().server.unwrap()).unwrap();
        assert_eq!((server.main_process(), server.recognised().contains(&id(31))), (id(30), false));
    }
}

/// Whoever has ended before the first message came has launched the other one.
#[test]
fn what_is_started_by_who_has_ended_may_be_the_server() {
    for launcher_ends in [false, true] {
        let mut story = agent();
        started(&mut story, 30, OWN, FirstMessage::Nothing);
        story.start(30, 31, &["/srv/backend"], WIRE);
        if launcher_ends {
            story.end(30);
        }
        story.messages.extend([(30, mcp()), (31, mcp())]);
        story.pass_secs(20);
        let world = &story.engine.world;
        let server = world.node(id(31)).and_then(|node| world.server(node.server?)).unwrap();
        assert_eq!(server.recognised().contains(&id(31)), launcher_ends);
    }
}

#[test]
fn a_tool_of_who_is_on_trial_is_a_tool() {
    let mut story = agent();
    story.messages.extend([(30, mcp()), (31, mcp()), (32, mcp())]);
    story.start(20, 30, &["/usr/bin/env", "uv", "run", "server.py"], WIRE);
    story.start(30, 31, OWN, WIRE);
    story.start(31, 32, &["/srv/backend"], WIRE);
    story.pass_secs(1);
    // The server reads it.
    story.messages.extend([30, 31, 32].map(|pid| (pid, FirstMessage::Nothing)));
    story.pass_secs(20);
    let world = &story.engine.world;
    let server = world.server(world.node(id(32)).unwrap().server.unwrap()).unwrap();
    assert_eq!([31, 32].map(|pid| server.recognised().contains(&id(pid))), [true, false]);
}

/// A start script runs a site and then the server, on its own streams: the site is no link of the chain.
#[test]
fn what_a_launcher_runs_beside_the_server_is_no_link_of_its_chain() {
    let mut story = agent();
    story.messages.extend([(30, mcp()), (32, mcp())]);
    story.start(20, 30, &["/usr/bin/node", "start.js"], WIRE);
    story.start(30, 31, &["/srv/site"], WIRE);
    story.start(30, 32, SERVER, WIRE);
    let world = &story.engine.world;
    let key = world.node(id(31)).unwrap().server.unwrap();
    let server = world.server(key).unwrap();
    assert_eq!(server.main_process(), id(32));
    let is_run = |pid| is_run_by(world.graph(), server, id(pid));
    assert_eq!([30, 31, 32].map(is_run), [false, true, false]);
}

/// The same with a server that a rule knows, behind its own: its name is not that of the gateway.
#[test]
fn a_gateway_is_not_called_by_what_is_behind_it() {
    let mut story = agent();
    started(&mut story, 30, OWN, mcp());
    story.start(30, 31, SERVER, [Stdio::Pipe(3), Stdio::Pipe(4), Stdio::Null]);
    let shown = &story.engine.report().agents[0].servers[0].server;
    assert_eq!((shown.name.as_str(), shown.rule.as_str()), ("server.py", "protocol"));
}
