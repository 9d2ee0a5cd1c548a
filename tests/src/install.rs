//! orphand as it is installed: the unit with all of its sandbox, run by a real service manager as its own user,
//! in the host's PID namespace, with a real journald. See `stage/install.sh`.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    binary::orphand,
    event::Event,
    host::{Identity, output, within},
    scene::Scene,
};

const INSTALL: &str = include_str!("../stage/install.sh");

pub const UNIT: &str = "orphand.service";

/// Installed, and its service manager running. It ends with its scene.
#[derive(Debug)]
pub struct Install {
    /// The service manager.
    pub manager: Identity,
}

/// Settings that make tests quick.
const QUICK: &str = "grace = \"300ms\"\nlisten = \"none\"\n";

impl Install {
    /// An installation with these settings.
    pub fn quick(scene: &Scene) -> Result<Self> {
        let install = Self::new(scene)?;
        install.write("/etc/orphand/config.toml", QUICK)?;
        Ok(install)
    }

    /// Installs it and starts the service manager. The unit is not started yet.
    pub fn new(scene: &Scene) -> Result<Self> {
        let script = scene.folder().join("install.sh");
        fs::write(&script, INSTALL).with_context(|| format!("write {}", script.display()))?;
        let root = scene.folder().join("installed");
        fs::create_dir_all(&root).with_context(|| format!("make {}", root.display()))?;
        let log = fs::File::create(scene.folder().join("install.log"))?;
        let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging");
        let mut command = scene.command_for_manager("install", "/usr/bin/unshare")?;
        command
            .args(["--mount", "--propagation", "private", "bash"])
            .args([script.as_os_str(), root.as_os_str(), scene.folder().as_os_str()])
            .args([orphand()?.as_os_str(), packaging.as_os_str()])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let manager = scene.spawn(&mut command)?;
        let install = Self { manager };
        let said = || fs::read_to_string(scene.folder().join("install.log")).unwrap_or_default();
        // The system's bus is open to all users, a user's only to that user.
        let open = || {
            let notify = install.path("/run/systemd/notify");
            fs::set_permissions(&notify, fs::Permissions::from_mode(0o777)).ok()?;
            (install.systemctl(&["is-active", "scene.target"]).ok()? == "active").then_some(())
        };
        within("the service manager is up", || if manager.alive() { open().map(Ok) } else { Some(Err(())) })
            .with_context(said)?
            .ok()
            .with_context(|| format!("the service manager has ended: {}", said()))?;
        let start = format!("ExecStart=\nExecStart=/usr/bin/orphand run --below {}", scene.below());
        install.drop_in("below", &start)?;
        Ok(install)
    }

    /// The path outside for a path inside.
    pub fn path(&self, inside: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{inside}", self.manager.pid))
    }

    /// Writes a file inside that only its owner can write.
    pub fn write(&self, inside: &str, text: &str) -> Result<()> {
        let path = self.path(inside);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        }
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))
    }

    /// Adds a drop-in to the unit: lines for `[Service]`.
    pub fn drop_in(&self, name: &str, lines: &str) -> Result<()> {
        self.write(&format!("/etc/systemd/user/{UNIT}.d/{name}.conf"), &format!("[Service]\n{lines}\n"))?;
        self.systemctl(&["daemon-reload"]).map(drop)
    }

    /// A command that runs inside as root and sees the host's processes.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("/usr/bin/nsenter");
        command.args(["-t", &self.manager.pid.to_string(), "-m", "--", program]);
        command.env("XDG_RUNTIME_DIR", "/run");
        command
    }

    /// Runs a command inside and returns its output.
    pub fn run<A: AsRef<OsStr>>(&self, program: &str, args: &[A]) -> Result<String> {
        let output = output(self.command(program).args(args))?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{program}: {}: {error}", output.status);
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Runs systemctl and returns its output.
    pub fn systemctl(&self, args: &[&str]) -> Result<String> {
        self.run("systemctl", &[&["--user"], args].concat())
    }

    /// A property of the unit.
    pub fn property(&self, name: &str) -> Result<String> {
        self.systemctl(&["show", "--property", name, "--value", UNIT])
    }

    /// Start the unit: when this returns the daemon has said that it is ready. Gives its process.
    pub fn start(&self) -> Result<Identity> {
        self.systemctl(&["start", UNIT]).with_context(|| self.account())?;
        self.main()
    }

    /// The process of the daemon.
    pub fn main(&self) -> Result<Identity> {
        let pid = self.property("MainPID")?.parse()?;
        Identity::of(pid).with_context(|| format!("no process {pid}: {}", self.account()))
    }

    /// The journal entries that match, `journalctl(1)`, oldest first.
    pub fn journal(&self, matches: &[&str]) -> Result<Vec<Value>> {
        let args =
            [&["--directory=/run/log/journal", "--no-pager", "--quiet", "--all", "-o", "json"], matches];
        let text = self.run("journalctl", &args.concat())?;
        text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    /// The events in the journal.
    pub fn events(&self) -> Result<Vec<Event>> {
        let entries = self.journal(&["SYSLOG_IDENTIFIER=orphand"])?;
        let lines = entries.iter().filter_map(|entry| entry.get("ORPHAND_JSON")?.as_str());
        lines.map(|line| Event::parse(line.to_owned())).collect()
    }

    /// Waits for an event for which `wanted` holds; earlier events count.
    pub fn wait(&self, what: &str, wanted: impl Fn(&Event) -> bool) -> Result<Event> {
        let look = || self.events().ok()?.into_iter().find(|event| wanted(event));
        within(what, look).with_context(|| self.account())
    }

    /// Waits for the event `kind` about the server of `process`.
    pub fn wait_for(&self, kind: &str, process: Identity) -> Result<Event> {
        self.wait(&format!("{kind} of {process}"), |event| event.is(kind, process))
    }

    /// Status and log, for the report of a failure.
    pub fn account(&self) -> String {
        let args = ["--directory=/run/log/journal", "--no-pager", "-n", "60", "-o", "short-monotonic"];
        self.run("journalctl", &args).unwrap_or_else(|error| format!("{error:#}"))
    }
}
