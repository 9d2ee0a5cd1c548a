//! The cgroup of a scene. Everything that is started in it stays in it, even after double forks, in new
//! sessions and without an environment, so it can be found and ended.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::host::{Identity, within};

/// A cgroup (v2) of one scene.
#[derive(Debug)]
pub(crate) struct Cgroup {
    path: PathBuf,
}

const PREFIX: &str = "orphand-scene-";

impl Cgroup {
    pub(crate) fn create() -> Result<Self> {
        /// How many there were in this process.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let root = mount_point()?;
        loop {
            // No name is the beginning of another one.
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = root.join(format!("{PREFIX}{:07}-{count:04}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                // Of a process with the same number in another PID namespace.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("make the cgroup {}", path.display()));
                }
            }
        }
    }

    /// Ends what killed test runs have left behind. The caller must be the only one that plays a scene.
    pub(crate) fn sweep() -> Result<()> {
        for entry in fs::read_dir(mount_point()?)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                drop(Self { path: entry.path() });
            }
        }
        Ok(())
    }

    /// Its name. It is the beginning of the names of all groups of the scene.
    pub(crate) fn name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// The file that moves a process into the group.
    pub(crate) fn procs(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }

    /// The file that ends all processes of the group if a 1 is written to it.
    pub(crate) fn killer(&self) -> PathBuf {
        self.path.join("cgroup.kill")
    }

    /// The processes in the group and in those below it.
    pub(crate) fn members(&self) -> Vec<Identity> {
        members_below(&self.path)
    }

    /// Creates a group below for a service manager. Returns its path below the mount point, as in
    /// /proc/PID/cgroup, and the files that move a process into it. `version1`: also in the hierarchy of
    /// systemd if version 1 is in use.
    pub(crate) fn room(&self, name: &str, version1: bool) -> Result<(String, Vec<PathBuf>)> {
        let mut rooms = vec![self.path.join(name)];
        if version1 {
            rooms.push(version1_of(&self.path).context(NO_VERSION_1)?.join(name));
        }
        for room in &rooms {
            fs::create_dir_all(room).with_context(|| format!("make the cgroup {}", room.display()))?;
        }
        Ok((format!("/{}/{name}", self.name()), rooms.iter().map(|r| r.join("cgroup.procs")).collect()))
    }

    /// Whether systemd uses version 1 on this host.
    pub(crate) fn has_version1(&self) -> bool {
        version1_of(&self.path).is_some()
    }

    /// Ends all its processes: at once if the kernel supports that (Linux 5.14), otherwise one by one.
    pub(crate) fn end(&self) -> Result<()> {
        within("an empty cgroup", || {
            let _ = fs::write(self.killer(), "1");
            let members = self.members();
            // Checked again before the signal, because the process may have left the group.
            for one in members.iter().filter(|&&m| self.members().contains(&m)) {
                let _ = one.signal(Signal::KILL);
            }
            members.is_empty().then_some(())
        })
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let ended = self.end();
        let removed = within("a removed cgroup", || {
            let version1 = version1_of(&self.path).is_none_or(|path| !path.exists() || remove(&path));
            (remove(&self.path) && version1).then_some(())
        });
        if let Err(error) = ended.and(removed) {
            eprintln!("orphand tests: {}: {error:#}", self.path.display());
        }
    }
}

const NO_VERSION_1: &str = "no hierarchy name=systemd of version 1 is mounted: this layout cannot be played on this host; \
    mount -t cgroup -o none,name=systemd none DIR makes one";

/// The groups directly below.
fn below(path: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path())
}

fn members_below(path: &Path) -> Vec<Identity> {
    let text = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    let here = text.lines().filter_map(|l| Identity::of(l.parse().ok()?)).filter(|i| i.alive());
    here.chain(below(path).flat_map(|group| members_below(&group))).collect()
}

/// Removes a group and those below. Returns whether that worked.
fn remove(path: &Path) -> bool {
    below(path).all(|group| remove(&group)) && fs::remove_dir(path).is_ok()
}

/// The same group in the hierarchy `name=systemd` of version 1, if that is mounted.
fn version1_of(path: &Path) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let root = mounts.lines().find_map(|line| match *line.split(' ').collect::<Vec<_>>() {
        [_, at, "cgroup", options, ..] if options.split(',').any(|o| o == "name=systemd") => Some(at),
        _ => None,
    })?;
    Some(Path::new(root).join(path.file_name()?))
}

/// The mount point of the unified hierarchy.
fn mount_point() -> Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").context("read /proc/self/mounts")?;
    for line in mounts.lines() {
        if let [_, at, "cgroup2", ..] = *line.split(' ').collect::<Vec<_>>() {
            return Ok(at.into());
        }
    }
    bail!("no cgroup2 is mounted: mount -t cgroup2 none /sys/fs/cgroup, then run the tests again")
}
