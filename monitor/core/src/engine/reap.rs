//! Ending an orphan: whom to signal, and when.
//!
//! TERM to the server proper -> look -> TERM to the rest -> look -> KILL, leaves first. A doubt or a guard found at any look stops
//! it (`engine::judge`).

use std::time::Duration;

use super::Engine;
use crate::{
    lineage::ServerKey,
    model::{BootTime, Fact, Notice, ProcessId, Signal},
    world::{Failure, Server, Stage, server_view},
};

/// Between two rounds of SIGKILL: what was forked meanwhile is in the next one.
const SWEEP: Duration = Duration::from_millis(50);
/// Rounds after which what is left counts as unkillable.
const SWEEPS: u32 = 100;

impl Engine {
    /// A server's timer has run out.
    pub(super) fn due(&mut self, now: BootTime, key: ServerKey) {
        let Some(server) = self.world.server(key) else { return };
        match server.case().map(|c| c.stage) {
            // What a server proper left that has ended since is looked at all the same.
            Some(Stage::Failed) if !server.proper_ended => {}
            Some(Stage::Kill) => self.sweep(now, key),
            _ if self.doubtful => self.world.set_timer(key, Some(now + SWEEP)),
            _ => self.look(now, key),
        }
    }

    /// The server proper first: it closes its browser and unlinks its pid file.
    pub(super) fn begin_to_end(&mut self, now: BootTime, key: ServerKey) {
        let leaf = self.leaf(key);
        let moment = self.moment();
        let Some(case) = self.world.server_mut(key).and_then(|s| s.case_mut()) else { return };
        case.guards.clear();
        if self.living(key).is_empty() {
            self.tell_untouchable(now, key);
            return;
        }
        let Some(case) = self.world.server_mut(key).and_then(|s| s.case_mut()) else { return };
        case.stage = Stage::Leaf;
        case.first_signal.get_or_insert(now);
        if let Some(server) = self.world.server(key).map(|s| s.id) {
            self.persist(now, Fact::Reaping { server });
        }
        self.world.set_timer(key, Some(now + moment));
        match leaf {
            Some(leaf) => self.send(key, leaf, Signal::Term),
            None => self.terminate_rest(now, key),
        }
    }

    /// What the server proper has for itself, before the rest is asked to end, too.
    fn moment(&self) -> Duration {
        Duration::from_secs(1).min(self.settings.term_timeout / 5)
    }

    pub(super) fn terminate_rest(&mut self, now: BootTime, key: ServerKey) {
        for process in self.living(key) {
            if !self.was_sent(key, process, Signal::Term) {
                self.send(key, process, Signal::Term);
            }
        }
        let Some(case) = self.world.server_mut(key).and_then(|s| s.case_mut()) else { return };
        case.stage = Stage::Rest;
        // Not from the first signal of all: a guard may have stopped an earlier try long ago.
        let patience = self.settings.term_timeout.saturating_sub(self.moment());
        self.world.set_timer(key, Some(now + patience));
    }

    pub(super) fn begin_kill(&mut self, now: BootTime, key: ServerKey) {
        if let Some(case) = self.world.server_mut(key).and_then(|s| s.case_mut()) {
            case.stage = Stage::Kill;
            case.looks = 0;
        }
        self.sweep(now, key);
    }

    /// One round of SIGKILL to what lives, leaves first.
    fn sweep(&mut self, now: BootTime, key: ServerKey) {
        for process in self.living(key) {
            if !self.was_sent(key, process, Signal::Kill) {
                self.send(key, process, Signal::Kill);
            }
        }
        let left = self.living(key);
        let Some(case) = self.world.server_mut(key).and_then(|s| s.case_mut()) else { return };
        case.looks += 1;
        let hopeless = !left.is_empty() && left.iter().all(|process| case.refused.contains(process));
        if case.looks < SWEEPS && !hopeless {
            self.world.set_timer(key, Some(now + SWEEP));
            return;
        }
        if left.is_empty() {
            self.tell_untouchable(now, key);
            return;
        }
        let after = SWEEP * SWEEPS;
        let error = format!("still there {} s after SIGKILL (blocked in the kernel?)", after.as_secs());
        if let Some(case) = self.world.server_mut(key).and_then(|s| s.case_mut()) {
            let first = left.iter().find(|process| !case.refused.contains(process)).copied();
            case.failure =
                case.failure.take().or(first.map(|process| Failure { process, error, errno: None }));
            case.refused.extend(left);
        }
        self.give_up(now, key);
    }

    /// No guard holds, and yet nothing that is left may be signalled.
    fn tell_untouchable(&mut self, now: BootTime, key: ServerKey) {
        let Some(proper) = self.world.server(key).map(Server::proper) else { return };
        let error = "not signalled: orphand itself was started below it".to_owned();
        self.fail(now, key, proper, error, None);
    }

    /// A server that is being killed forked.
    pub(super) fn pursue(&mut self, _at: BootTime, child: ProcessId) {
        let Some(key) = self.world.node(child).and_then(|n| n.server) else { return };
        if self.world.server(key).and_then(|s| s.case()).is_some_and(|c| c.stage == Stage::Kill) {
            self.send(key, child, Signal::Kill);
        }
    }

    /// A process could not be ended. It is told when the others have been tried, too.
    pub(super) fn fail(
        &mut self,
        now: BootTime,
        key: ServerKey,
        process: ProcessId,
        error: String,
        errno: Option<i32>,
    ) {
        let Some(case) = self.world.server_mut(key).and_then(|s| s.case_mut()) else { return };
        case.refused.insert(process);
        case.failure.get_or_insert(Failure { process, error, errno });
        let Some(server) = self.world.server(key) else { return };
        let refused = |process: &ProcessId| server.case().is_some_and(|case| case.refused.contains(process));
        let mut others =
            server.processes().iter().chain(server.wrappers()).filter(|process| !refused(process));
        if !others.any(|process| self.may_signal(key, *process)) {
            self.give_up(now, key);
        }
    }

    /// Nothing more is tried.
    fn give_up(&mut self, now: BootTime, key: ServerKey) {
        if let Some(case) = self.world.server_mut(key).and_then(|s| s.case_mut()) {
            case.stage = Stage::Failed;
        }
        self.world.set_timer(key, None);
        self.tell_failure(now, key);
    }

    /// What could not be ended, if that has not been told yet: one event, however many processes they are.
    pub(super) fn tell_failure(&mut self, now: BootTime, key: ServerKey) {
        let Some(server) = self.world.server_mut(key) else { return };
        let Some((failure, failed)) =
            server.case_mut().and_then(|case| Some((case.failure.take()?, case.refused.len() as u64)))
        else {
            return;
        };
        let Failure { process, error, errno } = failure;
        let (id, pid) = (server.id, process.pid);
        let Some(server) = self.world.server(key) else { return };
        let now_there = server_view(server, self.world.graph());
        let before = server.last_view.clone().filter(|_| now_there.processes.is_empty());
        let view = before.unwrap_or(now_there);
        self.persist(now, Fact::ReapFailed { server: id, pid, error: error.clone() });
        self.emit(now, Notice::ReapFailed { server: view, pid, error, errno, failed });
    }
}
