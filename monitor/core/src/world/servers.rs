//! Servers: what they are made of and how far their case has come.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    ops::Bound,
};

use rustc_hash::FxHashMap;

use super::Account;
use crate::{
    lineage::{AgentKey, Node, Provenance, ServerKey},
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
    user: u32,
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
    looking: Option<Asked>,
    /// Looks in a row during which it changed.
    pub stale_looks: u32,
    /// How far its case has come.
    pub state: State,
    /// When the engine will look at it again.
    timer: Option<BootTime>,
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

/// Looks at one user's servers that are under way at a time: what a question says of thousands of servers is large.
const UNDER_WAY: usize = 4;

/// All servers that are alive.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    by_key: FxHashMap<ServerKey, Server>,
    /// Timers by user.
    by_user: BTreeMap<u32, BTreeSet<(BootTime, ServerKey)>>,
    /// Looks under way, by user.
    under_way: BTreeMap<u32, usize>,
    /// The user whose turn it was last.
    served: u32,
    last: Option<NonZeroU32>,
}

impl Servers {
    /// Enters a server.
    pub(super) fn start(&mut self, server: Server) -> ServerKey {
        let key = ServerKey(self.last.map_or(NonZeroU32::MIN, |last| last.saturating_add(1)));
        self.last = Some(key.0);
        self.by_key.insert(key, server);
        key
    }

    /// The server with this key.
    pub fn get(&self, key: ServerKey) -> Option<&Server> {
        self.by_key.get(&key)
    }

    /// The same, to be changed; its timer through [`Servers::set_timer`] only.
    pub(super) fn get_mut(&mut self, key: ServerKey) -> Option<&mut Server> {
        self.by_key.get_mut(&key)
    }

    /// Takes a server out.
    pub(super) fn remove(&mut self, key: ServerKey) -> Option<Server> {
        self.set_timer(key, None);
        self.end_look(key);
        self.by_key.remove(&key)
    }

    /// When to look at it again.
    pub(super) fn set_timer(&mut self, key: ServerKey, at: Option<BootTime>) {
        let Some(server) = self.by_key.get_mut(&key) else { return };
        let old = std::mem::replace(&mut server.timer, at);
        if let Some(old) = old
            && let Some(own) = self.by_user.get_mut(&server.user)
        {
            own.remove(&(old, key));
            if own.is_empty() {
                self.by_user.remove(&server.user);
            }
        }
        if let Some(at) = at {
            self.by_user.entry(server.user).or_default().insert((at, key));
        }
    }

    /// Whose trouble it is from now on.
    pub(super) fn set_user(&mut self, key: ServerKey, user: u32) {
        let timer = self.by_key.get(&key).and_then(|server| server.timer);
        self.set_timer(key, None);
        if let Some(server) = self.by_key.get_mut(&key) {
            server.user = user;
        }
        self.set_timer(key, timer);
    }

    /// A look is under way from now on.
    pub(super) fn begin_look(&mut self, key: ServerKey, token: u64, since: BootTime) {
        self.end_look(key);
        let Some(server) = self.by_key.get_mut(&key) else { return };
        let user = server.user;
        server.looking = Some(Asked { token, since, user });
        *self.under_way.entry(user).or_default() += 1;
    }

    /// It is not any more.
    pub(super) fn end_look(&mut self, key: ServerKey) {
        let Some(asked) = self.by_key.get_mut(&key).and_then(|server| server.looking.take()) else { return };
        if let Some(count) = self.under_way.get_mut(&asked.user) {
            *count -= 1;
            if *count == 0 {
                self.under_way.remove(&asked.user);
            }
        }
    }

    fn has_room(&self, user: u32) -> bool {
        self.under_way.get(&user).is_none_or(|count| *count < UNDER_WAY)
    }

    /// The next timer of a user of whom not too many are being looked at.
    pub fn next_timer(&self) -> Option<BootTime> {
        let with_room = self.by_user.iter().filter(|(user, _)| self.has_room(**user));
        with_room.filter_map(|(_, own)| own.first()).map(|(at, _)| *at).min()
    }

    /// A server whose timer has run out, the timer removed: of the next user who has one, whose that waits longest. So a user with
    /// thousands of them delays another one's by one look.
    pub(super) fn due(&mut self, now: BootTime) -> Option<ServerKey> {
        self.next_timer().filter(|at| *at <= now)?;
        let after = (Bound::Excluded(self.served), Bound::Unbounded);
        let in_turn = self.by_user.range(after).chain(self.by_user.range(..=self.served));
        let in_turn = in_turn.filter(|(user, _)| self.has_room(**user));
        let mut first = in_turn.filter_map(|(user, own)| Some((*user, *own.first()?)));
        let (user, (_, key)) = first.find(|(_, (at, _))| *at <= now)?;
        self.served = user;
        self.set_timer(key, None);
        Some(key)
    }

    /// All keys, oldest first.
    pub fn keys(&self) -> Vec<ServerKey> {
        let mut keys: Vec<_> = self.by_key.keys().copied().collect();
        keys.sort_unstable();
        keys
    }

    /// All, in no particular order.
    pub fn all(&self) -> impl Iterator<Item = &Server> {
        self.by_key.values()
    }

    /// Broken invariants: the timers and looks of each user are those of its servers.
    pub(super) fn check(&self) -> Vec<String> {
        let mut timers: BTreeMap<u32, BTreeSet<(BootTime, ServerKey)>> = BTreeMap::new();
        let mut under_way: BTreeMap<u32, usize> = BTreeMap::new();
        for (key, server) in &self.by_key {
            if let Some(at) = server.timer {
                timers.entry(server.user).or_default().insert((at, *key));
            }
            if let Some(asked) = server.looking {
                *under_way.entry(asked.user).or_default() += 1;
            }
        }
        let mut broken = Vec::new();
        if timers != self.by_user {
            broken.push(format!("the timers of servers are {timers:?}, listed are {:?}", self.by_user));
        }
        if under_way != self.under_way {
            broken.push(format!("under way are {under_way:?}, counted are {:?}", self.under_way));
        }
        broken
    }

    /// The number of servers.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }
}
