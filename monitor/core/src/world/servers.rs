//! Servers: what they are made of and how far their case has come.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use rustc_hash::FxHashMap;

use super::Account;
use crate::{
    lineage::{AgentKey, ServerKey},
    model::{BootTime, Doubt, Evidence, Guard, ProcessId, ProcessView, ServerView, Signal, Stdio},
};

/// An MCP stdio server: its launch chain, the server proper and its descendants.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Server {
    /// The head of its launch chain when it was recognised; names the server for ever.
    pub id: ProcessId,
    /// The recognised process furthest down the launch chain.
    pub proper: ProcessId,
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
    pub owner: Option<AgentKey>,
    /// The user whose trouble it is: its owner's, else its own. Looks are made for users in turn.
    pub user: u32,
    /// The run it is accounted to.
    pub account: Option<Account>,
    /// Its living processes, launchers that belong to nobody else not included.
    pub processes: BTreeSet<ProcessId>,
    /// Those of them that a rule recognised.
    pub recognised: BTreeSet<ProcessId>,
    /// Shells and launchers around it, nearest first.
    pub wrappers: Vec<ProcessId>,
    /// Processes that were the server proper or of its launch chain, and have ended: what they made is tied to it still.
    pub ended: BTreeSet<ProcessId>,
    /// What it started and let go, bounded: told when it has ended.
    pub let_go: Vec<ProcessView>,
    /// Resident memory when last measured, in bytes.
    pub rss_bytes: Option<u64>,
    /// It as last shown with all its processes: what is told when it has ended.
    pub last_view: Option<ServerView>,
    /// Whether it was there before us and its owner is not known yet.
    pub found: bool,
    /// Whether it is new, but not who made its wire: who created it had ended. The wire may tell; else it stays nobody's.
    pub sought: bool,
    /// Whether it was found below a service manager, or init, without anything between that is not its own launch chain.
    pub adopted: bool,
    /// Whether what is known of it was witnessed by an earlier daemon only.
    pub recovered: bool,
    /// Whether a person asked to end it.
    pub asked: bool,
    /// Whether a configuration that was read later does not take it for a server any more: it is not ended.
    pub disowned: bool,
    /// Whether the server proper and its launch chain have ended by themselves: what is left of it was only started by it.
    pub proper_ended: bool,
    /// Looks in a row that could not see everything.
    pub blind_looks: u32,
    /// The look that is under way.
    pub looking: Option<Asked>,
    /// Looks in a row during which it changed.
    pub stale_looks: u32,
    /// How far its case has come.
    pub state: State,
    /// When the engine will look at it again.
    pub timer: Option<BootTime>,
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
    next: u32,
}

impl Servers {
    /// Enters a server.
    pub fn start(&mut self, server: Server) -> ServerKey {
        self.next += 1;
        let key = ServerKey(self.next);
        self.by_key.insert(key, server);
        key
    }

    /// The server with this key.
    pub fn get(&self, key: ServerKey) -> Option<&Server> {
        self.by_key.get(&key)
    }

    /// The same, to be changed; its timer through [`Servers::set_timer`] only.
    pub fn get_mut(&mut self, key: ServerKey) -> Option<&mut Server> {
        self.by_key.get_mut(&key)
    }

    /// Takes a server out.
    pub fn remove(&mut self, key: ServerKey) -> Option<Server> {
        self.set_timer(key, None);
        self.end_look(key);
        self.by_key.remove(&key)
    }

    /// When to look at it again.
    pub fn set_timer(&mut self, key: ServerKey, at: Option<BootTime>) {
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
    pub fn set_user(&mut self, key: ServerKey, user: u32) {
        let timer = self.by_key.get(&key).and_then(|server| server.timer);
        self.set_timer(key, None);
        if let Some(server) = self.by_key.get_mut(&key) {
            server.user = user;
        }
        self.set_timer(key, timer);
    }

    /// A look is under way from now on.
    pub fn begin_look(&mut self, key: ServerKey, token: u64, since: BootTime) {
        self.end_look(key);
        let Some(server) = self.by_key.get_mut(&key) else { return };
        let user = server.user;
        server.looking = Some(Asked { token, since, user });
        *self.under_way.entry(user).or_default() += 1;
    }

    /// It is not any more.
    pub fn end_look(&mut self, key: ServerKey) {
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
    pub fn due(&mut self, now: BootTime) -> Option<ServerKey> {
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

    /// The number of servers.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }
}
