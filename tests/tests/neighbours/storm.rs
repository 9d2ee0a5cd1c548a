//! Storms of processes that have nothing to do with agents.

use anyhow::{Result, ensure};
use tests::{
    Launch,
    neighbours::{HOSTILE, Honest, hostile},
    scene,
};

use crate::GRACE;

/// Forks and collects children as fast as it can.
const BOMB: &str = "
import os
while True:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
";

/// As many as one process can make.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_storm_of_forks_delays_nobody() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch::default())?;
        let honest = Honest::at_work(s, "honest")?;
        let storm = hostile(s, BOMB, &[])?;
        let took = honest.judged_in_time(&daemon, GRACE)?;
        ensure!(storm.alive(), "the storm of user {HOSTILE} is over: nothing was tried");
        println!("a storm of forks: judged after {took:?}");
        Ok(())
    })
}
