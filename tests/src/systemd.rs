//! Real systemd for tests: this machine's own, booted as pid 1 of its own namespaces inside the scene's
//! cgroup, with user managers below it. The daemon under test sees its processes from outside, by the host's
//! process ids.
//!
//! It ends with its scene. If the test is killed, a helper process of the scene ends it.

use std::{
    ffi::OsStr,
    fs,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use anyhow::{Context, Result, ensure};

use crate::{
    host::{Identity, output, within},
    scene::Scene,
};

const BOOT: &str = include_str!("../stage/boot.sh");

/// The id of an ordinary user, who is called `scene` inside.
pub const USER: u32 = 54321;

/// How cgroups are mounted inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Version 2 only, as in current distributions.
    V2,
    /// Version 1 for the service manager, and version 2 next to it.
    Hybrid,
}

/// A running system.
#[derive(Clone, Debug)]
pub struct System {
    /// Its pid 1.
    pub init: Identity,
    /// The cgroup path of its units, as the host sees it.
    pub root: String,
}

/// A service manager of a system: the system's own, or a user's.
#[derive(Clone, Debug)]
pub struct Manager {
    pub system: System,
    user: Option<u32>,
}

impl System {
    /// Boots a system and waits until it is up.
    pub(crate) fn boot(scene: &Scene, name: &str, layout: Layout) -> Result<Self> {
        let script = scene.folder().join("boot.sh");
        fs::write(&script, BOOT).with_context(|| format!("write {}", script.display()))?;
        let top = scene.folder().join("roots").join(name);
        fs::create_dir_all(&top).with_context(|| format!("make {}", top.display()))?;
        let log = fs::File::create(scene.folder().join(format!("{name}.log")))?;
        let hybrid = layout == Layout::Hybrid;
        let (root, mut command) = scene.command_in(name, hybrid, "/usr/bin/unshare")?;
        command
            .args([
                "--pid",
                "--fork",
                "--kill-child",
                "--mount",
                "--propagation",
                "private",
                "--uts",
                "--ipc",
            ])
            .args(["--net", "--cgroup", "setsid", "bash"])
            .args([script.as_os_str(), top.as_os_str(), scene.folder().as_os_str(), OsStr::new(name)])
            .arg(if hybrid { "hybrid" } else { "v2" })
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let said = || fs::read_to_string(scene.folder().join(format!("{name}.log"))).unwrap_or_default();
        let unshare = scene.spawn(&mut command)?;
        let first = || unshare.children().first().copied();
        let init = within("a first process", first).with_context(said)?;
        let system = Self { init, root };
        let up = || {
            if !init.alive() {
                return Some(false);
            }
            // Before this, another systemd could answer.
            system.path("/run/systemd/private").exists().then_some(())?;
            let state = system.run(&["systemctl", "is-system-running"]).ok()?;
            let state = String::from_utf8_lossy(&state.stdout).trim().to_owned();
            matches!(state.as_str(), "running" | "degraded").then_some(true)
        };
        ensure!(within(&format!("{name} is up"), up).with_context(said)?, "{name} did not boot: {}", said());
        Ok(system)
    }

    /// The manager of the system.
    pub fn manager(&self) -> Manager {
        Manager { system: self.clone(), user: None }
    }

    /// The manager of a user (0 or [`USER`]), who logs in.
    pub fn user_manager(&self, uid: u32) -> Result<Manager> {
        self.manager().systemctl(&["start", &format!("user@{uid}.service")])?;
        Ok(Manager { system: self.clone(), user: Some(uid) })
    }

    /// A command that runs inside as root.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("/usr/bin/nsenter");
        command
            .arg("-t")
            .arg(self.init.pid.to_string())
            .args(["-m", "-u", "-i", "-n", "-C", "-p", "--", program]);
        command
    }

    /// Runs a command inside and returns its output.
    pub fn run(&self, words: &[&str]) -> Result<Output> {
        let (program, args) = words.split_first().context("an empty command line")?;
        output(self.command(program).args(args))
    }

    /// The path outside for a path inside.
    pub fn path(&self, inside: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{inside}", self.init.pid))
    }

    /// The end of its journal, for the report of a failure.
    fn journal(&self) -> String {
        let journal = self.run(&["journalctl", "--no-pager", "-n", "40", "-o", "short-monotonic"]);
        journal.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default()
    }
}

impl Manager {
    /// The cgroup path of its units, as the host sees it.
    pub fn root(&self) -> String {
        let root = &self.system.root;
        match self.user {
            Some(uid) => format!("{root}/user.slice/user-{uid}.slice/user@{uid}.service"),
            None => root.clone(),
        }
    }

    /// The user of a user manager.
    pub fn user(&self) -> Option<u32> {
        self.user
    }

    /// Adds a unit, or a drop-in `UNIT.d/NAME.conf`.
    pub fn add(&self, unit: &str, text: &str) -> Result<()> {
        let folder = if self.user.is_some() { "user" } else { "system" };
        let path = self.system.path(&format!("/etc/systemd/{folder}/{unit}"));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        }
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        self.systemctl(&["daemon-reload"]).map(drop)
    }

    /// Runs systemctl and returns its output.
    pub fn systemctl(&self, args: &[&str]) -> Result<String> {
        let mut command = match self.user {
            None => self.system.command("systemctl"),
            Some(uid) => {
                let mut command = self.system.command("setpriv");
                command.args([format!("--reuid={uid}"), format!("--regid={uid}"), "--clear-groups".into()]);
                command.args(["env", &format!("XDG_RUNTIME_DIR=/run/user/{uid}"), "systemctl", "--user"]);
                command
            }
        };
        let output = output(command.args(args))?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "systemctl {args:?}: {error}\n{}", self.system.journal());
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The status of a unit and the end of the journal, for the report of a failure.
    pub fn status(&self, unit: &str) -> String {
        let status = self.system.run(&["systemctl", "status", "--no-pager", "--full", unit]);
        let status = status.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
        format!("{status}\n{}", self.system.journal())
    }

    pub fn property(&self, unit: &str, name: &str) -> Result<String> {
        self.systemctl(&["show", "--property", name, "--value", unit])
    }

    /// The invocation id of `unit`; empty if it is stopped.
    pub fn invocation(&self, unit: &str) -> Result<String> {
        self.property(unit, "InvocationID")
    }
}
