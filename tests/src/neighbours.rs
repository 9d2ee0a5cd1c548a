//! Two users of one host: one does harm, by malice or by accident, the other is honest. Whatever the first one does, the orphan
//! of the second is judged in time.

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
    part::Part,
    scene::Scene,
};

const SILENT: &str = include_str!("../actors/silent.py");

/// The number of the user who does harm. Nobody else has it.
pub const HOSTILE: u32 = 64_001;

/// The number of the honest user. Nobody else has it.
pub const HONEST: u32 = 64_002;

/// How long after its grace an honest orphan may wait for its verdict.
const IN_TIME: Duration = Duration::from_secs(1);

/// An agent of the honest user, with a server.
pub struct Honest {
    agent: Actor,
    server: Actor,
}

impl Honest {
    /// Both at work. `name` makes their aliases unique in the scene.
    pub fn at_work(s: &Scene, name: &str) -> Result<Self> {
        let starter = s.start(&Part::new("login", format!("{name}-login")))?;
        let agent = starter.start(&Part::agent(format!("{name}-agent")).uid(HONEST))?;
        let server = agent.start(&Part::server(format!("{name}-server")))?;
        Ok(Self { agent, server })
    }

    /// Which process the server is.
    pub fn server(&self) -> Identity {
        self.server.id
    }

    /// The agent is killed; what becomes of its server is for the test to see.
    pub fn leave(&self) -> Result<()> {
        self.agent.kill().context("kill the honest user's agent")
    }

    /// The agent is killed: its server is judged within `grace` and one second, and ended. What the verdict took, the grace
    /// included, by this test's clock.
    pub fn judged_in_time(&self, daemon: &Daemon, grace: Duration) -> Result<Duration> {
        let killed = Instant::now();
        self.agent.kill().context("kill the honest user's agent")?;
        let server = self.server.id;
        daemon.wait_for("orphan_detected", server)?;
        let took = killed.elapsed();
        ensure!(
            took <= grace + IN_TIME,
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

/// The same program under each of these names; the first of them is started.
pub fn hostile_as<const N: usize>(
    s: &Scene,
    names: [&str; N],
    program: &str,
    args: &[&str],
) -> Result<Identity> {
    let script = put(s, names, program)?;
    let user = [format!("--reuid={HOSTILE}"), format!("--regid={HOSTILE}"), "--clear-groups".to_owned()];
    let mut command = s.command("/usr/bin/setpriv")?;
    command.args(user).arg("/usr/bin/python3").arg(script).args(args);
    s.spawn(command.stdin(Stdio::null()))
}

/// Write it under each of these names. Where the first one is.
fn put<const N: usize>(s: &Scene, names: [&str; N], program: &str) -> Result<PathBuf> {
    let paths = names.map(|name| s.folder().join(name));
    for path in &paths {
        fs::write(path, program).with_context(|| format!("write {}", path.display()))?;
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    }
    paths.into_iter().next().context("no name")
}

/// A file system that never answers the close of a file, so that a process that has one open is stuck in execve(2).
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

    /// That user runs this program (Python), which is there under each of these names, under the first of them. Its argument is the
    /// path of a file there.
    pub fn with(s: &Scene, names: [&str; 2], program: &str) -> Result<Self> {
        let file = s.folder().join("mount/file");
        Self::play(s, &["run", &put(s, names, program)?.to_string_lossy(), &file.to_string_lossy()])
    }

    fn play(s: &Scene, what: &[&str]) -> Result<Self> {
        let script = s.folder().join("silent.py");
        fs::write(&script, SILENT).with_context(|| format!("write {}", script.display()))?;
        let mut command = s.command("/usr/bin/python3")?;
        command.arg(script).arg(s.folder()).arg(HOSTILE.to_string()).args(what);
        let server = s.spawn(command.stdin(Stdio::null()))?;
        Ok(Self { server, told: s.folder().join("stuck") })
    }

    /// Until so many are stuck.
    pub fn wait_for(&self, count: usize) -> Result<()> {
        within(&format!("{count} processes that are stuck"), || (self.pids().len() >= count).then_some(()))
    }

    /// The numbers of those that are stuck. Do not look at them in /proc: that waits for them.
    pub fn pids(&self) -> Vec<u32> {
        let told = fs::read_to_string(&self.told).unwrap_or_default();
        told.split_terminator('\n').filter_map(|line| line.parse().ok()).collect()
    }

    /// They are stuck no longer.
    pub fn release(&self) -> Result<()> {
        self.server.signal(Signal::KILL)?;
        self.server.wait_gone()
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        // Whatever became of the test: whoever looks at who is left would wait for those that are stuck.
        let _ = self.server.signal(Signal::KILL);
    }
}
