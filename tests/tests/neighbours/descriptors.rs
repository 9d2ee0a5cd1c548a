//! More to look at than there are descriptors for.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use tests::{
    Daemon, HookScript, Identity, Launch,
    neighbours::{Honest, hostile},
    output, scene, within,
};

use super::GRACE;

/// Becomes an agent with 150 servers that do not end by themselves.
const AGENT: &str = r#"
import os, sys
place = sys.argv[1]
code = '''
import os, subprocess, sys, time
place = sys.argv[1]
kept = [subprocess.Popen([place + "/mcp-server-crowd", "600"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for n in range(150)]
with open(place + "/pid.new", "w") as f: f.write(str(os.getpid()))
os.rename(place + "/pid.new", place + "/pid")
time.sleep(600)
'''
os.execv(place + "/claude", ["claude", "-c", code, place])
"#;

#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn many_servers_take_no_descriptors_from_others() -> Result<()> {
    scene(|s| {
        let hook = HookScript::new(s, "hook", "ulimit -n | say limit\n")?;
        let config = hook.config("events = ['orphan_detected']");
        let daemon = s.daemon_with(&Launch { config, descriptors: "96:192", ..Launch::default() })?;
        ensure!(soft_limit(&daemon)? == 192, "the soft limit is {}", soft_limit(&daemon)?);
        let honest = Honest::at_work(s, "honest")?;
        let place = s.folder().join("place");
        fs::create_dir(&place)?;
        fs::set_permissions(&place, fs::Permissions::from_mode(0o777))?;
        symlink("/usr/bin/python3", place.join("claude")).context("make claude")?;
        symlink("/bin/sleep", place.join("mcp-server-crowd")).context("make a server")?;
        hostile(s, AGENT, &[&place.to_string_lossy()])?;
        let told = within("the agent", || fs::read_to_string(place.join("pid")).ok())?;
        let agent = Identity::of(told.parse()?).context("the agent is gone")?;
        let count = |kind: &str| {
            let all = daemon.events();
            all.iter().filter(|e| e.kind() == kind && e.line.contains("mcp-server-crowd")).count()
        };
        within("150 servers", || (count("server_started") == 150).then_some(()))?;
        // Their memory is looked at, again and again by two threads.
        daemon.ask(&["status"])?;
        agent.signal(Signal::KILL)?;
        daemon.wait("a suspect", |e| e.kind() == "orphan_suspected")?;
        let took = honest.judged_in_time(&daemon, GRACE)?;
        within("150 verdicts", || (count("orphan_detected") == 150).then_some(()))?;
        ensure!(!daemon.log().contains("Too many open files"), "{}", daemon.log());
        ensure!(hook.text("limit")? == "96", "the hook's limit is {}", hook.text("limit")?);
        println!("150 orphans and 192 descriptors: judged after {took:?}");
        Ok(())
    })
}

#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn want_of_descriptors_is_told_until_it_is_over() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch::default())?;
        let honest = Honest::at_work(s, "honest")?;
        let before = soft_limit(&daemon)?;
        set_soft_limit(&daemon, 8)?;
        honest.leave()?;
        within("the word of it", || daemon.log().contains("descriptors have run out").then_some(()))?;
        ensure!(!daemon.events().iter().any(|e| e.kind() == "orphan_detected"), "judged blindly");
        set_soft_limit(&daemon, before)?;
        daemon.wait_for("orphan_detected", honest.server())?;
        daemon.reaped(&[honest.server()])?;
        within("the end of it", || daemon.log().contains("there are descriptors again").then_some(()))?;
        // A slow disk is told there, too, and for a moment.
        within("it is not blind any more", || {
            (daemon.ask(&["status"]).ok()?["blind"] == serde_json::json!([])).then_some(())
        })
    })
}

fn soft_limit(daemon: &Daemon) -> Result<u64> {
    let limits = fs::read_to_string(format!("/proc/{}/limits", daemon.id.pid))?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).context("no limit")?;
    Ok(line.split_whitespace().next().context("no limit")?.parse()?)
}

fn set_soft_limit(daemon: &Daemon, limit: u64) -> Result<()> {
    let pid = daemon.id.pid.to_string();
    let done = output(Command::new("/usr/bin/prlimit").args(["--pid", &pid, &format!("--nofile={limit}:")]))?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}
