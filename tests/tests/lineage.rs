//! However servers and agents come to be, whose they are follows from history. Every situation is played
//! twice under one daemon: the first agent's end orphans its servers, the second one lives and keeps them.

use anyhow::{Result, ensure};
use rustix::process::Signal;
use tests::{Actor, Identity, Part, Play, Scene, twins};

macro_rules! orphan_and_twin {
    ($($(#[doc = $doc:literal])+ $name:ident, $cause:expr;)+) => {
        mod each {
            use super::*;
            $(
                $(#[doc = $doc])+
                #[test]
                #[ignore = "needs root and a real kernel: cargo xtask test runs it"]
                fn $name() -> Result<()> {
                    twins(super::$name, $cause)
                }
            )+
        }
    };
}

orphan_and_twin! {
    /// A worker that a server forked without exec belongs to the server.
    fork_without_exec, Actor::kill;
    /// A fork of the agent starts the server and ends: the server is the agent's.
    helper_fork_that_ends, Actor::kill;
    /// `sh` execs `env`, that execs the server: one process, three images.
    exec_chain, Actor::kill;
    /// A program that was nothing yet becomes a server by exec.
    late_exec, Actor::kill;
    /// A thread that is not the leader execs the server and takes over the leader's number.
    exec_by_another_thread, Actor::kill;
    /// The server's leading thread ends first, the others serve on.
    server_without_leader, Actor::kill;
    /// The agent's leading thread ends first: the agent lives.
    agent_without_leader, Actor::kill;
    /// The server was started by vfork(2).
    vfork, Actor::kill;
    /// The server was started by `posix_spawn(3)`.
    posix_spawn, Actor::kill;
    /// With `CLONE_PARENT` the server is a sibling of the agent that created it.
    clone_parent, Actor::kill;
    /// A double fork: the server never was the agent's child.
    double_fork, Actor::kill;
    /// A subreaper adopts the server, not pid 1.
    subreaper, Actor::kill;
    /// A new session before the exec, as Python's SDK does.
    setsid_before_exec, Actor::kill;
    /// A new session long after it.
    setsid_after_exec, Actor::kill;
    /// A shell stays between agent and server.
    below_a_shell, Actor::kill;
    /// A shell stood between and was killed: the server is pid 1's child and in use.
    killed_wrapper, Actor::kill;
    /// Agents are chains: the launcher died, the inner one works on with its server.
    dead_launcher, Actor::kill;
    /// The agent replaced itself by a new version.
    agent_execs_itself, Actor::kill;
    /// The agent forked into the background and its launcher left, after it had started a server.
    agent_in_the_background, Actor::kill;
    /// No rule knows the host: it is an agent because it started an MCP server on a wire of its own.
    implied_agent, Actor::kill;
    /// The same on a socket pair, as the Node SDK does.
    implied_agent_on_sockets, Actor::kill;
    /// Fourteen servers of an agent that SIGKILL ends.
    fourteen_killed, Actor::kill;
    /// Fourteen servers of an agent that SIGTERM ends.
    fourteen_terminated, |agent| { agent.signal(Signal::TERM)?; agent.id.wait_gone() };
    /// Fourteen servers of an agent that crashes.
    fourteen_crashed, |agent| { agent.act("crash")?; agent.id.wait_gone() };
}

fn agent_with(s: &Scene, n: &str, server: impl FnOnce(Part) -> Part) -> Result<(Actor, Actor)> {
    let agent = s.start(&Part::agent(format!("{n}-agent")))?;
    let server = agent.start(&server(Part::server(format!("{n}-server"))))?;
    Ok((agent, server))
}

/// What most situations are: an agent, and a server started in some way.
fn plainly(s: &Scene, n: &str, server: impl FnOnce(Part) -> Part) -> Result<Play> {
    let (agent, server) = agent_with(s, n, server)?;
    Ok(Play::of(agent, [server.id]))
}

fn fork_without_exec(s: &Scene, n: &str) -> Result<Play> {
    let (agent, server) = agent_with(s, n, |p| p)?;
    let worker = server.fork(&format!("{n}-worker"))?;
    let below = worker.fork(&format!("{n}-below"))?;
    Ok(Play::of(agent, [server.id, worker.id, below.id]))
}

fn helper_fork_that_ends(s: &Scene, n: &str) -> Result<Play> {
    let agent = s.start(&Part::agent(format!("{n}-agent")))?;
    let helper = agent.fork(&format!("{n}-helper"))?;
    let server = helper.start(&Part::server(format!("{n}-server")))?;
    helper.exit()?;
    Ok(Play::of(agent, [server.id]))
}

fn exec_chain(s: &Scene, n: &str) -> Result<Play> {
    plainly(s, n, |p| {
        p.through(|c| ["/bin/sh", "-c", &format!("exec /usr/bin/env -i A=b {c}")].map(Into::into).into())
    })
}

fn late_exec(s: &Scene, n: &str) -> Result<Play> {
    let agent = s.start(&Part::agent(format!("{n}-agent")))?;
    let nothing = agent.start(&Part::new("nothing-yet", format!("{n}-nothing")).wire("pipe"))?;
    let server = nothing.become_part(&Part::new("fake-mcp-server", format!("{n}-server")))?;
    Ok(Play::of(agent, [server.id]))
}

fn exec_by_another_thread(s: &Scene, n: &str) -> Result<Play> {
    plainly(s, n, |p| p.how("thread"))
}

fn server_without_leader(s: &Scene, n: &str) -> Result<Play> {
    let (agent, server) = agent_with(s, n, |p| p)?;
    server.act("leave_leader")?;
    Ok(Play::of(agent, [server.id]))
}

fn agent_without_leader(s: &Scene, n: &str) -> Result<Play> {
    let (agent, server) = agent_with(s, n, |p| p)?;
    agent.act("leave_leader")?;
    let later = agent.start(&Part::server(format!("{n}-later")))?;
    let mut play = Play::of(agent, [server.id]);
    play.servers.push(vec![later.id]);
    Ok(play)
}

fn vfork(s: &Scene, n: &str) -> Result<Play> {
    plainly(s, n, |p| p.how("vfork"))
}

fn posix_spawn(s: &Scene, n: &str) -> Result<Play> {
    plainly(s, n, |p| p.how("posix_spawn"))
}

fn clone_parent(s: &Scene, n: &str) -> Result<Play> {
    plainly(s, n, |p| p.how("clone_parent"))
}

fn double_fork(s: &Scene, n: &str) -> Result<Play> {
    plainly(s, n, |p| p.how("double_fork"))
}

fn subreaper(s: &Scene, n: &str) -> Result<Play> {
    let warden = s.start(&Part::new("warden", format!("{n}-warden")))?;
    warden.act("subreaper")?;
    let agent = warden.start(&Part::agent(format!("{n}-agent")))?;
    let server = agent.start(&Part::server(format!("{n}-server")).how("double_fork"))?;
    ensure!(server.id.parent() == Some(warden.id.pid), "adopted by {:?}", server.id.parent());
    Ok(Play::of(agent, [server.id]).beside(warden.id))
}

fn setsid_before_exec(s: &Scene, n: &str) -> Result<Play> {
    plainly(s, n, Part::setsid)
}

fn setsid_after_exec(s: &Scene, n: &str) -> Result<Play> {
    let (agent, server) = agent_with(s, n, |p| p)?;
    server.act("setsid")?;
    Ok(Play::of(agent, [server.id]))
}

fn chain(s: &Scene, n: &str) -> Result<(Actor, Identity, Actor)> {
    let (agent, server) = agent_with(s, n, Part::below_shell)?;
    let shell = agent.id.children().first().copied();
    let shell = shell.filter(|i| server.id.parent() == Some(i.pid));
    ensure!(shell.is_some(), "no shell between {} and {}", agent.id, server.id);
    Ok((agent, shell.unwrap_or(server.id), server))
}

fn below_a_shell(s: &Scene, n: &str) -> Result<Play> {
    let (agent, shell, server) = chain(s, n)?;
    Ok(Play::of(agent, [shell, server.id]))
}

fn killed_wrapper(s: &Scene, n: &str) -> Result<Play> {
    let (agent, shell, server) = chain(s, n)?;
    shell.signal(Signal::KILL)?;
    shell.wait_gone()?;
    Ok(Play::of(agent, [server.id]))
}

fn dead_launcher(s: &Scene, n: &str) -> Result<Play> {
    let launcher = s.start(&Part::agent(format!("{n}-launcher")))?;
    let inner = launcher.start(&Part::agent(format!("{n}-agent")).wire("inherit"))?;
    let server = inner.start(&Part::server(format!("{n}-server")))?;
    launcher.kill()?;
    Ok(Play::of(inner, [server.id]))
}

fn agent_execs_itself(s: &Scene, n: &str) -> Result<Play> {
    let (agent, server) = agent_with(s, n, |p| p)?;
    let agent = agent.become_part(&Part::new("claude", format!("{n}-new")))?;
    let later = agent.start(&Part::server(format!("{n}-later")))?;
    let mut play = Play::of(agent, [server.id]);
    play.servers.push(vec![later.id]);
    Ok(play)
}

fn agent_in_the_background(s: &Scene, n: &str) -> Result<Play> {
    let (launcher, before) = agent_with(s, n, |p| p)?;
    let agent = launcher.fork(&format!("{n}-background"))?;
    agent.act("setsid")?;
    launcher.exit()?;
    let later = agent.start(&Part::server(format!("{n}-later")))?;
    let mut play = Play::of(agent, [before.id]);
    play.servers.push(vec![later.id]);
    Ok(play)
}

fn implied_agent(s: &Scene, n: &str) -> Result<Play> {
    let host = s.start(&Part::new("home-made-host.py", format!("{n}-host")))?;
    let server = host.start(&Part::server(format!("{n}-server")))?;
    Ok(Play::of(host, [server.id]))
}

fn implied_agent_on_sockets(s: &Scene, n: &str) -> Result<Play> {
    let host = s.start(&Part::new("home-made-host.py", format!("{n}-host")))?;
    let server = host.start(&Part::server(format!("{n}-server")).wire("socket").below_shell())?;
    Ok(Play::of(host, [server.id]))
}

fn fourteen(s: &Scene, n: &str) -> Result<Play> {
    let agent = s.start(&Part::agent(format!("{n}-agent")))?;
    let mut servers = Vec::new();
    for i in 0..14 {
        let part = Part::server(format!("{n}-server{i}"));
        servers.push(vec![agent.start(&if i % 2 == 0 { part } else { part.below_shell() })?.id]);
    }
    Ok(Play { agent, servers, bystanders: Vec::new() })
}

use fourteen as fourteen_killed;
use fourteen as fourteen_terminated;
use fourteen as fourteen_crashed;
