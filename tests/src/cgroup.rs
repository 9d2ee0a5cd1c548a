//! The fence around a scene: whatever is started in this cgroup stays in it, double forks, new sessions and
//! cleared environments included, so that all of it can be found and ended.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::host::{Identity, within};

/// A cgroup (v2) made for one scene.
#[derive(Debug)]
pub(crate) struct Cgroup {
    path: PathBuf,
}

const PREFIX: &str = "orphand-scene-";

impl Cgroup {
    /// Make one, after ending what test runs that were killed left behind.
    pub(crate) fn create() -> Result<Self> {
        let root = mount_point()?;
        for entry in fs::read_dir(&root)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                // The lock is ours, so no other scene is on: this one has lost its owner.
                drop(Self { path: entry.path() });
            }
        }
        let path = root.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("make the cgroup {}", path.display()))?;
        Ok(Self { path })
    }

    /// The file that takes the numbers of processes to move in.
    pub(crate) fn procs(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }

    /// Who lives in it.
    pub(crate) fn members(&self) -> Vec<Identity> {
        let text = fs::read_to_string(self.procs()).unwrap_or_default();
        text.lines().filter_map(|l| Identity::of(l.parse().ok()?)).filter(|i| i.alive()).collect()
    }

    fn has(&self, one: Identity) -> bool {
        self.members().contains(&one)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Asked again before the signal: the number may have left the group with its process meanwhile.
        let emptied = within("an empty cgroup", || {
            let members = self.members();
            for one in members.iter().filter(|&&m| self.has(m)) {
                let _ = one.signal(Signal::KILL);
            }
            members.is_empty().then_some(())
        });
        let removed = within("a removed cgroup", || fs::remove_dir(&self.path).ok());
        if let Err(error) = emptied.and(removed) {
            eprintln!("orphand tests: {}: {error:#}", self.path.display());
        }
    }
}

/// Where the unified hierarchy is mounted (the only one, or beside those of version 1).
fn mount_point() -> Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").context("read /proc/self/mounts")?;
    for line in mounts.lines() {
        if let [_, at, "cgroup2", ..] = *line.split(' ').collect::<Vec<_>>() {
            return Ok(at.into());
        }
    }
    bail!("no cgroup2 is mounted: mount -t cgroup2 none /sys/fs/cgroup, then run the tests again")
}
