//! The alert hook: who may be one, whom it runs as, and that nothing of the daemon's rights gets to it.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::{PermissionsExt as _, chown},
    process::{Child, Command, Output, Stdio},
};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use tests::{HookScript, Identity, Launch, Part, Scene, orphand, output, scene};

/// What a hook is: its status, its descriptors.
const TELL: &str =
    "ls -l /proc/$$/fd | say fds; cat /proc/$$/oom_score_adj | say oom; cat /proc/$$/status | say status";

const NOBODY: u32 = 65534;

/// The daemon's command line in a folder of its own that belongs to nobody, behind `before`.
fn run(s: &Scene, before: &[&str], config: &str) -> Result<Command> {
    let folder = s.folder().join("run");
    if !folder.exists() {
        fs::create_dir(&folder)?;
        fs::copy(orphand()?, folder.join("orphand"))?;
        chown(&folder, Some(NOBODY), Some(NOBODY))?;
    }
    // Not in that folder: whoever owns it could change it.
    let file = s.folder().join("config.toml");
    fs::write(&file, config)?;
    let (first, rest) = before.split_first().context("no program")?;
    let mut command = Command::new(first);
    command
        .args(rest)
        .args([
            "./orphand",
            "run",
            "--format",
            "json",
            "--setsid",
            "none",
            "--grace",
            "300ms",
            "--listen",
            "none",
        ])
        .args([
            "--below",
            s.below(),
            "--lock",
            "lock",
            "--socket",
            "sock",
            "--state-dir",
            "state",
            "--config",
        ])
        .arg(file)
        .current_dir(folder)
        .stdin(Stdio::null());
    Ok(command)
}

/// It ended with 1 and one line that has these words in it.
fn refused(output: &Output, words: &[&str]) -> Result<()> {
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(1), "ended with {}: {told}", output.status);
    ensure!(output.stdout.is_empty() && told.lines().count() == 1, "not one line: {told}");
    words.iter().try_for_each(|word| {
        ensure!(told.contains(word), "no {word:?} in {told:?}");
        Ok(())
    })
}

/// A line of /proc/PID/status.
fn field(status: &str, name: &str) -> Result<String> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let words: Vec<_> = line.with_context(|| format!("no {name}"))?.split_whitespace().collect();
    Ok(words.join(" "))
}

/// No capability, no signal that is blocked or ignored, whatever this test was started with (and so its daemon).
fn plain(status: &str) -> Result<()> {
    for name in ["CapInh", "CapPrm", "CapEff", "CapAmb", "SigBlk"] {
        let value = field(status, name)?;
        ensure!(value.trim_matches('0').is_empty(), "{name} is {value}");
    }
    ensure!(ignored(status)? == 0, "signals are ignored: {}", field(status, "SigIgn")?);
    Ok(())
}

/// The signals that are ignored, the first in the lowest bit.
fn ignored(status: &str) -> Result<u64> {
    // 32 and 33 are the C library's own: its posix_spawn(3) ignores them in the child.
    Ok(u64::from_str_radix(&field(status, "SigIgn")?, 16)? & !(0b11 << 31))
}

/// A hook that others could change, or that cannot be run, is refused when the daemon starts: one line, what to do.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn refused_at_the_start() -> Result<()> {
    scene(|s| {
        let hook = HookScript::new(s, "hook", "true")?;
        let mode = |bits| fs::set_permissions(&hook.path, fs::Permissions::from_mode(bits));
        let start = |config: &str| output(&mut run(s, &["/usr/bin/env"], config)?);
        for (bits, lines, words) in [
            (0o777, "", ["others may write", "chmod go-w it"]),
            (0o775, "", ["others may write", "chmod go-w it"]),
            (0o644, "", ["may not execute", "chmod +x it"]),
            (0o744, "user = \"nobody\"", ["user nobody may not execute", "chmod +x it"]),
            (0o755, "user = \"no-such-user\"", ["there is no such user", "hook.user"]),
        ] {
            mode(bits)?;
            refused(&start(&hook.config(lines))?, &words).with_context(|| format!("{bits:o} {lines}"))?;
        }
        mode(0o755)?;
        chown(&hook.path, Some(NOBODY), None)?;
        refused(&start(&hook.config(""))?, &["hook belongs to user 65534"])?;
        chown(&hook.path, Some(0), None)?;
        refused(&start("[[hook]]\npath = \"hook\"")?, &["not an absolute path"])?;
        refused(&start("[[hook]]\npath = \"/nowhere/hook\"")?, &["/nowhere", "No such file"])?;
        refused(&start("[[hook]]\npath = \"/tmp\"")?, &["/tmp is no regular file"])?;
        // A folder above it is the same as the file.
        let folder = s.folder().join("open");
        fs::create_dir(&folder)?;
        fs::rename(&hook.path, folder.join("hook"))?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777))?;
        let config = format!("[[hook]]\npath = '{}'", folder.join("hook").display());
        refused(&start(&config)?, &["others may write"])
    })
}

/// It runs as the user that the configuration names: with that user's own group and no others, without a capability. As root it has none either.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn as_the_user_that_is_named() -> Result<()> {
    scene(|s| {
        let hook = HookScript::new(s, "hook", TELL)?;
        let config = hook.config("user = \"nobody\"\nevents = [\"ready\"]");
        let daemon = s.daemon_with(&Launch { config, ..Launch::default() })?;
        let status = hook.text("status")?;
        for (name, value) in
            [("Uid", "65534 65534 65534 65534"), ("Gid", "65534 65534 65534 65534"), ("Groups", "")]
        {
            let found = field(&status, name)?;
            ensure!(found == value, "{name} is {found}");
        }
        plain(&status)?;
        daemon.finish()?;
        let hook = HookScript::new(s, "own", TELL)?;
        let config = hook.config("events = [\"ready\"]");
        let _daemon = s.daemon_with(&Launch { config, ..Launch::default() })?;
        let status = hook.text("status")?;
        ensure!(field(&status, "Uid")? == "0 0 0 0", "{status}");
        plain(&status)
    })
}

/// A daemon with capabilities of its own hands none of them on, nor a descriptor that it was started with, nor that it was started to
/// ignore signals, as by `nohup .. &`; and cannot run the hook as somebody else.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn of_a_daemon_with_capabilities() -> Result<()> {
    scene(|s| {
        let hook = HookScript::new(s, "hook", TELL)?;
        let marker = s.folder().join("marker");
        fs::write(&marker, "")?;
        let shell = format!(
            "trap '' HUP INT QUIT USR1 TSTP CHLD; exec 9< '{}'; (echo -500 > /proc/$$/oom_score_adj) 2> /dev/null; exec \"$@\"",
            marker.display()
        );
        let caps = "+bpf,+perfmon,+sys_ptrace,+kill,+dac_read_search";
        let (inherited, ambient) = (format!("--inh-caps={caps}"), format!("--ambient-caps={caps}"));
        let before = ["/bin/sh", "-c", &shell, "sh", "/usr/bin/setpriv", "--reuid=65534", "--regid=65534"];
        let before = [&before[..], &["--clear-groups", &inherited, &ambient]].concat();
        let told = output(&mut run(s, &before, &hook.config("user = \"daemon\""))?)?;
        refused(&told, &["as user daemon", "must be started as root"])?;

        let mut child = run(s, &before, &hook.config("events = [\"ready\"]"))?
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let daemon = Running::new(&mut child)?;
        let held = fs::read_link(format!("/proc/{}/fd/9", daemon.0.pid))?;
        ensure!(held == marker, "the daemon itself has not got it: {}", held.display());
        let own = fs::read_to_string(format!("/proc/{}/status", daemon.0.pid))?;
        ensure!(field(&own, "CapPrm")? != "0000000000000000", "the daemon has none to hand on");
        let user = 1 << (Signal::USR1.as_raw() - 1);
        ensure!(ignored(&own)? & user != 0, "the daemon itself does not ignore it: {own}");
        let status = hook.text("status")?;
        ensure!(field(&status, "Uid")?.starts_with("65534 "), "{status}");
        plain(&status)?;
        let fds = hook.text("fds")?;
        // Where this test may not protect the daemon there is nothing that could be handed on.
        ensure!(hook.text("oom")? == "0", "protected like the daemon");
        ensure!(!fds.contains("marker") && !fds.contains("bpf"), "{fds}");
        drop(daemon);
        ensure!(child.wait()?.success(), "it did not stop well");
        Ok(())
    })
}

/// A daemon that is told to stop at the end of its test.
struct Running(Identity);

impl Running {
    fn new(child: &mut Child) -> Result<Self> {
        let one = Self(Identity::of(child.id()).context("it has no identity")?);
        let mut out = BufReader::new(child.stdout.take().context("no stdout")?);
        let mut line = String::new();
        // Whoever works on this machine beside us may be told first.
        while !line.contains("\"ready\"") {
            line.clear();
            ensure!(out.read_line(&mut line)? > 0, "it ended before it was ready");
        }
        // What it says further is nobody's business here.
        std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
        Ok(one)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.signal(Signal::TERM);
    }
}

/// A hook that looks like a server, and talks to a child over pipes, is nobody's server and no agent.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_hook_is_no_server() -> Result<()> {
    scene(|s| {
        let hook = HookScript::new(s, "fake-mcp-server", "")?;
        let script = format!(
            "#!/usr/bin/env node\nconst fs = require('fs');\nconst {{ execFileSync }} = require('child_process');\n\
             const line = execFileSync('cat', {{ input: fs.readFileSync(0) }});\n\
             fs.writeFileSync('{0}.part', line);\nfs.renameSync('{0}.part', '{0}');\n",
            hook.at("line").display()
        );
        hook.put(script.as_bytes())?;
        let config = hook.config("events = [\"orphan_reaped\"]");
        let daemon = s.daemon_with(&Launch { config, ..Launch::default() })?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        agent.kill()?;
        daemon.reaped(&[server.id])?;
        let line = hook.text("line")?;
        ensure!(line.contains("\"orphan_reaped\""), "{line}");
        s.mark(&daemon)?;
        let path = hook.path.to_string_lossy().into_owned();
        let wrong = daemon.events().into_iter().find(|e| e.line.contains(&path));
        ensure!(wrong.is_none(), "{wrong:?}");
        Ok(())
    })
}
