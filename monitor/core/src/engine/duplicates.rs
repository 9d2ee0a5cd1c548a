//! Duplicates: further servers of the same identity under one living owner.
//!
//! The identity is the owner, the rule, the arguments of the main process and its working directory. All but the
//! last are known from the records. The engine asks for the working directory only when a second server with the
//! same arguments is there and both have lived for the grace period: clients start a new server before they close
//! the old one. What cannot be read is no duplicate.
//!
//! Duplicates are reported and never ended, except at a person's request: it is not known which of them is in use. Where a
//! rule says so, an idle one is released ([`super::released`]); of those also the environments are compared.

mod groups;

use super::Engine;
use crate::{
    lineage::{Provenance, ServerKey},
    model::{About, Answer, BootTime, Notice, ProcessId, Whereabouts, redact},
    world::{Agent, agent_view},
};

pub(super) use self::groups::Duplicates;
use self::groups::{Identity, Likeness};

/// How many working directories are asked for in one pass. Further ones wait for the next pass.
const ASKED_AT_ONCE: usize = 16;

impl Engine {
    /// Something about a server may have changed that its likeness depends on.
    pub(super) fn compare(&mut self, now: BootTime, key: ServerKey) {
        match self.likeness(key) {
            Some((likeness, process)) => {
                let born = self.world.server(key).map_or(process.start, |server| server.id.start);
                self.duplicates.enter(key, &likeness, process, (born, key), now + self.settings.grace);
            }
            None => self.duplicates.leave(key),
        }
    }

    /// As [`Engine::compare`], for all servers.
    pub(super) fn compare_all(&mut self, now: BootTime) {
        for key in self.world.servers().keys() {
            self.compare(now, key);
        }
    }

    /// What is known of a server's identity without a question to the host, and its main process. `None` if it is no
    /// server of a living owner, if it has a case, or if its arguments are not known in full.
    fn likeness(&self, key: ServerKey) -> Option<(Likeness, ProcessId)> {
        let server = self.world.server(key)?;
        let owner = server.owner().filter(|owner| self.world.agent(*owner).is_some_and(Agent::is_alive))?;
        if !server.phase.is_clear() || server.seeks_owner || server.disowned {
            return None;
        }
        let main = self.world.node(server.main_process()).filter(|main| main.server == Some(key))?;
        let program = main.exec.program.as_ref()?;
        if program.image.argv.is_empty() || program.image.argv_truncated {
            return None;
        }
        Some((Likeness::new(owner, &server.rule, redact::argv(&program.image.argv)), main.id))
    }

    /// Asks where the servers work that are due.
    pub(super) fn ask_for_places(&mut self, now: BootTime) {
        if self.doubtful {
            return;
        }
        for _ in 0..ASKED_AT_ONCE {
            let Some((server, process)) = self.duplicates.due(now) else { break };
            self.ask(About::Whereabouts(process), move |engine, now, answer| {
                if let Answer::Whereabouts { place } = answer {
                    engine.place_answered(now, server, process, place);
                }
            });
        }
    }

    /// When the engine next asks where a server works. While records are missing it does not.
    pub(super) fn next_place(&self) -> Option<BootTime> {
        self.duplicates.next().filter(|_| !self.doubtful)
    }

    /// The answer to the question where a server works.
    pub(super) fn place_answered(
        &mut self,
        now: BootTime,
        key: ServerKey,
        process: ProcessId,
        place: Option<Whereabouts>,
    ) {
        let identity = |place: Whereabouts| Some((self.identity(process, place)?, place.environment));
        let Some(found) = place.and_then(identity) else { return };
        let Some((further, count)) = self.duplicates.identify(key, process, found) else { return };
        let Some(server) = self.world.view(further) else { return };
        let owner = self.world.owner(further).map(agent_view);
        self.emit(now, Notice::ServerDuplicated { server, owner, count });
    }

    /// Arguments of which something is masked are compared in full. So are those that /proc shows: a title may have been
    /// written over them, and two programs may have the same title.
    fn identity(&self, process: ProcessId, place: Whereabouts) -> Option<Identity> {
        let node = self.world.node(process)?;
        let masked = redact::argv(&node.image()?.argv).iter().any(|argument| redact::is_masked(argument));
        if (masked || node.provenance != Provenance::Witnessed) && place.command.is_none() {
            return None;
        }
        Some((place.directory, place.command.filter(|_| masked)))
    }

    /// The newest server of the same identity, if this server is not it.
    pub(super) fn duplicate_of(&self, key: ServerKey) -> Option<ProcessId> {
        let newest = self.duplicates.newest(key).filter(|newest| *newest != key)?;
        self.world.server(newest).map(|server| server.id)
    }

    /// The invariants that are broken: each server is listed by its present likeness. For tests.
    pub(super) fn check_duplicates(&self) -> Vec<String> {
        let mut broken = self.duplicates.check();
        for key in self.world.servers().keys() {
            let is = self.likeness(key);
            let listed = self.duplicates.listed(key);
            if is.as_ref().map(|(likeness, process)| (likeness, *process)) != listed {
                broken.push(format!("server {key:?} is listed as {listed:?}, it is {is:?}"));
            }
        }
        broken
    }
}
