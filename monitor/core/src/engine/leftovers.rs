//! Leftovers: what agents that have ended left behind and that is no server. A background shell with its jobs, a
//! development server, a browser that a server let go.
//!
//! They are known by lineage: members of an ended agent that are part of no server. When the grace of the agent has
//! passed, the topmost living process of each branch (its *head*) is asked about. What was detached on purpose is none:
//! what lives in a multiplexer or is exempt, what is in another unit or scope than the agent was, and what a living
//! agent has adopted. What is so below a head is cut off there, with what is below it.
//!
//! Invariant: a leftover is told and counted only after the host has answered about its head, and is signalled only if
//! a person named the head. Nothing here judges a server. The rest of the engine says only when an agent, a server or
//! a process has ended.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{Engine, agenda::Task, lives::millis, requests::Ending};
use crate::{
    lineage::{AgentKey, Node, in_order},
    model::{
        About, Answer, BootTime, Branch, Fact, Haste, Leftover, LeftoverClass, LeftoverReport, Notice,
        ProcessId, SHOWN, ServerReport, ServerView, Share, State, text,
    },
    recognise::{Role, is_browser},
    world::{Agent, Server, agent_view, process_view},
};

/// Looks are made in rounds at most this often: each reads the whole graph once.
const ROUND: Duration = Duration::from_millis(250);
/// The time from the end of a server to the look at what it let go.
const SOON: Duration = Duration::from_millis(500);
/// How many agents are looked at in one round.
const AGENTS: usize = 64;
/// How many heads of one agent are asked about in one look. Further ones are counted and not asked about.
const HEADS: usize = 1024;
/// How many processes of one branch are measured.
const BRANCH: usize = 256;
/// How many processes are measured in one look.
const MEASURED: usize = 8192;

/// What ended agents left behind.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    pub(super) of_agent: BTreeMap<AgentKey, Left>,
    /// Heads that are being ended, because a person asked.
    pub(super) ending: BTreeMap<ProcessId, Ending>,
}

#[derive(Debug, Default)]
pub(super) struct Left {
    /// When its processes are looked for.
    due: Option<BootTime>,
    /// The heads that were asked about, each with what the host said of its branch. `None`: it was detached, from the agent or
    /// from the branch that it is in, or a living agent has it.
    pub(super) heads: BTreeMap<ProcessId, Option<Branch>>,
    /// How many further heads there were at the last look.
    beyond: u64,
}

impl Engine {
    /// An agent has ended; or a server of one that has, or it has let processes go. What the agent left is looked at when
    /// its grace has passed.
    pub(super) fn await_leftovers(&mut self, now: BootTime, key: Option<AgentKey>) {
        let Some((key, agent)) = key.and_then(|key| Some((key, self.world.agent(key)?))) else { return };
        // Where its place is not known, nobody can tell what was detached.
        let Some(exited) = agent.exited().filter(|_| agent.place.is_some()) else { return };
        let at = (exited + self.policy.grace).max(now + SOON);
        let round = u64::try_from(ROUND.as_nanos()).unwrap_or(u64::MAX);
        let at = BootTime(at.0.div_ceil(round).saturating_mul(round));
        let due = &mut self.leftovers.of_agent.entry(key).or_default().due;
        *due = Some(due.map_or(at, |due| due.min(at)));
        self.agenda.hasten(Task::Leftovers, at);
    }

    /// Looks for what the agents left whose grace has passed.
    pub(super) fn look_for_leftovers(&mut self, now: BootTime) {
        let is_due = |left: &Left| left.due.is_some_and(|due| due <= now);
        let due = self.leftovers.of_agent.iter().filter(|(_, left)| is_due(left)).map(|(key, _)| *key);
        let due: BTreeSet<AgentKey> = due.take(AGENTS).collect();
        // Who belongs to whom is certain only when /proc has been read again; and who keeps a server, when that was inspected.
        let is_awaited = |server: &Server| server.phase.grace().is_some_and(|deadline| deadline <= now);
        let awaited = self.world.servers().values().filter(|server| is_awaited(server));
        let awaited: BTreeSet<AgentKey> = awaited.filter_map(Server::owner).collect();
        for key in &due {
            let is_postponed = self.doubtful || awaited.contains(key);
            if let Some(left) = self.leftovers.of_agent.get_mut(key) {
                left.due = is_postponed.then(|| now + ROUND);
            }
        }
        let due: BTreeSet<AgentKey> = due.difference(&awaited).copied().collect();
        let next = self.leftovers.of_agent.values().filter_map(|left| left.due).min();
        self.agenda.set(Task::Leftovers, next);
        if self.doubtful || due.is_empty() {
            return;
        }
        let mut heads = self.heads_of(&due);
        for key in due {
            let heads = heads.remove(&key).unwrap_or_default();
            self.ask_about_heads(key, heads);
        }
    }

    fn ask_about_heads(&mut self, key: AgentKey, heads: Vec<ProcessId>) {
        let Some(turn) = self.world.agent(key).map(|agent| Share::of(agent.uid)) else {
            self.leftovers.of_agent.remove(&key);
            return;
        };
        let Some(left) = self.leftovers.of_agent.get_mut(&key) else { return };
        let new: Vec<ProcessId> = heads.into_iter().filter(|head| !left.heads.contains_key(head)).collect();
        left.beyond = new.len().saturating_sub(HEADS) as u64;
        if new.is_empty() {
            self.forget_if_nothing_is_left(key);
            return;
        }
        let mut room = MEASURED;
        let mut branches = Vec::new();
        for head in new.into_iter().take(HEADS) {
            let mut branch = self.branch(key, head);
            branch.truncate(room.clamp(1, BRANCH));
            room = room.saturating_sub(branch.len());
            branches.push(branch);
        }
        self.ask(Some((turn, Haste::InTurn)), About::Leftovers(branches), move |engine, now, answer| {
            if let Answer::Leftovers { branches } = answer {
                engine.leftovers_answered(now, key, branches);
            }
        });
    }

    /// The host has answered about new heads: tells of them, unless all of them were detached.
    fn leftovers_answered(&mut self, now: BootTime, key: AgentKey, branches: Vec<Branch>) {
        let mut any = false;
        for branch in branches {
            let head = branch.head;
            if !self.is_left(key, head) || self.is_below_left(key, head) {
                continue;
            }
            // It could not be read: it is asked about at the next look.
            let Some(place) = branch.place.as_deref() else { continue };
            let was = self.world.agent(key).and_then(|agent| agent.place.as_deref());
            let adopter = branch.parent.and_then(|parent| self.world.node(parent)?.agent);
            let adopter = adopter.and_then(|agent| self.world.agent(agent));
            let is_apart = was != Some(place) || adopter.is_some_and(Agent::is_alive);
            any |= !is_apart;
            self.cut_off(key, &branch.apart);
            let left = self.leftovers.of_agent.entry(key).or_default();
            left.heads.insert(head, (!is_apart).then_some(branch));
        }
        if any {
            self.tell_leftovers(now, key);
        }
        self.forget_if_nothing_is_left(key);
    }

    /// These were detached from the branch that they are in.
    pub(super) fn cut_off(&mut self, key: AgentKey, apart: &[ProcessId]) {
        let apart = apart.iter().filter(|process| self.is_left(key, **process));
        for process in apart.copied().collect::<Vec<_>>() {
            self.leftovers.of_agent.entry(key).or_default().heads.insert(process, None);
        }
    }

    fn tell_leftovers(&mut self, now: BootTime, key: AgentKey) {
        self.report_withheld(key);
        let Some(agent) = self.world.agent(key) else { return };
        let view = agent_view(agent);
        let run = agent.account.run();
        let Some(left) = self.leftovers.of_agent.get(&key) else { return };
        let living: Vec<_> = self.living_heads(key, left).collect();
        let count = left.beyond + living.len() as u64;
        let sum =
            |used: fn(&Branch) -> u64| living.iter().map(|found| used(found)).fold(0, u64::saturating_add);
        let (rss_bytes, cpu_ms) = (sum(|found| found.rss_bytes), sum(|found| found.cpu_ms));
        let shown =
            living.iter().take(SHOWN).filter_map(|found| Some((self.world.node(found.head)?, *found)));
        let processes = shown.map(|(node, found)| Leftover {
            class: self.leftover_class(key, node, found),
            process: process_view(node),
            processes_total: self.branch(key, node.id).len() as u64,
            rss_bytes: found.rss_bytes,
            cpu_ms: found.cpu_ms,
            age_ms: millis(now, node.id.born()),
            listens: found.listens.clone(),
        });
        let processes = processes.collect();
        if let Some((key, generation)) = run {
            let (count, rss_bytes) = self.leftovers_of_run(&key, generation);
            self.persist(now, Fact::Leftovers { key, generation, count, rss_bytes });
        }
        self.emit(now, Notice::LeftoversFound { agent: view, count, rss_bytes, cpu_ms, processes });
    }

    /// How many leftovers all agents of a run left, and their memory when they were found.
    fn leftovers_of_run(&self, run: &crate::model::RunKey, generation: u64) -> (u64, u64) {
        let of_run = |key: &AgentKey| {
            let account = self.world.agent(*key).map(|agent| &agent.account);
            account.is_some_and(|account| account.generation == Some(generation) && account.key() == *run)
        };
        let lefts = self.leftovers.of_agent.iter().filter(|(key, _)| of_run(key));
        lefts.fold((0, 0), |(count, bytes), (key, left)| {
            let found: Vec<u64> = self.living_heads(*key, left).map(|found| found.rss_bytes).collect();
            let sum = found.iter().copied().fold(bytes, u64::saturating_add);
            (count + left.beyond + found.len() as u64, sum)
        })
    }

    fn living_heads<'a>(&'a self, key: AgentKey, left: &'a Left) -> impl Iterator<Item = &'a Branch> {
        left.heads.values().flatten().filter(move |found| self.is_left(key, found.head))
    }

    fn leftover_class(&self, key: AgentKey, node: &Node, found: &Branch) -> LeftoverClass {
        let agent = self.world.agent(key).map(|agent| agent.origin);
        let name = node.name().unwrap_or_default();
        match node.role() {
            _ if is_browser(&name) => LeftoverClass::Browser,
            _ if !found.listens.is_empty() => LeftoverClass::Listener,
            _ if agent == Some(node.origin()) => LeftoverClass::Copy,
            Some(Role::Shell) => LeftoverClass::Shell,
            _ => LeftoverClass::Other,
        }
    }

    /// What ended agents left behind, for reports. `shown`: how many processes of each branch are listed.
    pub(super) fn leftover_reports(&self, shown: usize) -> Vec<LeftoverReport> {
        let reports = self.leftovers.of_agent.iter().filter_map(|(key, left)| {
            let agent = self.world.agent(*key)?;
            let all: Vec<_> = self.living_heads(*key, left).collect();
            let count = left.beyond + all.len() as u64;
            let heads = all.into_iter().take(HEADS);
            let heads = heads.filter_map(|found| self.leftover_report(*key, found, shown)).collect();
            let (agent, run) = (agent_view(agent), agent.account.clone());
            (count > 0).then_some(LeftoverReport { agent, run, count, heads })
        });
        reports.collect()
    }

    fn leftover_report(&self, key: AgentKey, found: &Branch, shown: usize) -> Option<ServerReport> {
        let head = found.head;
        let node = self.world.node(head)?;
        let mut members = self.branch(key, head);
        let total = members.len() as u64;
        let processes = members.iter().take(shown).filter_map(|one| self.world.node(*one)).map(process_view);
        let class = self.leftover_class(key, node, found);
        let name = node.name().unwrap_or_default();
        let server = ServerView {
            id: head.to_string(),
            name,
            rule: text::word(class),
            processes: processes.collect(),
            processes_total: total,
            rss_bytes: Some(found.rss_bytes),
            cpu_ms: Some(found.cpu_ms),
            run: self.world.agent(key).map(|agent| agent.account.clone()),
            session_leader: node.sid == head.pid,
            ..ServerView::default()
        };
        members.truncate(BRANCH);
        let state = if self.leftovers.ending.contains_key(&head) { State::Ending } else { State::Leftover };
        let mut report = ServerReport { server, state, members, ..ServerReport::default() };
        report.holdings.listens.clone_from(&found.listens);
        Some(report)
    }

    /// The leftover that a process belongs to, and the agent that left it.
    pub(super) fn leftover_of(&self, process: ProcessId) -> Option<(ServerReport, &Agent)> {
        let key = self.world.node(process)?.agent?;
        let left = self.leftovers.of_agent.get(&key)?;
        let mut head = process;
        while self.is_below_left(key, head) && !left.heads.contains_key(&head) {
            head = self.world.graph().up(head)?.id;
        }
        let found = left.heads.get(&head).filter(|_| self.is_left(key, process))?.as_ref()?;
        Some((self.leftover_report(key, found, SHOWN)?, self.world.agent(key)?))
    }

    /// A process is about to leave the graph. If it is a head, what is below it goes on in its place.
    pub(super) fn leftover_exits(&mut self, id: ProcessId) {
        if self.leftovers.of_agent.is_empty() {
            return;
        }
        let Some(key) = self.world.node(id).and_then(|node| node.agent) else { return };
        let Some(left) = self.leftovers.of_agent.get_mut(&key) else { return };
        let Some(head) = left.heads.remove(&id) else { return };
        let ending = self.leftovers.ending.remove(&id);
        let below = self.world.graph().children(id).map(|child| child.id);
        let below: Vec<ProcessId> = below.filter(|child| self.is_left(key, *child)).collect();
        let due = self.agenda.at(Task::LeftEnding(id));
        for child in below {
            if let Some(left) = self.leftovers.of_agent.get_mut(&key) {
                let cut_off = left.heads.get(&child).is_some_and(Option::is_none);
                if cut_off {
                    continue;
                }
                left.heads.insert(child, head.clone().map(|found| Branch { head: child, ..found }));
            }
            if let Some(ending) = ending {
                self.leftovers.ending.insert(child, ending);
                self.agenda.set(Task::LeftEnding(child), due);
            }
        }
        self.forget_if_nothing_is_left(key);
    }

    fn forget_if_nothing_is_left(&mut self, key: AgentKey) {
        let is_over = |left: &Left| left.due.is_none() && left.heads.is_empty() && left.beyond == 0;
        if self.leftovers.of_agent.get(&key).is_some_and(is_over) {
            self.leftovers.of_agent.remove(&key);
        }
    }

    /// Whether a living process was left by this agent, which has ended: it descends from it, and is no agent, no part
    /// of a server or of its launch chain, nothing that a server stays for, and not protected.
    pub(super) fn is_left(&self, key: AgentKey, process: ProcessId) -> bool {
        self.world.node(process).is_some_and(|node| self.is_left_node(key, node))
    }

    fn is_left_node(&self, key: AgentKey, node: &Node) -> bool {
        node.agent == Some(key)
            && node.server.is_none()
            && node.wraps.is_none()
            && !node.protected
            && !node.pending
            && self.world.agent_of(node.id).is_none()
            && !self.ourselves.contains(&node.id)
            && !self.is_needed(key, node)
            && self.world.agent(key).is_some_and(|agent| !Agent::is_alive(agent))
    }

    /// Whether a server stays because of this process that the agent left, or of one above it: a tool at work, with its own.
    fn is_needed(&self, key: AgentKey, node: &Node) -> bool {
        let above = self.world.graph().near_ancestors(node.id).take_while(|up| up.agent == Some(key));
        [node].into_iter().chain(above).any(|one| self.keeps_a_server(one.id))
    }

    /// Whether another process that this agent left created it, and lives.
    fn is_below_left(&self, key: AgentKey, process: ProcessId) -> bool {
        self.world.graph().up(process).is_some_and(|up| self.is_left_node(key, up))
    }

    /// The heads of the branches that these agents left, the oldest first.
    fn heads_of(&self, agents: &BTreeSet<AgentKey>) -> BTreeMap<AgentKey, Vec<ProcessId>> {
        let mut found: BTreeMap<AgentKey, Vec<&Node>> = BTreeMap::new();
        for id in self.world.graph().ids() {
            let Some(node) = self.world.node(id) else { continue };
            let Some(key) = node.agent.filter(|key| agents.contains(key)) else { continue };
            if self.is_left_node(key, node) && !self.is_below_left(key, id) {
                found.entry(key).or_default().push(node);
            }
        }
        found.into_iter().map(|(key, heads)| (key, in_order(heads.into_iter()))).collect()
    }

    /// The head and what it left below it, creators before what they created. What was cut off is not among them.
    pub(super) fn branch(&self, key: AgentKey, head: ProcessId) -> Vec<ProcessId> {
        let heads = self.leftovers.of_agent.get(&key).map(|left| &left.heads);
        let is_in = |child: &&Node| {
            let cut_off = heads.and_then(|heads| heads.get(&child.id)).is_some_and(Option::is_none);
            self.is_left_node(key, child) && !cut_off
        };
        in_order(self.world.node(head).into_iter().chain(self.world.graph().below_while(head, is_in)))
    }
}
