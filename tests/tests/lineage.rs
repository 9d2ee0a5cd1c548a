//! However servers and agents come to be, whose they are follows from history. Every situation is played twice under one
//! daemon: the first agent's end orphans its servers, the second one lives and keeps them. Those that the judgement table
//! has in both directions are not among them.

use anyhow::{Context as _, Result, ensure};
use tests::{Actor, Identity, Part, Scene, scene};

/// The processes of a situation.
struct Play {
    /// The agent whose end makes orphans.
    agent: Actor,
    /// The processes of each server. They must be ended, or left alone if the agent lives.
    servers: Vec<Vec<Identity>>,
    /// A process that must live and not be accused, whatever happens to the agent.
    bystander: Option<Identity>,
}

impl Play {
    /// One agent, one server of one or several processes.
    fn of(agent: Actor, server: impl IntoIterator<Item = Identity>) -> Self {
        Self { agent, servers: vec![server.into_iter().collect()], bystander: None }
    }

    /// And another server.
    fn and(mut self, server: &Actor) -> Self {
        self.servers.push(vec![server.id]);
        self
    }
}

/// Makes a situation; the text makes names unique.
type SetUp = fn(&Scene, &str) -> Result<Play>;

const SITUATIONS: [(&str, SetUp); 16] = [
    // A worker that a server forked without exec belongs to the server.
    ("fork_without_exec", fork_without_exec),
    // A fork of the agent starts the server and ends: the server is the agent's.
    ("helper_fork_that_ends", helper_fork_that_ends),
    // `sh` execs `env`, that execs the server: one process, three images.
    ("exec_chain", exec_chain),
    // A program that was nothing yet becomes a server by exec.
    ("late_exec", late_exec),
    // A thread that is not the leader execs the server and takes over the leader's number.
    ("exec_by_another_thread", |s, n| plainly(s, n, |p| p.how("thread"))),
    // The server's leading thread ends first, the others serve on.
    ("server_without_leader", |s, n| then(s, n, "leave_leader")),
    // The agent's leading thread ends first: the agent lives.
    ("agent_without_leader", agent_without_leader),
    // Other system calls than fork(2). With `CLONE_PARENT` the server is a sibling of the agent that created it.
    ("vfork", |s, n| plainly(s, n, |p| p.how("vfork"))),
    ("posix_spawn", |s, n| plainly(s, n, |p| p.how("posix_spawn"))),
    ("clone_parent", |s, n| plainly(s, n, |p| p.how("clone_parent"))),
    // A subreaper adopts the server, not pid 1.
    ("subreaper", subreaper),
    // A new session long after the exec.
    ("setsid_after_exec", |s, n| then(s, n, "setsid")),
    // Agents are chains: the launcher died, the inner one works on with its server.
    ("dead_launcher", dead_launcher),
    // The agent replaced itself by a new version.
    ("agent_execs_itself", agent_execs_itself),
    // The agent forked into the background and its launcher left, after it had started a server.
    ("agent_in_the_background", agent_in_the_background),
    // No rule knows the host: it is an agent because it started an MCP server on a socket pair, as the Node SDK does.
    ("implied_agent_on_sockets", implied_agent_on_sockets),
];

/// The twins whose agents are killed.
const ORPHANED: &str = "orphaned";

#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn whose_servers_are_follows_from_history() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let play = |twin: &str| -> Result<Vec<Play>> {
            let one = |(name, set_up): &(&str, SetUp)| {
                set_up(s, &format!("{name}-{twin}")).with_context(|| format!("set up {name}"))
            };
            SITUATIONS.iter().map(one).collect()
        };
        let (orphaned, living) = (play(ORPHANED)?, play("living")?);
        for play in &orphaned {
            play.agent.kill()?;
        }
        for ((name, _), play) in SITUATIONS.iter().zip(&orphaned) {
            play.servers.iter().try_for_each(|server| daemon.reaped(server).map(drop)).context(*name)?;
        }
        s.barrier(&daemon)?;
        for ((name, _), play) in SITUATIONS.iter().zip(&living) {
            let all = play.servers.iter().flatten().chain(&play.bystander).copied().collect::<Vec<_>>();
            daemon.silent(&all).with_context(|| format!("{name}: the twin whose agent lives"))?;
        }
        daemon.silent(&orphaned.iter().filter_map(|play| play.bystander).collect::<Vec<_>>())
    })
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

/// The server does this when it runs.
fn then(s: &Scene, n: &str, verb: &str) -> Result<Play> {
    let (agent, server) = agent_with(s, n, |p| p)?;
    server.act(verb)?;
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
    // The twin keeps its wire: one whose wire nobody has is abandoned under an agent that lives.
    if n.ends_with(ORPHANED) {
        helper.exit()?;
    }
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

fn agent_without_leader(s: &Scene, n: &str) -> Result<Play> {
    let (agent, server) = agent_with(s, n, |p| p)?;
    agent.act("leave_leader")?;
    let later = agent.start(&Part::server(format!("{n}-later")))?;
    Ok(Play::of(agent, [server.id]).and(&later))
}

fn subreaper(s: &Scene, n: &str) -> Result<Play> {
    let warden = s.start(&Part::new("warden", format!("{n}-warden")))?;
    warden.act("subreaper")?;
    let agent = warden.start(&Part::agent(format!("{n}-agent")))?;
    let server = agent.start(&Part::server(format!("{n}-server")).how("double_fork"))?;
    ensure!(server.id.parent() == Some(warden.id.pid), "adopted by {:?}", server.id.parent());
    Ok(Play { bystander: Some(warden.id), ..Play::of(agent, [server.id]) })
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
    Ok(Play::of(agent, [server.id]).and(&later))
}

fn agent_in_the_background(s: &Scene, n: &str) -> Result<Play> {
    let (launcher, before) = agent_with(s, n, |p| p)?;
    let agent = launcher.fork(&format!("{n}-background"))?;
    agent.act("setsid")?;
    launcher.exit()?;
    let later = agent.start(&Part::server(format!("{n}-later")))?;
    Ok(Play::of(agent, [before.id]).and(&later))
}

fn implied_agent_on_sockets(s: &Scene, n: &str) -> Result<Play> {
    let host = s.start(&Part::new("home-made-host.py", format!("{n}-host")))?;
    let server = host.start(&Part::server(format!("{n}-server")).wire("socket").below_shell())?;
    Ok(Play::of(host, [server.id]))
}
