//! Servers: the processes they consist of, the thread that started them, and the state of their case.
//!
//! A program that runs each of its jobs in a thread leaves a server behind when a thread ends without closing it.
//! Whether another thread uses the server since, its [`super::Watch`] tells.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    sync::Arc,
};

use super::Watch;
use crate::{
    case::{By, Phase},
    lineage::{AgentKey, Graph, Left, Maker, Node, Provenance},
    model::{
        BootTime, Container, Ending, FirstMessage, ProcessId, ProcessView, ReachedBy, RunView, ServerHints,
        ServerView, Share, Stdio,
    },
};

const NAMES: usize = 8;

/// An MCP stdio server: its launch chain, the server's main process and its descendants.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// The head of its launch chain when it was recognised. It identifies the server for ever.
    pub id: ProcessId,
    /// The main process: the recognised process furthest down the launch chain.
    pub(super) main_process: ProcessId,
    /// The name that events and reports show.
    pub name: String,
    pub rule: String,
    /// Whether nothing but its name says that it is a server: no message to it was seen, and it is no known package.
    pub only_named: bool,
    /// Whether it is asked what was said to it, and nobody has seen its input open since, while its owner lived, or its input was over
    /// later: it may have been given all of that at once, as a hook is.
    pub unlooked: bool,
    /// Whether a message of the protocol to it was seen, or settings declare it.
    pub spoken: bool,
    /// Whether it was seen to speak the protocol itself, to a program that it started and that no rule knows.
    pub gateway: bool,
    /// What was said first to its main process, if nothing else shows that to be a server: the bridge that it was a tool of has ended.
    pub heard: Option<Box<FirstMessage>>,
    /// What each process further down the launch chain showed it to be, oldest first. The last one counts.
    names: Vec<(ProcessId, String, String)>,
    /// The name of the client that talks to it, as the first message said it.
    pub client: Option<String>,
    /// Its standard input at birth: the wire that carries requests to it. What a bridge leaves has that of its own main process.
    pub stdin: Stdio,
    /// Its standard output at birth: the wire that carries its answers.
    pub stdout: Stdio,
    /// The session id of the server's main process. The process may have started a session of its own before it was
    /// recognised.
    pub session: u32,
    /// The process that made the standard input wire. Absent if that was not witnessed.
    pub maker: Option<ProcessId>,
    /// Whether another program made the standard output wire.
    pub made_apart: bool,
    pub(super) owner: Option<AgentKey>,
    /// Whose it is, and on whose turn it is inspected: the user of its owner, otherwise its own at its birth.
    pub(super) user: u32,
    pub account: Option<RunView>,
    /// Its living processes. Its wrappers are not included.
    pub(super) processes: BTreeSet<ProcessId>,
    /// The processes among them that a rule recognised.
    pub(super) recognised: BTreeSet<ProcessId>,
    /// Shells and launchers around it, nearest first.
    pub(super) wrappers: Vec<ProcessId>,
    /// Processes that were its main process or part of its launch chain, and have exited while what they had created lived on.
    /// What they made is still tied to the server. Bounded in number.
    pub(super) ended: BTreeSet<ProcessId>,
    /// The agents, multiplexers and exempt programs that it started, bounded in number.
    pub guarded_by: BTreeSet<ProcessId>,
    /// What shells left that run another program in their place, and what began below `nohup`, bounded in number.
    pub left: BTreeSet<ProcessId>,
    /// Processes that it started and let go, bounded in number. They are reported when the server has ended.
    pub(super) let_go: Vec<ProcessView>,
    /// Those of its processes that it had let go at the last inspection: they stay when it is ended.
    pub apart: BTreeSet<ProcessId>,
    /// Resident memory in bytes at the last measurement.
    pub rss_bytes: Option<u64>,
    /// The CPU time of its processes in milliseconds, as last measured.
    pub cpu_ms: Option<u64>,
    /// The last view of the server with all its processes. The end of the server is reported with it.
    pub last_view: Option<ServerView>,
    pub provenance: Provenance,
    /// Whether its owner is still sought; the wire may show it. If the start was witnessed and the wire does not
    /// show the owner, the server has none.
    pub seeks_owner: bool,
    /// Whether a later configuration does not recognise it as a server any more. Then it is not ended.
    pub disowned: bool,
    /// Whether the server's main process and its launch chain have exited by themselves. What remains was only
    /// started by the server.
    pub main_ended: bool,
    /// How its main process ended.
    pub ending: Ending,
    /// The container that its client works for, as its engine told it.
    pub container: Option<Container>,
    /// Whether the head of its launch chain was ended by a signal, as far as its exit status says.
    pub head_killed: Option<BootTime>,
    /// Until then it is not reported that a process of it has left its session.
    pub detached_until: BootTime,
    /// How many inspections in a row could not see everything.
    pub blind_inspections: u32,
    /// How many inspections in a row were outdated because the server changed.
    pub stale_inspections: u32,
    /// How many answers in a row were too old when they came.
    pub old_answers: u32,
    /// The id of the session that it was started for, if there is one.
    pub session_id: Option<String>,
    /// What its processes have done since it was released by these.
    pub watches: BTreeMap<By, Watch>,
    /// The thread that started it, unless that was the leading thread of a process.
    pub spawner: Option<Spawner>,
    pub hints: ServerHints,
    /// How it was reached at the last inspection.
    pub reached_by: Vec<ReachedBy>,
    /// The last person who asked to end it. Whether that is why it is ended, its phase tells.
    pub asked_by: Option<String>,
    /// The user who released it last.
    pub released_by: Option<u32>,
    pub phase: Phase,
}

/// What is known of a server when it is recognised. The fields are those of [`Server`].
#[derive(Clone, Debug, Default)]
pub struct NewServer {
    pub main: ProcessId,
    pub name: String,
    pub rule: String,
    pub only_named: bool,
    pub spoken: bool,
    pub client: Option<String>,
    pub owner: Option<AgentKey>,
    pub wrappers: Vec<ProcessId>,
    pub provenance: Provenance,
    pub seeks_owner: bool,
}

impl Server {
    /// A server with this main process. It has no processes and no owner yet.
    pub(super) fn new(new: NewServer, node: &Node) -> Self {
        let NewServer { main, name, rule, only_named, spoken, client, wrappers, .. } = new;
        let [stdin, stdout, _] = node.streams();
        let [talks, answers, _] = &node.exec.makers;
        let made_apart = talks.as_ref().zip(answers.as_ref()).is_some_and(|(a, b)| a.origin != b.origin);
        Self {
            id: wrappers.last().copied().unwrap_or(main),
            main_process: main,
            names: vec![(main, name.clone(), rule.clone())],
            name,
            rule,
            only_named,
            spoken,
            client,
            stdin,
            stdout,
            session: node.sid,
            maker: talks.as_ref().map(|maker| maker.process),
            made_apart,
            user: node.uid,
            recognised: BTreeSet::from([main]),
            wrappers,
            provenance: new.provenance,
            seeks_owner: new.seeks_owner,
            ..Self::default()
        }
    }

    /// A process further down the launch chain shows what the server is.
    pub fn name_by(&mut self, process: ProcessId, name: String, rule: String) {
        self.names.retain(|(by, ..)| *by != process);
        if self.names.len() >= NAMES {
            self.names.remove(1);
        }
        self.names.push((process, name, rule));
        self.take_last_name();
    }

    /// This process has ended. Another one shows what the server is; if there is none, the last name stays.
    pub(super) fn forget_name_by(&mut self, process: ProcessId) {
        if self.names.iter().any(|(by, ..)| *by == process) {
            self.names.retain(|(by, ..)| *by != process);
            self.take_last_name();
        }
    }

    fn take_last_name(&mut self) {
        if let Some((_, name, rule)) = self.names.last() {
            (self.name, self.rule) = (name.clone(), rule.clone());
        }
    }

    /// What a bridge that has ended was seen to speak the protocol to, the youngest: neither was it left, nor is its output the input
    /// of another one (`job | logger`).
    pub(super) fn behind(&self, graph: &Graph) -> Option<ProcessId> {
        let own = || self.processes.iter().filter_map(|process| graph.get(*process));
        let inputs: BTreeSet<Stdio> = own().map(Node::stdin).collect();
        let is_made_by_it = |node: &Node| {
            let [stdin, stdout, _] = &node.exec.makers;
            let is_it = |maker: &Arc<Maker>| self.ended.contains(&maker.process);
            stdin.as_ref().is_some_and(is_it) && stdout.as_ref().is_some_and(is_it)
        };
        let is_one = |node: &&Node| {
            node.heard.is_some()
                && node.left == Left::No
                && is_made_by_it(node)
                && (node.stdin() == node.stdout() || !inputs.contains(&node.stdout()))
        };
        own().filter(is_one).max_by_key(|node| node.order).map(|node| node.id)
    }

    /// A bridge has ended, and this server that it talked to is left: what counts are the wires between the two, if no other
    /// process has those of the bridge.
    pub(super) fn take_wires_of(&mut self, main: ProcessId, graph: &Graph) {
        let mut chain = self.wrappers.iter().chain(&self.processes).filter_map(|process| graph.get(*process));
        if let Some(node) = graph.get(main).filter(|_| chain.all(|node| node.stdin() != self.stdin)) {
            (self.stdin, self.stdout) = (node.stdin(), node.stdout());
        }
    }

    pub const fn owner(&self) -> Option<AgentKey> {
        self.owner
    }

    pub const fn main_process(&self) -> ProcessId {
        self.main_process
    }

    pub const fn processes(&self) -> &BTreeSet<ProcessId> {
        &self.processes
    }

    pub const fn recognised(&self) -> &BTreeSet<ProcessId> {
        &self.recognised
    }

    pub fn wrappers(&self) -> &[ProcessId] {
        &self.wrappers
    }

    pub const fn ended(&self) -> &BTreeSet<ProcessId> {
        &self.ended
    }

    pub fn let_go(&self) -> &[ProcessView] {
        &self.let_go
    }

    pub const fn user(&self) -> u32 {
        self.user
    }

    /// Whose turn it is where it is looked at.
    pub const fn share(&self) -> Share {
        Share::of(self.user)
    }

    pub const fn wires(&self) -> [Stdio; 2] {
        [self.stdin, self.stdout]
    }

    /// Its processes, and then its wrappers.
    pub fn all(&self) -> impl Iterator<Item = ProcessId> {
        self.processes.iter().chain(&self.wrappers).copied()
    }

    /// Its processes and its wrappers without what it has let go, as far as that is known: what ends with it, and what it is said
    /// to use.
    pub fn own(&self) -> impl Iterator<Item = ProcessId> {
        let wrappers = self.wrappers.iter().filter(|process| !self.processes.contains(process));
        wrappers.chain(&self.processes).filter(|process| !self.apart.contains(process)).copied()
    }

    pub fn contains(&self, process: ProcessId) -> bool {
        self.processes.contains(&process) || self.wrappers.contains(&process)
    }
}

/// The thread that started a server. It is not the leading thread of its process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawner {
    /// The process that the thread belongs to: the creator of the head of the launch chain.
    pub process: ProcessId,
    pub thread: NonZeroU32,
    /// When the head of the launch chain began, in clock ticks since boot: the thread began no later.
    pub until: u64,
    /// When the thread ended. Absent while it lives.
    pub ended: Option<BootTime>,
}

impl Spawner {
    /// The thread that created this process, if that was witnessed.
    pub(super) fn of(node: &Node) -> Option<Self> {
        Some(Self { process: node.creator?, thread: node.thread?, until: node.id.start, ended: None })
    }

    /// Records that this thread has ended, if it has: whatever had its number until `at` has ended. Returns whether
    /// that is news.
    pub fn end(&mut self, process: ProcessId, thread: NonZeroU32, at: BootTime) -> bool {
        let is_news = (self.process, self.thread) == (process, thread)
            && self.until <= at.ticks()
            && self.ended.is_none();
        if is_news {
            self.ended = Some(at);
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: ProcessId = ProcessId::new(30, 7);

    fn spawner() -> Spawner {
        let mut node = Node::bare(SERVER);
        (node.creator, node.thread) = (Some(ProcessId::new(20, 5)), NonZeroU32::new(21));
        Spawner::of(&node).unwrap()
    }

    fn at(seconds: u64) -> BootTime {
        BootTime(seconds * 1_000_000_000)
    }

    #[test]
    fn only_its_own_end_counts() {
        let (process, thread) = (ProcessId::new(20, 5), NonZeroU32::new(21).unwrap());
        let mut spawner = spawner();
        assert!(!spawner.end(ProcessId::new(20, 6), thread, at(1)), "another process with that number");
        assert!(!spawner.end(process, NonZeroU32::new(22).unwrap(), at(1)), "another thread");
        let before = BootTime::of_ticks(6);
        assert!(!spawner.end(process, thread, before), "an earlier thread with that number");
        assert_eq!(spawner.ended, None);
        assert!(spawner.end(process, thread, at(1)));
        assert!(!spawner.end(process, thread, at(2)), "it ends once");
        assert_eq!(spawner.ended, Some(at(1)));
    }
}
