//! The alert hook: what it is told, and that nothing it does matters to the daemon or outlives its run.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::Value;
use tests::{Actor, Daemon, HookScript, Identity, Launch, Part, Scene, scene, within};

fn with(hook: &HookScript, lines: &str) -> Launch {
    Launch { config: hook.config(lines), ..Launch::default() }
}

/// With this time limit of a run.
fn limited(launch: Launch, timeout: &'static str) -> Launch {
    Launch { args: vec!["--hook-timeout", timeout], ..launch }
}

/// An orphan, as soon as its agent is killed.
fn leak(s: &Scene, name: &str) -> Result<Actor> {
    let agent = s.start(&Part::agent(format!("agent-{name}")))?;
    let server = agent.start(&Part::server(name))?;
    agent.kill()?;
    Ok(server)
}

/// Runs by outcome, and how many events were dropped.
fn counts(daemon: &Daemon) -> Result<(Value, u64)> {
    let status = daemon.ask(&["status"])?;
    let dropped = status.pointer("/sink_dropped/hook").and_then(Value::as_u64).context("no count")?;
    Ok((status.get("hook_runs").cloned().unwrap_or_default(), dropped))
}

/// Waits until so many runs ended this way.
fn count(daemon: &Daemon, outcome: &str, number: u64) -> Result<()> {
    within(&format!("{number} runs that are {outcome}"), || {
        let (runs, _) = counts(daemon).ok()?;
        (runs.get(outcome)?.as_u64() == Some(number)).then_some(())
    })
}

fn all_gone(processes: &[Identity]) -> Result<()> {
    processes.iter().try_for_each(|one| one.wait_gone().with_context(|| format!("{one} is left of the hook")))
}

/// Arguments, environment and standard input, as a whole and to the letter; nothing hostile in them.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn it_is_told_exactly_this() -> Result<()> {
    scene(|s| {
        let script = r"
tr '\0' '\n' < /proc/$$/cmdline | say argv
ls -l /proc/$$/fd | say fds
umask | say umask
pwd | say folder
cat | say event
tr '\0' '\n' < /proc/$$/environ | say environment
";
        let hook = HookScript::new(s, "hook", script)?;
        let daemon = s.daemon_with(&with(&hook, "events = [\"orphan_reaped\"]"))?;
        let other = leak(s, "other")?;
        daemon.reaped(&[other.id])?;
        hook.told("environment")?;
        fs::remove_file(hook.at("environment"))?;
        let server = leak(s, "server")?;
        let reaped = daemon.reaped(&[server.id])?;
        let environment = hook.text("environment")?;
        let argv = hook.text("argv")?;
        ensure!(argv == format!("/bin/sh\n{}\norphan_reaped", hook.path.display()), "{argv}");
        let line = String::from_utf8(hook.told("event")?)?;
        let (seq, own) = (format!("\"seq\":{},", reaped["seq"]), "\"seq\":2,");
        ensure!(line.trim_end() == reaped.line.replacen(&seq, own, 1), "not the bytes of the stream: {line}");
        let mut lines: Vec<_> = environment.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        let run = &reaped["server"]["run"];
        let mut wanted = vec![
            format!("ORPHAND_AGENT={}", run["agent"].as_str().context("no agent")?),
            "ORPHAND_EVENT=orphan_reaped".to_owned(),
            format!("ORPHAND_GENERATION={}", run["generation"]),
            "ORPHAND_ORPHANS=0".to_owned(),
            format!("ORPHAND_RSS_BYTES={}", reaped["freed_bytes"]),
            format!("ORPHAND_SERVER={}", reaped["server"]["name"].as_str().context("no name")?),
        ];
        wanted.extend(std::env::var("PATH").map(|path| format!("PATH={path}")));
        ensure!(lines == wanted, "{lines:?} instead of {wanted:?}");
        ensure!(hook.text("umask")? == "0022" && hook.text("folder")? == "/", "umask or folder");
        Ok(())
    })
}

/// One that hangs is killed with what it started, in whatever session that is; the next event is delivered. Nobody waits for
/// it: it goes on only when the verdict after its event was told.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_hook_that_hangs() -> Result<()> {
    scene(|s| {
        let script = r#"
[ "$1" = orphan_detected ] || { echo | say next; exit; }
setsid sleep 1001 & one=$!
two=$(setsid sh -c 'sleep 1002 > /dev/null 2>&1 & echo $!')
who $$ $one $two | say pids
gate verdict
trap '' TERM
echo | say on
sleep 1003
"#;
        let hook = HookScript::new(s, "hook", script)?;
        hook.gate("verdict")?;
        let lines = "events = [\"orphan_detected\", \"orphan_exited\", \"orphan_reaped\"]";
        let daemon = s.daemon_with(&limited(with(&hook, lines), "6s"))?;
        let server = leak(s, "server")?;
        let processes = hook.processes("pids")?;
        daemon.reaped(&[server.id])?;
        ensure!(
            counts(&daemon)?.0.as_object().is_some_and(serde_json::Map::is_empty),
            "the hook had ended before"
        );
        hook.open("verdict")?;
        hook.told("on")?;
        hook.told("next")?;
        all_gone(&processes)?;
        count(&daemon, "timed_out", 1)?;
        count(&daemon, "ok", 1)?;
        ensure!(daemon.log().contains("on orphan_detected: it took too long, killed"), "{}", daemon.log());
        Ok(())
    })
}

/// One that leaves something in the background is over when that is, or is ended.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_hook_that_goes_into_the_background() -> Result<()> {
    scene(|s| {
        let script = r#"
[ "$1" = orphan_detected ] || exit 0
setsid sleep 1000 &
who $! $(setsid sh -c 'sleep 1001 > /dev/null & echo $!') | say pids
"#;
        let hook = HookScript::new(s, "hook", script)?;
        let daemon = s.daemon_with(&limited(with(&hook, "user = \"nobody\""), "2s"))?;
        let server = leak(s, "server")?;
        daemon.reaped(&[server.id])?;
        let processes = hook.processes("pids")?;
        count(&daemon, "timed_out", 1)?;
        all_gone(&processes)?;
        count(&daemon, "ok", 1)?;
        ensure!(daemon.log().contains("left in the background"), "{}", daemon.log());
        Ok(())
    })
}

/// Nor does it help to be another process all the time: in ten chains, each in sessions of its own.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_hook_that_is_always_another_process() -> Result<()> {
    scene(|s| {
        let hook = HookScript::new(s, "hook", "")?;
        // It ends some time, should it not be ended.
        let script = format!(
            "#!/usr/bin/python3\nimport os, sys\nif sys.argv[1] != 'orphan_detected': sys.exit()\nopen('{}', 'w').close()\n\
             for _ in range(9):\n    if os.fork() == 0: break\n\
             for _ in range(300000):\n    if os.fork(): os._exit(0)\n    os.setsid()\n",
            hook.at("on").display()
        );
        hook.put(script.as_bytes())?;
        let lines = "events = [\"orphan_detected\", \"orphan_reaped\"]";
        let daemon = s.daemon_with(&limited(with(&hook, lines), "2s"))?;
        let server = leak(s, "server")?;
        daemon.reaped(&[server.id])?;
        hook.told("on")?;
        count(&daemon, "timed_out", 1)?;
        ensure!(!daemon.log().contains("could not be killed"), "{}", daemon.log());
        count(&daemon, "ok", 1)?;
        let left = daemon.id.children_beside_helpers();
        ensure!(left.is_empty(), "left: {left:?}");
        Ok(())
    })
}

/// Failures are a line of the log each, with a part of what the hook said; endless output is no harm.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn hooks_that_fail() -> Result<()> {
    scene(|s| {
        let script = "printf 'no \\033[31mnetwork\\nat all\\n' >&2; exit 3";
        let hook = HookScript::new(s, "hook", script)?;
        let daemon = s.daemon_with(&limited(with(&hook, "events = [\"orphan_reaped\"]"), "2s"))?;
        let scenes = [
            ("failed", 1, "exit", "it ended with status 3; it said: no \\x1b[31mnetwork\\nat all"),
            ("failed", 2, "kill -9 $$", "it was ended by signal 9"),
            ("timed_out", 1, "yes out & yes err >&2", "it said: err\\nerr"),
            ("failed", 3, "", "it could not be started: No such file or directory"),
            // No shell takes it up.
            ("failed", 4, "plain", "it could not be started: Exec format error"),
        ];
        for (n, (outcome, number, script, line)) in scenes.into_iter().enumerate() {
            match script {
                "exit" => {}
                "" => hook.put(b"#!/nowhere/interpreter\n")?,
                "plain" => hook.put(b"exit 0\n")?,
                _ => hook.rewrite(script)?,
            }
            let server = leak(s, &format!("server{n}"))?;
            daemon.reaped(&[server.id])?;
            count(&daemon, outcome, number)?;
            let log = daemon.log();
            ensure!(log.contains(line) && log.contains("on orphan_reaped"), "no {line:?} in {log}");
            ensure!(log.lines().all(|line| line.len() < 10_000), "a line as long as the flood");
        }
        Ok(())
    })
}

/// It may be replaced while it runs: then it is the new one. One that others may write is not run, and counted.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_hook_that_is_replaced() -> Result<()> {
    scene(|s| {
        let hook = HookScript::new(s, "hook", "echo | say first; gate on")?;
        hook.gate("on")?;
        let daemon = s.daemon_with(&with(&hook, "events = [\"orphan_reaped\"]"))?;
        let server = leak(s, "one")?;
        daemon.reaped(&[server.id])?;
        hook.told("first")?;
        hook.rewrite("echo | say second")?;
        let server = leak(s, "two")?;
        daemon.reaped(&[server.id])?;
        hook.open("on")?;
        hook.told("second")?;
        count(&daemon, "ok", 2)?;
        writable(&hook.path, 0o757)?;
        let server = leak(s, "three")?;
        daemon.reaped(&[server.id])?;
        count(&daemon, "refused", 1)?;
        ensure!(daemon.log().contains("others may write"), "{}", daemon.log());
        writable(&hook.path, 0o755)?;
        let server = leak(s, "four")?;
        daemon.reaped(&[server.id])?;
        count(&daemon, "ok", 3)
    })
}

fn writable(path: &Path, mode: u32) -> Result<()> {
    Ok(fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))?)
}

/// The flag beats the file. A hook that does not read its event is well.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn the_flag_beats_the_file() -> Result<()> {
    scene(|s| {
        let config = "[[hook]]\npath = \"/nowhere/hook\"\nevents = [\"orphan_reaped\"]".to_owned();
        let daemon =
            s.daemon_with(&Launch { config, args: vec!["--hook", "/bin/true"], ..Launch::default() })?;
        let server = leak(s, "server")?;
        daemon.reaped(&[server.id])?;
        // It was detected and reaped: the events of every hook that names none.
        count(&daemon, "ok", 2)
    })
}

/// Each of two hooks is told its events, and one that hangs does not delay the other one.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn two_hooks_do_not_wait_for_each_other() -> Result<()> {
    scene(|s| {
        let slow = HookScript::new(s, "slow", "echo \"$1\" | say told; gate on")?;
        slow.gate("on")?;
        let quick = HookScript::new(s, "quick", "echo \"$1\" | say told")?;
        let slow_one = slow.config("events = [\"orphan_detected\"]");
        let config = slow_one + &quick.config("events = [\"orphan_reaped\"]");
        let daemon = s.daemon_with(&limited(Launch { config, ..Launch::default() }, "5m"))?;
        let server = leak(s, "server")?;
        daemon.reaped(&[server.id])?;
        ensure!(slow.text("told")? == "orphan_detected" && quick.text("told")? == "orphan_reaped", "others");
        count(&daemon, "ok", 1)?;
        slow.open("on")?;
        count(&daemon, "ok", 2)
    })
}

/// While it hangs only so many events wait for it; what does not fit is counted and said once.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_queue_that_is_full() -> Result<()> {
    scene(|s| {
        let hook = HookScript::new(s, "hook", "[ \"$1\" = ready ] || exit 0; echo | say first; gate on")?;
        hook.gate("on")?;
        let launch = Launch { listen: "127.0.0.1:0", ..with(&hook, "events = [\"all\"]") };
        let daemon = s.daemon_with(&limited(launch, "5m"))?;
        hook.told("first")?;
        // Two events each.
        for _ in 0..40 {
            s.mark(&daemon)?;
        }
        // The one that runs and those that wait are all that is not dropped.
        within("that all but 65 events are dropped", || {
            let (_, dropped) = counts(&daemon).ok()?;
            (dropped > 0 && dropped + 65 == daemon.events().len() as u64).then_some(())
        })?;
        hook.open("on")?;
        count(&daemon, "ok", 65)?;
        let said = daemon.log().matches("events wait for it already").count();
        ensure!(said == 1, "said {said} times: {}", daemon.log());
        Ok(())
    })
}

/// The daemon is killed: nothing is left of the hook that ran.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_daemon_that_is_killed() -> Result<()> {
    ended_with_the_daemon(Daemon::kill)
}

/// The same of one that is told to stop; and what it says last is told.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_daemon_that_stops() -> Result<()> {
    ended_with_the_daemon(|daemon| {
        daemon.signal(Signal::TERM)?;
        daemon.finish()?;
        ensure!(daemon.log().contains("the daemon stops, killed"), "{}", daemon.log());
        Ok(())
    })?;
    scene(|s| {
        let hook = HookScript::new(s, "hook", "cat | say \"$1\"")?;
        let daemon = s.daemon_with(&with(&hook, "events = [\"stopping\"]"))?;
        daemon.signal(Signal::TERM)?;
        daemon.finish()?;
        let told: Value =
            serde_json::from_slice(&fs::read(hook.at("stopping")).context("nothing was told")?)?;
        ensure!(told["event"] == "stopping" && told["seq"] == 1, "{told}");
        Ok(())
    })
}

fn ended_with_the_daemon(end: impl Fn(&Daemon) -> Result<()>) -> Result<()> {
    scene(|s| {
        let script = r#"
setsid sh -c 'setsid sleep 1000 & echo $! $$ > "$0"; sleep 1001' "$d/.pids" &
while [ ! -s "$d/.pids" ]; do :; done
who $$ $(cat "$d/.pids") | say pids
sleep 1002
"#;
        let hook = HookScript::new(s, "hook", script)?;
        let daemon = s.daemon_with(&with(&hook, "events = [\"ready\"]"))?;
        let processes = hook.processes("pids")?;
        ensure!(processes.len() == 3, "{processes:?}");
        let runner =
            processes.first().and_then(|one| one.parent()).and_then(Identity::of).context("no runner")?;
        end(&daemon)?;
        all_gone(&processes)?;
        all_gone(&[runner])
    })
}
