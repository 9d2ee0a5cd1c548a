//! Which systemd service a cgroup is, told from its path alone. Pure.
//!
//! Covers cgroup v1, hybrid and v2 layouts, delegated sub-cgroups, and managers below managers (a user's, a container's).

use crate::model::Unit;

/// The cgroup of a process that `/proc/PID/cgroup` tells and that systemd goes by: in its own named hierarchy (v1, hybrid), else
/// in the unified one, cgroups(7). Absent where there is neither, or where it lies outside of our cgroup namespace.
pub fn systemd_path(text: &str) -> Option<&str> {
    let line = |controllers: &str| {
        text.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (named, path) = rest.split_once(':')?;
            (named == controllers).then_some(path)
        })
    };
    let path = line("name=systemd").filter(|path| *path != "/").or_else(|| line(""))?;
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    (path.starts_with('/') && !path.split('/').any(|part| part == "..")).then_some(path)
}

/// The service that this cgroup belongs to. Scopes, sessions and managers themselves are none.
///
/// From the root down: what comes before the first slice is the manager's root (empty, or a container's); then slices; then the
/// unit; what is below it is delegated. A slice or `init.scope` below a unit begins another manager.
pub fn service(path: &str) -> Option<Unit> {
    let mut manager = None;
    let mut unit = None;
    let mut end = 0;
    for part in path.split('/').skip(1) {
        let begin = end;
        end += 1 + part.len();
        // `cg_escape()`: a name that the kernel would take for a file of its own gets a `_`.
        let name = part.strip_prefix('_').unwrap_or(part);
        if name.strip_suffix(".slice").is_some() || name == "init.scope" {
            if manager.is_none() || unit.is_some() {
                manager = path.get(..begin);
            }
            unit = (name == "init.scope").then_some(name);
        } else if unit.is_none() && manager.is_some() && is_unit(name) {
            unit = Some(name);
        }
    }
    let name = unit.filter(|name| name.strip_suffix(".service").is_some())?;
    Some(Unit { manager: manager?.to_owned(), name: name.to_owned() })
}

/// Units that have a cgroup of their own, systemd.unit(5).
fn is_unit(name: &str) -> bool {
    [".service", ".scope", ".socket", ".mount", ".swap"]
        .iter()
        .any(|kind| name.strip_suffix(kind).is_some_and(|stem| !stem.is_empty()))
}

/// Where the manager of a unit lives itself.
pub fn manager_path(unit: &Unit) -> String {
    format!("{}/init.scope", unit.manager)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_hierarchy_that_systemd_goes_by() {
        for (text, path) in [
            ("0::/system.slice/a.service\n", Some("/system.slice/a.service")),
            ("4:memory:/x\n1:name=systemd:/system.slice/a.service\n0::/\n", Some("/system.slice/a.service")),
            // Nobody uses it: the unified one counts.
            ("1:name=systemd:/\n0::/system.slice/a.service\n", Some("/system.slice/a.service")),
            ("0::/user.slice/x (deleted)\n", Some("/user.slice/x")),
            ("0::/../../system.slice/a.service\n", None),
            ("4:memory:/x\n", None),
            ("", None),
        ] {
            assert_eq!(systemd_path(text), path, "{text:?}");
        }
    }

    #[test]
    fn services_of_all_managers() {
        let user = "/user.slice/user-1000.slice/user@1000.service";
        for (path, expected) in [
            ("/system.slice/a.service", Some(("", "a.service"))),
            ("/system.slice/a.service/worker/3", Some(("", "a.service"))),
            ("/system.slice/system-a.slice/a@1.service", Some(("", "a@1.service"))),
            ("/system.slice/_cpu.service", Some(("", "cpu.service"))),
            (r"/system.slice/x\x2dy.service", Some(("", r"x\x2dy.service"))),
            (&format!("{user}/app.slice/b.service"), Some((user, "b.service"))),
            (&format!("{user}/app.slice/app-b.slice/b@2.service/sub"), Some((user, "b@2.service"))),
            (&format!("{user}/init.scope"), None),
            ("/user.slice/user-1000.slice/session-3.scope", None),
            ("/docker/0123/system.slice/a.service", Some(("/docker/0123", "a.service"))),
            (
                "/machine.slice/systemd-nspawn@m.service/payload/system.slice/a.service",
                Some(("/machine.slice/systemd-nspawn@m.service/payload", "a.service")),
            ),
            (
                "/system.slice/docker-0123.scope/system.slice/a.service",
                Some(("/system.slice/docker-0123.scope", "a.service")),
            ),
            ("/machine.slice/libpod-0123.scope/container", None),
            ("/system.slice", None),
            ("/system.slice/.service", None),
            ("/a.service", None),
            ("/init.scope", None),
            ("/", None),
            ("", None),
        ] {
            let unit = service(path);
            let found = unit.as_ref().map(|u| (u.manager.as_str(), u.name.as_str()));
            assert_eq!(found, expected, "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_text_ends(text in "(.|[/:_]|\\.slice|\\.service|init\\.scope|name=systemd|\n){0,40}") {
            if let Some(unit) = systemd_path(&text).and_then(service) {
                prop_assert!(unit.name.strip_suffix(".service").is_some());
            }
            let _ = service(&text);
        }
    }
}
