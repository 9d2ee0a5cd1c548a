//! The processes whose first message is awaited.
//!
//! Invariant: their number is bounded, for each user and in total. Used only by [`super::first_messages`].
//!
//! Servers that only their names show: a job may be called `mcp-backup`, too. What is said first to such a server confirms
//! it, and so do settings that declare it; until then the doubt `only_named` holds, unless a rule knows the host.
//! From then on its rule is [`PROTOCOL`], also for the next daemon. What an agent calls as a hook is no server.

use std::{collections::BTreeMap, time::Duration};

use super::{Engine, first_messages::PROTOCOL};
use crate::{
    lineage::{Node, Origin, ServerKey},
    model::{BootTime, ProcessId, Stdio},
};

/// The most processes of one user that are asked about at a time.
const MOST_OF_USER: usize = 128;
/// The most processes that are asked about at a time.
const MOST: usize = 1024;
/// The most command lines that are kept of a process.
const LINES: usize = 4;
/// How long a program below a shell must live to be taken for the server, where nobody sees whether it takes the message.
pub(super) const TRIAL: Duration = Duration::from_millis(250);

pub(super) type FirstMessages = BTreeMap<ProcessId, Awaited>;

pub(super) fn has_room_for(all: &FirstMessages, uid: u32) -> bool {
    all.len() < MOST && all.values().filter(|awaited| awaited.uid == uid).count() < MOST_OF_USER
}

#[derive(Debug)]
pub(super) struct Awaited {
    /// The exec since which it is asked about.
    pub(super) origin: Origin,
    pub(super) uid: u32,
    pub(super) wires: [Stdio; 2],
    /// When it began to run the program; absent where that does not matter.
    pub(super) since: Option<BootTime>,
    /// Whether it may have read its first message before anybody looked.
    pub(super) late: bool,
    /// How often nothing was there.
    pub(super) looks: u32,
    /// What was said on these wires, to it or to a launcher or shell above: it is for the server.
    pub(super) said: Option<Said>,
    /// Until when it is on trial: a shell's start-up file runs programs on the shell's own wires, and none of them is
    /// the server. It is one if it takes the message, or if nobody sees that and it still lives then.
    pub(super) trial: Option<BootTime>,
    /// The command lines that the process had on these wires, the oldest first.
    pub(super) lines: Vec<Vec<String>>,
}

impl Awaited {
    /// What this process runs now; `earlier` is what it ran before, if that was asked about.
    pub(super) fn of(node: &Node, earlier: Option<Self>) -> Self {
        let wires = node.wires();
        let (said, mut lines) = earlier
            .filter(|earlier| earlier.wires == wires)
            .map_or_else(Default::default, |earlier| (earlier.said, earlier.lines));
        lines.extend(node.image().filter(|image| !image.argv_truncated).map(|image| image.argv.clone()));
        if lines.len() > LINES {
            lines.remove(0);
        }
        let (origin, uid) = (node.origin(), node.uid);
        Self { origin, uid, wires, since: None, late: false, looks: 0, said, trial: None, lines }
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

    /// A server has begun: asks what is said to it, if that matters.
    pub(super) fn seek_confirmation(&mut self, key: ServerKey) {
        let Some(server) = self.world.server(key).filter(|_| self.awaits_confirmation(key)) else { return };
        let id = server.main_process();
        let Some(node) = self.world.node(id) else { return };
        if !self.policy.recognise_protocol
            || self.is_job(key)
            || self.first_messages.contains_key(&id)
            || !has_room_for(&self.first_messages, node.uid)
        {
            return;
        }
        let (awaited, found) = (Awaited::of(node, None), node.provenance.is_found());
        self.begin_to_look(id, awaited, found);
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

    /// Nobody looked in time at what was said to this process. If a server runs it on wires of its own, that may be a gateway.
    pub(super) fn may_have_been_spoken_to(&mut self, at: BootTime, id: ProcessId) {
        let Some(node) = self.world.node(id) else { return };
        let is_inner = |key: &ServerKey| self.server_on_its_wire(node).is_none() && !self.is_job(*key);
        if let Some(key) = node.server.filter(is_inner) {
            self.enter_gateway(at, key);
        }
    }
}
