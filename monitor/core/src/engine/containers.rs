//! Containers: which one a server works in, and its stop by its engine in place of signals to its client.
//!
//! Servers in containers are recognised twice: the client that the agent started, and the process in the container (the
//! inner half), which nobody started that is known. Both are one server, as soon as it is certain whose container it is.

use std::{collections::BTreeMap, time::Duration};

use rustc_hash::FxHashMap;

use super::{Engine, cases::CaseOf};
use crate::{
    case::Event,
    lineage::{Node, Provenance, ServerKey},
    model::{
        About, Answer, BootTime, Container, ContainerFacts, ContainerId, ContainerQuery, Haste, ProcessId,
        ServerFacts, ServerReport, Share, Signal, SignalError,
    },
    recognise::{keeps_container, started_container},
    verdict::is_certain,
    world::Server,
};

/// EIO, for an engine that did not stop a container.
const FAILED: i32 = 5;
/// The engines that stop containers, and the setting that allows it.
const SETTINGS: &[(&str, &str)] = &[
    ("docker", "[containers] docker = \"/run/docker.sock\""),
    ("podman", "[containers] podman = \"/run/podman/podman.sock\""),
];
/// The age of a server from which its container is there, if its image was.
const SETTLED: Duration = Duration::from_secs(12);
/// The time from the end of a client until its engine has closed the input of the container.
const AFTER_THE_CLIENT: Duration = Duration::from_secs(2);
/// The pause between two looks into containers because a client has ended: at least this, and so much for each server.
const PAUSE: Duration = Duration::from_secs(1);
const EACH: Duration = Duration::from_millis(1);
/// How often an engine is asked about a living server.
const TRIES: u8 = 3;
/// The most servers of a user that are asked about at a time.
const AT_ONCE: usize = 8;

/// What is known of the container that the client of a server works for.
#[derive(Debug, Default)]
pub(super) struct Inside {
    /// Its processes as last seen, the first one first.
    processes: Vec<ProcessId>,
    /// What the last inspection found of it.
    seen: Option<ContainerFacts>,
    /// How often its engine was asked which container that is.
    asked: u8,
    /// Whether it is being stopped. The server is not over before its engine has answered.
    stopping: bool,
}

impl Engine {
    /// The processes in the container that the client of a server works for.
    pub(super) fn processes_inside(&self, key: ServerKey) -> &[ProcessId] {
        self.containers.get(&key).map_or(&[], |inside| inside.processes.as_slice())
    }

    pub fn is_being_stopped(&self, key: ServerKey) -> bool {
        self.containers.get(&key).is_some_and(|inside| inside.stopping)
    }

    pub(super) fn container_found(&mut self, key: ServerKey, facts: &ServerFacts) {
        let Some(server) = self.world.server(key) else { return };
        let found = facts.container.as_deref();
        // One that the server itself is in, and no container of which it has the client.
        let enclosing = facts.enclosing.as_deref().filter(|_| !self.has_client(server)).cloned();
        let certain = found.filter(|found| self.is_certain(found));
        let missing = self.missing_setting(server);
        let setting = missing.as_ref().and_then(|container| container.setting.clone());
        let Some(server) = self.world.server_mut(key) else { return };
        let (was_known, is_in_one) = (server.container.is_some(), enclosing.is_some());
        let told = enclosing.or_else(|| certain.map(ContainerFacts::view));
        server.container = told.or_else(|| server.container.take()).or(missing);
        // The configuration may have changed since.
        if let Some(container) = &mut server.container {
            container.setting = setting;
        }
        if found.is_some() || self.containers.contains_key(&key) {
            self.containers.entry(key).or_default().seen = found.cloned();
        }
        if let Some(certain) = certain {
            self.container_processes(key, certain.processes.clone());
        }
        if is_in_one && !was_known {
            self.ask_session_found_late(key);
        }
    }

    /// The client of a container has ended, and the container may live on. Servers in containers have no owner that
    /// anybody knows, so their input is looked at, as that of servers that were there before the daemon.
    /// Whoever starts clients without a pause has that done once in a while.
    pub(super) fn look_into_containers(&mut self, now: BootTime) {
        let servers = u32::try_from(self.world.servers().len()).unwrap_or(u32::MAX);
        self.containers_until = now + EACH.saturating_mul(servers).max(PAUSE);
        // A container whose own client lives is told with that.
        let halves = self.inner_halves();
        for key in self.world.server_keys().into_iter().filter(|key| !halves.contains_key(key)) {
            // What podman's conmon keeps has never been looked at: it is nobody's.
            let is_kept = |id| {
                self.world.graph().near_ancestors(id).any(|node| node.image().is_some_and(keeps_container))
            };
            let is_inside = |server: &Server| {
                let is_known = server.container.as_ref().is_some_and(|found| found.id.is_some());
                server.phase.is_clear() && (is_known || is_kept(server.main_process()))
            };
            if !self.is_job(key) || !self.world.server(key).is_some_and(is_inside) {
                continue;
            }
            self.world.change_server(key, |server| {
                (server.seeks_owner, server.provenance) = (true, Provenance::FOUND);
            });
            self.set_deadline(CaseOf::Server(key), Some(now + AFTER_THE_CLIENT));
        }
    }

    /// The processes of a server's container are known: its session may be known to them alone.
    fn container_processes(&mut self, key: ServerKey, processes: Vec<ProcessId>) {
        let inside = self.containers.entry(key).or_default();
        let before = std::mem::replace(&mut inside.processes, processes);
        if before.first() != inside.processes.first() {
            self.ask_session(key);
        }
    }

    fn is_certain(&self, found: &ContainerFacts) -> bool {
        let client = self.world.node(found.client).and_then(|node| node.image());
        client.and_then(started_container).is_some_and(|started| is_certain(&started, found))
    }

    /// The container of a server as its client tells it, with the setting that would let its engine stop it; `None` if
    /// there is no such setting. Each user has a podman of his own, and orphand asks that of root alone.
    fn missing_setting(&self, server: &Server) -> Option<Container> {
        let ContainerQuery { client, started } = self.container_query(server)?;
        let client = self.world.node(client)?;
        let (engine, setting) = SETTINGS.iter().find(|(engine, _)| *engine == started.engine)?;
        let is_missing = !self.asks(engine) && (*engine != "podman" || client.uid == 0);
        is_missing.then(|| Container { setting: Some((*setting).to_owned()), ..started.of_user(client.uid) })
    }

    fn asks(&self, engine: &str) -> bool {
        self.policy.engines.iter().any(|asked| asked == engine)
    }

    /// Asks which containers living servers work in, so that a report can tell. A few times for each server, and about
    /// a few servers of each user at a time.
    pub(super) fn ask_containers(&mut self, now: BootTime) {
        if self.policy.engines.is_empty() {
            return;
        }
        let mut asked = BTreeMap::<Share, usize>::new();
        for key in self.world.server_keys() {
            let Some(server) = self.world.server(key) else { continue };
            let turn = server.share();
            let number = asked.entry(turn).or_default();
            let is_sought = server.container.is_none() && server.phase.is_clear();
            if !is_sought || now.since(server.id.born()) < SETTLED || *number >= AT_ONCE {
                continue;
            }
            let query = self.container_query(server).filter(|query| self.asks(&query.started.engine));
            if let Some(query) = query
                && self.containers.get(&key).is_none_or(|inside| inside.asked < TRIES)
            {
                self.containers.entry(key).or_default().asked += 1;
                *number += 1;
                let about = About::Container(Box::new(query));
                self.ask(Some((turn, Haste::InTurn)), about, move |engine, _, answer| {
                    if let Answer::Container { found: Some(found) } = answer
                        && engine.is_certain(&found)
                        && let Some(server) = engine.world.server_mut(key).filter(|one| one.phase.is_clear())
                    {
                        server.container = Some(found.view());
                        engine.container_processes(key, found.processes);
                        engine.world.show(key);
                    }
                });
            }
        }
    }

    /// Asks for the stop of a server's container. The last check is made here: the server is an orphan without a
    /// guard, and the container is that of the last inspection.
    pub(super) fn stop_container(&mut self, key: ServerKey, container: &ContainerId) {
        let term_timeout = self.policy.term_timeout;
        let Some((server, inside)) = self.world.server(key).zip(self.containers.get_mut(&key)) else {
            return;
        };
        let seen = inside.seen.as_ref().filter(|seen| seen.container == *container).cloned();
        let may = server.phase.orphan().is_some_and(|verdict| verdict.guards.is_empty());
        let Some(seen) = seen.filter(|_| may && !inside.stopping) else { return };
        inside.stopping = true;
        let turn = Some((server.share(), Haste::InTurn));
        let about = About::Stop { seen: Box::new(seen), seconds: term_timeout.as_secs() };
        self.ask(turn, about, move |engine, now, answer| engine.container_stopped(now, key, answer));
    }

    /// The engine has answered. Only now the server may be over: its client may have ended before.
    fn container_stopped(&mut self, now: BootTime, key: ServerKey, answer: Answer) {
        let Some((server, inside)) = self.world.server(key).zip(self.containers.get_mut(&key)) else {
            return;
        };
        inside.stopping = false;
        let process = server.main_process();
        let (error, changed) = match answer {
            Answer::Stopped { error, changed } => (error, changed),
            _ => (Some("the container engine did not answer".to_owned()), false),
        };
        if let Some(message) = error {
            // Somebody may use it now: the next inspection finds out.
            let error = if changed {
                SignalError::Unsure { message }
            } else {
                SignalError::System { errno: FAILED, message }
            };
            let signal = Signal::Term;
            self.server_event(now, key, Event::SignalRefused { process, signal, error, last: true });
        }
        self.end_if_done(now, key);
    }

    /// The servers without an owner that are the inner halves of servers with a living client, by their key. Each is
    /// below the first process that the engine told of the client's container, or below the conmon that the client
    /// started.
    pub(super) fn inner_halves(&self) -> FxHashMap<ServerKey, ServerKey> {
        let servers = || self.world.servers().iter().map(|(key, server)| (*key, server));
        let told: FxHashMap<ProcessId, ServerKey> = servers()
            .filter(|(_, server)| self.has_client(server))
            .flat_map(|(key, _)| self.processes_inside(key).iter().map(move |process| (*process, key)))
            .collect();
        let inner = servers().filter(|(_, server)| server.owner().is_none() && !self.has_client(server));
        inner
            .filter_map(|(key, server)| {
                let above = self.world.graph().near_ancestors(server.main_process()).map(|node| node.id);
                let by_engine = || {
                    let mut all = server.processes().iter().copied().chain(above);
                    all.find_map(|process| told.get(&process).copied())
                };
                Some((key, self.below_conmon_of(server).or_else(by_engine)?))
            })
            .filter(|(inner, outer)| inner != outer)
            .collect()
    }

    fn has_client(&self, server: &Server) -> bool {
        server.all().any(|id| self.world.node(id).is_some_and(Node::is_client))
    }

    /// The server whose client started the conmon above this one.
    fn below_conmon_of(&self, server: &Server) -> Option<ServerKey> {
        let mut above = self.world.graph().near_ancestors(server.main_process());
        above.find(|node| node.image().is_some_and(keeps_container))?;
        above.find(|node| node.is_client()).and_then(|client| client.server.or(client.wraps))
    }
}

/// Adds the inner half of a server to the report of that with the client, with at most `shown` of its processes.
pub(super) fn add_inner(outer: &mut ServerReport, inner: ServerReport, shown: usize) {
    let (all, added) = (outer.server.count(), inner.server.count());
    outer.server.processes_total = all + added;
    let room = shown.saturating_sub(outer.server.processes.len());
    outer.server.processes.extend(inner.server.processes.into_iter().take(room));
    let sum = |one: [Option<u64>; 2]| one.into_iter().flatten().reduce(u64::saturating_add);
    outer.server.rss_bytes = sum([outer.server.rss_bytes, inner.server.rss_bytes]);
    outer.server.cpu_ms = sum([outer.server.cpu_ms, inner.server.cpu_ms]);
    outer.members.extend(inner.members);
}
