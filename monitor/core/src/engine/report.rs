//! The present state of the engine, for `ps` and whatever else lists servers.

use rustc_hash::FxHashMap;

use super::{Engine, containers::add_inner};
use crate::{
    case::Phase,
    lineage::ServerKey,
    model::{About, AgentReport, Answer, Memory, ProcessId, Report, RunView, SHOWN, ServerReport, State},
    world::{Agent, Held, Server, agent_as_server, agent_view, short_view},
};

/// How many processes a report shows for all servers together. Beyond that, each server is shown with its first
/// process only.
const SHOWN_IN_ALL: usize = 4096;

impl Engine {
    /// Asks for memory and CPU time of all servers. The answer goes into the next report.
    pub fn measure(&mut self) {
        let servers = self.world.server_keys();
        let members = self.world.servers().values().flat_map(Server::processes);
        let about = About::Memory(members.copied().collect());
        self.ask(about, move |engine, now, answer| engine.measured(now, &servers, answer));
    }

    /// Keeps resident memory and CPU time of these servers, as measured.
    pub(super) fn remember_memory(&mut self, servers: &[ServerKey], answer: Answer) {
        let Answer::Memory { processes } = answer else { return };
        let by_process: FxHashMap<ProcessId, Memory> =
            processes.into_iter().map(|m| (m.process, m)).collect();
        for key in servers {
            if let Some(server) = self.world.server_mut(*key) {
                let own = || server.processes().iter().filter_map(|p| by_process.get(p));
                let (rss_bytes, cpu_ms) = (own().map(|m| m.rss_bytes).sum(), own().map(|m| m.cpu_ms).sum());
                (server.rss_bytes, server.cpu_ms) = (Some(rss_bytes), Some(cpu_ms));
            }
        }
    }

    /// All agents with their servers, and all servers without an owner. A server in a container is shown once, with the
    /// processes in the container, if it is certain which these are.
    pub fn report(&self) -> Report {
        let mut room = SHOWN_IN_ALL;
        let halves = self.inner_halves();
        let mut inner_of = FxHashMap::<ServerKey, Vec<ServerKey>>::default();
        for key in self.world.servers().keys() {
            if let Some(outer) = halves.get(key) {
                inner_of.entry(*outer).or_default().push(*key);
            }
        }
        let mut shown = |key: ServerKey| {
            let most = room.clamp(1, SHOWN);
            let mut report = self.server_report(key, most)?;
            let inner = inner_of.get(&key).into_iter().flatten();
            for inner in inner.filter_map(|key| self.server_report(*key, most)) {
                add_inner(&mut report, inner, most);
            }
            room = room.saturating_sub(report.server.processes.len());
            Some(report)
        };
        let agents = self.world.agents().all().filter(|(_, a)| a.is_alive() || !a.servers().is_empty());
        let agents = agents.map(|(_, agent)| AgentReport {
            left_behind: self.left_report(agent).map(Box::new),
            agent: agent_view(agent),
            servers: agent.servers().iter().filter_map(|key| shown(*key)).collect(),
        });
        let agents = agents.collect();
        let unowned = self.world.servers().iter().filter(|(_, server)| server.owner().is_none());
        let unowned = unowned.map(|(key, _)| *key).filter(|key| !halves.contains_key(key));
        Report {
            agents,
            unowned: unowned.filter_map(shown).collect(),
            leftovers: self.leftover_reports(SHOWN),
            runs: self.world.runs().report(&self.held()),
            blind: Vec::new(),
        }
    }

    /// The present numbers of agents, of servers (orphans included) and of orphans, in this order.
    pub fn counts(&self) -> [u64; 3] {
        let orphans = self.world.servers().values().filter(|server| server.phase.orphan().is_some()).count();
        [self.world.agents().alive() as u64, self.world.servers().len() as u64, orphans as u64]
    }

    /// The runs that a living agent or server is accounted to.
    pub(super) fn held(&self) -> Held {
        let servers = self.world.servers().values().filter_map(|server| server.account.as_ref());
        let agents = self.world.agents().all().map(|(_, agent)| &agent.account);
        let mut held = Held::new();
        for (key, number) in servers.chain(agents).filter_map(RunView::run) {
            held.entry(key).or_default().insert(number);
        }
        held
    }

    /// The report of an agent that was left behind; `None` for any other agent.
    pub(super) fn left_report(&self, agent: &Agent) -> Option<ServerReport> {
        agent.phase.orphan()?;
        Some(ServerReport {
            server: agent_as_server(agent, self.world.graph()),
            members: vec![agent.main()],
            ..judged(&agent.phase)
        })
    }

    /// The report of a server, with at most `shown` of its processes.
    pub(super) fn server_report(&self, key: ServerKey, shown: usize) -> Option<ServerReport> {
        let server = self.world.server(key)?;
        let (next, deadline) = self.upcoming(key, server);
        let judged = judged(&server.phase);
        let is_unproven = judged.state == State::Unproven;
        Some(ServerReport {
            server: short_view(server, self.world.graph(), shown),
            reached_by: if is_unproven { server.reached_by.clone() } else { Vec::new() },
            next,
            deadline,
            session: self.session_state(server),
            found: self.waits_for_person(server),
            duplicate_of: self.duplicate_of(key).map(|newest| newest.to_string()),
            members: server.wrappers().iter().chain(server.processes()).copied().collect(),
            ..judged
        })
    }
}

/// What a report says of a case.
fn judged(phase: &Phase) -> ServerReport {
    let verdict = phase.verdict();
    ServerReport {
        state: phase.state(),
        evidence: verdict.map(|v| v.evidence.clone()).unwrap_or_default(),
        doubts: verdict.map(|v| v.doubts.clone()).unwrap_or_default(),
        guards: verdict.map(|v| v.guards.clone()).unwrap_or_default(),
        pss_bytes: verdict.and_then(|v| v.pss_bytes),
        ..ServerReport::default()
    }
}
