//! Servers that a living owner abandoned: it let go of their wires, or closed their standard input and ended the head
//! of their launch chain.
//!
//! No record of the kernel reports that a wire was closed. So the engine asks the host from time to time which
//! servers have a standard input that is hung up. It asks only while there are servers, at most four times a minute,
//! and about a bounded number of servers at a time, those of each user in his turn: how long that takes he decides.
//! It also asks about one server when the head of its launch chain was ended by a signal. A hung-up standard input proves nothing yet: it opens a case, and after the grace the
//! inspection finds out whether anybody can still use the server.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{
    Engine,
    agenda::{Task, in_turn},
    released::holds,
};
use crate::{
    case::By,
    lineage::ServerKey,
    model::{About, Answer, BootTime, ExitStatus, Haste, OwnEnd, ProcessId, Share},
    world::{Agent, Server},
};

/// The time between two questions about all servers.
const EVERY: Duration = Duration::from_secs(15);
/// The most servers that are asked about at a time. The next questions continue with the others.
const AT_ONCE: usize = 1024;
/// The signals by which a process is closed on purpose: SIGHUP, SIGINT, SIGKILL, SIGTERM. A crash is none.
const CLOSING_SIGNALS: [u8; 4] = [1, 2, 9, 15];
/// A process that handles a signal and then exits by itself adds this to the number of the signal, bash(1).
const SIGNAL_CODES: u8 = 128;

/// When the wires of servers are asked about.
#[derive(Debug, Default)]
pub(super) struct WireWatch {
    /// The last server of each user that was asked about.
    last: BTreeMap<Share, ServerKey>,
    /// The users about whose servers a question is open.
    open: BTreeSet<Share>,
}

impl Engine {
    /// Makes the next question due at once. For commands that inspect the host once.
    pub fn watch_wires_at_once(&mut self) {
        let is_asked = self.agenda.at(Task::Wires).is_some();
        self.agenda.set(Task::Wires, is_asked.then(BootTime::default));
    }

    /// Watches while there are servers: an idle daemon without servers is not woken.
    pub(super) fn begin_wire_watch(&mut self, now: BootTime) {
        self.agenda.keep(Task::Wires, (!self.world.servers().is_empty()).then(|| now + EVERY));
    }

    pub(super) fn watch_wires(&mut self, now: BootTime) {
        self.begin_wire_watch(now);
        self.ask_containers(now);
        let watched = self.world.servers().iter().filter(|(_, server)| self.is_watched(server));
        let watched = watched.map(|(key, server)| (*key, server.share()));
        let chosen = in_turn(&self.wire_watch.last, watched, AT_ONCE);
        self.wire_watch.last.retain(|user, _| chosen.contains_key(user));
        for (user, keys) in chosen {
            // They are not left out, but asked about when that is answered.
            if self.wire_watch.open.insert(user) {
                self.wire_watch.last.extend(keys.last().map(|key| (user, *key)));
                self.ask_about_wires(user, &keys, true);
            }
        }
    }

    /// Whether a hung-up standard input would open a case for this server.
    fn is_watched(&self, server: &Server) -> bool {
        server.phase.is_clear()
            && !server.main_ended
            && server.stdin.is_wire()
            && self.world.owner_of(server).is_some_and(Agent::is_alive)
    }

    /// `in_turn`: no other question of this kind about servers of this user is asked until it is answered.
    fn ask_about_wires(&mut self, user: Share, keys: &[ServerKey], in_turn: bool) {
        let (mut servers, mut ends) = (Vec::new(), Vec::new());
        for (key, server) in keys.iter().filter_map(|key| Some((*key, self.world.server(*key)?))) {
            servers.push((key, server.main_process()));
            ends.push(OwnEnd { process: server.main_process(), stdin: server.stdin });
        }
        self.ask(Some((user, Haste::InTurn)), About::HungUp(ends), move |engine, now, answer| {
            if in_turn {
                engine.wire_watch.open.remove(&user);
            }
            let Answer::HungUp { processes } = answer else { return };
            let hung_up: BTreeSet<ProcessId> = processes.into_iter().collect();
            for (key, process) in servers {
                let is_it = |server: &Server| server.main_process() == process && engine.is_watched(server);
                if hung_up.contains(&process) && engine.world.server(key).is_some_and(is_it) {
                    engine.release(now, key, By::Owner, now);
                }
            }
        });
    }

    /// The head of the launch chain of a server is exiting. If a signal ended it, the owner may have closed the
    /// server.
    pub(super) fn head_exits(
        &mut self,
        at: BootTime,
        head: ProcessId,
        status: Option<ExitStatus>,
    ) -> Option<ServerKey> {
        let signal = match status? {
            ExitStatus::Signal(signal) => signal,
            ExitStatus::Code(code) => code.checked_sub(SIGNAL_CODES)?,
        };
        let was_closed = CLOSING_SIGNALS.contains(&signal);
        let key = self.world.node(head).and_then(|node| node.server.or(node.wraps)).filter(|_| was_closed)?;
        let server = self.world.server_mut(key).filter(|server| server.id == head)?;
        server.head_killed = Some(at);
        Some(key)
    }

    pub(super) fn head_has_exited(&mut self, now: BootTime, key: ServerKey) {
        if let Some(server) = self.world.server(key).filter(|server| self.is_watched(server)) {
            self.ask_about_wires(server.share(), &[key], false);
        }
        self.watch_since_its_head_was_killed(now, key);
    }

    /// Watches what a server does since the head of its launch chain was killed. Its owner may close the standard input before or
    /// after that.
    pub(super) fn watch_since_its_head_was_killed(&mut self, now: BootTime, key: ServerKey) {
        let is_closed = |server: &Server| {
            holds(server, By::Owner)
                && !server.watches.contains_key(&By::Owner)
                && !server.phase.is_terminating()
                && self.world.owner_of(server).is_some_and(Agent::is_alive)
        };
        if self.world.server(key).is_some_and(is_closed) {
            self.watch(now, key, By::Owner);
        }
    }
}
