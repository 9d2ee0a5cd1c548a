//! Has containers stopped by their engines, in place of signals to their clients.

use super::{Engine, Purpose};
use crate::{
    case::{Event, Refusal},
    lineage::ServerKey,
    model::{About, Answer, BootTime, ContainerFacts, ContainerId, Signal},
    recognise::started_container,
    verdict::is_certain,
};

/// EIO, for an engine that did not stop a container.
const FAILED: i32 = 5;

impl Engine {
    /// Keeps what an inspection found of a server's container.
    pub(super) fn container_found(&mut self, key: ServerKey, found: Option<&ContainerFacts>) {
        let started = |found: &&ContainerFacts| {
            let started = started_container(self.world.node(found.client)?.image()?)?;
            is_certain(&started, found).then_some(())
        };
        let certain = found.filter(|found| started(found).is_some()).map(ContainerFacts::view);
        let Some(server) = self.world.server_mut(key) else { return };
        server.container_seen = found.cloned().map(Box::new);
        server.container = certain.or_else(|| server.container.take());
    }

    /// Asks for the stop of a server's container. The last check is made here: the server is an orphan without a
    /// guard, and the container is that of the last inspection.
    pub(super) fn stop_container(&mut self, key: ServerKey, container: ContainerId) {
        let term_timeout = self.settings.term_timeout;
        let Some(server) = self.world.server_mut(key) else { return };
        let seen = server.container_seen.as_ref().filter(|seen| seen.container == container).cloned();
        let may = server.phase.orphan().is_some_and(|verdict| verdict.guards.is_empty());
        let Some(seen) = seen.filter(|_| may && !server.stopping) else { return };
        server.stopping = true;
        let about = About::Stop { seen, seconds: term_timeout.as_secs(), turn: server.user() };
        self.ask(about, Purpose::Stop { server: key });
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
            let refusal = if changed { Refusal::Retryable } else { Refusal::Final { error, errno: FAILED } };
            let signal = Signal::Term;
            self.server_event(now, key, Event::SignalRefused { process, signal, refusal, last: true });
        }
        self.end_if_done(now, key);
    }
}
