//! Two users of one host. One does harm, on purpose or by accident; the other is honest. Whatever the first
//! one does, the orphan of the second must be judged in time.

use std::{
    fs,
    path::PathBuf,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;

use crate::{
    cast::Actor,
    daemon::Daemon,
    host::{Identity, within},
    pace::in_time,
    part::Part,
    scene::Scene,
};

const SILENT: &str = include_str!("../actors/silent.py");

/// The id of the user who does harm. No other process has it.
pub const HOSTILE: u32 = 64_001;

/// The id of the honest user. No other process has it.
pub const HONEST: u32 = 64_002;

/// How long after its grace period an honest orphan may wait for its verdict. What these tests guard against kept it waiting
/// for a minute or for ever.
const IN_TIME: Duration = Duration::from_secs(15);

/// An agent of the honest user, with a server.
pub struct Honest {
    agent: Actor,
    server: Actor,
}

impl Honest {
    /// Starts both. `name` makes their aliases unique in the scene.
    pub fn at_work(s: &Scene, name: &str) -> Result<Self> {
        let starter = s.start(&Part::new("login", format!("{name}-login")))?;
        let agent = starter.start(&Part::agent(format!("{name}-agent")).uid(HONEST))?;
        let server = agent.start(&Part::server(format!("{name}-server")))?;
        Ok(Self { agent, server })
    }

    /// The process of the server.
    pub fn server(&self) -> Identity {
        self.server.id
    }

    /// Kills the agent. The test checks what happens to its server.
    pub fn leave(&self) -> Result<()> {
        self.agent.kill().context("kill the honest user's agent")
    }

    /// Kills the agent. Its server must be judged in time, and be ended. Returns the
    /// time to the verdict including the grace period, by this test's clock.
    pub fn judged_in_time(&self, daemon: &Daemon, grace: Duration) -> Result<Duration> {
        let killed = Instant::now();
        self.agent.kill().context("kill the honest user's agent")?;
        let server = self.server.id;
        daemon.wait_for("orphan_detected", server)?;
        let took = killed.elapsed();
        ensure!(
            took <= grace + in_time(IN_TIME)?,
            "the honest user's {server} was judged after {took:?}, its grace was {grace:?}"
        );
        daemon.reaped(&[server])?;
        Ok(took)
    }
}

/// Start `program` (Python) as the user who does harm, inside the scene: it ends with it.
pub fn hostile(s: &Scene, program: &str, args: &[&str]) -> Result<Identity> {
    hostile_as(s, ["hostile.py"], program, args)
}

/// Creates the same program under each of these names, and starts the first.
pub fn hostile_as<const N: usize>(
    s: &Scene,
    names: [&str; N],
    program: &str,
    args: &[&str],
) -> Result<Identity> {
    as_user(s, HOSTILE, names, program, args)
}

/// The same as another user who does harm.
pub fn as_user<const N: usize>(
    s: &Scene,
    uid: u32,
    names: [&str; N],
    program: &str,
    args: &[&str],
) -> Result<Identity> {
    let script = put(s, names, program)?;
    let user = [format!("--reuid={uid}"), format!("--regid={uid}"), "--clear-groups".to_owned()];
    let mut command = s.command("/usr/bin/setpriv")?;
    command.args(user).arg("/usr/bin/python3").arg(script).args(args);
    s.spawn(command.stdin(Stdio::null()))
}

/// Creates the same program (Python) under each of these names, and starts the first as root.
pub fn program<const N: usize>(s: &Scene, names: [&str; N], program: &str) -> Result<Identity> {
    let script = put(s, names, program)?;
    s.spawn(s.command("/usr/bin/python3")?.arg(script).stdin(Stdio::null()))
}

/// Writes the program under each of these names. Returns the path of the first.
fn put<const N: usize>(s: &Scene, names: [&str; N], program: &str) -> Result<PathBuf> {
    let paths = names.map(|name| s.folder().join(name));
    for path in &paths {
        fs::write(path, program).with_context(|| format!("write {}", path.display()))?;
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    }
    paths.into_iter().next().context("no name")
}

/// A file system that never answers the close of a file. A process that has a file of it open blocks in
/// execve(2).
pub struct Silent {
    server: Identity,
    told: PathBuf,
}

impl Silent {
    /// So many processes of the user who does harm are stuck.
    pub fn stuck(s: &Scene, count: usize) -> Result<Self> {
        let silent = Self::play(s, &["stuck", &count.to_string()])?;
        silent.wait_for(count)?;
        Ok(silent)
    }

    /// So many processes of the user who does harm run themselves again and again: whoever reads about one waits
    /// for up to so many milliseconds.
    pub fn slow(s: &Scene, count: usize, milliseconds: u32) -> Result<Self> {
        let silent = Self::play(s, &["slow", &count.to_string(), &milliseconds.to_string()])?;
        silent.wait_for(count)?;
        Ok(silent)
    }

    /// The user runs this Python program, which exists under each of these names, under the first of them.
    /// Its argument is the path of a file in the file system.
    pub fn with(s: &Scene, names: [&str; 2], program: &str) -> Result<Self> {
        Self::running(s, "run", names, program)
    }

    /// The same, and only root waits: for the answer to the close, and for the file's attributes.
    pub fn for_root(s: &Scene, names: [&str; 2], program: &str) -> Result<Self> {
        Self::running(s, "root", names, program)
    }

    fn running(s: &Scene, mode: &str, names: [&str; 2], program: &str) -> Result<Self> {
        let file = s.folder().join("mount/file");
        Self::play(s, &[mode, &put(s, names, program)?.to_string_lossy(), &file.to_string_lossy()])
    }

    fn play(s: &Scene, what: &[&str]) -> Result<Self> {
        let script = s.folder().join("silent.py");
        fs::write(&script, SILENT).with_context(|| format!("write {}", script.display()))?;
        let mut command = s.command("/usr/bin/python3")?;
        command.arg(script).arg(s.folder()).arg(HOSTILE.to_string()).args(what);
        let server = s.spawn(command.stdin(Stdio::null()))?;
        Ok(Self { server, told: s.folder().join("stuck") })
    }

    /// Waits until so many processes block.
    pub fn wait_for(&self, count: usize) -> Result<()> {
        within(&format!("{count} processes that are stuck"), || (self.pids().len() >= count).then_some(()))
    }

    /// The ids of the blocked processes. Reading their files in /proc would block.
    pub fn pids(&self) -> Vec<u32> {
        let told = fs::read_to_string(&self.told).unwrap_or_default();
        told.split_terminator('\n').filter_map(|line| line.parse().ok()).collect()
    }

    /// Unblocks them.
    pub fn release(&self) -> Result<()> {
        self.server.signal(Signal::KILL)?;
        self.server.wait_gone()
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        // In any case: whoever checks the remaining processes would wait for the blocked ones.
        let _ = self.server.signal(Signal::KILL);
    }
}
