//! Control groups: the systemd service of a process, from the path of its group (pure), and what their file system shows
//! of a group.
//!
//! systemd gives each unit a control group below its slices (`/system.slice/x.service`). A manager below
//! another one (that of a user or a container) repeats this layout below its own root. The path above the
//! first slice or unit is the root of the manager.

use std::{collections::BTreeSet, fs, os::unix::fs::MetadataExt as _};

use orphand_core::model::{Unit, user_of_manager};

/// A unit, and the place of the manager that runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lodging {
    pub unit: Unit,
    hierarchy: Hierarchy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hierarchy {
    /// The hierarchy that systemd mounts for itself, `name=systemd`: cgroup version 1 and hybrid hosts.
    Named,
    /// The hierarchy of cgroup version 2: `0::`.
    Unified,
}

impl Lodging {
    /// The unit of a process with this text of `/proc/PID/cgroup`. The result is `None` if the process is
    /// in no service: scopes, sessions, the own group of a manager and the root are no services.
    ///
    /// Both hierarchies are read. systemd keeps its units in one of them, and a container may use the other
    /// one. If both name a unit, the one of `name=systemd` counts, unless the other path leads further
    /// down.
    pub fn parse(cgroup: &str) -> Option<Self> {
        let (named, unified) = (path(cgroup, Hierarchy::Named), path(cgroup, Hierarchy::Unified));
        let named_unit = named.and_then(unit);
        let deeper = || {
            let rest = unified?.strip_prefix(named?)?;
            (rest.starts_with('/') && unit(unified?).is_some()).then_some(())
        };
        let hierarchy =
            if named_unit.is_none() || deeper().is_some() { Hierarchy::Unified } else { Hierarchy::Named };
        let unit = match hierarchy {
            Hierarchy::Named => named_unit?,
            Hierarchy::Unified => unit(unified?)?,
        };
        Some(Self { unit, hierarchy })
    }

    /// The units of all kinds that a process with this text of `/proc/PID/cgroup` is in, each below the one before: a
    /// session's scope; the service of a user's manager, and a scope of that; the scope of a container, and a service in it.
    pub fn all(cgroup: &str) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for hierarchy in [Hierarchy::Named, Hierarchy::Unified] {
            for unit in path(cgroup, hierarchy).into_iter().flat_map(|path| walk(path).1) {
                if all.iter().all(|other| other.unit != unit) {
                    all.push(Self { unit, hierarchy });
                }
            }
        }
        all
    }

    /// Where a process with this text of `/proc/PID/cgroup` is among services and scopes, as text to be compared: the
    /// path of the innermost one in each hierarchy; empty outside of them.
    pub fn place(cgroup: &str) -> String {
        let innermost = |path: &str| {
            let mut end = None;
            let mut at = 0;
            for raw in path.split_inclusive('/') {
                at += raw.len();
                if matches!(kind(raw.trim_end_matches('/')), Kind::Service | Kind::Scope) {
                    end = Some(at);
                }
            }
            end.and_then(|end| path.get(..end)).unwrap_or_default().trim_end_matches('/').to_owned()
        };
        let [named, unified] = [Hierarchy::Named, Hierarchy::Unified]
            .map(|hierarchy| path(cgroup, hierarchy).map(innermost).unwrap_or_default());
        if named == unified { named } else { format!("{named} {unified}").trim().to_owned() }
    }

    /// Whether a process with this text of `/proc/PID/cgroup` is in the group of the unit's manager:
    /// `init.scope` below the manager's root.
    pub fn is_managed_from(&self, cgroup: &str) -> bool {
        path(cgroup, self.hierarchy).and_then(|path| path.strip_prefix(self.unit.manager.as_str()))
            == Some("/init.scope")
    }
}

/// The names of the slices above a process with this text of `/proc/PID/cgroup`, in both hierarchies.
pub fn slices(cgroup: &str) -> Vec<String> {
    let paths = [Hierarchy::Named, Hierarchy::Unified].into_iter().filter_map(|one| path(cgroup, one));
    let names: BTreeSet<&str> = paths.flat_map(|path| path.split('/')).collect();
    names.into_iter().filter(|name| matches!(kind(name), Kind::Slice)).map(str::to_owned).collect()
}

/// A line `ID:CONTROLLERS:PATH`: the controllers, which are none for version 2, and the path.
pub(super) fn group(line: &str) -> Option<(&str, &str)> {
    let (id, rest) = line.split_once(':')?;
    rest.split_once(':').filter(|(controllers, _)| id == "0" || !controllers.is_empty())
}

/// The path in this hierarchy. The kernel appends ` (deleted)` to the path of a group that was removed while it still
/// had zombies.
fn path(cgroup: &str, hierarchy: Hierarchy) -> Option<&str> {
    let wanted = if hierarchy == Hierarchy::Named { "name=systemd" } else { "" };
    let (_, path) = cgroup.lines().filter_map(group).find(|(controllers, _)| *controllers == wanted)?;
    Some(path.strip_suffix(" (deleted)").unwrap_or(path))
}

/// The state of a walk down a path, after one component.
enum At<'a> {
    /// Above the first slice or unit.
    Above,
    /// In slices of the manager at this root.
    Slices(&'a str),
    /// In a service. Only this state yields a unit at the end of the path.
    Service { manager: &'a str, name: &'a str },
    /// In something that is no service: a scope, a mount, a group that no manager made.
    Other,
}

/// The service at the end of the path.
fn unit(path: &str) -> Option<Unit> {
    match walk(path).0 {
        At::Service { manager, name } => Some(Unit { manager: manager.to_owned(), name: name.to_owned() }),
        At::Above | At::Slices(_) | At::Other => None,
    }
}

/// Where the path ends, and the services and scopes on it that managers made.
fn walk(path: &str) -> (At<'_>, Vec<Unit>) {
    let (mut at, mut units) = (At::Above, Vec::new());
    let mut end = 0;
    for raw in path.strip_prefix('/').into_iter().flat_map(|path| path.split('/')) {
        // The path before this component. It is the root of a manager whose layout starts here.
        let above = path.get(..end).unwrap_or_default();
        end += 1 + raw.len();
        // `cg_unescape()` in systemd's basic/cgroup-util.c: systemd puts a `_` before a name that the
        // kernel uses itself (`cgroup.procs`).
        let name = raw.strip_prefix('_').unwrap_or(raw);
        let mut made =
            |manager: &str| units.push(Unit { manager: manager.to_owned(), name: name.to_owned() });
        at = match (at, kind(name)) {
            // A slice below a unit starts the layout of another manager.
            (At::Above | At::Service { .. } | At::Other, Kind::Slice) => At::Slices(above),
            (slices @ At::Slices(_), Kind::Slice) => slices,
            (At::Above, Kind::Service) => {
                made(above);
                At::Service { manager: above, name }
            }
            (At::Above, Kind::Other) => At::Above,
            (At::Slices(manager), Kind::Service) => {
                made(manager);
                At::Service { manager, name }
            }
            // `cg_path_get_user_unit()`: a user's manager before version 247 keeps services outside of
            // slices, too.
            (At::Service { name: outer, .. }, Kind::Service) if user_of_manager(outer).is_some() => {
                made(above);
                At::Service { manager: above, name }
            }
            (At::Slices(manager), Kind::Scope) => {
                made(manager);
                At::Other
            }
            (_, Kind::Scope) | (At::Slices(_), Kind::Other) | (At::Other, Kind::Service | Kind::Other) => {
                At::Other
            }
            // A group that the service made for itself.
            (service @ At::Service { .. }, Kind::Service | Kind::Other) => service,
        };
    }
    (at, units)
}

enum Kind {
    Slice,
    Service,
    Scope,
    Other,
}

/// The kind of unit that a name denotes, if it is a valid unit name: `unit_name_is_valid()` in
/// basic/unit-name.c.
fn kind(name: &str) -> Kind {
    let Some((prefix, suffix)) = name.rsplit_once('.') else { return Kind::Other };
    let allowed = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    let is_template = prefix.ends_with('@') && !prefix.trim_end_matches('@').contains('@');
    if prefix.is_empty()
        || prefix.starts_with('@')
        || is_template
        || name.len() > 255
        || !name.chars().all(allowed)
    {
        return Kind::Other;
    }
    match suffix {
        "slice" => Kind::Slice,
        "service" => Kind::Service,
        "scope" => Kind::Scope,
        _ => Kind::Other,
    }
}

/// Where the hierarchies are mounted: version 2, its place on hybrid hosts, and version 1.
const UNIFIED: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
const MEMORY: &str = "/sys/fs/cgroup/memory";
const FREEZER: &str = "/sys/fs/cgroup/freezer";
const LEGACY: &str = "/sys/fs/cgroup";

/// Whether version 1 has frozen the group of a process with this text of `/proc/PID/cgroup`, or may have. It cannot freeze the
/// topmost one.
pub(super) fn is_frozen(cgroup: &str) -> bool {
    let mut groups = cgroup.lines().filter_map(group);
    let own =
        groups.find(|(controllers, _)| controllers.split(',').any(|controller| controller == "freezer"));
    own.is_some_and(|(_, path)| {
        path != "/"
            && fs::read_to_string(format!("{FREEZER}{path}/freezer.state"))
                .map_or(true, |state| state.trim() != "THAWED")
    })
}

/// The memory in bytes of the control group of a process with this text of `/proc/PID/cgroup`, without inactive page
/// cache, which the kernel takes back when it wants to. `None` if it cannot be read.
pub fn memory_of(cgroup: &str) -> Option<u64> {
    cgroup.lines().find_map(|line| {
        let (controllers, path) = group(line)?;
        if controllers.split(',').any(|controller| controller == "memory") {
            return read(MEMORY, path, "memory.usage_in_bytes", "total_inactive_file ");
        }
        let mut mounts = UNIFIED.iter().filter(|_| controllers.is_empty());
        mounts.find_map(|mount| read(mount, path, "memory.current", "inactive_file "))
    })
}

/// The user who owns the control group with this line of `/proc/PID/cgroup`: only this user and root make groups in it.
/// `None` if it cannot be seen.
pub fn owner_of_group(line: &str) -> Option<u32> {
    let (controllers, path) = group(line)?;
    let owner = |mount: &str| Some(fs::symlink_metadata(format!("{mount}{path}")).ok()?.uid());
    if controllers.is_empty() {
        // On hybrid hosts the first place is only the directory of the other hierarchies.
        let is_mount = |mount: &&str| fs::exists(format!("{mount}/cgroup.procs")).is_ok_and(|there| there);
        return UNIFIED.iter().copied().find(is_mount).and_then(owner);
    }
    let name = controllers.strip_prefix("name=").unwrap_or(controllers);
    owner(&format!("{LEGACY}/{name}"))
}

fn read(mount: &str, path: &str, current: &str, cache: &str) -> Option<u64> {
    let text = |name: &str| fs::read_to_string(format!("{mount}{path}/{name}")).ok();
    let current: u64 = text(current)?.trim().parse().ok()?;
    let stat = text("memory.stat")?;
    let cache = stat.lines().find_map(|line| line.strip_prefix(cache)).and_then(|line| line.parse().ok());
    Some(current.saturating_sub(cache.unwrap_or_default()))
}

#[cfg(test)]
mod tests;
