//! Storms of processes: by strangers, and below agents.

use std::{
    os::unix::fs::symlink,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use tests::{
    Daemon, Identity, Launch, Scene,
    neighbours::{HOSTILE, Honest, as_user, hostile},
    scene, within,
};

use super::GRACE;

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
        let lost = daemon.events().into_iter().find(|e| matches!(e.kind(), "lost" | "resynced"));
        ensure!(lost.is_none(), "what is below no agent takes no room: {lost:?}");
        println!("a storm of forks: judged after {took:?}");
        Ok(())
    })
}

/// Becomes an agent whose copies, as many as it is told, make children that share its memory and end at once. The library's own
/// `_exit()` is all that a child runs.
const STORM: &str = r#"
import os, sys
code = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
run = ctypes.cast(libc._exit, ctypes.c_void_p)
stack = ctypes.create_string_buffer(1 << 16)
top = ctypes.c_void_p((ctypes.addressof(stack) + len(stack)) & ~15)
agent = os.getpid()
for n in range(int(sys.argv[1]) - 1):
    if os.fork() == 0: break
CLONE_VM, CLONE_VFORK, SIGCHLD = 0x100, 0x4000, 17
while agent in (os.getpid(), os.getppid()):
    libc.clone(run, top, CLONE_VM | CLONE_VFORK | SIGCHLD, None)
    os.wait()
"""
os.execv(sys.argv[1], ["claude", "-c", code, sys.argv[2]])
"#;

/// Three users, each with an agent below which there is a storm.
fn storms(s: &Scene) -> Result<[Identity; 3]> {
    let agent = s.folder().join("claude");
    symlink("/usr/bin/python3", &agent).context("make claude")?;
    let agent = agent.to_string_lossy();
    let storm = |n: u32, script| as_user(s, 64_010 + n, [script], STORM, &[&agent, "2"]);
    Ok([storm(0, "storm0.py")?, storm(1, "storm1.py")?, storm(2, "storm2.py")?])
}

/// How many processes did not get into the shares of their users.
fn refused(daemon: &Daemon) -> u64 {
    let lost = daemon.events().into_iter().filter(|event| event.kind() == "lost");
    lost.filter_map(|event| event.pointer("/records/member").and_then(serde_json::Value::as_u64)).sum()
}

/// Whatever the storms make of their own records, those of a quiet user are there: its agents and servers, born in the storm,
/// are known as they are, what is in use stays, and every orphan is ended.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn storms_below_agents_of_others_lose_nothing_of_mine() -> Result<()> {
    scene(|s| {
        // A small ring: these storms would fill any, on a machine with more processors.
        let args = vec!["--ring-size", "16K"];
        let daemon = s.daemon_with(&Launch { args, ..Launch::default() })?;
        let before = Honest::at_work(s, "before")?;
        let storms = storms(s)?;
        within("the storms fill their shares", || (refused(&daemon) > 0).then_some(()))?;
        let in_use = Honest::at_work(s, "used")?;
        let mut longest = Duration::ZERO;
        for n in 0..4 {
            let born_in_it = Honest::at_work(s, &format!("mine{n}"))?;
            longest = longest.max(born_in_it.judged_in_time(&daemon, GRACE)?);
        }
        longest = longest.max(before.judged_in_time(&daemon, GRACE)?);
        let lost = |event: &tests::Event| {
            event.kind() == "lost" && ["fork", "exec", "exit"].iter().any(|kind| event["records"][kind] != 0)
        };
        let lost: Vec<_> = daemon.events().into_iter().filter(lost).map(|event| event.line).collect();
        ensure!(lost.is_empty(), "lost, and nobody knows whose: {lost:?}");
        for storm in storms {
            ensure!(storm.alive(), "the storm of {storm} is over: nothing was tried");
            storm.signal(Signal::KILL)?;
        }
        // Whoever stormed is judged again when that is over, and nothing in use was ended.
        let calm = Instant::now();
        within("all users are judged again", || {
            let blind = daemon.ask(&["status"]).ok()?["blind"].clone();
            blind.as_array().is_none_or(Vec::is_empty).then_some(())
        })?;
        ensure!(in_use.server().alive(), "a server in use was ended");
        println!(
            "storms of three users: {} records refused, judged after {longest:?} at most, calm after {:?}",
            refused(&daemon),
            calm.elapsed()
        );
        in_use.judged_in_time(&daemon, GRACE)?;
        Ok(())
    })
}
