//! Servers that no rule knows. What a host writes first to a server waits in the server's standard input while its
//! runtime starts. If that is a message of the Model Context Protocol, the process is a server (rule `protocol`).
//!
//! A process is asked about if no rule knows it, its standard input and output are wires, and no shell made them. It is
//! asked about at its exec and again after growing pauses, for some seconds. Nothing is asked when no such process
//! starts. The number of processes that are asked about at a time is bounded, for each user and in total; one beyond
//! the bound is not recognised by what is said to it.
//!
//! A launcher or a shell hands its streams on. So the message is taken as one to the program that it starts. A shell that
//! starts none on both of its streams (`tee log | server | tee log`) is the server itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{Engine, Purpose, births::has_wires, servers::Recognised};
use crate::{
    lineage::{Node, Origin, ServerKey},
    model::{About, BootTime, FirstMessage, OwnEnd, ProcessId},
    recognise::{Role, container_client},
};

/// The rule that such a server is recognised by.
pub(super) const PROTOCOL: &str = "protocol";

/// The first pause between two looks. Each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(1);
/// How often one process is looked at: 15 looks within 16 seconds. A runtime reads its standard input some milliseconds to
/// seconds after its start.
const LOOKS: u32 = 15;
/// After so many looks, 127 ms after the exec, the settings of agents are asked too: a program that reads at once has
/// read its first message.
const SILENT: u32 = 8;
/// How long a shell to which a server's first message was written may take to start that server.
const SHELL_STARTS: Duration = Duration::from_secs(2);
/// The most processes of one user that are asked about at a time.
const MOST_OF_USER: usize = 128;
/// The most processes that are asked about at a time.
const MOST: usize = 1024;
/// The most looks in one pass, which take some microseconds each. The next pass continues.
const AT_ONCE: usize = 64;

/// The processes that are asked about.
#[derive(Debug, Default)]
pub(super) struct FirstMessages {
    awaited: BTreeMap<ProcessId, Awaited>,
    due: BTreeSet<(BootTime, ProcessId)>,
}

#[derive(Debug)]
struct Awaited {
    /// The exec since which it is asked about.
    origin: Origin,
    uid: u32,
    /// How often nothing was there.
    looks: u32,
    due: Option<BootTime>,
    /// What was said to a launcher or shell, for the server that it starts.
    said: Option<Said>,
}

/// A first message of the protocol was written.
#[derive(Clone, Debug)]
struct Said {
    client: Option<String>,
}

impl FirstMessages {
    /// When the next process is due.
    pub(super) fn due(&self) -> Option<BootTime> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The process has ended, or runs another program.
    pub(super) fn forget(&mut self, id: ProcessId) {
        if let Some(due) = self.awaited.remove(&id).and_then(|awaited| awaited.due) {
            self.due.remove(&(due, id));
        }
    }

    fn has_room_for(&self, uid: u32) -> bool {
        self.awaited.len() < MOST
            && self.awaited.values().filter(|awaited| awaited.uid == uid).count() < MOST_OF_USER
    }

    fn set_due(&mut self, id: ProcessId, due: Option<BootTime>) {
        let Some(awaited) = self.awaited.get_mut(&id) else { return };
        if let Some(before) = std::mem::replace(&mut awaited.due, due) {
            self.due.remove(&(before, id));
        }
        if let Some(due) = due {
            self.due.insert((due, id));
        }
    }

    /// Takes out those that are due.
    fn take_due(&mut self, now: BootTime) -> Vec<ProcessId> {
        let due: Vec<ProcessId> =
            self.due.iter().take_while(|(at, _)| *at <= now).take(AT_ONCE).map(|(_, id)| *id).collect();
        for id in &due {
            self.set_due(*id, None);
        }
        due
    }

    /// The number of processes that are asked about.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.awaited.len()
    }
}

impl Engine {
    /// A process that no rule knows runs a new program: asks what is said to it. Returns whether it may be a server.
    pub(super) fn await_first_message(&mut self, now: BootTime, at: BootTime, id: ProcessId) -> bool {
        let Some(node) = self.world.node(id) else { return false };
        if !self.settings.recognise_protocol || !has_wires(node) || node.protected || node.wraps.is_some() {
            return false;
        }
        if let Some(key) = node.server.filter(|key| !self.is_job(*key)) {
            self.deeper_link(at, key, id);
            return false;
        }
        let (origin, uid, found) = (node.origin(), node.uid, node.provenance.is_found());
        if let Some(name) = self.recall.known_by_protocol(id).filter(|_| found) {
            self.recognised_by_protocol(now, at, id, name, None);
            return true;
        }
        if !made_by_a_host(node) {
            return false;
        }
        let said = self.said_above(node);
        if let Some(said) = said.clone().filter(|_| !hands_on(node)) {
            let name = self.title(id);
            self.recognised_by_protocol(now, at, id, name, said.client);
            return true;
        }
        if !self.first_messages.has_room_for(uid) {
            return false;
        }
        // One that was there before the daemon has read the message long ago. One that was missed may be young.
        let is_old = found && !self.ready;
        let (ask, looks) = (said.is_none(), if is_old { LOOKS } else { 0 });
        self.first_messages.awaited.insert(id, Awaited { origin, uid, looks, due: None, said });
        match (ask, is_old) {
            (true, true) => self.ask_settings(id, origin, uid),
            (true, false) => self.ask_first_message(id),
            (false, _) => {}
        }
        true
    }

    /// The configuration turned it off: nothing more is asked.
    pub(super) fn forget_all_first_messages(&mut self) {
        let awaited: Vec<ProcessId> = self.first_messages.awaited.keys().copied().collect();
        for id in awaited {
            self.is_no_server(id);
        }
    }

    /// Asks about the processes that are due.
    pub(super) fn look_for_first_messages(&mut self, now: BootTime) {
        for id in self.first_messages.take_due(now) {
            let Some(awaited) = self.first_messages.awaited.get(&id) else { continue };
            if self.world.node(id).is_none_or(|node| node.origin() != awaited.origin) {
                self.first_messages.forget(id);
            } else if let Some(said) = awaited.said.clone() {
                // The shell has started nothing on both of its streams.
                let name = self.title(id);
                self.recognised_by_protocol(now, now, id, name, said.client);
            } else {
                self.ask_first_message(id);
            }
        }
    }

    /// What the first message on the standard input of this process says.
    pub(super) fn first_message_answered(
        &mut self,
        now: BootTime,
        id: ProcessId,
        origin: Origin,
        message: FirstMessage,
    ) {
        let Some(awaited) = self.first_messages.awaited.get_mut(&id).filter(|a| a.origin == origin) else {
            return;
        };
        let (client, named) = match message {
            FirstMessage::Nothing => {
                let pause = PAUSE * (1 << awaited.looks);
                awaited.looks += 1;
                if awaited.looks < LOOKS {
                    let (is_silent, awaited_by) = (awaited.looks == SILENT, awaited.uid);
                    self.first_messages.set_due(id, Some(now + pause));
                    if is_silent {
                        self.ask_settings(id, origin, awaited_by);
                    }
                } else {
                    self.is_no_server(id);
                }
                return;
            }
            FirstMessage::Framed | FirstMessage::Other | FirstMessage::Unknown => {
                self.is_no_server(id);
                return;
            }
            FirstMessage::Mcp { client } => (client, None),
            FirstMessage::Declared { name } => (None, Some(name)),
        };
        let Some(node) = self.world.node(id).filter(|node| node.origin() == origin) else {
            self.first_messages.forget(id);
            return;
        };
        if let Some(started) = self.started_on_the_same_streams(node) {
            let name = named.unwrap_or_else(|| self.title(started));
            self.recognised_by_protocol(now, now, started, name, client);
        } else if hands_on(node) {
            let waits = matches!(node.role(), Some(Role::Shell)).then(|| now + SHELL_STARTS);
            if let Some(awaited) = self.first_messages.awaited.get_mut(&id) {
                awaited.said = Some(Said { client });
            }
            self.first_messages.set_due(id, waits);
        } else {
            let name = named.unwrap_or_else(|| self.title(id));
            self.recognised_by_protocol(now, now, id, name, client);
        }
    }

    fn ask_first_message(&mut self, process: ProcessId) {
        let Some(node) = self.world.node(process) else { return };
        let (stdin, origin, turn) = (node.stdin(), node.origin(), node.uid);
        let about = About::FirstMessage { end: OwnEnd { process, stdin }, turn };
        self.ask(about, Purpose::FirstMessage { process, origin });
    }

    fn ask_settings(&mut self, process: ProcessId, origin: Origin, turn: u32) {
        self.ask(About::Declared { process, turn }, Purpose::Declared { process, origin });
    }

    /// No settings declare this process.
    pub(super) fn not_declared(&mut self, id: ProcessId, origin: Origin) {
        let awaited = self.first_messages.awaited.get(&id).filter(|awaited| awaited.origin == origin);
        if awaited.is_some_and(|awaited| awaited.looks >= LOOKS) {
            self.is_no_server(id);
        }
    }

    /// The program that a launcher or shell has started on both of its streams by now.
    fn started_on_the_same_streams(&self, launcher: &Node) -> Option<ProcessId> {
        let streams = [launcher.stdin(), launcher.stdout()];
        let is_it = |process: &ProcessId| {
            let on_them = |node: &Node| !hands_on(node) && [node.stdin(), node.stdout()] == streams;
            self.world.node(*process).is_some_and(|node| node.origin().process == node.id && on_them(node))
        };
        let below = || self.world.graph().descendants(launcher.id);
        hands_on(launcher).then(below)?.into_iter().find(is_it)
    }

    /// No message of the protocol came, or another one.
    fn is_no_server(&mut self, id: ProcessId) {
        self.first_messages.forget(id);
        let launches = |node: &Node| matches!(node.role(), Some(Role::Launcher | Role::Shell));
        // A launcher or a shell may still start a server that a rule knows.
        if !self.world.node(id).is_some_and(launches) {
            self.dismiss_if_pending(id);
        }
    }

    fn recognised_by_protocol(
        &mut self,
        now: BootTime,
        at: BootTime,
        id: ProcessId,
        name: String,
        client: Option<String>,
    ) {
        self.forget_first_messages(id);
        // It has started a server itself meanwhile.
        if self.world.agent_of(id).is_some() {
            return;
        }
        let Some(origin) = self.world.node(id).map(Node::origin) else { return };
        let rule = PROTOCOL.to_owned();
        self.server_recognised(now, at, Recognised { process: id, origin, name, rule, client });
    }

    /// A process of a server that was recognised by the protocol runs a program on both of the server's streams: it is
    /// the server, and what was recognised first had only launched it.
    fn deeper_link(&mut self, at: BootTime, key: ServerKey, id: ProcessId) {
        let Some(node) = self.world.node(id).filter(|node| !hands_on(node)) else { return };
        let streams = (node.stdin(), node.stdout());
        let is_its = self
            .world
            .server(key)
            .is_some_and(|server| server.rule == PROTOCOL && (server.stdin, server.stdout) == streams);
        if is_its {
            let name = self.title(id);
            self.named_deeper(at, key, id, name, PROTOCOL.to_owned());
        }
    }

    /// A process further down the launch chain of a server shows what the server is.
    pub(super) fn named_deeper(
        &mut self,
        at: BootTime,
        key: ServerKey,
        id: ProcessId,
        name: String,
        rule: String,
    ) {
        if let Some(server) = self.world.server_mut(key).filter(|server| server.rule == PROTOCOL) {
            server.name_by(id, name, rule);
        }
        self.recognised_again(at, key, id);
    }

    /// What was said to a launcher or shell above this process, on the same streams.
    fn said_above(&self, node: &Node) -> Option<Said> {
        let streams = [node.stdin(), node.stdout()];
        let same = |above: &&Node| [above.stdin(), above.stdout()] == streams;
        let mut above = self.world.graph().ancestors(node.id).take_while(same);
        above.find_map(|above| self.first_messages.awaited.get(&above.id)?.said.clone())
    }

    /// A server was recognised: nothing more is asked about it, nor about what launched it.
    pub(super) fn forget_first_messages(&mut self, id: ProcessId) {
        if self.first_messages.awaited.is_empty() {
            return;
        }
        let stdin = self.world.node(id).map(Node::stdin);
        let above = self.world.graph().ancestors(id).take_while(|above| Some(above.stdin()) == stdin);
        let above: Vec<ProcessId> = above.map(|above| above.id).collect();
        for process in above.into_iter().chain([id]) {
            self.first_messages.forget(process);
        }
    }

    /// The name of a server that no rule knows.
    fn title(&self, id: ProcessId) -> String {
        let image = self.world.node(id).and_then(Node::image);
        image.map(|image| self.settings.rules.title(image)).unwrap_or_default()
    }
}

/// Whether the process runs another program on its own streams, as an init stub (`tini`) does, too. The client of a
/// container engine does not: the program runs elsewhere.
fn hands_on(node: &Node) -> bool {
    matches!(node.role(), Some(Role::Launcher | Role::Shell | Role::ServiceManager))
        && node.image().is_none_or(|image| container_client(image).is_none())
}

/// Whether one process made standard input and output, which is neither a shell nor the process itself. In a pipeline,
/// a shell makes at least one of them.
fn made_by_a_host(node: &Node) -> bool {
    match &node.exec.makers {
        [Some(stdin), Some(stdout), _] => {
            stdin.process == stdout.process
                && stdin.origin == stdout.origin
                && stdin.process != node.id
                && !matches!(stdin.program.role, Role::Shell | Role::Multiplexer)
        }
        [None, None, _] => true,
        _ => false,
    }
}
