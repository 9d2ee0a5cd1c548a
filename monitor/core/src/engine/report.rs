//! What the engine knows now, for `scan` and `tree`.

use super::{Engine, Purpose};
use crate::{
    lineage::ServerKey,
    model::{About, AgentReport, Report, SHOWN, ServerReport},
    world::{Account, Agent, Held, LeftStage, Server, Stage, State, agent_as_server, agent_view, short_view},
};

/// Processes that are shown of all servers together; beyond that each server is shown with its first one.
const SHOWN_IN_ALL: usize = 4096;

impl Engine {
    /// Asks for the memory of all servers; the answer goes into the next report.
    pub fn measure(&mut self) {
        let servers = self.world.servers().keys();
        let members = servers.iter().filter_map(|key| self.world.server(*key)).flat_map(Server::processes);
        let about = About::Memory(members.copied().collect());
        self.ask(about, Purpose::Measure { servers });
    }

    /// Agents with their servers, and servers that nobody owns.
    pub fn report(&self) -> Report {
        let mut room = SHOWN_IN_ALL;
        let mut shown = |key: ServerKey| {
            let report = self.server_report(key, room.clamp(1, SHOWN))?;
            room = room.saturating_sub(report.server.processes.len());
            Some(report)
        };
        let agents =
            self.world.agents().all().into_iter().filter(|(_, a)| a.is_alive() || !a.servers().is_empty());
        let agents = agents.map(|(_, agent)| AgentReport {
            left_behind: self.left_report(agent).map(Box::new),
            agent: agent_view(agent),
            servers: agent.servers().iter().filter_map(|key| shown(*key)).collect(),
        });
        let agents = agents.collect();
        let unowned = self
            .world
            .servers()
            .keys()
            .into_iter()
            .filter(|key| self.world.server(*key).is_some_and(|s| s.owner().is_none()));
        Report {
            agents,
            unowned: unowned.filter_map(shown).collect(),
            runs: self.world.runs().report(&self.held()),
            blind: Vec::new(),
        }
    }

    /// Runs that something living is accounted to.
    pub(super) fn held(&self) -> Held {
        let servers = self.world.servers().keys();
        let servers = servers.iter().filter_map(|key| self.world.server(*key)?.account.as_ref());
        let mut held = Held::new();
        for (key, number) in servers.chain(self.world.agents().accounts()).filter_map(Account::run) {
            held.entry(key).or_default().insert(number);
        }
        held
    }

    /// An agent that was left behind.
    fn left_report(&self, agent: &Agent) -> Option<ServerReport> {
        let left = Some(&agent.left).filter(|left| left.is_orphan())?;
        let state = match left.stage {
            LeftStage::Signalled { .. } => "terminating",
            LeftStage::Failed => "orphan",
            LeftStage::None | LeftStage::Told => "spared",
        };
        Some(ServerReport {
            server: agent_as_server(agent, self.world.graph()),
            evidence: left.evidence.clone(),
            doubts: Vec::new(),
            guards: left.guards.clone(),
            pss_bytes: left.pss_bytes,
            state: state.to_owned(),
            members: vec![agent.main()],
        })
    }

    /// A server with so many of its processes at most.
    fn server_report(&self, key: ServerKey, shown: usize) -> Option<ServerReport> {
        let server = self.world.server(key)?;
        let state = match &server.state {
            // A person asked to end it, and the look that comes first has not been answered.
            State::Live | State::Suspect { .. } | State::Unproven(_) if server.asked => "terminating",
            State::Orphan(case) if server.asked && case.stage == Stage::Spared => "terminating",
            State::Live => "live",
            State::Suspect { .. } => "suspect",
            State::Unproven(_) => "unproven",
            State::Orphan(case) => match case.stage {
                Stage::Spared => "spared",
                Stage::Leaf | Stage::Rest | Stage::Kill => "terminating",
                Stage::Failed => "orphan",
            },
        };
        let case = server.judged();
        Some(ServerReport {
            server: short_view(server, self.world.graph(), shown),
            evidence: case.map(|c| c.evidence.clone()).unwrap_or_default(),
            doubts: case.map(|c| c.doubts.clone()).unwrap_or_default(),
            guards: case.map(|c| c.guards.clone()).unwrap_or_default(),
            pss_bytes: case.and_then(|c| c.pss_bytes),
            state: state.to_owned(),
            members: server.wrappers().iter().chain(server.processes()).copied().collect(),
        })
    }
}
