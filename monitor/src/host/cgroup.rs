//! Which service a process lives in, by the path of its control group. Pure.
//!
//! systemd gives each unit a group below its slices (`/system.slice/x.service`), and a manager below another one (a user's, a
//! container's) repeats that layout below its own root. What lies above the first slice or unit is that root.

use orphand_core::model::Unit;

/// A unit and where its manager is to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lodging {
    /// The unit.
    pub unit: Unit,
    /// In which of the two hierarchies it was found.
    hierarchy: Hierarchy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hierarchy {
    /// Version 1 and hybrid: the one that systemd mounts for itself, `name=systemd`.
    Named,
    /// Version 2: `0::`.
    Unified,
}

impl Lodging {
    /// The unit of a process with this `/proc/PID/cgroup`. None outside of services: a scope, a session, a manager's own
    /// group and the root are no service, and of groups outside our cgroup namespace the path is not known.
    ///
    /// Both hierarchies are read: systemd keeps its units in one of them, and a container's may keep them in the other
    /// one. Where both name a unit it is that of `name=systemd`, unless the other path leads further down.
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

    /// Whether a process with this `/proc/PID/cgroup` lives where the unit's manager does: in `init.scope` below its root.
    pub fn is_managed_from(&self, cgroup: &str) -> bool {
        path(cgroup, self.hierarchy).and_then(|path| path.strip_prefix(self.unit.manager.as_str()))
            == Some("/init.scope")
    }
}

/// The path in this hierarchy: `ID:CONTROLLERS:PATH` a line. The kernel marks a group that was removed under its last zombies.
fn path(cgroup: &str, hierarchy: Hierarchy) -> Option<&str> {
    let path = cgroup.lines().find_map(|line| {
        let (id, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let is_it = match hierarchy {
            Hierarchy::Named => controllers == "name=systemd",
            Hierarchy::Unified => id == "0" && controllers.is_empty(),
        };
        is_it.then_some(path)
    })?;
    Some(path.strip_suffix(" (deleted)").unwrap_or(path))
}

/// Where a walk down a path has come to.
enum At<'a> {
    /// Above the first slice and unit.
    Above,
    /// In slices of the manager at this root.
    Slices(&'a str),
    /// In a service; it is the only place to end.
    Service { manager: &'a str, name: &'a str },
    /// In something that is no service: a scope, a mount, a group that no manager made.
    Other,
}

/// The service that a group belongs to.
fn unit(path: &str) -> Option<Unit> {
    let mut at = At::Above;
    let mut end = 0;
    for raw in path.strip_prefix('/')?.split('/') {
        // The path down to this component, which a manager found here has for its root.
        let above = path.get(..end)?;
        end += 1 + raw.len();
        // `cg_unescape()` in systemd's basic/cgroup-util.c: a name that the kernel has for itself (`cgroup.procs`) gets a `_`.
        let name = raw.strip_prefix('_').unwrap_or(raw);
        if name == ".." {
            return None;
        }
        at = match (at, kind(name)) {
            // Below a unit another manager's layout begins.
            (At::Above | At::Service { .. } | At::Other, Kind::Slice) => At::Slices(above),
            (slices @ At::Slices(_), Kind::Slice) => slices,
            (At::Above, Kind::Service) => At::Service { manager: above, name },
            (At::Above, Kind::Other) => At::Above,
            (At::Slices(manager), Kind::Service) => At::Service { manager, name },
            // `cg_path_get_user_unit()`: a user's manager before version 247 keeps services outside of slices too.
            (At::Service { name: outer, .. }, Kind::Service) if is_user_manager(outer) => {
                At::Service { manager: above, name }
            }
            (_, Kind::Scope) | (At::Slices(_), Kind::Other) | (At::Other, Kind::Service | Kind::Other) => {
                At::Other
            }
            // A group that the service made for itself.
            (service @ At::Service { .. }, Kind::Service | Kind::Other) => service,
        };
    }
    match at {
        At::Service { manager, name } => Some(Unit { manager: manager.to_owned(), name: name.to_owned() }),
        At::Above | At::Slices(_) | At::Other => None,
    }
}

enum Kind {
    Slice,
    Service,
    Scope,
    Other,
}

/// The kind of unit, if it is a name that systemd gives to one: `unit_name_is_valid()` in basic/unit-name.c.
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

/// `user@1000.service`
fn is_user_manager(service: &str) -> bool {
    let uid = service.strip_prefix("user@").and_then(|rest| rest.strip_suffix(".service"));
    uid.is_some_and(|uid| uid.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests;
