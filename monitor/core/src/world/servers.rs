//! Servers: what they are made of and how far their case has come.

use std::collections::BTreeSet;

use super::Account;
use crate::{
    case::Phase,
    lineage::{AgentKey, Node, Provenance},
    model::{BootTime, ProcessId, ProcessView, ServerView, Stdio},
};

/// An MCP stdio server: its launch chain, the server's main process and its descendants.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Server {
    /// The head of its launch chain when it was recognised; names the server for ever.
    pub id: ProcessId,
    /// The recognised process furthest down the launch chain.
    pub(super) main_process: ProcessId,
    /// The name shown.
    pub name: String,
    /// The rule that recognised it.
    pub rule: String,
    /// Its standard input when it was born: the wire on which it is talked to.
    pub stdin: Stdio,
    /// Its standard output when it was born: the wire on which it answers.
    pub stdout: Stdio,
    /// The session of the server's main process: it may have been given one of its own before it was recognised.
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
    /// Whether a configuration that was read later does not take it for a server any more: it is not ended.
    pub disowned: bool,
    /// Whether the server's main process and its launch chain have ended by themselves: what is left of it was only started by it.
    pub main_ended: bool,
    /// Inspections in a row that could not see everything.
    pub blind_inspections: u32,
    /// The look that is under way.
    pub(super) inspection: Option<Asked>,
    /// Inspections in a row during which it changed.
    pub stale_inspections: u32,
    /// How far its case has come.
    pub phase: Phase,
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

/// An inspection that was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The question.
    pub token: u64,
    /// When.
    pub since: BootTime,
    /// For whom.
    pub user: u32,
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
            main_process: main,
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
            disowned: false,
            main_ended: false,
            blind_inspections: 0,
            inspection: None,
            stale_inspections: 0,
            phase: Phase::default(),
            timer: None,
        }
    }

    /// Who owns it, if that is known.
    pub const fn owner(&self) -> Option<AgentKey> {
        self.owner
    }

    /// The recognised process furthest down the launch chain: the main process of the server. It may have exited.
    pub const fn main_process(&self) -> ProcessId {
        self.main_process
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
    pub const fn inspection(&self) -> Option<Asked> {
        self.inspection
    }

    /// Whether the process is the server's or one of its wrappers.
    pub fn contains(&self, process: ProcessId) -> bool {
        self.processes.contains(&process) || self.wrappers.contains(&process)
    }
}
