//! Cases of servers and agents: passes what happens to [`crate::case`] and carries out the actions that follow. This is
//! the only place that signals either.

use std::mem;

use super::Engine;
use crate::{
    case::{self, Action, Event, Facts, Owner, Pace, Phase, Stage},
    lineage::{AgentKey, ServerKey},
    model::{BootTime, Effect, Fact, ProcessId, Signal},
    verdict::Finding,
    world::Agent,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CaseOf {
    Server(ServerKey),
    Agent(AgentKey),
}

impl Engine {
    /// Passes an event to the case of a server.
    pub(super) fn server_event(&mut self, now: BootTime, key: ServerKey, event: Event) {
        self.advance(now, CaseOf::Server(key), event, None);
    }

    /// Passes an event to the case of an agent.
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
        let Some(mut phase) = self.phase_mut(of).map(mem::take) else { return };
        let was_clear = phase.is_clear();
        let actions = self
            .facts(now, of, &event)
            .map(|facts| case::step(&mut phase, event, &facts))
            .unwrap_or_default();
        let is_clear = phase.is_clear();
        if let Some(slot) = self.phase_mut(of) {
            *slot = phase;
        }
        if let CaseOf::Server(key) = of {
            match (was_clear, is_clear) {
                (true, false) => self.watch_tools(now, key),
                (false, true) => self.compare(now, key),
                _ => {}
            }
        }
        for action in actions {
            self.carry_out(now, of, action, seen);
        }
    }

    fn facts(&self, now: BootTime, of: CaseOf, event: &Event) -> Option<Facts<'_>> {
        let proceeds = matches!(event, Event::Proceed);
        Some(match of {
            CaseOf::Server(key) => {
                let server = self.world.server(key)?;
                Facts {
                    now,
                    pace: Pace::server(self.settings.grace, self.settings.term_timeout),
                    owner: self.world.owner(key).map_or(Owner::Unknown, owner_of),
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
                let main = self.world.agent(key)?.main();
                let may_end = proceeds && self.may_end(key);
                Facts {
                    now,
                    pace: Pace::agent(self.settings.grace, self.settings.term_timeout),
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

    fn carry_out(&mut self, now: BootTime, of: CaseOf, action: Action, seen: Option<&Finding>) {
        match (action, of) {
            (Action::Inspect, CaseOf::Server(key)) => self.inspect(now, key, false),
            (Action::Inspect, CaseOf::Agent(key)) => self.inspect_agent(key),
            (Action::SetDeadline(at), _) => self.set_deadline(of, at),
            (Action::Proceed, _) => self.advance(now, of, Event::Proceed, seen),
            (Action::Signal { process, signal }, _) => self.send(of, process, signal),
            (Action::Remember, CaseOf::Server(key)) => self.remember_server(now, key),
            (Action::Remember, CaseOf::Agent(key)) => self.remember_agent(now, key),
            (Action::RememberReaping, _) => {
                let server = match of {
                    CaseOf::Server(key) => self.world.server(key).map(|server| server.id),
                    CaseOf::Agent(key) => self.world.agent(key).map(Agent::main),
                };
                if let Some(server) = server {
                    self.persist(now, Fact::Reaping { server });
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
                if let Some(server) = self.world.server_mut(key) {
                    server.rss_bytes = server.phase.verdict().map(|verdict| verdict.rss_bytes);
                }
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
    fn send(&mut self, of: CaseOf, process: ProcessId, signal: Signal) {
        let may = match of {
            CaseOf::Server(key) => self.may_signal(key, process),
            CaseOf::Agent(key) => self.may_end(key),
        };
        if may {
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
}

const fn owner_of(agent: &Agent) -> Owner {
    match agent.exited() {
        None => Owner::Alive,
        Some(at) => Owner::Exited(at),
    }
}
