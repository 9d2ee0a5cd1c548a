//! Bad input and bad surroundings: one clear line, an exit code of the contract, nothing lost.

use std::{
    fs,
    io::Read as _,
    process::{Command, Output, Stdio},
};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use tests::{Identity, Part, Scene, orphand, output, scene};

/// The daemon's command line with files of its own. It ends with the test: one that is not refused would go on.
fn run(s: &Scene, args: &[&str]) -> Result<Command> {
    let mut command = Command::new("/usr/bin/setpriv");
    command
        .args(["--pdeathsig", "KILL"])
        .arg(orphand()?)
        .args(["run", "--format", "json", "--below", s.below()])
        .args(args);
    command.current_dir(s.folder()).stdin(Stdio::null());
    if !args.contains(&"--lock") {
        command.args(["--lock", "another-lock"]);
    }
    if !args.contains(&"--listen") {
        command.args(["--listen", "none"]);
    }
    if !args.contains(&"--socket") {
        command.args(["--socket", "another.sock", "--state-dir", "another-state"]);
    }
    Ok(command)
}

/// It printed nothing, said one line that has all of `words` in it, and ended with `code`.
fn refused(output: &Output, code: i32, words: &[&str]) -> Result<()> {
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(code), "ended with {} instead of {code}: {told}", output.status);
    ensure!(output.stdout.is_empty(), "stdout: {}", String::from_utf8_lossy(&output.stdout));
    ensure!(told.lines().count() == 1, "not one line: {told}");
    for word in words {
        ensure!(told.contains(word), "no {word:?} in {told:?}");
    }
    Ok(())
}

/// The same with a limit of the kernel's, as prlimit(1) takes it.
fn limited(limit: &str, command: &Command) -> Command {
    let mut within = Command::new("/usr/bin/prlimit");
    within.arg(limit).arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    within.current_dir(command.get_current_dir().unwrap_or_else(|| ".".as_ref()));
    within
}

/// Too few files that may be open are refused before anything fails for want of them. A limit of their size is a full disk.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn limits_that_the_daemon_was_started_with() -> Result<()> {
    scene(|s| {
        let few = output(&mut limited("--nofile=8:40", &run(s, &[])?))?;
        refused(&few, 1, &["40 files", "LimitNOFILE"])?;
        let mut small = limited("--fsize=8192", &run(s, &[])?).stdout(Stdio::piped()).spawn()?;
        let mut out = small.stdout.take().context("no stdout")?;
        ensure!(out.read(&mut [0])? == 1, "it said nothing");
        Identity::of(small.id()).context("it has ended")?.signal(Signal::TERM)?;
        ensure!(small.wait()?.success(), "it ended badly");
        Ok(())
    })
}

/// A second daemon is refused and names the first; when the first has stopped the place is free.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_second_daemon() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let lock = s.folder().join("daemon0/lock");
        let lock = ["--lock", lock.to_str().context("a path that is not UTF-8")?];
        let told = output(&mut run(s, &lock)?)?;
        refused(&told, 1, &[&daemon.id.pid.to_string()])?;
        daemon.signal(Signal::TERM)?;
        daemon.id.wait_gone()?;
        let mut next = run(s, &lock)?.stdout(Stdio::piped()).spawn()?;
        let mut out = next.stdout.take().context("no stdout")?;
        ensure!(out.read(&mut [0])? == 1, "it said nothing");
        let id = Identity::of(next.id()).context("it has no identity")?;
        id.signal(Signal::TERM)?;
        ensure!(next.wait()?.success(), "it did not stop well");
        Ok(())
    })
}

/// Without root and without capabilities it says what it lacks.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn no_privilege() -> Result<()> {
    scene(|s| {
        // The binary may lie where nobody can reach it.
        let copy = s.folder().join("orphand");
        fs::copy(orphand()?, &copy)?;
        let nobody =
            ["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"];
        let command = ["run", "--format", "json", "--lock", "/tmp/orphand-nobody.lock"];
        let told = output(Command::new("/usr/bin/setpriv").args(nobody).arg(&copy).args(command))?;
        refused(&told, 1, &["root", "CAP_BPF"])
    })
}

/// Each right without which nothing could be loaded, proven or ended is named. Who only observes ends nothing.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_right_is_missing() -> Result<()> {
    scene(|s| {
        let without = |dropped: &str, flags: &[&str]| {
            let (command, mut less) = (run(s, flags)?, Command::new("/usr/bin/setpriv"));
            less.arg(format!("--bounding-set={dropped}")).arg(command.get_program()).args(command.get_args());
            less.current_dir(s.folder()).stdin(Stdio::null());
            Ok::<_, anyhow::Error>(less)
        };
        for (dropped, named) in [
            ("-bpf,-sys_admin", "CAP_BPF"),
            ("-perfmon,-sys_admin", "CAP_PERFMON"),
            ("-sys_ptrace", "CAP_SYS_PTRACE"),
            ("-kill", "CAP_KILL"),
            ("-dac_read_search,-dac_override", "CAP_DAC_READ_SEARCH"),
        ] {
            refused(&output(&mut without(dropped, &[])?)?, 1, &["orphand needs", named, "root"])?;
        }
        for (dropped, flags) in [("-dac_read_search", [].as_slice()), ("-kill", &["--observe"])] {
            let mut child = without(dropped, flags)?.stdout(Stdio::piped()).spawn()?;
            let said = child.stdout.take().context("no stdout")?.read(&mut [0])?;
            Identity::of(child.id()).context("it has ended")?.signal(Signal::TERM)?;
            ensure!(child.wait()?.success() && said == 1, "it did not run without {dropped}");
        }
        Ok(())
    })
}

/// In another PID namespace the kernel's numbers mean other processes. In another cgroup namespace no unit is seen, and so nothing
/// that is exempt by its unit. In another time namespace calls of a moment ago would seem to be of long ago.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn foreign_namespaces() -> Result<()> {
    const OWN: [(&[&str], &[&str]); 3] = [
        (&["--pid", "--fork", "--kill-child", "--mount-proc"], &["PID namespace"]),
        (&["--cgroup"], &["cgroup namespace", "--cgroupns=host"]),
        (&["--time", "--fork", "--monotonic", "1000000"], &["time namespace", "when a server was called"]),
    ];
    scene(|s| {
        for (own, words) in OWN {
            refused(&output(&mut unshared(s, own, "exec")?)?, 1, words)?;
        }
        let alone = output(
            Command::new("/usr/bin/unshare").arg("--cgroup").arg(orphand()?).args(["ps", "--no-daemon"]),
        )?;
        refused(&alone, 1, &["cgroup namespace", "--cgroupns=host"])
    })
}

/// The daemon's command line in namespaces of its own, after `before` in a shell.
fn unshared(s: &Scene, namespaces: &[&str], before: &str) -> Result<Command> {
    let places = format!("--below {} --lock lock --socket socket --state-dir state --listen none", s.below());
    let script = format!("{before} \"$0\" run --format json --grace 300ms {places}");
    let mut command = Command::new("/usr/bin/unshare");
    command.args(namespaces).args(["/bin/sh", "-c", &script]).arg(orphand()?).current_dir(s.folder());
    Ok(command)
}

/// A kernel that does not describe its types is told so.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_kernel_without_btf() -> Result<()> {
    scene(|s| {
        let told = output(&mut unshared(s, &["--mount"], "mount -t tmpfs none /sys/kernel/btf && exec")?)?;
        refused(&told, 1, &["BTF"])
    })
}

/// Where tracefs is not mounted it is mounted, or done without.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn tracefs_is_not_mounted() -> Result<()> {
    scene(|s| {
        let hide = "for m in /sys/kernel/tracing /sys/kernel/debug; do umount -R $m 2>/dev/null; done; exec";
        let mut child = unshared(s, &["--mount"], hide)?.stdout(Stdio::piped()).spawn()?;
        let mut out = child.stdout.take().context("no stdout")?;
        let said = out.read(&mut [0])?;
        Identity::of(child.id()).context("it has ended")?.signal(Signal::TERM)?;
        ensure!(child.wait()?.success() && said == 1, "it did not run");
        Ok(())
    })
}

/// SIGINT and SIGTERM: a last event, exit code 0, servers and agents untouched.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn told_to_stop() -> Result<()> {
    scene(|s| {
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        for signal in [Signal::INT, Signal::TERM] {
            let daemon = s.daemon()?;
            daemon.signal(signal)?;
            daemon.id.wait_gone()?;
            let last = daemon.wait("stopping", |e| e.kind() == "stopping")?;
            ensure!(
                last["servers"].as_u64() >= Some(1) && last["agents"].as_u64() >= Some(1),
                "{}",
                last.line
            );
        }
        ensure!(agent.id.alive() && server.id.alive(), "something went with the daemon");
        Ok(())
    })
}

/// The reader of stdout stalls while more is said than a pipe holds, and then goes away: verdicts and signals go on in time, and it
/// ends well when told.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_reader_that_stalls_and_goes_away() -> Result<()> {
    scene(|s| {
        let mut child =
            run(s, &["--grace", "100ms"])?.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let daemon = Identity::of(child.id()).context("it has no identity")?;
        let mut out = child.stdout.take().context("no stdout")?;
        out.read_exact(&mut [0])?;
        let leak = |name: &str| -> Result<()> {
            let agent = s.start(&Part::agent(format!("agent-{name}")))?;
            let padding = "x".repeat(900);
            let server = Part::server(name).through(move |c| {
                c.split(' ')
                    .map(str::to_owned)
                    .chain([padding.clone(), padding.clone(), padding.clone()])
                    .collect()
            });
            let server = agent.start(&server)?;
            agent.kill()?;
            server.id.wait_gone()
        };
        // A pipe holds 64 KiB, and each server is told of in four lines of 3 KB.
        for n in 0..8 {
            leak(&format!("stalled{n}"))?;
        }
        drop(out);
        leak("gone")?;
        daemon.signal(Signal::TERM)?;
        ensure!(child.wait()?.success(), "it did not end well");
        Ok(())
    })
}

/// Arguments that are not UTF-8 and arguments with terminal controls do no harm: they are masked, as are secrets.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn hostile_arguments() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server").through(|c| {
            // The shell makes the bytes: orders are JSON and cannot carry them.
            let hostile = "$(printf '\\377\\376\\033]0;owned\\007\\342\\200\\256')";
            ["/bin/sh", "-c", &format!("exec {c} \"{hostile}\" --api-key=s3cr3t-value")]
                .map(Into::into)
                .into()
        }))?;
        agent.kill()?;
        let reaped = daemon.reaped(&[server.id])?;
        let argv = reaped["server"]["processes"][0]["argv"].as_array().context("no argv")?;
        let argv: Vec<&str> = argv.iter().filter_map(|a| a.as_str()).collect();
        ensure!(argv.ends_with(&["***", "--api-key=***"]), "{argv:?}");
        ensure!(!reaped.line.contains("owned"), "{}", reaped.line);
        ensure!(!reaped.line.contains("s3cr3t-value"), "a secret was told: {}", reaped.line);
        Ok(())
    })
}

/// A trace that is none is refused; one that was cut, as by a daemon that was killed, is replayed as far as it goes, with a line that
/// says where it ends.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn foreign_and_truncated_traces() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        s.mark(&daemon)?;
        daemon.signal(Signal::TERM)?;
        daemon.id.wait_gone()?;
        let whole = fs::read(s.folder().join("daemon0/trace"))?;
        let cut = whole.get(..whole.len() - 20).context("a short trace")?;
        fs::write(s.folder().join("foreign"), "{\"hello\":1}\n")?;
        refused(&replay(s, "foreign")?, 1, &["foreign"])?;
        fs::write(s.folder().join("cut"), cut)?;
        let replayed = replay(s, "cut")?;
        let told = String::from_utf8_lossy(&replayed.stderr);
        ensure!(replayed.status.code() == Some(1), "ended with {}: {told}", replayed.status);
        let lines = cut.split(|&b| b == b'\n').count();
        ensure!(told.lines().count() == 1 && told.contains(&lines.to_string()), "no line number in {told:?}");
        ensure!(!replayed.stdout.is_empty(), "nothing was replayed");
        Ok(())
    })
}

fn replay(s: &Scene, trace: &str) -> Result<Output> {
    output(Command::new(orphand()?).arg("replay").arg(trace).current_dir(s.folder()))
}

/// A reader that has seen enough (`orphand man | head -1`) is no failure.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_reader_that_has_seen_enough() -> Result<()> {
    scene(|_| {
        for words in [&["man"][..], &["man", "config"], &["completions", "bash"], &["config", "default"]] {
            let (reader, writer) = std::io::pipe()?;
            drop(reader);
            let mut command = Command::new(orphand()?);
            let said =
                command.args(words).stdout(writer).stderr(Stdio::piped()).spawn()?.wait_with_output()?;
            let told = String::from_utf8_lossy(&said.stderr);
            ensure!(said.status.success() && told.is_empty(), "{words:?}: {}: {told}", said.status);
        }
        Ok(())
    })
}

/// What could not be written is said, whatever was asked for.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_full_disk_behind_standard_output() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        s.mark(&daemon)?;
        for words in [&["--help"][..], &["--version"], &["man"], &["events", "--state-dir", "daemon0/state"]]
        {
            let full = fs::File::options().write(true).open("/dev/full")?;
            let mut command = Command::new(orphand()?);
            command.args(words).current_dir(s.folder()).stdout(full).stderr(Stdio::piped());
            refused(
                &command.spawn()?.wait_with_output()?,
                1,
                &["cannot write to standard output", "No space"],
            )?;
        }
        Ok(())
    })
}

/// Whoever puts a link there would choose what root overwrites.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_recording_through_a_link() -> Result<()> {
    scene(|s| {
        let victim = s.folder().join("victim");
        fs::write(&victim, "{\"orphand_trace\":0}\nprecious\n")?;
        std::os::unix::fs::symlink(&victim, s.folder().join("link"))?;
        let told = output(&mut run(s, &["--record", "link"])?)?;
        refused(&told, 1, &["link is a link", "--record"])?;
        ensure!(fs::read_to_string(&victim)?.ends_with("precious\n"), "what the link names was overwritten");
        Ok(())
    })
}

/// Below a folder of another user he could put his own in the place of what root writes or reads: refused, in one line that says what,
/// why, and what to do.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn places_below_another_users_folder() -> Result<()> {
    scene(|s| {
        const OTHER: u32 = 54321;
        let theirs = s.folder().join("theirs");
        fs::create_dir_all(theirs.join("state"))?;
        fs::write(theirs.join("config.toml"), "")?;
        std::os::unix::fs::chown(&theirs, Some(OTHER), Some(OTHER))?;
        let path = |name: &str| theirs.join(name).to_string_lossy().into_owned();
        for (option, name) in [
            ("--lock", "lock"),
            ("--socket", "control.sock"),
            ("--state-dir", "state"),
            ("--state-dir", "none/yet"),
            ("--record", "trace"),
            ("--config", "config.toml"),
        ] {
            let place = path(name);
            let mut args = vec![option, &place];
            if option == "--socket" {
                args.extend(["--state-dir", "another-state"]);
            }
            if option == "--state-dir" {
                args.extend(["--socket", "another.sock"]);
            }
            let told = output(&mut run(s, &args)?)?;
            refused(&told, 1, &["theirs", "54321"]).with_context(|| format!("{option} {name}"))?;
        }
        let found: Vec<_> =
            fs::read_dir(&theirs)?.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
        ensure!(found.len() == 2, "something was made there: {found:?}");
        Ok(())
    })
}
