//! Cases of servers: translates what happens into events of [`crate::case`] and carries out the actions that follow.

use std::mem;

use super::{Engine, ends::millis};
use crate::{
    case::{self, Action, Announcement, Event, Facts, Kind, Owner, Pace, Record},
    lineage::{Provenance, ServerKey},
    model::{AgentView, BootTime, Class, Effect, Ending, Fact, Notice, ProcessId, ServerView, Signal},
    verdict::Finding,
    world::{Agent, agent_view},
};

/// What an inspection of the host found out about a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inspected<'a> {
    /// The finding that follows from the inspection.
    pub(super) finding: &'a Finding,
    /// Resident memory of the server in bytes.
    pub(super) rss_bytes: u64,
}

/// The server or the agent that turned out to be an orphan.
pub(super) struct Orphan {
    /// The process by which the store knows it.
    pub(super) id: ProcessId,
    /// Whether it is a server or an agent.
    pub(super) class: Class,
    /// Whether an earlier daemon witnessed it.
    pub(super) recovered: bool,
    /// Whether it was an orphan before, and a doubt came up in between.
    pub(super) again: bool,
    /// It, as it is shown.
    pub(super) server: ServerView,
    /// The owner, or the agent above, as it is shown.
    pub(super) owner: Option<AgentView>,
}

impl Engine {
    /// Passes an event to the case of a server.
    pub(super) fn server_event(&mut self, now: BootTime, key: ServerKey, event: Event) {
        self.advance(now, key, event, None);
    }

    /// Passes an event to the case of a server. `seen`: the inspection that the event follows from.
    pub(super) fn advance(
        &mut self,
        now: BootTime,
        key: ServerKey,
        event: Event,
        seen: Option<Inspected<'_>>,
    ) {
        let targets = match &event {
            Event::Proceed => self.targets(key),
            Event::NewChild { process } => {
                Some(*process).filter(|child| self.is_target(key, *child)).into_iter().collect()
            }
            _ => Vec::new(),
        };
        let main_process = matches!(event, Event::Proceed).then(|| self.main_process(key)).flatten();
        let Some(server) = self.world.server_mut(key) else { return };
        let (main_ended, owner_wanted, known_by) =
            (server.main_ended, server.seeks_owner, server.main_process());
        let phase = mem::take(&mut server.phase);
        let was_clear = phase.is_clear();
        let facts = Facts {
            now,
            pace: Pace::server(self.settings.grace, self.settings.term_timeout),
            owner: self.world.owner(key).map_or(Owner::Unknown, owner_of),
            owner_wanted,
            doubtful: self.doubtful,
            main_ended,
            known_by,
            main_process,
            targets,
            unseen: &self.unseen,
        };
        let (phase, actions) = case::step(phase, event, &facts);
        if let Some(server) = self.world.server_mut(key) {
            server.phase = phase;
        }
        if was_clear && self.world.server(key).is_some_and(|server| !server.phase.is_clear()) {
            self.watch_tools(now, key);
        }
        self.compare(now, key);
        for action in actions {
            self.carry_out(now, key, action, seen);
        }
    }

    fn carry_out(&mut self, now: BootTime, key: ServerKey, action: Action, seen: Option<Inspected<'_>>) {
        match action {
            Action::Inspect => self.inspect(now, key),
            Action::SetDeadline(at) => self.world.set_timer(key, at),
            Action::AdoptOwner => {
                if let Some(host) = seen.and_then(|seen| seen.finding.host.as_ref()) {
                    self.owner_found(now, key, host);
                }
            }
            Action::UpdateMemory => {
                if let Some((server, seen)) = self.world.server_mut(key).zip(seen) {
                    server.rss_bytes = Some(seen.rss_bytes);
                    self.alarms.mark_dirty();
                }
            }
            Action::KeepView => {
                if let Some(server) = self.world.server_mut(key) {
                    server.rss_bytes = server.phase.verdict().map(|verdict| verdict.rss_bytes);
                }
                self.world.show(key);
            }
            Action::Release => {
                if let Some(seen) = seen {
                    self.let_go(now, key, &seen.finding.members.let_go);
                }
            }
            Action::Proceed => self.advance(now, key, Event::Proceed, seen),
            Action::EndIfGone => self.end_if_done(now, key),
            Action::Signal { process, signal } => self.send(key, process, signal),
            Action::StopContainer(container) => self.stop_container(key, &container),
            Action::Persist(Record::Subject) => self.remember_server(now, key),
            Action::Persist(Record::Terminating) => {
                if let Some(server) = self.world.server(key).map(|server| server.id) {
                    self.persist(now, Fact::Reaping { server });
                }
            }
            Action::Announce(announcement) => self.announce(now, key, announcement),
            Action::Close(outcome) => self.close_server(now, key, outcome),
        }
    }

    /// Sends a signal. Every signal to a server goes through the last check here.
    fn send(&mut self, key: ServerKey, process: ProcessId, signal: Signal) {
        if self.may_signal(key, process) {
            let uid = self.user(process);
            self.effects.push_back(Effect::Signal { process, signal, uid });
        }
    }

    /// A server forked while it is being killed: the child is killed, too.
    pub(super) fn kill_new_child(&mut self, at: BootTime, child: ProcessId) {
        let Some(key) = self.world.node(child).and_then(|node| node.server) else { return };
        if self.world.server(key).is_some_and(|server| server.phase.kind() == Kind::Kill) {
            self.server_event(at, key, Event::NewChild { process: child });
        }
    }

    fn announce(&mut self, now: BootTime, key: ServerKey, announcement: Announcement) {
        let owner = self.world.owner(key).map(agent_view);
        let Some(view) = self.world.view(key) else { return };
        let Some(server) = self.world.server(key) else { return };
        let (id, recovered) = (server.id, server.provenance == Provenance::Recovered);
        match announcement {
            Announcement::Cleared { since } => {
                let notice = Notice::OrphanCleared {
                    server: view,
                    after_ms: millis(now, since),
                    reason: "owner_found".to_owned(),
                    owner,
                    ending: Ending::default(),
                    let_go: Vec::new(),
                };
                self.persist(now, Fact::Cleared { server: id });
                self.emit(now, notice);
            }
            Announcement::SessionLives { since } => {
                let notice = Notice::OrphanCleared {
                    server: view,
                    after_ms: millis(now, since),
                    reason: "session_lives".to_owned(),
                    owner,
                    ending: Ending::default(),
                    let_go: Vec::new(),
                };
                self.persist(now, Fact::Cleared { server: id });
                self.emit(now, notice);
            }
            Announcement::Unproven => {
                let reached_by = server.reached_by.clone();
                let Some(verdict) = server.phase.verdict().cloned() else { return };
                let (evidence, doubts, rss_bytes) = (verdict.evidence, verdict.doubts, verdict.rss_bytes);
                let notice = Notice::OrphanUnproven {
                    cpu_ms: view.cpu_ms,
                    server: view,
                    owner,
                    evidence: evidence.clone(),
                    doubts: doubts.clone(),
                    reached_by,
                    rss_bytes,
                    after_ms: millis(now, verdict.cause.since),
                    deadline: self.tools_deadline(server),
                };
                self.persist(now, Fact::Unproven { server: id, evidence, doubts, rss_bytes });
                self.emit(now, notice);
            }
            Announcement::Orphan { due, again } => {
                let Some(verdict) = server.phase.verdict().cloned() else { return };
                let orphan = Orphan { id, class: Class::Server, recovered, again, server: view, owner };
                self.announce_orphan(now, orphan, verdict, due);
            }
            Announcement::Spared { guards } => {
                self.emit(now, Notice::OrphanSpared { class: Class::Server, server: view, owner, guards });
            }
            Announcement::Failed { failure, failed } => {
                let before = server.last_view.clone().filter(|_| view.processes.is_empty());
                let server = before.unwrap_or(view);
                self.announce_failure(now, id, server, failure, failed);
            }
        }
    }

    /// Remembers and announces that a case is an orphan's.
    pub(super) fn announce_orphan(
        &mut self,
        now: BootTime,
        orphan: Orphan,
        verdict: case::Verdict,
        due: BootTime,
    ) {
        let Orphan { id, class, recovered, again, server, owner } = orphan;
        let case::Verdict { cause, evidence, guards, rss_bytes, pss_bytes, .. } = verdict;
        let notice = Notice::OrphanDetected {
            class,
            recovered,
            again,
            cpu_ms: server.cpu_ms,
            server,
            owner,
            evidence: evidence.clone(),
            guards: guards.clone(),
            rss_bytes,
            pss_bytes,
            after_ms: millis(now, cause.since),
            latency_ms: now.since(due).as_secs_f64() * 1e3,
        };
        self.persist(now, Fact::Orphan { server: id, evidence, guards, rss_bytes, pss_bytes });
        self.emit(now, notice);
    }

    /// Remembers and announces that an orphan could not be ended.
    pub(super) fn announce_failure(
        &mut self,
        now: BootTime,
        id: ProcessId,
        server: ServerView,
        failure: case::Failure,
        failed: u64,
    ) {
        let case::Failure { process, error, errno } = failure;
        let pid = process.pid;
        self.persist(now, Fact::ReapFailed { server: id, pid, error: error.clone() });
        self.emit(now, Notice::ReapFailed { server, pid, error, errno, failed });
    }
}

const fn owner_of(agent: &Agent) -> Owner {
    match agent.exited() {
        None => Owner::Alive,
        Some(at) => Owner::Exited(at),
    }
}
