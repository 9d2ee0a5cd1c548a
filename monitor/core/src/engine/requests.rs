//! Reaping at a person's request: which servers a request selects, and which guards hold even against a person. Leftovers end
//! only so: SIGTERM to the head and what is below it, and SIGKILL to what is left of that after the term timeout.
//!
//! What was there before the first start of orphand on this host, or before a time before which not all is known. Nobody saw how
//! it came to be left behind, or what it started, so a person decides: it is judged and reported like the rest, and the guard
//! [`crate::model::Guard::Found`] holds.
//!
//! Invariant: this follows from stored times, the birth of the process and those two. So a daemon that is started again says the
//! same, and nothing has to be remembered of a single server.

use std::{collections::BTreeSet, time::Duration};

use super::{Engine, agenda::Task};
use crate::{
    case::Event,
    lineage::AgentKey,
    model::{
        About, AgentView, Answer, BootTime, Branch, Effect, Found, Haste, ProcessId, ReapRequest,
        ServerReport, Share, Signal,
    },
    world::{Agent, Server},
};

/// How long a process that was killed may take to end until it is told that it stays.
const AFTER_KILL: Duration = Duration::from_secs(2);

/// How far the end of a branch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    agent: AgentKey,
    killed: bool,
}

impl Engine {
    /// The servers, or the leftovers, that a request selects, each with the guards that forbid ending it.
    pub fn plan(&self, request: &ReapRequest) -> Vec<ServerReport> {
        let mut report = self.report();
        // A person may overrule what orphand was told not to do by itself, and no other guard.
        report.lift_for_person();
        let leftovers = report.leftovers().map(|(agent, head)| (Some(agent), head));
        let leftovers = leftovers.filter(|_| request.leftovers);
        let servers =
            report.servers().filter(|(_, server)| !request.leftovers && is_asked_for(request, server));
        let planned = servers.chain(leftovers).filter(|(owner, one)| selects(request, *owner, one));
        planned.map(|(_, one)| one.clone()).collect()
    }

    /// Begins to end the servers, or the leftovers, that a request selects and no guard forbids. Each server is
    /// inspected first, like any orphan.
    pub(super) fn reap_on_request(&mut self, now: BootTime, request: &ReapRequest, by: &str) {
        let planned = self.plan(request).into_iter().filter(|one| one.guards.is_empty());
        let ids: BTreeSet<String> = planned.map(|one| one.server.id).collect();
        if request.leftovers {
            self.end_leftovers(now, &ids);
            return;
        }
        let anyway = request.include_unproven || request.include_active || request.duplicates;
        let meant = self.world.servers().iter().filter(|(_, server)| ids.contains(&server.id.to_string()));
        for key in meant.map(|(key, _)| *key).collect::<Vec<_>>() {
            if let Some(server) = self.world.server_mut(key) {
                server.asked_by = Some(by.to_owned());
            }
            self.server_event(now, key, Event::Asked { anyway });
        }
    }

    /// Begins to end the leftovers with these ids. No guard protects one: a person has seen it.
    fn end_leftovers(&mut self, now: BootTime, ids: &BTreeSet<String>) {
        let heads = self.leftovers.of_agent.iter().flat_map(|(key, left)| {
            let found = left.heads.iter().filter(|(_, head)| head.is_some());
            found.map(|(head, _)| (*key, *head))
        });
        let meant: Vec<_> = heads.filter(|(_, head)| ids.contains(&head.to_string())).collect();
        for (agent, head) in meant {
            if !self.leftovers.ending.contains_key(&head) {
                self.agenda.set(Task::LeftEnding(head), Some(now + self.policy.term_timeout));
                self.leftovers.ending.insert(head, Ending { agent, killed: false });
                self.ask_and_signal(agent, head, Signal::Term);
            }
        }
    }

    /// What did not end by SIGTERM is killed; what did not end by that stays.
    pub(super) fn go_on_ending(&mut self, now: BootTime, head: ProcessId) {
        let Some(Ending { agent, killed }) = self.leftovers.ending.remove(&head) else { return };
        if !killed && self.is_left(agent, head) {
            self.agenda.set(Task::LeftEnding(head), Some(now + AFTER_KILL));
            self.leftovers.ending.insert(head, Ending { agent, killed: true });
            self.ask_and_signal(agent, head, Signal::Kill);
        }
    }

    /// Asks where each process of a branch is now, and signals those that are where the agent was.
    fn ask_and_signal(&mut self, agent: AgentKey, head: ProcessId, signal: Signal) {
        let Some(turn) = self.world.agent(agent).map(|agent| Share::of(agent.uid)) else { return };
        let asked = self.branch(agent, head);
        let about = About::Leftovers(vec![asked.clone()]);
        self.ask(Some((turn, Haste::InTurn)), about, move |engine, _, answer| {
            let Answer::Leftovers { branches } = answer else { return };
            let was = engine.world.agent(agent).and_then(|agent| agent.place.as_deref());
            let is_there = |found: &&Branch| found.place.is_some() && found.place.as_deref() == was;
            let Some(found) = branches.first().filter(is_there) else { return };
            engine.cut_off(agent, &found.apart);
            let asked: BTreeSet<ProcessId> = asked.iter().copied().collect();
            // From the top down: a shell must not go on with its next command.
            let mut branch = engine.branch(agent, head);
            branch.retain(|process| asked.contains(process));
            if signal == Signal::Kill {
                branch.reverse();
            }
            engine.signal_branch(agent, branch, signal);
        });
    }

    /// Signals processes of a branch. Every signal to a leftover goes through this check.
    fn signal_branch(&mut self, agent: AgentKey, branch: Vec<ProcessId>, signal: Signal) {
        let above_agents = self.at_and_above_agents(branch.iter().copied());
        for process in branch {
            if process.pid > 1 && self.is_left(agent, process) && !above_agents.contains(&process) {
                let uid = self.user(process);
                self.effects.push_back(Effect::Signal { process, signal, uid });
            }
        }
    }

    /// Whether only a person ends this server: it began before the first start, and no daemon saw its owner exit; or what it let
    /// go, and who guards it, is not known, whoever its owner is.
    pub(super) fn is_from_before(&self, server: &Server) -> bool {
        let owner = self.world.owner_of(server);
        let began_before = |time| BootTime::of_ticks(server.id.start) < time;
        self.policy.found == Found::Ask
            && (self.incomplete_before.is_some_and(began_before)
                || self.first_start.is_some_and(began_before) && owner.is_none_or(Agent::is_alive))
    }

    /// The same, of a server that may have been left behind.
    pub(super) fn waits_for_person(&self, server: &Server) -> bool {
        !server.phase.is_clear() && self.is_from_before(server)
    }
}

/// Whether a request is about servers in this state.
fn is_asked_for(request: &ReapRequest, server: &ServerReport) -> bool {
    if request.duplicates {
        server.is_duplicate()
    } else if server.is_unproven() {
        request.include_unproven
    } else {
        request.include_active || server.is_orphan()
    }
}

fn selects(request: &ReapRequest, owner: Option<&AgentView>, server: &ServerReport) -> bool {
    let run = server.server.run.as_ref();
    let named = |name: &str| owner.is_some_and(|o| o.is_called(name)) || server.belongs_to(Some(name));
    request.agent.as_deref().is_none_or(named)
        && request.generation.is_none_or(|g| run.and_then(|r| r.generation) == Some(g))
        && (request.targets.is_empty() || request.targets.iter().any(|target| server.is_meant_by(target)))
        && request.servers.as_ref().is_none_or(|ids| ids.contains(&server.server.id))
}
