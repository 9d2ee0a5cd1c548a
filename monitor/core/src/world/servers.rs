//! Servers: what they are made of and how far their case has come.

use std::collections::{BTreeMap, BTreeSet};

use super::Account;
use crate::{
    lineage::{AgentKey, Node, Provenance},
    model::{BootTime, Doubt, Evidence, Guard, ProcessId, ProcessView, ServerView, Signal, Stdio},
};

/// An MCP stdio server: its launch chain, the server proper and its descendants.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Server {
    /// The head of its launch chain when it was recognised; names the server for ever.
    pub id: ProcessId,
    /// The recognised process furthest down the launch chain.
    pub(super) proper: ProcessId,
    /// The name shown.
    pub name: String,
    /// The rule that recognised it.
    pub rule: String,
    /// Its standard input when it was born: the wire on which it is talked to.
    pub stdin: Stdio,
    /// Its standard output when it was born: the wire on which it answers.
    pub stdout: Stdio,
    /// The session of the server proper: it may have been given one of its own before it was recognised.
    pub session: u32,
    /// The process that made the first; absent where nobody witnessed it.
    pub maker: Option<ProcessId>,
    /// Whether another program made the second.
    pub made_apart: bool,
    /// Who owns it.
    pub(super) owner: Option<AgentKey>,
    /// The user on whose turn it is inspected: its owner's, else its own.
    pub(super) user: u32,
    /// The run it is accounted to.
    pub account: Option<Account>,
    /// Its living processes, launchers that belong to nobody else not included.
    pub(super) processes: BTreeSet<ProcessId>,
    /// Those of them that a rule recognised.
    pub(super) recognised: BTreeSet<ProcessId>,
    /// Shells and launchers around it, nearest first.
    pub(super) wrappers: Vec<ProcessId>,
    /// Processes that were its main process or of its launch chain, and have exited: what they made is still tied to it.
    pub(super) ended: BTreeSet<ProcessId>,
    /// What it started and let go, bounded: reported when it has ended.
    pub(super) let_go: Vec<ProcessView>,
    /// Resident memory when last measured, in bytes.
    pub rss_bytes: Option<u64>,
    /// It as last shown with all its processes: what is told when it has ended.
    pub last_view: Option<ServerView>,
    /// How its start is known.
    pub provenance: Provenance,
    /// Whether its owner is not known yet: the wire may tell. If its start was witnessed and the wire does not tell, it has none.
    pub seeks_owner: bool,
    /// Whether a person asked to end it.
    pub asked: bool,
    /// Whether a configuration that was read later does not take it for a server any more: it is not ended.
    pub disowned: bool,
    /// Whether the server proper and its launch chain have ended by themselves: what is left of it was only started by it.
    pub proper_ended: bool,
    /// Looks in a row that could not see everything.
    pub blind_looks: u32,
    /// The look that is under way.
    pub(super) looking: Option<Asked>,
    /// Looks in a row during which it changed.
    pub stale_looks: u32,
    /// How far its case has come.
    pub state: State,
    /// When the engine will look at it again.
    pub(super) timer: Option<BootTime>,
}

/// What is known of a server at the moment it is recognised.
#[derive(Clone, Debug)]
pub struct NewServer {
    /// The process that was recognised.
    pub main: ProcessId,
    /// The name shown.
    pub name: String,
    /// The rule that recognised it.
    pub rule: String,
    /// Who owns it.
    pub owner: Option<AgentKey>,
    /// Shells and launchers around it, nearest first.
    pub wrappers: Vec<ProcessId>,
    /// How its start is known.
    pub provenance: Provenance,
    /// Whether its owner is not known yet.
    pub seeks_owner: bool,
}

/// A look that was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The question.
    pub token: u64,
    /// When.
    pub since: BootTime,
    /// For whom.
    pub user: u32,
}

/// How far the case of a server has come.
#[derive(Clone, Debug)]
pub enum State {
    /// Its owner is alive, or it never had one.
    Live,
    /// Its owner has exited.
    Suspect {
        /// When the owner exited.
        since: BootTime,
        /// When the grace ends.
        deadline: BootTime,
    },
    /// Its owner is gone, and it is not proven that nobody can use it. The case of an orphan in the making: nothing is done.
    Unproven(Box<Case>),
    /// It is an orphan.
    Orphan(Box<Case>),
}

/// The case of an orphan.
#[derive(Clone, Debug)]
pub struct Case {
    /// When its owner exited.
    pub since: BootTime,
    /// What speaks for it.
    pub evidence: Vec<Evidence>,
    /// What keeps it from being proven.
    pub doubts: Vec<Doubt>,
    /// What forbids to end it.
    pub guards: Vec<Guard>,
    /// The sessions of the server proper and its launch chain when its end began.
    pub sessions: BTreeSet<u32>,
    /// What was tied to them then.
    pub tied: BTreeSet<ProcessId>,
    /// How far ending it has come.
    pub stage: Stage,
    /// How often it was looked at in vain, for the next look's delay.
    pub looks: u32,
    /// Resident memory at the verdict, in bytes.
    pub rss_bytes: u64,
    /// Proportional memory at the verdict, in bytes, where it could be read.
    pub pss_bytes: Option<u64>,
    /// When the first signal was sent.
    pub first_signal: Option<BootTime>,
    /// What was sent to whom.
    pub signalled: BTreeMap<ProcessId, Signal>,
    /// What could not be signalled, or did not end.
    pub refused: BTreeSet<ProcessId>,
    /// The first of those and what happened to it, until it is told.
    pub failure: Option<Failure>,
}

/// What happened to a process that could not be ended.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The process.
    pub process: ProcessId,
    /// What happened.
    pub error: String,
    /// errno(3), where a system call failed.
    pub errno: Option<i32>,
}

/// How far ending an orphan has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A guard holds.
    Spared,
    /// The server proper was asked to end.
    Leaf,
    /// All of it was asked to end.
    Rest,
    /// What is left is being killed.
    Kill,
    /// Something could not be ended; nobody tries any more.
    Failed,
}

impl Case {
    /// Of a server whose owner is gone since then.
    pub const fn since(since: BootTime) -> Self {
        Self {
            since,
            evidence: Vec::new(),
            doubts: Vec::new(),
            guards: Vec::new(),
            sessions: BTreeSet::new(),
            tied: BTreeSet::new(),
            stage: Stage::Spared,
            looks: 0,
            rss_bytes: 0,
            pss_bytes: None,
            first_signal: None,
            signalled: BTreeMap::new(),
            refused: BTreeSet::new(),
            failure: None,
        }
    }
}

impl Server {
    /// A server whose main process this is. It has no process and no owner yet.
    pub(super) fn new(new: NewServer, node: &Node) -> Self {
        let NewServer { main, name, rule, wrappers, provenance, seeks_owner, .. } = new;
        let [stdin, stdout, _] = node.streams();
        let [talks, answers, _] = &node.exec.makers;
        let made_apart = talks.as_ref().zip(answers.as_ref()).is_some_and(|(a, b)| a.origin != b.origin);
        Self {
            id: wrappers.last().copied().unwrap_or(main),
            proper: main,
            name,
            rule,
            stdin,
            stdout,
            session: node.sid,
            maker: talks.as_ref().map(|maker| maker.process),
            made_apart,
            owner: None,
            user: node.uid,
            account: None,
            processes: BTreeSet::new(),
            recognised: BTreeSet::from([main]),
            wrappers,
            ended: BTreeSet::new(),
            let_go: Vec::new(),
            rss_bytes: None,
            last_view: None,
            provenance,
            seeks_owner,
            asked: false,
            disowned: false,
            proper_ended: false,
            blind_looks: 0,
            looking: None,
            stale_looks: 0,
            state: State::Live,
            timer: None,
        }
    }

    /// Who owns it, if that is known.
    pub const fn owner(&self) -> Option<AgentKey> {
        self.owner
    }

    /// The recognised process furthest down the launch chain: the main process of the server. It may have exited.
    pub const fn proper(&self) -> ProcessId {
        self.proper
    }

    /// Its living processes, launchers that belong to nobody else not included.
    pub const fn processes(&self) -> &BTreeSet<ProcessId> {
        &self.processes
    }

    /// Those of them that a rule recognised.
    pub const fn recognised(&self) -> &BTreeSet<ProcessId> {
        &self.recognised
    }

    /// Shells and launchers around it, nearest first.
    pub fn wrappers(&self) -> &[ProcessId] {
        &self.wrappers
    }

    /// Processes that were its main process or of its launch chain, and have exited.
    pub const fn ended(&self) -> &BTreeSet<ProcessId> {
        &self.ended
    }

    /// What it started and let go.
    pub fn let_go(&self) -> &[ProcessView] {
        &self.let_go
    }

    /// The user on whose turn it is inspected.
    pub const fn user(&self) -> u32 {
        self.user
    }

    /// The look that is under way.
    pub const fn looking(&self) -> Option<Asked> {
        self.looking
    }

    /// Its case, if it is an orphan.
    pub fn case(&self) -> Option<&Case> {
        match &self.state {
            State::Orphan(case) => Some(case),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn case_mut(&mut self) -> Option<&mut Case> {
        match &mut self.state {
            State::Orphan(case) => Some(case),
            _ => None,
        }
    }

    /// What was found out about it, if it was judged: an orphan, or unproven.
    pub fn judged(&self) -> Option<&Case> {
        match &self.state {
            State::Orphan(case) | State::Unproven(case) => Some(case),
            State::Live | State::Suspect { .. } => None,
        }
    }

    /// Whether it is unproven.
    pub const fn is_unproven(&self) -> bool {
        matches!(self.state, State::Unproven(_))
    }

    /// Since when its owner is gone.
    pub fn suspected_since(&self) -> Option<BootTime> {
        match &self.state {
            State::Live => None,
            State::Suspect { since, .. } => Some(*since),
            State::Orphan(case) | State::Unproven(case) => Some(case.since),
        }
    }

    /// The signal that was needed, if any was sent.
    pub fn strongest_signal(&self) -> Option<Signal> {
        self.judged().and_then(|c| c.signalled.values().max().copied())
    }

    /// Whether the process is the server's or one of its wrappers.
    pub fn contains(&self, process: ProcessId) -> bool {
        self.processes.contains(&process) || self.wrappers.contains(&process)
    }
}
