//! What is outside of the daemon and does not answer, or does not read.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use rustix::{
    fs::{CWD, Mode, mkfifoat},
    process::Signal,
};
use tests::{Daemon, HookScript, Launch, neighbours::Honest, scene, within};

use super::GRACE;

/// A name service that does not answer: getent(1) never ends.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_name_service_that_does_not_answer_holds_no_verdict() -> Result<()> {
    scene(|s| {
        let hook = HookScript::new(s, "hook", "")?;
        let daemon =
            s.daemon_with(&Launch { config: hook.config(""), own_mounts: true, ..Launch::default() })?;
        let namespace = |of: &str| fs::read_link(format!("/proc/{of}/ns/mnt"));
        ensure!(
            namespace("self")? != namespace(&daemon.id.pid.to_string())?,
            "the daemon shares the host's mounts: nothing is mounted there"
        );
        let honest = Honest::at_work(s, "honest")?;
        // The daemon looks it up in the host's own folders: a mount namespace of its own has another one.
        let stuck = s.folder().join("getent");
        fs::write(&stuck, "#!/bin/sh\nexec sleep 60\n")?;
        fs::set_permissions(&stuck, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        let config = s.folder().join("daemon0/config.toml");
        let getent = within("getent", || {
            ["/usr/bin/getent", "/bin/getent"].into_iter().find(|path| fs::metadata(path).is_ok())
        })?;
        let pid = daemon.id.pid.to_string();
        let mut bind = Command::new("/usr/bin/nsenter");
        bind.args(["--mount", "-t", &pid, "mount", "--bind"]).arg(&stuck).arg(getent);
        ensure!(bind.status().context("bind getent")?.success(), "cannot bind {getent}");
        fs::write(&config, hook.config("user = 'nobody'"))?;
        daemon.signal(Signal::HUP)?;
        let took = honest.judged_in_time(&daemon, GRACE)?;
        within("the word of it", || daemon.log().contains("did not answer within").then_some(()))?;
        println!("a name service that hangs: judged after {took:?}");
        Ok(())
    })
}

/// A pipe as standard error that nobody reads, and the log at its loudest.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_log_that_nobody_reads_holds_no_verdict() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch { log: "trace", stderr_unread: true, ..Launch::default() })?;
        for n in 0..6 {
            Honest::at_work(s, &format!("honest{n}"))?.judged_in_time(&daemon, GRACE)?;
            // Each refused reload is a line of some length.
            fs::write(s.folder().join("daemon0/config.toml"), format!("{} = 1\n", "x".repeat(20_000)))?;
            daemon.signal(Signal::HUP)?;
            s.mark(&daemon)?;
        }
        Ok(())
    })
}

/// A recording into a pipe that nobody reads.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_recording_that_nobody_reads_holds_no_verdict() -> Result<()> {
    scene(|s| {
        let pipe = s.folder().join("pipe");
        mkfifoat(CWD, &pipe, Mode::from_raw_mode(0o600)).context("make a pipe")?;
        // Both ends, so that it can be opened, and nobody who reads.
        let _held = fs::File::options().read(true).write(true).open(&pipe)?;
        let daemon = s.daemon_with(&Launch { record: Some("../pipe"), ..Launch::default() })?;
        for n in 0..6 {
            Honest::at_work(s, &format!("honest{n}"))?.judged_in_time(&daemon, GRACE)?;
        }
        Ok(())
    })
}

/// A file system of its own that can be made to hang: frozen, it takes no write(2), and who writes waits.
struct Disk(PathBuf);

impl Disk {
    fn at(place: &Path, image: &Path) -> Result<Self> {
        fs::create_dir_all(place)?;
        fs::File::create(image)?.set_len(16 << 20)?;
        run(Command::new("/usr/sbin/mkfs.ext4").arg("-q").arg(image))?;
        run(Command::new("/usr/bin/mount").args(["-o", "loop"]).arg(image).arg(place))?;
        Ok(Self(place.to_owned()))
    }

    fn freeze(&self, how: &str) -> Result<()> {
        run(Command::new("/usr/sbin/fsfreeze").arg(how).arg(&self.0))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Nothing can be done about a failure, and thawed it is already after a test that went well.
        let _ = Command::new("/usr/sbin/fsfreeze").arg("--unfreeze").arg(&self.0).output();
        let _ = Command::new("/usr/bin/umount").arg("--lazy").arg(&self.0).output();
    }
}

fn run(command: &mut Command) -> Result<()> {
    let done = tests::output(command)?;
    ensure!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

/// The disk of the store hangs: everybody is judged, it is told, and what was told meanwhile is in the store when it is over.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_disk_that_hangs_holds_no_verdict() -> Result<()> {
    scene(|s| {
        let disk = Disk::at(&s.folder().join("daemon0/state"), &s.folder().join("disk"))?;
        let daemon = s.daemon_with(&Launch::default())?;
        let honest = Honest::at_work(s, "honest")?;
        daemon.wait_for("server_started", honest.server())?;
        let blind =
            |status: &serde_json::Value| status["blind"].to_string().contains("the store does not answer");
        // A slow disk does the same, and for a moment.
        within("it answers", || (!blind(&daemon.ask(&["status"]).ok()?)).then_some(()))?;
        let told = |daemon: &Daemon| daemon.log().matches("has not answered for 250ms").count();
        let before = told(&daemon);
        disk.freeze("--freeze")?;
        let took = honest.judged_in_time(&daemon, GRACE)?;
        for n in 0..4 {
            Honest::at_work(s, &format!("honest{n}"))?.judged_in_time(&daemon, GRACE)?;
        }
        // At once, or when it has lasted for 5 s if the disk was slow a moment ago.
        within("a line of it", || (told(&daemon) > before).then_some(()))?;
        ensure!(told(&daemon) == before + 1, "{}", daemon.log());
        let status = daemon.ask(&["status"])?;
        ensure!(blind(&status), "not told: {}", status["blind"]);
        disk.freeze("--unfreeze")?;
        within("the end of it", || (!blind(&daemon.ask(&["status"]).ok()?)).then_some(()))?;
        let history = daemon.history()?;
        let orphans = history["orphans"].as_array().map_or(0, Vec::len);
        ensure!(orphans == 5, "{orphans} orphans in the store: {history}");
        daemon.finish()?;
        println!("a disk that hangs: judged after {took:?}");
        Ok(())
    })
}
