//! What the engine knows: the present state for `ps` and whatever else lists servers, and the facts of one process behind
//! `orphand explain`. Nothing here changes anything but what was measured.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::{Engine, cases::CaseOf, containers::add_inner, duplicates::Newest};
use crate::{
    case::{By, Phase, Reason, Stage},
    lineage::{Node, ServerKey},
    model::{
        AgentReport, Answer, Asked, BootTime, Creator, EXPLAINED, Explained, Guard, Memory, Mode, NextStep,
        Nothing, ProcessId, Report, RunView, SHOWN, ServerReport, State, TakenFor,
    },
    recognise::{Known, Role},
    world::{Agent, Held, Server, agent_as_server, agent_view, process_view, short_view},
};

/// How many processes a report shows for all servers together. Beyond that, each server is shown with its first
/// process only.
const SHOWN_IN_ALL: usize = 4096;

impl Engine {
    /// Keeps resident memory and CPU time of these servers, as measured.
    pub(super) fn remember_memory(&mut self, servers: &[ServerKey], answer: Answer) {
        let Answer::Memory { processes } = answer else { return };
        let by_process: FxHashMap<ProcessId, Memory> =
            processes.into_iter().map(|m| (m.process, m)).collect();
        for key in servers {
            if let Some(server) = self.world.server_mut(*key) {
                let own = || server.own().filter_map(|process| by_process.get(&process));
                let (rss_bytes, cpu_ms) = (own().map(|m| m.rss_bytes).sum(), own().map(|m| m.cpu_ms).sum());
                (server.rss_bytes, server.cpu_ms) = (Some(rss_bytes), Some(cpu_ms));
            }
        }
    }

    /// All agents with their servers, and all servers without an owner. A server in a container is shown once, with the
    /// processes in the container, if it is certain which these are.
    pub fn report(&self) -> Report {
        let mut room = SHOWN_IN_ALL;
        let (halves, newest) = (self.inner_halves(), self.newest());
        let mut inner_of = FxHashMap::<ServerKey, Vec<ServerKey>>::default();
        for key in self.world.servers().keys() {
            if let Some(outer) = halves.get(key) {
                inner_of.entry(*outer).or_default().push(*key);
            }
        }
        let mut shown = |key: ServerKey| {
            let most = room.clamp(1, SHOWN);
            let mut report = self.server_report(key, most, &newest)?;
            let inner = inner_of.get(&key).into_iter().flatten();
            for inner in inner.filter_map(|key| self.server_report(*key, most, &newest)) {
                add_inner(&mut report, inner, most);
            }
            room = room.saturating_sub(report.server.processes.len());
            Some(report)
        };
        let agents = self.world.agents().filter(|(_, a)| a.is_alive() || !a.servers().is_empty());
        let agents = agents.map(|(_, agent)| AgentReport {
            left_behind: self.left_report(agent).map(Box::new),
            agent: agent_view(agent),
            run: Some(agent.account.clone()),
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
        [self.world.living_agents() as u64, self.world.servers().len() as u64, orphans as u64]
    }

    /// The runs that a living agent or server is accounted to.
    pub(super) fn held(&self) -> Held {
        let servers = self.world.servers().values().filter_map(|server| server.account.as_ref());
        let agents = self.world.agents().map(|(_, agent)| &agent.account);
        let mut held = Held::new();
        for (key, number) in servers.chain(agents).filter_map(RunView::run) {
            held.entry(key).or_default().insert(number);
        }
        held
    }

    /// The report of an agent that was left behind; `None` for any other agent.
    fn left_report(&self, agent: &Agent) -> Option<ServerReport> {
        agent.phase.orphan()?;
        Some(ServerReport {
            server: agent_as_server(agent, self.world.graph()),
            members: vec![agent.main()],
            ..judged(&agent.phase)
        })
    }

    fn server_report(&self, key: ServerKey, shown: usize, newest: &Newest) -> Option<ServerReport> {
        let server = self.world.server(key)?;
        let (next, deadline) = self.upcoming(key, server);
        let mut judged = judged(&server.phase);
        if server.phase.verdict().is_none() {
            judged.guards = self.known_guards(server);
        }
        let is_unproven = judged.state == State::Unproven;
        Some(ServerReport {
            guarded_by: self.whom_guards_mean(server, &judged.guards),
            server: short_view(server, self.world.graph(), shown),
            reached_by: if is_unproven { server.reached_by.clone() } else { Vec::new() },
            next,
            deadline,
            session: self.session_state(server),
            found: self.waits_for_person(server),
            duplicate_of: newest.get(&key).map(ToString::to_string),
            members: server.own().collect(),
            ..judged
        })
    }

    /// The guards of a server that was not inspected, as far as they are known without that.
    fn known_guards(&self, server: &Server) -> Vec<Guard> {
        let owner = self.world.owner_of(server);
        let nodes = |all: &BTreeSet<ProcessId>, is: fn(&Node) -> bool| {
            all.iter().filter_map(|id| self.world.node(*id)).any(is)
        };
        let is_multiplexer = |node: &Node| matches!(node.role(), Some(Role::Multiplexer));
        let guards = [
            (
                server.disowned
                    || owner.is_some_and(|owner| owner.exempt)
                    || nodes(server.processes(), is_exempt),
                Guard::ExemptRule,
            ),
            (nodes(&server.guarded_by, is_multiplexer), Guard::Multiplexer),
        ];
        guards.into_iter().filter(|(holds, _)| *holds).map(|(_, guard)| guard).collect()
    }

    /// What is known of the processes that are meant: one of a number or an id; of a name at most one more than
    /// are shown ([`EXPLAINED`]).
    pub fn explain(&self, asked: &Asked) -> Vec<Explained> {
        let nodes: Vec<ProcessId> = match asked {
            Asked::Pid(pid) => self.world.graph().holder(*pid).into_iter().collect(),
            Asked::Id(id) => vec![self.of_id(*id)],
            Asked::Name(name) => self.of_name(name),
        };
        nodes.into_iter().filter_map(|id| self.explain_process(id)).take(EXPLAINED + 1).collect()
    }

    /// The process of this id. A server keeps the id of the head of its launch chain when that has ended: then it is its main
    /// process, or one that lives.
    pub(super) fn of_id(&self, id: ProcessId) -> ProcessId {
        let lives = |process: &ProcessId| self.world.node(*process).is_some();
        let server = || self.world.servers().values().find(|server| server.id == id);
        let of_server =
            |server: &Server| Some(server.main_process()).into_iter().chain(server.all()).find(lives);
        Some(id).filter(lives).or_else(|| server().and_then(of_server)).unwrap_or(id)
    }

    /// The main processes of the servers and agents of this name, or of a unit or a run that is called so, and of what those left.
    fn of_name(&self, name: &str) -> Vec<ProcessId> {
        let servers = self.world.servers().values();
        let alive =
            |main: ProcessId, rest: Option<ProcessId>| self.world.node(main).map(|node| node.id).or(rest);
        let is_left = |server: &Server| {
            let lives = self.world.owner_of(server).is_some_and(Agent::is_alive);
            !lives && server.account.as_ref().is_some_and(|run| run.is_called(name))
        };
        let servers = servers
            .filter(|server| server.name == name || is_left(server))
            .filter_map(|server| alive(server.main_process(), server.processes().first().copied()));
        let is_meant = |agent: &Agent| agent.is_alive() && agent_view(agent).is_called(name);
        let agents = self.world.agents().filter(|(_, agent)| is_meant(agent));
        servers.chain(agents.map(|(_, agent)| agent.main())).collect()
    }

    fn explain_process(&self, id: ProcessId) -> Option<Explained> {
        let node = self.world.node(id)?;
        let mut told = Explained::nothing(process_view(node), self.nothing(node));
        told.creators = self.creators(node);
        told.observes = self.policy.mode == Mode::Observe;
        told.exempt = is_exempt(node);
        if let Some((of, agent)) = self.world.agent_of(id).and_then(|of| Some((of, self.world.agent(of)?))) {
            if let Some(Role::Agent { name }) = node.role() {
                told.rule = Some(name.clone());
            }
            (told.taken_for, told.nothing) = (TakenFor::Agent, None);
            told.agent = Some(agent_view(agent));
            told.servers = agent.servers().len() as u64;
            told.exempt |= agent.exempt;
            told.report = self.left_report(agent).map(Box::new);
            explain_case(&agent.phase, self.deadline(CaseOf::Agent(of)), &mut told);
            told.next = told.next.filter(|_| !agent.phase.is_clear());
        } else if let Some(key) = node.server.or(node.wraps) {
            self.explain_server(key, node, &mut told);
        } else if let Some((report, agent)) = self.leftover_of(id) {
            (told.taken_for, told.nothing) = (TakenFor::Leftover, None);
            told.report = Some(Box::new(report));
            (told.owner, told.owner_exited) = (Some(agent_view(agent)), agent.exited());
        } else {
            // Only its number is known, because something of it is followed: who asks reads the rest in /proc.
            node.image()?;
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
        told.report = self.server_report(key, SHOWN, &self.newest()).map(Box::new);
        told.only_named = server.only_named;
        told.let_go = server.apart.contains(&node.id);
        let owner = self.world.owner(key);
        told.exempt |= self.known_guards(server).contains(&Guard::ExemptRule);
        told.owner = owner.map(agent_view);
        told.owner_exited = owner.and_then(Agent::exited);
        explain_case(&server.phase, self.deadline(CaseOf::Server(key)), told);
        told.released_by = server.released_by.filter(|_| server.phase.released() == Some(By::Manager));
        (told.next, told.due) = self.upcoming(key, server);
    }

    fn upcoming(&self, key: ServerKey, server: &Server) -> (Option<NextStep>, Option<BootTime>) {
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
            streams: Some(node.wires()),
            protected: node.protected,
            made_by_shell: by_shell(stdin) || by_shell(stdout),
        };
        self.rules.why_nothing(&node.image().cloned().unwrap_or_default(), known)
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
            let program = up.name().map(|name| self.program_name(up, name));
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
        let agent = self.world.agents().map(|(_, agent)| agent).find(|agent| agent.main() == id);
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

fn is_exempt(node: &Node) -> bool {
    node.protected || matches!(node.role(), Some(Role::Exempt { .. }))
}

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

const CREATORS: usize = 64;

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
        (None, deadline) => (NextStep::Judged, timer.or(deadline)),
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
