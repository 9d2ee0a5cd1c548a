//! Inspections of servers and agents. They are asked for here and answered later, when other events may have
//! happened.
//!
//! Invariant: the engine concludes nothing from an answer about a state that has changed since. It compares the
//! state when the question was asked with the state when the answer comes. If the state changed, it drops the answer
//! and inspects the server again, soon at first and then once a second. A server that changes all the time (it forks
//! without a pause) is judged after [`RESTLESS`] such inspections nevertheless, if its owner, its wires, its launch
//! chain and its main process are unchanged. Its processes that have changed since get no signal for that
//! inspection.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{
    Engine,
    cases::CaseOf,
    findings::may_have_tools,
    released::{PROCESSES, holds, is_released},
};
use crate::{
    case::{By, Event, INSPECT_AGAIN, Stage},
    lineage::{AgentKey, Origin, ServerKey},
    model::{
        About, Answer, BootTime, ContainerQuery, Haste, ProcessId, ServerFacts, Stdio, Subject,
        scene::{SceneQuestion, SceneServer},
    },
    recognise::{PROTOCOL, started_container, works_through_client},
    verdict::beside,
    world::{Agent, Server},
};

/// The delay after an inspection during which the server changed.
const INSPECT_SOON: Duration = Duration::from_millis(100);
/// After this number of inspections in a row during which a server changed, the server counts as one that changes
/// all the time.
const RESTLESS: u32 = 3;
/// How old an answer may be: who begins to use the server meanwhile is not seen. After one that was too old the next one may be twice
/// as old: that may be what it takes on this host.
const YOUNG: Duration = Duration::from_millis(200);
/// The most processes of other servers that one scene describes in full.
const JUDGED_TOGETHER: usize = 512;

/// What a process runs and its session, as far as records say.
type Seen = (Origin, u32);

/// The state of a server, or of an agent that may have been left behind, when its inspection was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Observed {
    frame: Frame,
    members: BTreeMap<ProcessId, Option<Seen>>,
}

/// The part of that state that may not change during an inspection, even if the server changes all the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Frame {
    owner: Option<(AgentKey, Option<BootTime>)>,
    copies: Vec<(ProcessId, Option<Seen>)>,
    wires: [Stdio; 2],
    chain: Vec<(ProcessId, Option<Seen>)>,
    phase: (bool, Option<Stage>),
    flags: [bool; 4],
    repaired: Option<BootTime>,
    policies: u64,
}

impl Engine {
    /// Asks for an inspection of a server, unless one is under way.
    pub(super) fn inspect(&mut self, now: BootTime, key: ServerKey) {
        let Some(server) = self.world.server(key) else { return };
        if self.agenda.under_way.contains_key(&key) {
            self.set_deadline(CaseOf::Server(key), Some(now + INSPECT_AGAIN));
            return;
        }
        let owner_lives = self.world.owner(key).is_some_and(Agent::is_alive);
        let is_used = owner_lives && By::ALL.into_iter().any(|by| holds(server, by));
        let subject = Subject {
            processes: server.all().collect(),
            question: self.scene_question(key, server),
            container: self.container_query(server).map(Box::new),
            work: (may_have_tools(server) || is_used) && self.all_processes(key).len() <= PROCESSES,
            input: server.rule == PROTOCOL || server.heard.is_some(),
            unit: !server.phase.is_clear(),
        };
        let Some(observed) = self.observe(key) else { return };
        let user = server.share();
        self.set_deadline(CaseOf::Server(key), Some(now + INSPECT_AGAIN));
        let turn = Some((user, Haste::InTurn));
        self.agenda.under_way.insert(key, user);
        self.ask(turn, About::Server(subject), move |engine, now, answer| {
            engine.agenda.under_way.remove(&key);
            if let Answer::Server { facts } = answer {
                engine.inspection_answered(now, key, &observed, &facts);
            }
        });
    }

    /// Who is judged together with a server: the other servers of its dead owner, and the copies of that. For a server
    /// without an owner: the user's others without one, if they have a case. Whoever does not fit is not asked about, and counts as somebody
    /// who acts by itself.
    fn scene_question(&self, key: ServerKey, server: &Server) -> SceneQuestion {
        let row = |server: &Server| SceneServer {
            processes: server.all().collect(),
            stdin: server.stdin,
            stdout: server.stdout,
        };
        let owner = self.world.owner_of(server);
        let mut own = row(server);
        own.processes.extend(beside(&self.world, &self.rules, server).map(|(_, node)| node.id));
        let mut servers = vec![own];
        let mut room = JUDGED_TOGETHER;
        for sibling in self.siblings(key, server) {
            let sibling = row(sibling);
            let Some(left) = room.checked_sub(sibling.processes.len()) else { break };
            room = left;
            servers.push(sibling);
        }
        let copies = owner.iter().flat_map(|owner| &owner.copies).map(|copy| copy.process).collect();
        SceneQuestion { servers, copies, waits: is_released(server, By::Idle) || may_have_tools(server) }
    }

    /// The servers that may be judged together with this one: those of its dead owner, then those of other dead owners whose
    /// grace is over; without an owner, those without one that have a case.
    pub(super) fn siblings(&self, key: ServerKey, server: &Server) -> Vec<&Server> {
        let is_left = |server: &Server| match server.owner() {
            Some(owner) => self.world.agent(owner).is_some_and(|owner| !owner.is_alive()),
            None => !server.phase.is_clear(),
        };
        // Nothing is to be judged while only its owner is sought.
        if !is_left(server) {
            return Vec::new();
        }
        let is_one = |other: &Server| {
            let is_over = || !other.phase.is_clear() && other.phase.grace().is_none();
            other.user() == server.user()
                && is_left(other)
                && (other.owner() == server.owner()
                    || (server.owner().and(other.owner()).is_some() && is_over()))
        };
        let others = self.world.servers().iter().filter(|(other, _)| **other != key).map(|(_, other)| other);
        let mut others: Vec<&Server> = others.filter(|other| is_one(other)).collect();
        others.sort_by_key(|other| other.owner() != server.owner());
        others
    }

    /// The question about the container of a server: if exactly one of its processes is a client that is attached.
    pub(super) fn container_query(&self, server: &Server) -> Option<ContainerQuery> {
        let nodes = server.all().filter_map(|id| self.world.node(id));
        let clients = nodes.filter(|node| node.is_client()).filter_map(|node| Some((node.id, node.image()?)));
        let mut clients = clients.filter(|(_, image)| !works_through_client(image));
        let (client, image) = clients.next()?;
        let started = started_container(image)?;
        clients.next().is_none().then_some(ContainerQuery { client, started })
    }

    /// Whether inspections have been asked for that are not answered yet.
    pub fn is_inspecting(&self) -> bool {
        !self.agenda.under_way.is_empty()
    }

    fn inspection_answered(&mut self, now: BootTime, key: ServerKey, asked: &Observed, facts: &ServerFacts) {
        if self.is_too_old(now, CaseOf::Server(key), facts) {
            self.server_event(now, key, Event::Inconclusive { again: Duration::ZERO });
            if !self.ready {
                // `ready` tells of it, and waits for what is under way alone.
                self.inspect(now, key);
            }
            return;
        }
        let Some(observed) = self.observe(key) else { return };
        let Some(server) = self.world.server_mut(key) else { return };
        if observed == *asked {
            server.stale_inspections = 0;
        } else {
            server.stale_inspections = server.stale_inspections.saturating_add(1);
        }
        let restless = server.stale_inspections > RESTLESS;
        let fits = observed == *asked || (restless && observed.frame == asked.frame);
        // One that was there may have exited since, and its number belongs to another process now.
        let is_outlived = facts.scene.processes.iter().any(|row| {
            let now = self.world.graph().holder(row.process.pid);
            now.is_some_and(|now| now != row.process && now.start >= row.process.start)
        });
        if !fits || is_outlived {
            let delay = if restless { INSPECT_AGAIN } else { INSPECT_SOON };
            self.server_event(now, key, Event::Inconclusive { again: delay });
            return;
        }
        let is_new = |(id, seen): &(&ProcessId, &Option<Seen>)| asked.members.get(id) != Some(*seen);
        self.unseen = observed.members.iter().filter(is_new).map(|(id, _)| *id).collect();
        self.inspected(now, key, facts);
        self.unseen = BTreeSet::new();
    }

    /// Whether an answer tells of a moment that is past: it has waited behind others, the daemon did not run, or the host slept.
    pub(super) fn is_too_old(&mut self, now: BootTime, of: CaseOf, facts: &ServerFacts) -> bool {
        let count = match of {
            CaseOf::Server(key) => self.world.server_mut(key).map(|server| &mut server.old_answers),
            CaseOf::Agent(key) => self.world.agent_mut(key).map(|agent| &mut agent.old_answers),
        };
        let (Some(count), Some(began)) = (count, facts.began) else { return false };
        let is_old = now.since(began) > YOUNG.saturating_mul(1 << (*count).min(16));
        *count = if is_old { count.saturating_add(1) } else { 0 };
        is_old
    }

    fn seen(&self, process: ProcessId) -> (ProcessId, Option<Seen>) {
        (process, self.world.node(process).map(|node| (node.origin(), node.sid)))
    }

    fn observe(&self, key: ServerKey) -> Option<Observed> {
        let server = self.world.server(key)?;
        let owner = server.owner().and_then(|owner| Some((owner, self.world.agent(owner)?)));
        let copies = owner.iter().flat_map(|(_, agent)| &agent.copies).map(|copy| self.seen(copy.process));
        let frame = Frame {
            copies: copies.collect(),
            owner: owner.map(|(owner, agent)| (owner, agent.exited())),
            wires: server.wires(),
            chain: [server.main_process()].iter().chain(server.wrappers()).map(|id| self.seen(*id)).collect(),
            phase: (server.phase.is_clear(), server.phase.stage()),
            flags: [server.seeks_owner, server.phase.asked(), server.disowned, server.main_ended],
            repaired: self.last_repair,
            policies: self.policies,
        };
        let members = server.processes().iter().map(|id| self.seen(*id)).collect();
        Some(Observed { frame, members })
    }

    pub(super) fn observe_agent(&self, key: AgentKey) -> Option<Observed> {
        let agent = self.world.agent(key).filter(|agent| agent.is_alive())?;
        let (chain, phase) = (vec![self.seen(agent.main())], (agent.phase.is_clear(), agent.phase.stage()));
        let (repaired, policies) = (self.last_repair, self.policies);
        let frame = Frame { chain, phase, repaired, policies, ..Frame::default() };
        Some(Observed { frame, members: BTreeMap::new() })
    }
}
