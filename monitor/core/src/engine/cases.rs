//! Cases of servers and agents: passes what happens to [`crate::case`], carries out the actions that follow, stores and reports
//! what is announced. This is the only place that signals a server or an agent.

use std::time::Duration;

use rustc_hash::FxHashSet;

use super::{Engine, agenda::Task, findings::may_have_tools, left_agents::between_looks, lives::millis};
use crate::{
    case::{self, Action, Announcement, Event, Facts, Failure, Outcome, Owner, Pace, Phase, Stage, Verdict},
    lineage::{AgentKey, Provenance, ServerKey},
    model::{
        AgentView, BootTime, Class, Effect, Ending, Fact, Fate, Notice, ProcessId, ProcessView, ServerView,
        Signal,
    },
    verdict::Finding,
    world::{Agent, agent_as_server, agent_view},
};

/// Between two inspections of who stays, at most.
pub(super) const LONGEST: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CaseOf {
    Server(ServerKey),
    Agent(AgentKey),
}

impl Engine {
    pub(super) fn server_event(&mut self, now: BootTime, key: ServerKey, event: Event) {
        self.advance(now, CaseOf::Server(key), event, None);
    }

    pub(super) fn agent_event(&mut self, now: BootTime, key: AgentKey, event: Event) {
        self.advance(now, CaseOf::Agent(key), event, None);
    }

    pub(super) fn phase(&self, of: CaseOf) -> Option<&Phase> {
        match of {
            CaseOf::Server(key) => self.world.server(key).map(|server| &server.phase),
            CaseOf::Agent(key) => self.world.agent(key).map(|agent| &agent.phase),
        }
    }

    fn phase_mut(&mut self, of: CaseOf) -> Option<&mut Phase> {
        match of {
            CaseOf::Server(key) => self.world.server_mut(key).map(|server| &mut server.phase),
            CaseOf::Agent(key) => self.world.agent_mut(key).map(|agent| &mut agent.phase),
        }
    }

    /// Passes an event to a case. `seen`: what the inspection found that the event follows from.
    pub(super) fn advance(&mut self, now: BootTime, of: CaseOf, event: Event, seen: Option<&Finding>) {
        // A copy: what may be signalled depends on the phase as it is.
        let Some(mut phase) = self.phase(of).cloned() else { return };
        let was_clear = phase.is_clear();
        let facts = self.facts(now, of, &event);
        let actions = facts.map(|facts| case::step(&mut phase, event, &facts)).unwrap_or_default();
        let is_clear = phase.is_clear();
        if let Some(slot) = self.phase_mut(of) {
            *slot = phase;
        }
        if let CaseOf::Server(key) = of {
            match (was_clear, is_clear) {
                // What its tools do from now on is known by a look.
                (true, false) if self.world.server(key).is_some_and(may_have_tools) => {
                    self.agenda.set(Task::Tools(key), Some(now));
                }
                (false, true) => self.compare(now, key),
                _ => {}
            }
        }
        // Computed at the first signal, for all of them: each may be the child of the one before.
        let mut targets = None;
        for action in actions {
            self.carry_out(now, of, action, seen, &mut targets);
        }
    }

    fn facts(&self, now: BootTime, of: CaseOf, event: &Event) -> Option<Facts<'_>> {
        let proceeds = matches!(event, Event::Proceed);
        let (grace, term_timeout) = (self.policy.grace, self.policy.term_timeout);
        Some(match of {
            CaseOf::Server(key) => {
                let server = self.world.server(key)?;
                Facts {
                    now,
                    pace: Pace { grace, longest: LONGEST, term_timeout },
                    owner: match self.world.owner(key).map(Agent::exited) {
                        None => Owner::Unknown,
                        Some(None) => Owner::Alive,
                        Some(Some(at)) => Owner::Exited(at),
                    },
                    owner_wanted: server.seeks_owner,
                    doubtful: self.doubtful,
                    main_ended: server.main_ended,
                    known_by: server.main_process(),
                    main_process: if proceeds { self.main_process(key) } else { None },
                    targets: match event {
                        Event::Proceed => self.targets(key),
                        Event::NewChild { process } if self.is_target(key, *process) => vec![*process],
                        _ => Vec::new(),
                    },
                    unseen: &self.unseen,
                }
            }
            CaseOf::Agent(key) => {
                let agent = self.world.agent(key)?;
                let (main, longest) = (agent.main(), between_looks(agent));
                let may_end = proceeds && self.may_end(key);
                Facts {
                    now,
                    pace: Pace { grace, longest, term_timeout },
                    owner: Owner::Unknown,
                    owner_wanted: false,
                    doubtful: false,
                    main_ended: false,
                    known_by: main,
                    main_process: Some(main),
                    targets: may_end.then_some(main).into_iter().collect(),
                    unseen: &self.unseen,
                }
            }
        })
    }

    fn carry_out(
        &mut self,
        now: BootTime,
        of: CaseOf,
        action: Action,
        seen: Option<&Finding>,
        targets: &mut Option<FxHashSet<ProcessId>>,
    ) {
        match (action, of) {
            (Action::Signal { process, signal }, _) => {
                let targets = targets.get_or_insert_with(|| self.may_signal(of));
                self.send(targets, process, signal);
            }
            (Action::Inspect, CaseOf::Server(key)) => self.inspect(now, key),
            (Action::Inspect, CaseOf::Agent(key)) => self.inspect_agent(key),
            (Action::SetDeadline(at), _) => self.set_deadline(of, at),
            (Action::Proceed, _) => self.advance(now, of, Event::Proceed, seen),
            (Action::Remember, CaseOf::Server(key)) => self.remember_server(now, key),
            (Action::Remember, CaseOf::Agent(key)) => self.remember_agent(now, key),
            (Action::RememberReaping, _) => {
                if let Some(server) = self.stored_as(of) {
                    let key = if let CaseOf::Server(key) = of { Some(key) } else { None };
                    let own = key.and_then(|key| self.world.server(key)).filter(|own| own.phase.asked());
                    let asked_by = own.and_then(|own| own.asked_by.clone());
                    self.persist(now, Fact::Reaping { server, asked_by });
                }
            }
            (Action::Announce(announcement), _) => self.announce(now, of, announcement),
            (Action::Close(outcome), CaseOf::Server(key)) => self.close_server(now, key, outcome),
            (Action::Close(outcome), CaseOf::Agent(key)) => self.close_agent(now, key, outcome),
            (Action::AdoptOwner, CaseOf::Server(key)) => {
                if let Some(host) = seen.and_then(|seen| seen.host.as_ref()) {
                    self.owner_found(now, key, host);
                }
            }
            (Action::UpdateMemory, CaseOf::Server(key)) => {
                if let Some((server, seen)) = self.world.server_mut(key).zip(seen) {
                    server.rss_bytes = Some(seen.case.rss_bytes);
                    self.alarms.dirty = true;
                }
            }
            (Action::KeepView, CaseOf::Server(key)) => {
                self.world.change_server(key, |server| {
                    server.rss_bytes = server.phase.verdict().map(|verdict| verdict.rss_bytes);
                });
                self.world.show(key);
            }
            (Action::Release, CaseOf::Server(key)) => {
                if let Some(seen) = seen {
                    self.let_go(now, key, &seen.members.let_go);
                }
            }
            (Action::EndIfGone, CaseOf::Server(key)) => self.end_if_done(now, key),
            (Action::StopContainer(container), CaseOf::Server(key)) => self.stop_container(key, &container),
            // An agent is one process, and no process adopts it.
            (_, CaseOf::Agent(_)) => {}
        }
    }

    /// Sends a signal. Every signal to a server or an agent goes through the last check here.
    fn send(&mut self, targets: &FxHashSet<ProcessId>, process: ProcessId, signal: Signal) {
        if targets.contains(&process) {
            let uid = self.user(process);
            self.effects.push_back(Effect::Signal { process, signal, uid });
        }
    }

    /// A server forked while it is being killed: the child is killed, too.
    pub(super) fn kill_new_child(&mut self, at: BootTime, child: ProcessId) {
        let Some(key) = self.world.node(child).and_then(|node| node.server) else { return };
        if self.world.server(key).is_some_and(|server| server.phase.stage() == Some(Stage::Kill)) {
            self.server_event(at, key, Event::NewChild { process: child });
        }
    }

    pub(super) fn stored_as(&self, of: CaseOf) -> Option<ProcessId> {
        match of {
            CaseOf::Server(key) => self.world.server(key).map(|server| server.id),
            CaseOf::Agent(key) => self.world.agent(key).map(Agent::main),
        }
    }

    pub(super) fn reported(&self, of: CaseOf) -> Option<Reported> {
        let id = self.stored_as(of)?;
        let (class, server, owner) = match of {
            CaseOf::Server(key) => (Class::Server, self.world.view(key)?, self.world.owner(key)),
            CaseOf::Agent(key) => {
                let agent = self.world.agent(key)?;
                let above = agent.above.and_then(|above| self.world.agent(above));
                (Class::Agent, agent_as_server(agent, self.world.graph()), above)
            }
        };
        let (owner, ending, let_go) = (owner.map(agent_view), Ending::default(), Vec::new());
        Some(Reported { id, class, server, owner, ending, let_go, asked_by: None })
    }

    fn announce(&mut self, now: BootTime, of: CaseOf, announcement: Announcement) {
        let Some(Reported { id, class, server, owner, ending, let_go, .. }) = self.reported(of) else {
            return;
        };
        let key = match of {
            CaseOf::Server(key) => Some(key),
            CaseOf::Agent(_) => None,
        };
        let own = key.and_then(|key| self.world.server(key));
        let verdict = self.phase(of).and_then(|phase| phase.verdict()).cloned();
        let (fact, notice) = match (announcement, verdict) {
            (Announcement::Cleared { since, reason }, _) => {
                let (after_ms, reason) = (millis(now, since), reason.to_owned());
                self.recall.announced.remove(&id);
                let notice = Notice::OrphanCleared { server, after_ms, reason, owner, ending, let_go };
                (Some(Fact::Cleared { server: id }), notice)
            }
            (Announcement::Unproven, Some(Verdict { cause, evidence, doubts, rss_bytes, .. })) => {
                let notice = Notice::OrphanUnproven {
                    cpu_ms: server.cpu_ms,
                    server,
                    owner,
                    evidence: evidence.clone(),
                    doubts: doubts.clone(),
                    reached_by: own.map(|own| own.reached_by.clone()).unwrap_or_default(),
                    rss_bytes,
                    after_ms: millis(now, cause.since),
                    deadline: key.and_then(|key| self.tools_deadline(key)),
                };
                (Some(Fact::Unproven { server: id, evidence, doubts, rss_bytes }), notice)
            }
            (Announcement::Orphan { due, again }, Some(verdict)) => {
                let Verdict { cause, evidence, guards, rss_bytes, pss_bytes, .. } = verdict;
                let notice = Notice::OrphanDetected {
                    class,
                    recovered: own.is_some_and(|own| own.provenance == Provenance::Recovered),
                    again: again || self.recall.announced.contains_key(&id),
                    cpu_ms: server.cpu_ms,
                    server,
                    owner,
                    evidence: evidence.clone(),
                    guards: guards.clone(),
                    rss_bytes,
                    pss_bytes,
                    after_ms: millis(now, cause.since),
                    latency_ms: (now.since(due).as_secs_f64() * 1e6).round() / 1e3,
                };
                (Some(Fact::Orphan { server: id, evidence, guards, rss_bytes, pss_bytes }), notice)
            }
            (Announcement::Spared { guards }, _) => {
                let fact = Fact::Spared { server: id, guards: guards.clone() };
                let deadline = self.deadline(of);
                (Some(fact), Notice::OrphanSpared { class, server, owner, guards, deadline })
            }
            (Announcement::Failed { failure: Failure { process, error, errno }, failed }, _) => {
                let before =
                    own.filter(|_| server.processes.is_empty()).and_then(|own| own.last_view.clone());
                let (server, pid) = (before.unwrap_or(server), process.pid);
                let fact = Fact::ReapFailed { server: id, pid, error: error.clone() };
                (Some(fact), Notice::ReapFailed { server, pid, error, errno, failed })
            }
            (Announcement::Unproven | Announcement::Orphan { .. }, None) => return,
        };
        if let Some(fact) = fact {
            self.persist(now, fact);
        }
        self.emit(now, notice);
    }

    /// Stores and reports how a case, and its subject, ended.
    pub(super) fn announce_end(&mut self, at: BootTime, ended: Reported, outcome: Outcome) {
        let Reported { id, class, server, owner, ending, let_go, asked_by } = ended;
        let exited = Fate::Exited { ending: ending.clone() };
        let (end, notice) = match outcome {
            Outcome::Exited => (exited, Notice::ServerExited { server, owner, ending, let_go }),
            Outcome::Cleared { since } => {
                let (after_ms, reason) = (millis(at, since), "exited".to_owned());
                (exited, Notice::OrphanCleared { server, after_ms, reason, owner: None, ending, let_go })
            }
            Outcome::OrphanExited { .. } => {
                (exited, Notice::OrphanExited { class, server, owner, ending, let_go })
            }
            Outcome::Reaped { signal, first_signal, rss_bytes, pss_bytes, asked } => {
                let (signal, took_ms) = (Some(signal), Some(millis(at, first_signal)));
                let (freed_bytes, freed_pss_bytes) = (rss_bytes, pss_bytes);
                let end = Fate::Reaped { signal, took_ms, freed_bytes, freed_pss_bytes };
                let notice = Notice::OrphanReaped {
                    class,
                    recovered: false,
                    asked,
                    asked_by: asked_by.filter(|_| asked),
                    cpu_ms: server.cpu_ms,
                    server,
                    owner,
                    signal,
                    took_ms,
                    freed_bytes,
                    freed_pss_bytes,
                    let_go,
                };
                (end, notice)
            }
        };
        self.persist(at, Fact::Ended { server: id, end });
        self.emit(at, notice);
    }
}

/// A server or an agent as it is reported, and the owner or the agent above.
pub(super) struct Reported {
    pub(super) id: ProcessId,
    pub(super) class: Class,
    pub(super) server: ServerView,
    pub(super) owner: Option<AgentView>,
    /// How it ended, if it has, and what it had let go then.
    pub(super) ending: Ending,
    pub(super) let_go: Vec<ProcessView>,
    /// The last person who asked to end it.
    pub(super) asked_by: Option<String>,
}
