//! Two users of one host: one does harm, by malice or by accident, the other is honest. Whatever the first one does, the orphan
//! of the second is judged in time.

use std::{
    fs,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use crate::{cast::Actor, daemon::Daemon, host::Identity, part::Part, scene::Scene};

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
    let script = s.folder().join("hostile.py");
    fs::write(&script, program).with_context(|| format!("write {}", script.display()))?;
    let user = [format!("--reuid={HOSTILE}"), format!("--regid={HOSTILE}"), "--clear-groups".to_owned()];
    let mut command = s.command("/usr/bin/setpriv")?;
    command.args(user).arg("/usr/bin/python3").arg(script).args(args);
    s.spawn(command.stdin(Stdio::null()))
}
