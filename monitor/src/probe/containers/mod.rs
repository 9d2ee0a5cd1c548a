//! The container that a client started: what its engine tells, and what the host shows of it.
//!
//! The socket of an engine gives the rights of root. So a [helper](crate::helper) talks to the engine: it has no
//! capabilities and makes three calls only: list, inspect, stop. Invariant: an engine that does not answer, or answers with nonsense,
//! costs a bounded time and is never understood as "no container".

mod clients;
mod enclosing;
mod engine;
mod monitor;
mod stop;

use std::{path::PathBuf, time::Duration};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Error as _},
};

use clients::Door;
pub use engine::EngineVersion;
pub(super) use engine::help;
use engine::{Found, Question};

use super::Probe;
use crate::{
    host::{ProcessDir, UnixSockets, memory_of},
    os::clock,
};
use orphand_core::{
    model::{
        BootTime, ContainerFacts, ContainerId, ContainerQuery, Image, MadeContainer, OtherClient, ProcessId,
        Stdio,
        scene::{Scene, SceneQuestion, SceneServer},
    },
    recognise::{own_container, works_for_podman},
};

/// The sockets of the engines that are asked: `[containers]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Engines {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "absolute")]
    pub docker: Option<PathBuf>,
    /// podman's (`podman system service`).
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "absolute")]
    pub podman: Option<PathBuf>,
}

/// Reads a path of the configuration that does not depend on where the daemon was started.
pub fn absolute<'de, D: Deserializer<'de>, T: From<PathBuf>>(d: D) -> Result<T, D::Error> {
    let path = PathBuf::deserialize(d)?;
    if path.is_absolute() { Ok(path.into()) } else { Err(D::Error::custom("not an absolute path")) }
}

/// How long an engine may take to tell what it knows.
const TELLING: Duration = Duration::from_secs(3);

/// The engine whose containers have monitors.
const PODMAN: &str = "podman";

impl Engines {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn names(&self) -> Vec<String> {
        let is_asked = |engine: &&str| self.socket(engine).is_some();
        ["docker", PODMAN].into_iter().filter(is_asked).map(str::to_owned).collect()
    }

    fn socket(&self, engine: &str) -> Option<&PathBuf> {
        match engine {
            "docker" => self.docker.as_ref(),
            PODMAN => self.podman.as_ref(),
            _ => None,
        }
    }

    fn ask<A: DeserializeOwned>(
        &self,
        engine: &str,
        question: &Question,
        patience: Duration,
    ) -> Result<A, String> {
        engine::ask(self.open(engine)?, question, patience)
    }

    /// The running containers that the engine tells of; `None` if it does not tell.
    fn found(&self, engine: &str, question: &Question) -> Option<Vec<Found>> {
        let unknown = |why: &String| {
            tracing::warn!("{engine} did not tell which container a client works for: {why}");
        };
        self.ask(engine, question, TELLING).inspect_err(unknown).ok()
    }

    pub fn version(&self, engine: &str) -> Result<EngineVersion, String> {
        self.ask(engine, &Question::Version, TELLING)
    }

    fn open(&self, engine: &str) -> Result<Door, String> {
        Door::open(self.socket(engine).ok_or_else(|| format!("no socket of {engine} is configured"))?)
    }
}

impl Probe {
    #[must_use]
    pub fn with_engines(self, engines: Engines) -> Self {
        Self { engines: std::sync::Arc::new(engines), ..self }
    }

    /// The one running container that fits, inspected. `None` if there is none or more than one, if the engine does not
    /// tell, or if the host does not show it.
    pub(super) fn container(&self, query: &ContainerQuery) -> Option<ContainerFacts> {
        let found = self.known_container(query)?;
        let first = self.proc.identified(*found.processes.first()?).ok()??;
        let (processes, inside) = self.inside(&first)?;
        Some(ContainerFacts { processes, inside: Box::new(inside), ..found })
    }

    /// The one running container that fits; it is not inspected.
    pub(super) fn known_container(&self, query: &ContainerQuery) -> Option<ContainerFacts> {
        self.engines.socket(&query.started.engine)?;
        if query.started.engine == PODMAN {
            let (found, first, attached) = self.monitored(query)?;
            let shared = found.shared || attached.shared;
            let others = self.other_clients(&query.started.engine, query.client)?;
            let facts = self.described(query, found, &first, others)?;
            return Some(ContainerFacts { shared, monitor: Some(attached.monitor), ..facts });
        }
        if !self.talks_to(query) {
            return None;
        }
        let question = match query.started.id.clone() {
            Some(id) => Question::Inspect { id },
            None => Question::Find {
                name: query.started.name.clone(),
                image: query.started.image.clone(),
                // The engine's times are whole seconds.
                from: born_at(query.client).saturating_sub(1),
            },
        };
        let mut found = self.engines.found(&query.started.engine, &question)?;
        found.retain(|one| one.is_fed(false));
        let made = |one: &Found| {
            let (id, name) = (one.id.clone(), one.name.clone());
            Some(MadeContainer { id, name, created: since_boot(one.created?) })
        };
        let made: Vec<_> =
            if query.started.id.is_none() { found.iter().filter_map(made).collect() } else { Vec::new() };
        let others = self.other_clients(&query.started.engine, query.client)?;
        if query.started.id.is_none() && query.started.name.is_none() {
            let own = own_container(query.client, query.started.image.as_deref()?, &others, &made)?;
            found.retain(|one| one.id == own.id);
        }
        let [found] = <[Found; 1]>::try_from(found).ok()?;
        let first = self.proc.process(found.pid).ok()?;
        // The engine's word is not enough: the host must show the process in a group of the container's id, and
        // younger than the client.
        if !is_inside(&first, &found.id) || first.id().start < query.client.start {
            return None;
        }
        Some(ContainerFacts { made, ..self.described(query, found, &first, others)? })
    }

    fn described(
        &self,
        query: &ContainerQuery,
        found: Found,
        first: &ProcessDir,
        others: Vec<OtherClient>,
    ) -> Option<ContainerFacts> {
        let Found { id, name, image, shared, .. } = found;
        Some(ContainerFacts {
            container: ContainerId { engine: query.started.engine.clone(), id },
            client: query.client,
            name,
            image,
            shared,
            processes: self.inner(first)?,
            memory_bytes: first.cgroup().ok().and_then(|group| memory_of(&group)),
            others,
            ..ContainerFacts::default()
        })
    }

    /// Whether the client is connected to the socket that is configured. It may work for another engine: that of
    /// another host, or of a user.
    fn talks_to(&self, query: &ContainerQuery) -> bool {
        let Ok(door) = self.engines.open(&query.started.engine) else { return false };
        let client = self.proc.process(query.client.pid).and_then(|client| client.fd_table());
        let Ok(table) = client else { return false };
        let Ok(mut unix) = UnixSockets::here() else { return false };
        let own = unix.among(&table.sockets().collect()).unwrap_or_default();
        let peers = own.iter().filter_map(|socket| socket.peer.filter(|peer| *peer > 0)).collect();
        unix.among(&peers).unwrap_or_default().iter().any(|peer| peer.file == Some(door.file()))
    }

    fn inside(&self, first: &ProcessDir) -> Option<(Vec<ProcessId>, Scene)> {
        let [stdin, stdout, _] = first.stdio();
        if !Stdio::are_wires(stdin, stdout) {
            return None;
        }
        let processes = self.inner(first)?;
        let servers = vec![SceneServer { processes: processes.clone(), stdin, stdout }];
        let scene = self.scene(&SceneQuestion { servers, ..SceneQuestion::default() });
        let has_first = scene.full(&[first.id()]).next().is_some();
        has_first.then_some((processes, scene))
    }

    fn inner(&self, first: &ProcessDir) -> Option<Vec<ProcessId>> {
        let below = self.proc.descendants(first.id().pid)?;
        let below = below.into_iter().filter_map(|pid| Some(self.proc.process(pid).ok()?.id()));
        Some(std::iter::once(first.id()).chain(below).collect())
    }
}

/// Whether the name of the program, or of its file, resembles that of a client. It finds too many on purpose
/// (`mcp-server-docker`): it is a first filter, or adds doubts. `container_client` of the core is strict.
pub(super) fn resembles_client(image: &Image) -> bool {
    if works_for_podman(image) {
        return false;
    }
    let names = image.argv.first().into_iter().chain([&image.exe]);
    let mut names = names.filter_map(|path| path.rsplit('/').next());
    names.any(has_name_of_client)
}

fn has_name_of_client(name: &str) -> bool {
    ["docker", "podman", "nerdctl", "finch"].iter().any(|client| name.contains(client))
}

/// When something happened, in clock ticks since the host started, of nanoseconds since 1970.
fn since_boot(ns: i64) -> u64 {
    BootTime(u64::try_from(ns.saturating_sub(clock::realtime_offset())).unwrap_or_default()).ticks()
}

/// When a process was started, in seconds since 1970.
fn born_at(process: ProcessId) -> u64 {
    BootTime::of_ticks(process.start).0.saturating_add_signed(clock::realtime_offset()) / 1_000_000_000
}

/// Whether the process is in a control group whose name has this id.
fn is_inside(dir: &ProcessDir, id: &str) -> bool {
    let text = dir.cgroup().unwrap_or_default();
    id.len() >= 12 && text.lines().any(|line| line.split('/').any(|part| part.contains(id)))
}
