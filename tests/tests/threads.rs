//! No thread can be started: somebody else has used up those of the host, or of the service.

use std::{fs, process::Command};

use anyhow::{Context as _, Result, ensure};
use tests::{Launch, Part, scene};

/// A question that needs a thread is refused then, and nothing else happens.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn the_daemon_outlives_that_no_thread_can_be_started() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch::default())?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        daemon.wait_for("server_started", server.id)?;
        let pid = daemon.id.pid.to_string();
        let limit = |limit: &str| -> Result<()> {
            let changed = Command::new("/usr/bin/prlimit").args(["--pid", &pid, limit]).status()?;
            ensure!(changed.success(), "prlimit {limit}: {changed}");
            Ok(())
        };
        // No room for the stack of a thread, and some for the rest.
        let pages = fs::read_to_string(format!("/proc/{pid}/statm"))?;
        let pages: u64 = pages.split(' ').next().context("statm is empty")?.parse()?;
        limit(&format!("--as={}:unlimited", pages * 4096 + (1 << 20)))?;
        let (_, told) = daemon.says(&["status"])?;
        ensure!(!daemon.log().contains("panicked"), "{}", daemon.log());
        ensure!(told.contains("cannot start a thread"), "{told}");
        limit("--as=unlimited:unlimited")?;
        daemon.ask(&["status"])?;
        agent.kill()?;
        daemon.wait_for("orphan_reaped", server.id).map(drop)
    })
}
