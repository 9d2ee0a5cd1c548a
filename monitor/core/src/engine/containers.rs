//! Has containers stopped by their engines, in place of signals to their clients.

use super::{Engine, Purpose};
use crate::{
    case::{Event, Refusal},
    lineage::ServerKey,
    model::{About, Answer, BootTime, ContainerId, Signal},
};

/// EIO, for an engine that did not stop a container.
const FAILED: i32 = 5;

impl Engine {
    /// Asks for the stop of a server's container. The last check is made here: the server is an orphan without a
    /// guard, and the container is that of the last inspection.
    pub(super) fn stop_container(&mut self, key: ServerKey, container: ContainerId) {
        let term_timeout = self.settings.term_timeout;
        let Some(server) = self.world.server_mut(key) else { return };
        let known = server.container.as_ref().and_then(|known| known.id.as_ref()) == Some(&container.id);
        let may = server.phase.orphan().is_some_and(|verdict| verdict.guards.is_empty());
        if !known || !may || server.stopping {
            return;
        }
        server.stopping = true;
        let about = About::Stop { container, seconds: term_timeout.as_secs(), turn: server.user() };
        self.ask(about, Purpose::Stop { server: key });
    }

    /// The engine has answered. Only now the server may be over: its client may have ended before.
    pub(super) fn container_stopped(&mut self, now: BootTime, key: ServerKey, answer: Answer) {
        let Some(server) = self.world.server_mut(key) else { return };
        server.stopping = false;
        let process = server.main_process();
        let error = match answer {
            Answer::Stopped { error } => error,
            _ => Some("the container engine did not answer".to_owned()),
        };
        if let Some(error) = error {
            let refusal = Refusal::Final { error, errno: FAILED };
            let signal = Signal::Term;
            self.server_event(now, key, Event::SignalRefused { process, signal, refusal, last: true });
        }
        self.end_if_done(now, key);
    }
}
