//! The processes whose first message is awaited.
//!
//! A message belongs to the wire, which a launcher and what it starts share: a user has so many wires, and a wire so many
//! processes. Who finds no room waits in a queue.
//!
//! Invariant: their number is bounded, for each user and in total, and so is the queue. Used only by [`super::first_messages`].
//!
//! Servers that only their names show: a job may be called `mcp-backup`, too. What is said first to such a server confirms
//! it, and so do settings that declare it; until then the doubt `only_named` holds, unless a rule knows the host.
//! From then on its rule is [`PROTOCOL`], also for the next daemon. What an agent calls as a hook is no server.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use super::{Engine, agenda::Task, servers::Recognised};
use crate::{
    lineage::{Node, Origin, ServerKey},
    model::{BootTime, FirstMessage, ProcessId, Share, Stdio},
    recognise::PROTOCOL,
    world::{Agent, feeder},
};

/// The most wires of one user whose processes are asked about at a time.
const WIRES_OF_USER: usize = 128;
/// The most processes on one wire that are: a launch chain.
const ON_A_WIRE: usize = 4;
/// The most processes that are asked about at a time.
const MOST: usize = 1024;
/// The most processes of one user, and of all, that wait until there is room.
const QUEUED_OF_USER: usize = 1024;
const QUEUED: usize = 8192;
/// Between two looks whether there is room for those.
const EVERY: Duration = Duration::from_millis(50);
/// Who has lived for so long, and was not listened to in time, may have been a server: a command is over before.
const A_SESSION: Duration = Duration::from_secs(60);
/// The most command lines that are kept of a process.
const LINES: usize = 4;

pub(super) type FirstMessages = BTreeMap<ProcessId, Awaited>;

pub(super) fn has_room_for(all: &FirstMessages, node: &Node) -> bool {
    Places::of(all).take(node)
}

/// The places that are taken.
#[derive(Default)]
struct Places {
    all: usize,
    wires: BTreeMap<Share, usize>,
    on_wire: BTreeMap<(Share, [Stdio; 2]), usize>,
}

impl Places {
    fn of(all: &FirstMessages) -> Self {
        let mut places = Self::default();
        for awaited in all.values() {
            places.add(awaited.share, awaited.wires);
        }
        places
    }

    fn add(&mut self, share: Share, wires: [Stdio; 2]) {
        let on_wire = self.on_wire.entry((share, wires)).or_default();
        *on_wire += 1;
        *self.wires.entry(share).or_default() += usize::from(*on_wire == 1);
        self.all += 1;
    }

    /// Takes one for this process, if there is one.
    fn take(&mut self, node: &Node) -> bool {
        let (share, wires) = (Share::of(node.uid), node.wires());
        let has_room = match self.on_wire.get(&(share, wires)) {
            Some(beside) => *beside < ON_A_WIRE,
            None => self.wires.get(&share).is_none_or(|wires| *wires < WIRES_OF_USER),
        };
        let has_room = has_room && self.all < MOST;
        if has_room {
            self.add(share, wires);
        }
        has_room
    }
}

/// Those for whom there was no room, in their order.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Queued>,
    /// How many found no room here either: they are never asked about.
    pub(super) not_asked: u64,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    process: ProcessId,
    origin: Origin,
    share: Share,
    at: BootTime,
    below: bool,
}

#[derive(Debug)]
pub(super) struct Awaited {
    /// The exec since which it is asked about.
    pub(super) origin: Origin,
    pub(super) share: Share,
    pub(super) wires: [Stdio; 2],
    /// When it began to run the program; absent where that does not matter.
    pub(super) since: Option<BootTime>,
    /// How often nothing was there.
    pub(super) looks: u32,
    /// Whether nobody could write any more at the last look.
    pub(super) over: bool,
    /// What was said on these wires, to it or to a launcher or shell above: it is for the server.
    pub(super) said: Option<Said>,
    /// Until when it is on trial: a shell's start-up file runs programs on the shell's own wires, and none of them is
    /// the server. It is one if it takes the message, or if nobody sees that and it still lives then.
    pub(super) trial: Option<BootTime>,
    /// Whether it began below a launcher or a shell on these wires, as one of several programs perhaps: it is the server only when it
    /// has read the message, also if that one has ended since.
    pub(super) below: bool,
    /// The command lines that the process had on these wires, the oldest first.
    pub(super) lines: Vec<Vec<String>>,
}

impl Awaited {
    /// What this process runs now; `earlier` is what it ran before, if that was asked about.
    pub(super) fn of(node: &Node, earlier: Option<Self>) -> Self {
        let wires = node.wires();
        let (said, below, mut lines) = earlier
            .filter(|earlier| earlier.wires == wires)
            .map_or_else(Default::default, |earlier| (earlier.said, earlier.below, earlier.lines));
        lines.extend(node.image().filter(|image| !image.argv_truncated).map(|image| image.argv.clone()));
        if lines.len() > LINES {
            lines.remove(0);
        }
        let (origin, share) = (node.origin(), Share::of(node.uid));
        Self { origin, share, wires, since: None, looks: 0, over: false, said, trial: None, below, lines }
    }
}

/// What shows that a server is expected on these wires.
#[derive(Clone, Debug)]
pub(super) enum Said {
    /// A first message of the protocol, and the client's name.
    Message(Option<String>),
    /// Settings declare the launcher under this name. Nobody saw a message.
    Declared(String),
}

impl Engine {
    /// There is no room for this process now. Returns whether it is asked about later.
    pub(super) fn queue_up(&mut self, at: BootTime, process: ProcessId) -> bool {
        self.world.change(process, |node| node.unheard = Some(at));
        let Some(node) = self.world.node(process) else { return false };
        let (origin, share) = (node.origin(), Share::of(node.uid));
        // A shell may have ended when its turn comes.
        let below = self.is_below_a_launcher(node);
        let queue = &mut self.queue;
        let of_user = queue.waiting.iter().filter(|one| one.share == share).count();
        let has_room = queue.waiting.len() < QUEUED && of_user < QUEUED_OF_USER;
        if has_room {
            queue.waiting.push_back(Queued { process, origin, share, at, below });
            self.agenda.keep(Task::Queue, Some(at));
        } else {
            queue.not_asked += 1;
        }
        has_room
    }

    /// Asks about those that wait for room, as far as there is room now.
    pub(super) fn take_from_queue(&mut self, now: BootTime) {
        let mut places = Places::of(&self.first_messages);
        for one in std::mem::take(&mut self.queue.waiting) {
            let is_it = |node: &&Node| node.origin() == one.origin;
            let Some(node) = self.world.node(one.process).filter(is_it) else { continue };
            if self.first_messages.contains_key(&one.process) {
                continue;
            }
            let main = |key: &ServerKey| {
                self.world.server(*key).is_some_and(|server| server.main_process() == one.process)
            };
            let server = node.server.filter(main);
            if !places.take(node) {
                self.queue.waiting.push_back(one);
            } else if let Some(key) = server {
                self.seek_confirmation(key);
            } else {
                let known = Awaited { below: one.below, lines: Vec::new(), ..Awaited::of(node, None) };
                if !self.await_first_message(now, one.at, one.process, Some(known)) {
                    self.is_no_server(one.process);
                }
            }
        }
        let again = (!self.queue.waiting.is_empty()).then(|| now + EVERY);
        self.agenda.set(Task::Queue, again);
    }

    /// How many processes were not asked about, since there were too many.
    pub const fn not_asked(&self) -> u64 {
        self.queue.not_asked
    }

    /// A process ends to which nobody listened in time. If a server ran it on wires of its own, and not for a moment, that may be
    /// a gateway, also without it.
    pub(super) fn ends_unheard(&mut self, at: BootTime, id: ProcessId) {
        let Some(node) = self.world.node(id) else { return };
        let lasted = node.unheard.is_some_and(|since| at.since(since) >= A_SESSION);
        let is_inner = |key: &ServerKey| self.server_on_its_wire(node).is_none() && !self.is_job(*key);
        if let Some(key) = node.server.filter(|key| lasted && is_inner(key)) {
            self.enter_gateway(at, key);
        }
    }

    /// A server was seen to speak the protocol to one of its processes, on wires of its own. As long as the server lives that stays
    /// what it was: it may be a tool at work.
    pub(super) fn a_server_spoke_to(
        &mut self,
        at: BootTime,
        key: ServerKey,
        id: ProcessId,
        client: Option<String>,
    ) {
        let is_recognised = self.world.server(key).is_some_and(|server| server.recognised().contains(&id));
        let heard = (!is_recognised).then(|| Box::new(FirstMessage::Mcp { client }));
        self.world.change(id, |node| node.heard = heard);
        self.forget_first_messages(id);
        self.enter_gateway(at, key);
    }

    /// Whether nothing but its name says that this process is a server.
    pub(super) fn is_only_named(&self, id: ProcessId, rule: &str) -> bool {
        let image = self.world.node(id).and_then(Node::image);
        rule != PROTOCOL && image.is_some_and(|image| self.rules.is_only_named(image))
    }

    /// Whether it matters what is said to this server: only its name shows it, or no rule knows who made its wires, and it may
    /// have been started to serve others elsewhere.
    pub(super) fn awaits_confirmation(&self, key: ServerKey) -> bool {
        let is_implied = || self.world.owner(key).is_some_and(|owner| owner.implied);
        self.world.server(key).is_some_and(|server| server.only_named || !server.spoken && is_implied())
    }

    /// It may outlive its agent, and is no server by whatever name.
    pub(super) fn is_a_hook(&mut self, now: BootTime, id: ProcessId, origin: Origin) {
        let is_named = |key| self.world.server(key).is_some_and(|server| server.only_named);
        let node = self.world.node(id).filter(|node| node.origin() == origin);
        if node.and_then(|node| self.server_on_its_wire(node)).is_some_and(is_named) {
            self.leave_server(now, id);
        }
        self.is_no_server(id);
    }

    pub(super) fn has_living_owner(&self, id: ProcessId) -> bool {
        let key = self.world.node(id).and_then(|node| node.server);
        key.and_then(|key| self.world.owner(key)).is_some_and(Agent::is_alive)
    }

    /// A server has begun: asks what is said to it, if that matters.
    pub(super) fn seek_confirmation(&mut self, key: ServerKey) {
        let Some(server) = self.world.server(key).filter(|_| self.awaits_confirmation(key)) else { return };
        let id = server.main_process();
        let Some(node) = self.world.node(id) else { return };
        if !self.policy.recognise_protocol || self.is_job(key) || self.first_messages.contains_key(&id) {
            return;
        }
        let (has_room, found) = (has_room_for(&self.first_messages, node), node.provenance.is_found());
        let awaited = Awaited::of(node, None);
        if let Some(server) = self.world.server_mut(key) {
            server.unlooked = !found || self.ready;
        }
        if !has_room {
            let at = BootTime::of_ticks(id.start);
            self.queue_up(at, id);
            return;
        }
        self.begin_to_look(id, awaited, found);
    }

    /// The input of a process was open when it was looked at: who gave it what it read there means to go on. Or it was over, and
    /// nobody had seen a message: then that was all that it was to read.
    pub(super) fn saw_input(&mut self, id: ProcessId, is_over: bool) {
        let key = self.world.node(id).and_then(|node| node.server).filter(|_| self.has_living_owner(id));
        if let Some(server) = key.and_then(|key| self.world.server_mut(key))
            && server.main_process() == id
        {
            server.unlooked = is_over;
        }
    }

    /// The reloader that feeds this process by a pipe of its own, if it was told a server's first message.
    pub(super) fn told_reloader(&self, id: ProcessId) -> Option<ProcessId> {
        let reloader = feeder(&self.world, self.world.node(id)?)?;
        self.first_messages.get(&reloader)?.said.is_some().then_some(reloader)
    }

    /// A reloader that was told a server's first message feeds a server that a rule knows: both are one server, with this name.
    pub(super) fn begin_at_reloader(&mut self, now: BootTime, at: BootTime, reloader: ProcessId, name: &str) {
        let said = self.stop_waiting(reloader).and_then(|awaited| awaited.said);
        let client = if let Some(Said::Message(client)) = said { client } else { None };
        let Some(node) = self.world.node(reloader) else { return };
        let recognised = Recognised::new(node, name.to_owned(), PROTOCOL.to_owned(), client);
        self.server_recognised(now, at, recognised);
    }

    /// What was said to a server shows that it is not only called like one.
    pub(super) fn confirmed(&mut self, now: BootTime, key: ServerKey, id: ProcessId, said: Said) {
        self.stop_waiting(id);
        let Some(server) = self.world.server_mut(key) else { return };
        server.spoken = true;
        if std::mem::take(&mut server.only_named) {
            server.name_by(id, server.name.clone(), PROTOCOL.to_owned());
        }
        if let Said::Message(client) = said {
            server.client = server.client.take().or(client);
        }
        self.compare(now, key);
        self.remember_server(now, key);
    }
}
