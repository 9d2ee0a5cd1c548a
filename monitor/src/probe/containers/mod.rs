//! The container that a client started: what its engine tells, and what the host shows of it.
//!
//! The socket of an engine gives the rights of root. So a helper of its own, [`engine_child`], talks to the engine: it has
//! no capabilities and makes three calls only: list, inspect, stop. Invariant: an engine that does not answer, or answers with nonsense,
//! costs a bounded time and is never understood as "no container".

mod child;
mod enclosing;
mod http;
mod monitor;
mod stop;
mod told;
mod version;

use std::{os::fd::OwnedFd, path::PathBuf, time::Duration};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat},
    io::Errno,
};

pub use child::{ENGINE_ARGUMENT, engine_child};
use told::Found;
pub use version::EngineVersion;

use super::Probe;
use crate::{
    host::{ProcessDir, Target, UnixSockets, memory_of},
    os::clock,
};
use orphand_core::{
    model::{ContainerFacts, ContainerId, ContainerQuery, Image, OtherClient, ProcessId, Stdio, Subject},
    recognise::works_for_podman,
};

/// The sockets of the engines that may be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Engines {
    /// Docker's.
    pub docker: Option<PathBuf>,
    /// podman's (`podman system service`).
    pub podman: Option<PathBuf>,
}

/// How long an engine may take to tell what it knows.
const TELLING: Duration = Duration::from_secs(3);
/// The seconds from the start of a client to the creation of its container. An image that has to be fetched first
/// takes longer: then the container is not found.
const CREATION: u64 = 10;
/// Clock ticks in a second, as /proc shows times (`USER_HZ`).
const TICKS: u64 = 100;

/// The engine whose containers have monitors.
const PODMAN: &str = "podman";
/// The most other clients that are listed.
const MOST: usize = 256;

impl Engines {
    fn socket(&self, engine: &str) -> Option<&PathBuf> {
        match engine {
            "docker" => self.docker.as_ref(),
            PODMAN => self.podman.as_ref(),
            _ => None,
        }
    }

    /// Asks the engine.
    fn ask(
        &self,
        engine: &str,
        question: &child::Question,
        patience: Duration,
    ) -> Result<child::Told, String> {
        child::ask(self.open(engine)?.0, question, patience)
    }

    /// The socket of the engine, and its status. `O_PATH`: nothing is connected yet.
    fn open(&self, engine: &str) -> Result<(OwnedFd, Stat), String> {
        let path = self.socket(engine).ok_or_else(|| format!("no socket of {engine} is configured"))?;
        let failed = |errno: Errno| format!("cannot open {}: {errno}", path.display());
        let socket = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
        let stat = fstat(&socket).map_err(failed)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
            return Err(format!("{} is no socket", path.display()));
        }
        Ok((socket, stat))
    }
}

impl Probe {
    /// Adds engines that are asked about containers.
    #[must_use]
    pub fn with_engines(self, engines: Engines) -> Self {
        Self { engines: std::sync::Arc::new(engines), ..self }
    }

    /// The one running container that fits, inspected. `None` if there is none or more than one, if the engine does not
    /// tell, or if the host does not show it.
    pub(super) fn container(
        &self,
        query: &ContainerQuery,
        others: &dyn Fn() -> Vec<Stdio>,
    ) -> Option<ContainerFacts> {
        let (found, first, monitor) = self.matching(query)?;
        let inside = Box::new(self.inside(&first, monitor, others)?);
        Some(ContainerFacts { inside, ..self.described(query, found, &first, monitor)? })
    }

    /// The one running container that fits; it is not inspected.
    pub(super) fn known_container(&self, query: &ContainerQuery) -> Option<ContainerFacts> {
        let (found, first, monitor) = self.matching(query)?;
        self.described(query, found, &first, monitor)
    }

    /// What the engine tells of the container, with its first process and its monitor, where that is known.
    fn matching(&self, query: &ContainerQuery) -> Option<(Found, ProcessDir, Option<ProcessId>)> {
        self.engines.socket(&query.engine)?;
        if query.engine == PODMAN {
            let (found, first, attached) = self.monitored(query)?;
            let found = Found { shared: found.shared || attached.shared, ..found };
            return Some((found, first, Some(attached.monitor)));
        }
        if !self.talks_to(query) {
            return None;
        }
        let born = born_at(query.client);
        let question = match query.id.clone() {
            Some(id) => child::Question::Inspect { id, monitored: false },
            None => child::Question::Find {
                name: query.name.clone(),
                image: query.image.clone(),
                // The engine's times are whole seconds.
                from: born.saturating_sub(1),
                to: born + CREATION,
            },
        };
        let found = match self.engines.ask(&query.engine, &question, TELLING) {
            Ok(child::Told::Found(found)) => found,
            Ok(_) => return None,
            Err(why) => {
                tracing::warn!("{} did not tell which container a client works for: {why}", query.engine);
                return None;
            }
        };
        let [found] = <[Found; 1]>::try_from(found).ok()?;
        let first = self.proc.process(found.pid).ok()?;
        // The engine's word is not enough: the host must show the process in a group of the container's id, and
        // younger than the client.
        let fits = is_inside(&first, &found.id) && first.id().start >= query.client.start;
        fits.then_some((found, first, None))
    }

    fn described(
        &self,
        query: &ContainerQuery,
        found: Found,
        first: &ProcessDir,
        monitor: Option<ProcessId>,
    ) -> Option<ContainerFacts> {
        let Found { id, name, image, shared, .. } = found;
        Some(ContainerFacts {
            container: ContainerId { engine: query.engine.clone(), id },
            client: query.client,
            name,
            image,
            monitor,
            shared,
            processes: self.inner(first)?,
            memory_bytes: first.cgroup().ok().and_then(|group| memory_of(&group)),
            others: self.other_clients(query.client)?,
            inside: Box::default(),
        })
    }

    /// Whether the client is connected to the socket that is configured. It may work for another engine: that of
    /// another host, or of a user.
    fn talks_to(&self, query: &ContainerQuery) -> bool {
        let Ok((_, stat)) = self.engines.open(&query.engine) else { return false };
        let Ok(table) = self.proc.fd_table(query.client.pid) else { return false };
        let sockets = table.fds.iter().filter_map(|fd| match fd.target {
            Target::Socket(inode) => Some(inode),
            _ => None,
        });
        let Ok(mut unix) = UnixSockets::here() else { return false };
        let own = unix.among(&sockets.collect()).unwrap_or_default();
        let peers = own.iter().filter_map(|socket| socket.peer.filter(|peer| *peer > 0)).collect();
        // The kernel tells the lower half of the inode number.
        let file = (u32::try_from(stat.st_ino & u64::from(u32::MAX)).unwrap_or_default(), stat.st_dev);
        unix.among(&peers).unwrap_or_default().iter().any(|peer| peer.file == Some(file))
    }

    /// What an inspection of the container's processes finds.
    fn inside(
        &self,
        first: &ProcessDir,
        monitor: Option<ProcessId>,
        others: &dyn Fn() -> Vec<Stdio>,
    ) -> Option<orphand_core::model::ServerFacts> {
        let [stdin, stdout, _] = first.stdio();
        if !Stdio::are_wires(stdin, stdout) {
            return None;
        }
        let processes = self.inner(first)?;
        let mut facts = self.facts(&Subject { processes, stdin, stdout, ..Subject::default() }, others);
        if let Some(monitor) = monitor {
            self.see_reader(&mut facts, stdout, monitor);
        }
        facts.processes.iter().any(|one| one.process == first.id()).then_some(facts)
    }

    /// A process and what descends from it.
    fn inner(&self, first: &ProcessDir) -> Option<Vec<ProcessId>> {
        let below = self.proc.descendants(first.id().pid)?;
        let below = below.into_iter().filter_map(|pid| Some(self.proc.process(pid).ok()?.id()));
        Some(std::iter::once(first.id()).chain(below).collect())
    }

    /// The processes of the host that may be clients of an engine; `None` if they are too many to list.
    fn other_clients(&self, client: ProcessId) -> Option<Vec<OtherClient>> {
        let dirs = self.proc.pids().ok()?.into_iter().filter_map(|pid| self.proc.process(pid).ok());
        let others = dirs.filter(|dir| dir.id() != client).map(|dir| (dir.id(), dir.image()));
        let others = others.filter(|(_, image)| resembles_client(image));
        let found: Vec<OtherClient> =
            others.take(MOST + 1).map(|(process, image)| OtherClient { process, image }).collect();
        (found.len() <= MOST).then_some(found)
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
    names.any(|name| ["docker", "podman", "nerdctl", "finch"].iter().any(|client| name.contains(client)))
}

/// When a process was started, in seconds since 1970.
fn born_at(process: ProcessId) -> u64 {
    let offset = clock::realtime_offset() / 1_000_000_000;
    u64::try_from(offset).unwrap_or_default() + process.start / TICKS
}

/// Whether the process is in a control group whose name has this id.
fn is_inside(dir: &ProcessDir, id: &str) -> bool {
    let text = dir.cgroup().unwrap_or_default();
    id.len() >= 12 && text.lines().any(|line| line.split('/').any(|part| part.contains(id)))
}
