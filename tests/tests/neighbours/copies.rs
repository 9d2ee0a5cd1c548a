//! An agent whose forked copies take long to look at, in the moment in which the agent is killed.

use std::fs;

use anyhow::Result;
use rustix::process::Signal;
use tests::{
    Identity, Launch,
    neighbours::{HOSTILE, Honest, hostile},
    scene, within,
};

use super::{BECOME, GRACE, room::program};

/// An agent with a server and many copies, each of which has thousands of open files.
const AGENT: &str = "#!/usr/bin/python3
import os, resource, signal, subprocess, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
files = min(5000, hard - 100)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
server = subprocess.Popen(sys.argv[2:3] + ['600'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for n in range(files):
    os.open('/dev/null', os.O_RDONLY)
for n in range(200):
    if os.fork() == 0:
        while True:
            signal.pause()
open(sys.argv[1] + '/ready', 'w').write(str(os.getpid()))
while True:
    signal.pause()
";

/// What copies of a killed agent have done so far is asked at once, by the loop.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn copies_with_many_files_hold_nobody_up() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch::default())?;
        let honest = Honest::at_work(s, "honest")?;
        let (server, agent) = (
            program(s, "mcp-server-copied", &fs::read("/usr/bin/sleep")?)?,
            program(s, "claude", AGENT.as_bytes())?,
        );
        let here = s.folder().join("copies");
        fs::create_dir(&here)?;
        fs::set_permissions(&here, std::os::unix::fs::PermissionsExt::from_mode(0o777))?;
        let agent: Identity = hostile(s, BECOME, &[&agent, &here.to_string_lossy(), &server])?;
        daemon.wait("its server", |e| {
            e.kind() == "server_started" && e["server"]["processes"][0]["uid"] == HOSTILE
        })?;
        within("its copies", || fs::metadata(here.join("ready")).ok().filter(|ready| ready.len() > 0))?;
        agent.signal(Signal::KILL)?;
        let took = honest.judged_in_time(&daemon, GRACE)?;
        println!("200 copies with 5,000 files each: judged after {took:?}");
        Ok(())
    })
}
