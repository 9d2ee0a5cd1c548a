//! Servers that cost a lot to look at.

use anyhow::{Context, Result};
use tests::{
    Launch,
    neighbours::{HOSTILE, Honest, hostile_as},
    scene,
};

use crate::GRACE;

const SERVERS: usize = 30;

/// An agent whose servers, the same file under another name, map one file of memory again and again. The last one does not: it is
/// there when the others are done.
const CLAUDE: &str = "#!/usr/bin/python3
import mmap, os, subprocess, sys, time
SIZE = 64 << 20
here, pipe = os.path.dirname(sys.argv[0]), subprocess.PIPE
def start(*args, **more):
    return subprocess.Popen([here + '/mcp-server-heavy', *args], stdin=pipe, stdout=pipe, **more)
if os.path.basename(sys.argv[0]) == 'claude':
    memory = os.memfd_create('heavy')
    os.ftruncate(memory, SIZE)
    servers = [start(str(memory), pass_fds=[memory]) for _ in range(int(sys.argv[1]))]
    for server in servers:
        server.stdout.readline()
    servers.append(start())
elif len(sys.argv) > 1:
    flags = mmap.MAP_SHARED | mmap.MAP_POPULATE
    maps = [mmap.mmap(int(sys.argv[1]), SIZE, flags=flags) for _ in range(40)]
    print('up', flush=True)
time.sleep(600)
";

/// Each has 2.5 GB resident, the same 64 MB forty times: its proportional memory takes the kernel 25 ms to tell.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn memory_that_is_mapped_again_and_again_delays_nobody() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch::default())?;
        let honest = Honest::at_work(s, "honest")?;
        let agent = hostile_as(s, ["claude", "mcp-server-heavy"], CLAUDE, &[&SERVERS.to_string()])?;
        let started = tests::within("all servers", || {
            let is_its = |e: &tests::Event| {
                e.kind() == "server_started" && e["server"]["processes"][0]["uid"] == HOSTILE
            };
            let all: Vec<_> = daemon.events().into_iter().filter(is_its).collect();
            (all.len() > SERVERS).then_some(all)
        })?;
        agent.signal(rustix::process::Signal::KILL)?;
        let first = started.first().context("no server")?.server().to_owned();
        daemon.wait("the first suspect", |e| e.kind() == "orphan_suspected" && e.server() == first)?;
        let took = honest.judged_in_time(&daemon, GRACE)?;
        println!("{SERVERS} servers with memory mapped again and again: judged after {took:?}");
        Ok(())
    })
}
