//! The container that a process is in, by the names of its control groups, or else by podman's conmon above it. Its
//! engine, if one is configured, tells its name and its image.
//!
//! Docker and podman name the group of a container after its id, so this holds for containers that were there before
//! orphand, and for those whose client has ended. Users may name groups of their own in the same way: a name is told, and
//! keeps a server from being ended. It never allows anything. What an engine tells is of this container only if the
//! container's first process is in the same group. A podman without root makes no groups on a host where users have none
//! of their own: there the container's first process is a child of its conmon.

use orphand_core::{
    model::{Container, ContainerId, ProcessId},
    recognise::is_container_id,
};

use super::{Found, PODMAN, Question, TELLING, monitor::monitored_by};
use crate::{
    host::{memory_of, owner_of_group},
    probe::Probe,
};

/// What comes before the id in the name of a group that systemd made, and the engine.
const SCOPES: &[(&str, &str)] = &[("docker-", "docker"), ("libpod-", "podman"), ("nerdctl-", "nerdctl")];

/// How far a conmon is looked for above a server: an init process and a shell may be between them.
const DEEPEST: usize = 4;

impl Probe {
    /// The container that the first of these processes is in that are in one, except that of orphand itself.
    pub(in crate::probe) fn enclosing(&self, processes: &[ProcessId]) -> Option<Container> {
        let groups = |pid| self.proc.process(pid).ok()?.cgroup().ok();
        let by_group = processes.iter().find_map(|one| {
            let dir = self.proc.identified(*one).ok()??;
            let cgroup = dir.cgroup().ok()?;
            let found = container_of(&cgroup)?;
            Some((cgroup, found))
        });
        let Some((cgroup, (container, above))) = by_group else { return self.below_monitor(processes) };
        // orphand may run in a container and watch its neighbours there.
        let own = groups(std::process::id()).and_then(|own| container_of(&own));
        if own.is_some_and(|(own, _)| own == container) {
            return None;
        }
        let (memory_bytes, made_by) = (memory_of(&cgroup), owner_of_group(&above));
        // What a user chose is asked of no engine of root's.
        let told = (made_by == Some(0)).then(|| self.told(&container, &cgroup)).flatten();
        let container = Container { memory_bytes, ..Container::by_id(&container, made_by) };
        Some(match told {
            Some(Found { name, image, server, .. }) => {
                Container { name: Some(name), image: Some(image), server, ..container }
            }
            None => container,
        })
    }

    /// The container whose conmon is above the first of these processes.
    fn below_monitor(&self, processes: &[ProcessId]) -> Option<Container> {
        let mut dir = self.proc.identified(*processes.first()?).ok()??;
        for _ in 0..DEEPEST {
            let above = self.proc.process(dir.stat().ppid).ok()?;
            dir = Some(above).filter(|above| above.id().start <= dir.id().start)?;
            if let Some(id) = monitored_by(&dir) {
                let container = ContainerId { engine: PODMAN.to_owned(), id };
                return Some(Container::by_id(&container, dir.uid().ok()));
            }
        }
        None
    }

    /// What its engine tells of the container with this group.
    fn told(&self, container: &ContainerId, cgroup: &str) -> Option<Found> {
        self.engines.socket(&container.engine)?;
        let question = Question::Inspect { id: container.id.clone() };
        let found = self.engines.ask::<Vec<Found>>(&container.engine, &question, TELLING);
        let unknown = |why: &String| {
            tracing::debug!("{} did not tell what {} is: {why}", container.engine, container.id);
        };
        let found = found.inspect_err(unknown).ok()?.pop()?;
        let first = self.proc.process(found.pid).ok()?.cgroup().ok()?;
        (first == cgroup).then_some(found)
    }
}

/// The innermost container in a text of `/proc/PID/cgroup`, and the line with the path of the group above it.
fn container_of(cgroup: &str) -> Option<(ContainerId, String)> {
    cgroup.lines().find_map(|line| {
        let path = line.splitn(3, ':').nth(2)?;
        let hierarchy = line.strip_suffix(path)?;
        let path = path.strip_suffix(" (deleted)").unwrap_or(path);
        let parts: Vec<&str> = path.split('/').collect();
        (1..parts.len()).rev().find_map(|at| {
            let above = parts.get(..at)?;
            let container = named(above.last()?, parts.get(at)?)?;
            Some((container, format!("{hierarchy}{}", above.join("/"))))
        })
    })
}

/// The container whose group has this name, below a group of that name.
fn named(above: &str, part: &str) -> Option<ContainerId> {
    let of = |engine: &str, id: &str| {
        is_container_id(id).then(|| ContainerId { engine: engine.to_owned(), id: id.to_owned() })
    };
    let scope = part
        .strip_suffix(".scope")
        .and_then(|scope| SCOPES.iter().find_map(|(prefix, engine)| of(engine, scope.strip_prefix(prefix)?)));
    // Without systemd Docker uses the bare id, and podman its own prefix.
    let bare = || (above == "docker").then(|| of("docker", part)).flatten();
    scope.or_else(bare).or_else(|| of("podman", part.strip_prefix("libpod-")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_containers() {
        let (a, b) = ("0a".repeat(32), "0b".repeat(32));
        for (path, engine, id) in [
            (format!("/docker/{a}"), "docker", &a),
            (format!("/docker/{a}/init.scope"), "docker", &a),
            (format!("/system.slice/docker-{a}.scope"), "docker", &a),
            (format!("/system.slice/docker-{a}.scope (deleted)"), "docker", &a),
            (format!("/machine.slice/libpod-{a}.scope/container"), "podman", &a),
            (
                format!("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{a}.scope"),
                "podman",
                &a,
            ),
            (format!("/libpod_parent/libpod-{a}"), "podman", &a),
            (format!("/system.slice/nerdctl-{a}.scope"), "nerdctl", &a),
            // A container in a container.
            (format!("/docker/{a}/docker/{b}"), "docker", &b),
            (format!("/docker/{a}/machine.slice/libpod-{b}.scope"), "podman", &b),
        ] {
            let expected = Some(ContainerId { engine: engine.to_owned(), id: id.clone() });
            let of = |text: &str| container_of(text).map(|(found, _)| found);
            assert_eq!(of(&format!("0::{path}\n")), expected, "{path}");
            let legacy = format!("12:pids:{path}\n1:name=systemd:{path}\n0::/\n");
            assert_eq!(of(&legacy), expected, "{path}");
        }
    }

    #[test]
    fn the_group_above() {
        let a = "0a".repeat(32);
        let above = |text: String| container_of(&text).map(|(_, above)| above);
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(above(format!("0::/system.slice/docker-{a}.scope")), text("0::/system.slice"));
        assert_eq!(above(format!("0::/docker/{a}/init.scope (deleted)")), text("0::/docker"));
        assert_eq!(above(format!("9:name=systemd:/x/libpod-{a}.scope\n")), text("9:name=systemd:/x"));
        assert_eq!(above(format!("0::/libpod-{a}")), text("0::"));
    }

    #[test]
    fn other_groups() {
        let a = "0a".repeat(32);
        for path in [
            "/".to_owned(),
            String::new(),
            "/docker".to_owned(),
            "/docker/".to_owned(),
            "/docker/buildkit".to_owned(),
            "/system.slice/docker.service".to_owned(),
            "/system.slice/docker-0a0a0a0a0a0a.scope".to_owned(),
            format!("/{a}"),
            format!("/kubepods/besteffort/pod1/{a}"),
            format!("/docker/{a}0"),
            format!("/docker/{}", a.to_uppercase()),
            format!("/system.slice/docker-{a}"),
            format!("/machine.slice/libpod-conmon-{a}.scope"),
            format!("/libpod_parent/conmon-{a}"),
        ] {
            assert_eq!(container_of(&format!("0::{path}\n")), None, "{path}");
        }
        assert_eq!(container_of(""), None);
        assert_eq!(container_of("nonsense"), None);
    }
}
