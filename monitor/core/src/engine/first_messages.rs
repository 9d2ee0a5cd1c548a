//! Servers that no rule knows. What a host writes first to a server waits in the server's standard input while its
//! runtime starts. If that is a message of the Model Context Protocol, the process is a server (rule `protocol`).
//!
//! A process is asked about if no rule knows it, its standard input and output are wires, and no shell made them. It is
//! asked about at its exec and again after growing pauses, for some seconds. Nothing is asked when no such process
//! starts. The number of processes that are asked about at a time is bounded, for each user and in total; one beyond
//! the bound waits for its turn.
//!
//! A launcher or a shell hands its streams on. So the message is for the program that it starts which takes it: a shell's
//! start-up file runs programs on the same streams, and so does `npm ci && server`. Who starts none on both of its streams
//! is the server itself when the message has been read: a shell (`tee log | server | tee log`), a reloader (nodemon), a
//! launcher (`mise mcp`).

use std::time::Duration;

use super::{
    Engine,
    agenda::Task,
    awaited::{self, Awaited, Said},
    lives::has_wires,
    servers::Recognised,
    trials::may_come,
};
use crate::{
    lineage::{Node, Origin, ServerKey},
    model::{About, Answer, BootTime, FirstMessage, Haste, ProcessId, Share},
    recognise::{PROTOCOL, Role},
    world::{NewServer, is_run_by},
};

/// The first pause between two looks. Each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(1);
/// How often one process is looked at: 15 looks within 16 seconds. A runtime reads its standard input some milliseconds to
/// seconds after its start.
pub(super) const LOOKS: u32 = 15;
/// After so many looks, 127 ms after the exec, the settings of agents are asked too: a program that reads at once has
/// read its first message.
const SILENT: u32 = 8;
/// A first look later than this after the exec may come after the first message was read.
const LATE: Duration = Duration::from_millis(100);
/// How long a launcher, a shell or a reloader to which a server's first message was written may take to start that server. After
/// that it is looked whether the message is still there.
const SHELL_STARTS: Duration = Duration::from_secs(2);
impl Engine {
    /// A process that no rule knows runs a new program: asks what is said to it. Returns whether it may be a server.
    /// `earlier`: what was asked about the program that it ran before.
    pub(super) fn await_first_message(
        &mut self,
        now: BootTime,
        at: BootTime,
        id: ProcessId,
        earlier: Option<Awaited>,
    ) -> bool {
        let Some(node) = self.world.node(id) else { return false };
        if !self.policy.recognise_protocol || !has_wires(node) || node.protected || node.wraps.is_some() {
            return false;
        }
        // On wires of its own it may be a server of the server's, or of an agent that this has started.
        if self.server_on_its_wire(node).is_some_and(|key| !self.is_job(key)) {
            return false;
        }
        let found = node.provenance.is_found();
        if let Some(name) = self.recall.known_by_protocol(id, node.stdin()).filter(|_| found) {
            self.recognised_by_what_was_said(now, at, id, Said::Declared(name));
            return true;
        }
        if !made_by_a_host(node) {
            return false;
        }
        if !awaited::has_room_for(&self.first_messages, node) {
            return self.queue_up(at, id);
        }
        let mut awaited = Awaited { since: Some(at), ..Awaited::of(node, earlier) };
        awaited.below |= self.is_below_a_launcher(node);
        let of = |above: &Node| self.first_messages.get(&above.id)?.said.clone();
        let said = awaited.said.take().or_else(|| self.above_on_the_same_streams(node).find_map(of));
        let hands_on = hands_on(node);
        let Some(said) = said else {
            self.begin_to_look(id, awaited, found);
            return true;
        };
        self.first_messages.insert(id, awaited);
        if hands_on {
            self.hand_on(now, id, said);
        } else {
            self.try_out(now, id, said, false);
        }
        true
    }

    pub(super) fn begin_to_look(&mut self, id: ProcessId, mut awaited: Awaited, found: bool) {
        // One that was there before the daemon has read the message long ago. One that was missed may be young.
        let is_old = found && !self.ready;
        awaited.looks = if is_old { LOOKS } else { 0 };
        self.first_messages.insert(id, awaited);
        if is_old { self.ask_settings(id) } else { self.ask_first_message(id) }
    }

    pub(super) fn look_for_first_message(&mut self, now: BootTime, id: ProcessId) {
        let Some(awaited) = self.first_messages.get(&id) else { return };
        // Nobody is left who would start another one: nobody need see that it reads.
        let is_it = |said: &Said| {
            matches!(said, Said::Declared(_))
                && !awaited.below
                && awaited.trial.is_some_and(|until| until <= now)
        };
        let said = awaited.said.clone().filter(is_it);
        if self.world.node(id).is_none_or(|node| node.origin() != awaited.origin) {
            self.stop_waiting(id);
        } else if let Some(said) = said {
            self.recognised_by_what_was_said(now, now, id, said);
        } else {
            self.ask_first_message(id);
        }
    }

    /// Nothing more is asked about a process.
    pub(super) fn stop_waiting(&mut self, id: ProcessId) -> Option<Awaited> {
        let awaited = self.first_messages.remove(&id)?;
        self.agenda.set(Task::FirstMessage(id), None);
        Some(awaited)
    }

    fn message_answered(&mut self, now: BootTime, id: ProcessId, origin: Origin, message: FirstMessage) {
        let Some(awaited) = self.first_messages.get_mut(&id).filter(|a| a.origin == origin) else { return };
        let pause = PAUSE * (1 << awaited.looks.min(LOOKS));
        let is_old = awaited.looks >= LOOKS;
        let is_late = awaited.looks == 0 && awaited.since.is_some_and(|since| now.since(since) > LATE);
        awaited.looks += 1;
        // Twice: its agent may end just now.
        let is_over = message == FirstMessage::Over;
        let stays_over = std::mem::replace(&mut awaited.over, is_over) && is_over;
        let (looks, said, trial, is_below) =
            (awaited.looks, awaited.said.clone(), awaited.trial, awaited.below);
        if !is_over && message != FirstMessage::Unknown {
            self.saw_input(id, false);
        } else if stays_over && looks > SILENT {
            self.saw_input(id, true);
        }
        if is_late {
            self.world.change(id, |node| node.unheard = Some(now));
        }
        if let FirstMessage::Mcp { client } = &message {
            self.message_waits(id, client.as_deref());
        }
        if trial.is_some() {
            self.answered_on_trial(now, id, &message, pause);
            return;
        }
        if let Some(said) = said {
            // Who runs another program leaves it what was said. One that has read that itself is the server (`mise mcp`), and a
            // shell below which it was read (`npm ci && tee log | server`).
            let is_read = matches!(message, FirstMessage::Nothing | FirstMessage::Over | FirstMessage::Other)
                && !may_come(&said, looks);
            let node = self.world.node(id);
            if node.is_some_and(|node| is_read && self.started_on_the_same_streams(node).is_none()) {
                self.world.change(id, |node| node.correct(|exec| exec.reads_itself = true));
                self.recognised_by_what_was_said(now, now, id, said);
            } else {
                let least = if !is_read && node.is_some_and(is_a_shell) { PAUSE } else { SHELL_STARTS };
                self.agenda.set(Task::FirstMessage(id), Some(now + pause.max(least)));
            }
            return;
        }
        let said = match message {
            // Its agent lives and gave it all of its input at once, as to a hook that read it before anybody looked.
            FirstMessage::Over if stays_over && looks == SILENT + 1 && self.has_living_owner(id) => {
                self.is_a_hook(now, id, origin);
                return;
            }
            FirstMessage::Nothing | FirstMessage::Over if looks < LOOKS => {
                self.agenda.set(Task::FirstMessage(id), Some(now + pause));
                if looks == SILENT {
                    self.ask_settings(id);
                }
                return;
            }
            FirstMessage::Hook => {
                self.is_a_hook(now, id, origin);
                return;
            }
            FirstMessage::Nothing | FirstMessage::Over | FirstMessage::Other | FirstMessage::Unknown => {
                self.is_no_server(id);
                return;
            }
            FirstMessage::Mcp { client } => Said::Message(client),
            FirstMessage::Declared { name } => Said::Declared(name),
        };
        let is_it = |node: &&Node| node.origin() == origin && !self.is_started_by_one(node);
        let Some(node) = self.world.node(id).filter(is_it) else {
            self.stop_waiting(id);
            return;
        };
        if let Some(key) = self.server_on_its_wire(node).filter(|key| self.awaits_confirmation(*key)) {
            self.confirmed(now, key, id, said);
        } else if let Some(started) = self.started_on_the_same_streams(node) {
            self.hand_on(now, id, said.clone());
            self.try_out(now, started, said, is_old);
        } else if hands_on(node) {
            self.hand_on(now, id, said);
        } else if let Some(launcher) = self.launcher_above(node) {
            self.hand_on(now, launcher, said.clone());
            self.try_out(now, id, said, is_old);
        } else if is_below {
            self.try_out(now, id, said, is_old);
        } else {
            self.recognised_by_what_was_said(now, now, id, said);
        }
    }

    /// This was said to a launcher or shell. It is for the server that it starts, also if a reloader feeds that by a
    /// pipe of its own.
    fn hand_on(&mut self, now: BootTime, launcher: ProcessId, said: Said) {
        let node = self.world.node(launcher);
        let may_feed = matches!(node.and_then(Node::role), Some(Role::Shell | Role::ServiceManager));
        let is_seen = matches!(said, Said::Message(_));
        // A script may read it itself, and run a tool for the next one.
        let soon = if is_seen && node.is_some_and(is_a_shell) { PAUSE } else { SHELL_STARTS };
        let Some(awaited) = self.first_messages.get_mut(&launcher).filter(|awaited| awaited.said.is_none())
        else {
            return;
        };
        awaited.said = Some(said);
        self.agenda.set(Task::FirstMessage(launcher), (is_seen || may_feed).then(|| now + soon));
    }

    pub(super) fn ask_first_message(&mut self, process: ProcessId) {
        let Some(node) = self.world.node(process) else { return };
        let (stdin, origin, turn) = (node.stdin(), node.origin(), Share::of(node.uid));
        let above = self.above_on_the_same_streams(node).map(|above| above.id);
        let about = About::FirstMessage { processes: [process].into_iter().chain(above).collect(), stdin };
        // The process is about to read it.
        self.ask(Some((turn, Haste::AtOnce)), about, move |engine, now, answer| {
            if let Answer::FirstMessage { message } = answer {
                engine.message_answered(now, process, origin, message);
            }
        });
    }

    fn ask_settings(&mut self, process: ProcessId) {
        let Some(awaited) = self.first_messages.get(&process) else { return };
        let (origin, turn, lines) = (awaited.origin, awaited.share, awaited.lines.clone());
        let about = About::Declared { process, lines };
        self.ask(Some((turn, Haste::AtLeisure)), about, move |engine, now, answer| match answer {
            Answer::FirstMessage { message: FirstMessage::Nothing } => {
                let awaited = engine.first_messages.get(&process);
                let is_it = |awaited: &&Awaited| awaited.origin == origin && awaited.said.is_none();
                if awaited.filter(is_it).is_some_and(|awaited| awaited.looks >= LOOKS) {
                    engine.is_no_server(process);
                }
            }
            Answer::FirstMessage { message } => engine.message_answered(now, process, origin, message),
            _ => {}
        });
    }

    /// The program that a launcher or shell has started on both of its streams by now.
    fn started_on_the_same_streams(&self, launcher: &Node) -> Option<ProcessId> {
        let is_it = |process: &ProcessId| {
            let is_own = |node: &Node| node.origin().process == node.id && !hands_on(node);
            self.world.node(*process).is_some_and(|node| is_own(node) && node.wires() == launcher.wires())
        };
        let below = || self.world.graph().descendants(launcher.id);
        hands_on(launcher).then(below)?.into_iter().find(is_it)
    }

    /// No message of the protocol came, or another one.
    pub(super) fn is_no_server(&mut self, id: ProcessId) {
        self.stop_waiting(id);
        let launches = |node: &Node| matches!(node.role(), Some(Role::Launcher | Role::Shell));
        // A launcher or a shell may still start a server that a rule knows.
        if !self.world.node(id).is_some_and(launches) {
            self.dismiss_if_pending(id);
        }
    }

    pub(super) fn recognised_by_what_was_said(
        &mut self,
        now: BootTime,
        at: BootTime,
        id: ProcessId,
        said: Said,
    ) {
        let (name, client) = match said {
            Said::Message(client) => (self.title(id), client),
            Said::Declared(name) => (name, None),
        };
        let exec = self.first_messages.get(&id).and_then(|awaited| awaited.since);
        self.forget_first_messages(id);
        // It has started a server itself meanwhile.
        if self.world.agent_of(id).is_some() {
            return;
        }
        let Some(node) = self.world.node(id) else { return };
        let recognised = Recognised::new(node, name, PROTOCOL.to_owned(), client).since(exec, now);
        self.server_recognised(now, at, recognised);
    }

    /// Whether a program that does its work itself, and may be a server, or is one by the protocol, has started it on its own streams:
    /// a tool, whoever sees the first message wait first.
    pub(super) fn is_started_by_one(&self, node: &Node) -> bool {
        let key = self.server_on_its_wire(node).and_then(|key| self.world.server(key));
        let is_asked = |above: &Node| !hands_on(above) && self.first_messages.contains_key(&above.id);
        key.is_some_and(|server| server.rule == PROTOCOL && is_run_by(self.world.graph(), server, node.id))
            || self.above_on_the_same_streams(node).any(is_asked)
    }

    /// The launcher or shell above this process that runs on the same streams and that is asked about.
    fn launcher_above(&self, node: &Node) -> Option<ProcessId> {
        let is_asked = |above: &&Node| hands_on(above) && self.first_messages.contains_key(&above.id);
        self.above_on_the_same_streams(node).find(is_asked).map(|above| above.id)
    }

    /// The server that it is part of, where that has the same standard input.
    pub(super) fn server_on_its_wire(&self, node: &Node) -> Option<ServerKey> {
        node.server.filter(|key| self.world.server(*key).is_some_and(|server| server.stdin == node.stdin()))
    }

    pub(super) fn above_on_the_same_streams(&self, node: &Node) -> impl Iterator<Item = &Node> {
        let same = node.wires();
        self.world.graph().ancestors(node.id).take_while(move |above| above.wires() == same)
    }

    /// A process further down the launch chain of a server shows what the server is.
    pub(super) fn named_deeper(&mut self, at: BootTime, key: ServerKey, link: NewServer) {
        let NewServer { main: id, name, rule, .. } = link;
        let only_named = self.is_only_named(id, &rule);
        // A server that it has made itself, on other wires, shows a client.
        let is_link = self.world.node(id).and_then(|node| self.server_on_its_wire(node)) == Some(key);
        if let Some(server) = self.world.server_mut(key).filter(|_| is_link) {
            server.only_named &= only_named;
            if server.rule == PROTOCOL {
                // A name alone says less than the message.
                server.name_by(id, name, if only_named { PROTOCOL.to_owned() } else { rule });
            }
        }
        self.recognised_again(at, key, id, false);
    }

    /// A server was recognised: nothing more is asked about it, nor about what launched it.
    pub(super) fn forget_first_messages(&mut self, id: ProcessId) {
        if self.first_messages.is_empty() {
            return;
        }
        let stdin = self.world.node(id).map(Node::stdin);
        let above = self.world.graph().ancestors(id).take_while(|above| Some(above.stdin()) == stdin);
        let above: Vec<ProcessId> = above.map(|above| above.id).collect();
        for process in above.into_iter().chain([id]) {
            self.stop_waiting(process);
        }
    }

    fn title(&self, id: ProcessId) -> String {
        let image = self.world.node(id).and_then(Node::image);
        image.map(|image| self.rules.title(image)).unwrap_or_default()
    }
}

/// Whether the process runs another program on its own streams, as an init stub (`tini`) does, too. The client of a
/// container engine does not: the program runs elsewhere.
pub(super) fn hands_on(node: &Node) -> bool {
    matches!(node.role(), Some(Role::Launcher | Role::Shell | Role::ServiceManager)) && !node.is_client()
}

fn is_a_shell(node: &Node) -> bool {
    matches!(node.role(), Some(Role::Shell))
}

/// Whether one process made standard input and output, which is neither a shell nor the process itself. In a pipeline,
/// a shell makes at least one of them.
pub(super) fn made_by_a_host(node: &Node) -> bool {
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
