//! What is stored and reported of cases, of servers and agents alike.

use super::{Engine, cases::CaseOf, ends::millis};
use crate::{
    case::{Announcement, Failure, Outcome, Verdict},
    lineage::Provenance,
    model::{AgentView, BootTime, Class, End, Ending, Fact, Notice, ProcessId, ProcessView, ServerView},
    world::{agent_as_server, agent_view},
};

/// A server or an agent as it is reported, and the owner or the agent above.
pub(super) struct Reported {
    /// The process by which the store knows it.
    pub(super) id: ProcessId,
    pub(super) class: Class,
    pub(super) server: ServerView,
    pub(super) owner: Option<AgentView>,
}

impl Engine {
    pub(super) fn reported(&self, of: CaseOf) -> Option<Reported> {
        Some(match of {
            CaseOf::Server(key) => Reported {
                id: self.world.server(key)?.id,
                class: Class::Server,
                server: self.world.view(key)?,
                owner: self.world.owner(key).map(agent_view),
            },
            CaseOf::Agent(key) => {
                let agent = self.world.agent(key)?;
                Reported {
                    id: agent.main(),
                    class: Class::Agent,
                    server: agent_as_server(agent, self.world.graph()),
                    owner: agent.above.and_then(|above| self.world.agent(above)).map(agent_view),
                }
            }
        })
    }

    pub(super) fn announce(&mut self, now: BootTime, of: CaseOf, announcement: Announcement) {
        let Some(Reported { id, class, server, owner }) = self.reported(of) else { return };
        let key = match of {
            CaseOf::Server(key) => Some(key),
            CaseOf::Agent(_) => None,
        };
        let own = key.and_then(|key| self.world.server(key));
        let verdict = self.phase(of).and_then(|phase| phase.verdict()).cloned();
        let (fact, notice) = match (announcement, verdict) {
            (Announcement::Cleared { since, reason }, _) => {
                let (after_ms, reason) = (millis(now, since), reason.to_owned());
                let (ending, let_go) = (Ending::default(), Vec::new());
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
                (Some(Fact::Orphan { server: id, evidence, guards, rss_bytes, pss_bytes }), notice)
            }
            (Announcement::Spared { guards }, _) => {
                (None, Notice::OrphanSpared { class, server, owner, guards })
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
    pub(super) fn announce_end(
        &mut self,
        at: BootTime,
        ended: Reported,
        outcome: Outcome,
        ending: Ending,
        let_go: Vec<ProcessView>,
    ) {
        let Reported { id, class, server, owner } = ended;
        let (end, notice) = match outcome {
            Outcome::Exited => (
                End::Exited { ending: ending.clone() },
                Notice::ServerExited { server, owner, ending, let_go },
            ),
            Outcome::Cleared { since } => {
                let (after_ms, reason) = (millis(at, since), "exited".to_owned());
                let end = End::Exited { ending: ending.clone() };
                (end, Notice::OrphanCleared { server, after_ms, reason, owner: None, ending, let_go })
            }
            Outcome::OrphanExited { .. } => (
                End::OrphanExited { ending: ending.clone() },
                Notice::OrphanExited { class, server, owner, ending, let_go },
            ),
            Outcome::Reaped { signal, first_signal, rss_bytes, pss_bytes, asked } => {
                let (signal, took_ms) = (Some(signal), Some(millis(at, first_signal)));
                let (freed_bytes, freed_pss_bytes) = (rss_bytes, pss_bytes);
                let end = End::Reaped { signal, took_ms, freed_bytes, freed_pss_bytes };
                let notice = Notice::OrphanReaped {
                    class,
                    recovered: false,
                    asked,
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
