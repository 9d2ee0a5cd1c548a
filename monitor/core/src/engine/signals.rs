//! Signals to servers: asked for here and nowhere else, and what became of them.

use super::{Engine, judge::LOOK_AGAIN};
use crate::{
    lineage::ServerKey,
    model::{BootTime, Effect, ProcessId, ServerFacts, Signal, SignalError},
    world::Stage,
};

impl Engine {
    /// Whether this signal, or a stronger one, is on its way to a process already, or was refused.
    pub(super) fn was_sent(&self, key: ServerKey, process: ProcessId, signal: Signal) -> bool {
        let case = self.world.server(key).and_then(|s| s.case());
        case.is_some_and(|c| {
            c.refused.contains(&process) || c.signalled.get(&process).is_some_and(|s| *s >= signal)
        })
    }

    /// Asks for a signal, if nothing forbids it.
    pub(super) fn send(&mut self, key: ServerKey, process: ProcessId, signal: Signal) {
        // Another look follows each step: who was not seen in this one has his turn then.
        if self.unseen.contains(&process) || !self.may_signal(key, process) {
            return;
        }
        let uid = self.user(process);
        if let Some(case) = self.world.server_mut(key).and_then(|s| s.case_mut()) {
            case.signalled.insert(process, signal);
            self.effects.push_back(Effect::Signal { process, signal, uid });
        }
    }

    /// The real user of a process, as it was reported or seen last.
    pub(super) fn user(&self, process: ProcessId) -> Option<u32> {
        // Of a bare parent only the identity is known.
        self.world.node(process).filter(|n| n.witnessed || n.exec.program.is_some()).map(|n| n.uid)
    }

    /// A look tells whom processes belong to now: setuid(2) makes no record.
    pub(super) fn take_users(&mut self, facts: &ServerFacts) {
        for seen in &facts.processes {
            self.world.set_user(seen.process, seen.uid);
        }
    }

    /// What became of a signal.
    pub(super) fn signalled(
        &mut self,
        now: BootTime,
        process: ProcessId,
        signal: Signal,
        error: Option<SignalError>,
    ) {
        match error {
            // If it is gone, its exit record and those of what it forked before are still to be read.
            None | Some(SignalError::Gone) => {}
            Some(SignalError::Unsure { .. } | SignalError::NoRoom { .. }) => {
                if !self.left_unsure(now, process, signal) {
                    self.unsure(now, process, signal);
                }
            }
            Some(SignalError::System { errno, message }) => {
                if self.left_refused(now, process, &message, errno) {
                    return;
                }
                let Some(key) = self.world.node(process).and_then(|n| n.server.or(n.wraps)) else { return };
                if let Some(case) = self.world.server_mut(key).and_then(|s| s.case_mut()) {
                    case.signalled.remove(&process);
                }
                self.fail(now, key, process, message, Some(errno));
            }
        }
    }

    /// Not sent, because the process may not be what was judged: a look first, then the same step again.
    fn unsure(&mut self, now: BootTime, process: ProcessId, signal: Signal) {
        let Some(key) = self.world.node(process).and_then(|n| n.server.or(n.wraps)) else { return };
        let Some(case) = self.world.server_mut(key).and_then(|s| s.case_mut()) else { return };
        case.signalled.remove(&process);
        case.stage = match (signal, case.stage) {
            (_, stage @ (Stage::Spared | Stage::Failed)) => stage,
            // The look that follows asks all to end that have not been asked yet.
            (Signal::Term, _) | (_, Stage::Leaf) => Stage::Leaf,
            (Signal::Kill, _) => Stage::Rest,
        };
        if case.stage != Stage::Failed {
            self.world.set_timer(key, Some(now + LOOK_AGAIN));
        }
    }
}
