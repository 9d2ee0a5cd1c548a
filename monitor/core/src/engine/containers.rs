//! Containers: which one a server works in, and its stop by its engine in place of signals to its client.

use std::{collections::BTreeMap, time::Duration};

use super::Engine;
use crate::{
    case::Event,
    lineage::{Provenance, ServerKey},
    model::{
        About, Answer, BootTime, Container, ContainerFacts, ContainerId, ProcessId, ServerFacts, Signal,
        SignalError,
    },
    recognise::{container_client, keeps_container, started_container},
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
/// How often an engine is asked about a living server.
const TRIES: u8 = 3;
/// The most servers of a user that are asked about at a time.
const AT_ONCE: usize = 8;

impl Engine {
    /// Keeps what an inspection found of a server's container.
    pub(super) fn container_found(&mut self, key: ServerKey, facts: &ServerFacts) {
        let found = facts.container.as_deref();
        let enclosing = self.enclosing(key, facts);
        let certain = found.filter(|found| self.is_certain(found)).map(ContainerFacts::view);
        let missing = self.missing_setting(key);
        let setting = missing.as_ref().and_then(|container| container.setting.clone());
        let processes = found.filter(|_| certain.is_some()).map(|found| found.processes.clone());
        let Some(server) = self.world.server_mut(key) else { return };
        server.container_seen = found.cloned().map(Box::new);
        let (was_known, is_in_one) = (server.container.is_some(), enclosing.is_some());
        server.container = enclosing.or(certain).or_else(|| server.container.take()).or(missing);
        // The configuration may have changed since.
        if let Some(container) = &mut server.container {
            container.setting = setting;
        }
        if let Some(processes) = processes {
            self.container_processes(key, processes);
        }
        if is_in_one && !was_known {
            self.ask_session_found_late(key);
        }
    }

    /// The client of a container has ended, and the container may live on. Servers in containers have no owner that
    /// anybody knows, so their input is looked at, as that of servers that were there before the daemon.
    pub(super) fn look_into_containers(&mut self, now: BootTime) {
        // A container whose own client lives is told with that.
        let halves = self.inner_halves();
        for key in self.world.servers().keys().into_iter().filter(|key| !halves.contains_key(key)) {
            // What podman's conmon keeps has never been looked at: it is nobody's.
            let is_kept = |id| {
                let mut above = self.world.graph().ancestors(id);
                above.any(|node| node.image().is_some_and(keeps_container))
            };
            let is_inside = |server: &Server| {
                let is_known = server.container.as_ref().is_some_and(|found| found.id.is_some());
                server.phase.is_clear() && (is_known || is_kept(server.main_process()))
            };
            if !self.is_job(key) || !self.world.server(key).is_some_and(is_inside) {
                continue;
            }
            if let Some(server) = self.world.server_mut(key) {
                (server.seeks_owner, server.provenance) = (true, Provenance::FOUND);
            }
            self.world.set_timer(key, Some(now + AFTER_THE_CLIENT));
        }
    }

    /// The processes of a server's container are known: its session may be known to them alone.
    fn container_processes(&mut self, key: ServerKey, processes: Vec<ProcessId>) {
        let Some(server) = self.world.server_mut(key) else { return };
        let is_same = server.container_processes.first() == processes.first();
        server.container_processes = processes;
        if !is_same {
            self.ask_session(key);
        }
    }

    /// The container that a server is in, if it is the server itself and no client of another container.
    fn enclosing(&self, key: ServerKey, facts: &ServerFacts) -> Option<Container> {
        let server = self.world.server(key)?;
        let mut images =
            server.processes().iter().chain(server.wrappers()).map(|id| self.world.node(*id)?.image());
        let has_client = images.any(|image| image.and_then(container_client).is_some());
        facts.enclosing.as_ref().filter(|_| !has_client).map(|found| found.view())
    }

    fn is_certain(&self, found: &ContainerFacts) -> bool {
        let client = self.world.node(found.client).and_then(|node| node.image());
        client.and_then(started_container).is_some_and(|started| is_certain(&started, found))
    }

    /// The container of a server as its client tells it, with the setting that would let its engine stop it; `None` if
    /// there is no such setting. Each user has a podman of his own, and orphand asks that of root alone.
    fn missing_setting(&self, key: ServerKey) -> Option<Container> {
        let client = self.container_query(self.world.server(key)?)?.client;
        let client = self.world.node(client)?;
        let started = started_container(client.image()?)?;
        let (engine, setting) = SETTINGS.iter().find(|(engine, _)| *engine == started.engine)?;
        let is_missing = !self.asks(engine) && (*engine != "podman" || client.uid == 0);
        is_missing.then(|| Container { setting: Some((*setting).to_owned()), ..started })
    }

    fn asks(&self, engine: &str) -> bool {
        self.settings.engines.iter().any(|asked| asked == engine)
    }

    /// Asks which containers living servers work in, so that a report can tell. A few times for each server, and about
    /// a few servers of each user at a time.
    pub(super) fn ask_containers(&mut self, now: BootTime) {
        if self.settings.engines.is_empty() {
            return;
        }
        let mut asked = BTreeMap::<u32, usize>::new();
        for key in self.world.servers().keys() {
            let Some(server) = self.world.server_mut(key) else { continue };
            let turn = server.user();
            let old = now.since(server.id.born()) >= SETTLED && server.container_asked < TRIES;
            let number = asked.entry(turn).or_default();
            if !old || server.container.is_some() || !server.phase.is_clear() || *number >= AT_ONCE {
                continue;
            }
            server.container_asked += 1;
            let query = self.world.server(key).and_then(|server| self.container_query(server));
            if let Some(query) = query.filter(|query| self.asks(&query.engine)) {
                *number += 1;
                let about = About::Container { query: Box::new(query), turn };
                self.ask(about, move |engine, _, answer| {
                    if let Answer::Container { found } = answer {
                        engine.container_told(key, found);
                    }
                });
            }
        }
    }

    /// An engine has told which container a living server works in.
    pub(super) fn container_told(&mut self, key: ServerKey, found: Option<Box<ContainerFacts>>) {
        let Some(found) = found.filter(|found| self.is_certain(found)) else { return };
        let Some(server) = self.world.server_mut(key).filter(|server| server.phase.is_clear()) else {
            return;
        };
        server.container = Some(found.view());
        self.container_processes(key, found.processes.clone());
        self.world.show(key);
    }

    /// Asks for the stop of a server's container. The last check is made here: the server is an orphan without a
    /// guard, and the container is that of the last inspection.
    pub(super) fn stop_container(&mut self, key: ServerKey, container: &ContainerId) {
        let term_timeout = self.settings.term_timeout;
        let Some(server) = self.world.server_mut(key) else { return };
        let seen = server.container_seen.as_ref().filter(|seen| seen.container == *container).cloned();
        let may = server.phase.orphan().is_some_and(|verdict| verdict.guards.is_empty());
        let Some(seen) = seen.filter(|_| may && !server.stopping) else { return };
        server.stopping = true;
        let about = About::Stop { seen, seconds: term_timeout.as_secs(), turn: server.user() };
        self.ask(about, move |engine, now, answer| engine.container_stopped(now, key, answer));
    }

    /// The engine has answered. Only now the server may be over: its client may have ended before.
    pub(super) fn container_stopped(&mut self, now: BootTime, key: ServerKey, answer: Answer) {
        let Some(server) = self.world.server_mut(key) else { return };
        server.stopping = false;
        let process = server.main_process();
        let (error, changed) = match answer {
            Answer::Stopped { error, changed } => (error, changed),
            _ => (Some("the container engine did not answer".to_owned()), false),
        };
        if let Some(error) = error {
            // Somebody may use it now: the next inspection finds out.
            let message = error;
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
}
