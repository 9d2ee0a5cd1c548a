//! What the engine knows of one process: the facts behind `orphand explain`. It changes nothing.

use super::{Engine, cases::CaseOf};
use crate::{
    case::{By, Phase, Reason, Stage},
    lineage::{Node, ServerKey},
    model::{Asked, BootTime, Creator, Explained, Mode, NextStep, Nothing, ProcessId, TakenFor},
    recognise::{Known, Role},
    world::{Agent, Server, agent_view, process_view},
};

/// How many processes one name explains.
const MOST: usize = 32;
/// How many creators are shown.
const CREATORS: usize = 64;

impl Engine {
    /// What is known of the processes that are meant: one of a number or an id, at most 32 of a name.
    pub fn explain(&self, asked: &Asked) -> Vec<Explained> {
        let nodes: Vec<ProcessId> = match asked {
            Asked::Pid(pid) => self.world.graph().holder(*pid).into_iter().collect(),
            Asked::Id(id) => vec![*id],
            Asked::Name(name) => self.of_name(name),
        };
        nodes.into_iter().filter_map(|id| self.explain_process(id)).take(MOST).collect()
    }

    /// The main processes of the servers and agents of this name.
    fn of_name(&self, name: &str) -> Vec<ProcessId> {
        let servers = self.world.servers().values();
        let alive =
            |main: ProcessId, rest: Option<ProcessId>| self.world.node(main).map(|node| node.id).or(rest);
        let servers = servers
            .filter(|server| server.name == name)
            .filter_map(|server| alive(server.main_process(), server.processes().first().copied()));
        let agents = self.world.agents().all().filter(|(_, agent)| agent.is_alive() && agent.name == name);
        servers.chain(agents.map(|(_, agent)| agent.main())).collect()
    }

    fn explain_process(&self, id: ProcessId) -> Option<Explained> {
        let node = self.world.node(id)?;
        let mut told = Explained::nothing(process_view(node), self.nothing(node));
        told.creators = self.creators(node);
        told.observes = self.settings.mode == Mode::Observe;
        if let Some((of, agent)) = self.world.agent_of(id).and_then(|of| Some((of, self.world.agent(of)?))) {
            if let Some(Role::Agent { rule, .. }) = node.role() {
                told.rule = Some(rule.clone());
            }
            (told.taken_for, told.nothing) = (TakenFor::Agent, None);
            told.agent = Some(agent_view(agent));
            told.servers = agent.servers().len() as u64;
            told.report = self.left_report(agent).map(Box::new);
            explain_case(&agent.phase, self.deadline(CaseOf::Agent(of)), &mut told);
            told.next = told.next.filter(|_| !agent.phase.is_clear());
        } else if let Some(key) = node.server.or(node.wraps) {
            self.explain_server(key, node, &mut told);
        } else if let Some((report, agent)) = self.leftover_of(id) {
            (told.taken_for, told.nothing) = (TakenFor::Leftover, None);
            told.report = Some(Box::new(report));
            (told.owner, told.owner_exited) = (Some(agent_view(agent)), agent.exited());
        }
        Some(told)
    }

    fn explain_server(&self, key: ServerKey, node: &Node, told: &mut Explained) {
        let Some(server) = self.world.server(key) else { return };
        told.taken_for = if server.recognised().contains(&node.id) {
            TakenFor::Server
        } else if server.wrappers().contains(&node.id) {
            TakenFor::Wrapper
        } else {
            TakenFor::ServerPart
        };
        told.nothing = None;
        told.report = self.server_report(key, crate::model::SHOWN).map(Box::new);
        told.only_named = server.only_named;
        let owner = self.world.owner(key);
        told.owner = owner.map(agent_view);
        told.owner_exited = owner.and_then(Agent::exited);
        explain_case(&server.phase, self.deadline(CaseOf::Server(key)), told);
        (told.next, told.due) = self.upcoming(key, server);
    }

    pub(super) fn upcoming(&self, key: ServerKey, server: &Server) -> (Option<NextStep>, Option<BootTime>) {
        if self.agenda.under_way.contains_key(&key) && !server.phase.is_clear() {
            (Some(NextStep::Inspected), None)
        } else if server.phase.is_clear() && server.owner().is_none() && self.is_job(key) {
            (Some(NextStep::Never), None)
        } else if let Some(at) = self.released_as_duplicate(key) {
            (Some(NextStep::Idle), Some(at))
        } else {
            upcoming(&server.phase, self.deadline(CaseOf::Server(key)))
        }
    }

    fn nothing(&self, node: &Node) -> Nothing {
        let by_shell = |maker: &Option<std::sync::Arc<crate::lineage::Maker>>| {
            maker.as_ref().is_some_and(|maker| matches!(maker.program.role, Role::Shell))
        };
        let [stdin, stdout, _] = &node.exec.makers;
        let known = Known {
            streams: Some([node.stdin(), node.stdout()]),
            protected: node.protected,
            made_by_shell: by_shell(stdin) || by_shell(stdout),
        };
        self.settings.rules.why_nothing(&node.image().cloned().unwrap_or_default(), known)
    }

    /// The creators of a process, the nearest first. Of those that have exited there are the nearest one, and
    /// agents; above it comes the nearest one that lives.
    fn creators(&self, node: &Node) -> Vec<Creator> {
        let mut line = Vec::new();
        let mut at = node;
        while line.len() < CREATORS {
            let up = self.world.graph().up(at.id);
            if let Some(creator) = at.creator.filter(|creator| up.is_none_or(|up| up.id != *creator)) {
                line.push(self.gone(creator, at));
            }
            let Some(up) = up else { break };
            let program = up.exec.program.as_ref().map(|program| self.program_name(up, program.name()));
            let witnessed = at.witnessed && at.creator == Some(up.id);
            let (uid, alive) = (Some(up.uid), Some(true));
            line.push(Creator { id: up.id, program, uid, alive, exited: None, witnessed });
            at = up;
        }
        line
    }

    fn program_name(&self, node: &Node, name: String) -> String {
        let agent = self.world.agent_of(node.id).and_then(|key| self.world.agent(key));
        agent.map_or(name, |agent| agent.name.clone())
    }

    /// A creator that is not in the graph: what its agent, or the wires that it made, tell of it.
    fn gone(&self, id: ProcessId, child: &Node) -> Creator {
        let agent = self.world.agents().all().map(|(_, agent)| agent).find(|agent| agent.main() == id);
        let maker = child.exec.makers.iter().flatten().find(|maker| maker.process == id);
        let program =
            agent.map(|agent| agent.name.clone()).or_else(|| maker.map(|maker| maker.program.name()));
        let exited = agent.and_then(Agent::exited);
        Creator {
            id,
            program,
            uid: agent.map(|agent| agent.uid),
            alive: exited.map(|_| false),
            exited,
            witnessed: child.witnessed,
        }
    }
}

/// What the state of a case says: why there is one, and what comes next.
fn explain_case(phase: &Phase, timer: Option<BootTime>, told: &mut Explained) {
    told.cause = phase.cause().map(|cause| word(cause.reason).to_owned());
    told.since = phase.since();
    (told.next, told.due) = upcoming(phase, timer);
}

/// What comes next in a case, and when.
fn upcoming(phase: &Phase, timer: Option<BootTime>) -> (Option<NextStep>, Option<BootTime>) {
    let (next, due) = match (phase.stage(), phase.grace()) {
        (Some(Stage::Unproven | Stage::Spared), _) => (NextStep::InspectedAgain, timer),
        (Some(Stage::MainProcess | Stage::Rest | Stage::Kill), _) => (NextStep::Ended, timer),
        (Some(Stage::Failed), _) => (NextStep::GivenUp, None),
        (None, None) => (NextStep::OwnerEnds, None),
        (None, deadline) => (NextStep::Judged, deadline),
    };
    (Some(next), due)
}

const fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::OwnerExited => "owner_exited",
        Reason::NoOwner => "no_owner",
        Reason::UnitRestarted => "unit_restarted",
        Reason::Released(By::Owner) => "abandoned",
        Reason::Released(By::Thread) => "spawner_thread_exited",
        Reason::Asked => "asked",
        Reason::Released(By::Session) => "session_expired",
        Reason::Released(By::Manager) => "released",
        Reason::Released(By::Idle) => "idle_duplicate",
    }
}
