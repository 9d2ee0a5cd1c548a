//! How servers are recognised and how they get their owner.

use std::time::Duration;

use super::{Engine, first_messages::made_by_a_host};
use crate::{
    case::{Event, Reason},
    lineage::{AgentKey, Maker, Node, ObservedUnit, Origin, Provenance, ServerKey},
    model::{About, Answer, BootTime, FirstMessage, Haste, Image, Notice, ProcessId, RunView, Share},
    recognise::{PROTOCOL, Role, Rules, are_of_one_package},
    world::{Agent, Claim, NewServer, Server, agent_view, is_run_by, trace},
};

/// A process that a rule recognises as a server. It becomes one when its owner is known.
#[derive(Clone, Debug)]
pub(super) struct Recognised {
    /// What is known of the server so far.
    pub(super) new: NewServer,
    /// The exec that was recognised. If the process has run another program meanwhile, the recognition is void.
    origin: Origin,
    late: bool,
}

impl Recognised {
    pub(super) fn new(node: &Node, name: String, rule: String, client: Option<String>) -> Self {
        let spoken = rule == PROTOCOL;
        let new = NewServer { main: node.id, name, rule, spoken, client, ..NewServer::default() };
        Self { new, origin: node.origin(), late: false }
    }

    /// The same, of a program that has run since then: what made its wires may have ended long ago.
    pub(super) fn since(self, exec: Option<BootTime>, now: BootTime) -> Self {
        Self { late: exec.is_some_and(|exec| now.since(exec) > LATE), ..self }
    }

    /// Whether a rule that is built in says that it is a server, by its name or its arguments.
    fn is_by_builtin_name(&self, rules: &Rules) -> bool {
        self.new.rule != PROTOCOL
            && !rules.tables().iter().any(|(_, all)| all.iter().any(|rule| rule.name == self.new.rule))
    }
}

/// A question about a maker that is asked later than this after the record may come too late for one that lived on.
const LATE: Duration = Duration::from_millis(100);

impl Engine {
    /// A process with a wire runs a program that a rule recognises as a server. The engine comes back here with the
    /// answer if it had to ask a question first.
    pub(super) fn server_recognised(&mut self, now: BootTime, at: BootTime, mut recognised: Recognised) {
        recognised.late |= now.since(at) > LATE;
        let (id, origin) = (recognised.new.main, recognised.origin);
        let is_it = |node: &&Node| node.origin() == origin && !node.protected;
        let Some(node) = self.world.node(id).filter(is_it) else { return };
        if let Some(maker) = node.server.and_then(|key| self.agent_inside(key, id)) {
            if self.world.node(maker).is_some_and(|maker| maker.unit == ObservedUnit::Unasked) {
                self.ask_creator(maker, recognised);
                return;
            }
            self.imply_agent(at, maker);
        }
        let Some(node) = self.world.node(id) else { return };
        if let Some(key) = node.server {
            let server = self.world.server(key);
            let same_wire = server.is_some_and(|server| server.stdin == node.stdin());
            if !same_wire && recognised.new.rule == PROTOCOL && !self.is_job(key) {
                return self.a_server_spoke_to(at, key, id, recognised.new.client);
            }
            let is_own = server.is_some_and(|server| self.world.is_of_its_package(server, node));
            if server.is_some_and(|server| is_helper_of(server, node)) {
                self.forget_first_messages(id);
                return self.may_be_a_gateway(now, at, key, id);
            }
            let is_run = |server: &&Server| is_run_by(self.world.graph(), server, id);
            if let Some(server) = server.filter(|_| same_wire).filter(is_run) {
                if is_own || server.rule != PROTOCOL {
                    // A tool, whatever its name is.
                    return self.forget_first_messages(id);
                }
                if recognised.new.rule != PROTOCOL {
                    return self.may_be_launched(key, recognised);
                }
            }
            if is_own && !same_wire && !self.is_job(key) {
                self.named_deeper(at, key, recognised.new);
                return self.may_be_a_gateway(now, at, key, id);
            }
            if same_wire || !self.is_job(key) {
                self.named_deeper(at, key, recognised.new);
                return;
            }
            self.leave_server(at, id);
        }
        if let Some(key) = self.world.node(id).and_then(|node| node.wraps) {
            // The exec record that made this wrapper a part of the server was lost.
            self.recognised_again(at, key, id, true);
            return;
        }
        if let Some(reloader) = self.told_reloader(id) {
            // It goes on below that one's server, if that begins.
            self.begin_at_reloader(now, at, reloader, &recognised.new.name);
            return self.ask_creator(reloader, recognised);
        }
        self.forget_first_messages(id);
        let Some(node) = self.world.node(id) else { return };
        let (claim, wrappers) = trace(&self.world, node);
        let (provenance, only_named) = (node.provenance, self.is_only_named(id, &recognised.new.rule));
        let has_launched = |link: &&ProcessId| self.world.node(**link).is_some_and(|node| node.launched);
        if let Some(head) = wrappers.iter().rev().find(has_launched).filter(|_| !only_named) {
            return self.launched_again(now, at, *head, recognised.new);
        }
        recognised.new = NewServer { only_named, wrappers, provenance, ..recognised.new };
        if provenance.is_found()
            && recognised.is_by_builtin_name(&self.rules)
            && self.recall.was_no_server(id)
        {
            return self.dismiss_if_pending(id);
        }
        if provenance.is_found() && self.server_recalled(now, &recognised) {
            return;
        }
        let claim = match claim {
            // A shell's job that starts a server is a program of its own, whatever its name is.
            Claim::Inside(key, maker) if self.is_job(key) => Claim::Implied(maker),
            claim => claim,
        };
        match claim {
            Claim::Ask(creator) => self.ask_creator(creator, recognised),
            Claim::Inside(key, _) | Claim::Joins(key) => self.recognised_again(at, key, id, true),
            Claim::Agent(agent) => self.begin(now, at, recognised, Some(agent)),
            Claim::Gone(maker) => {
                let owner = self.agent_gone(at, id, &maker);
                self.begin(now, at, recognised, owner);
            }
            // A parent found in /proc may have adopted the process; the holder of the wire's other end has not. Nor
            // does an agent further up own what a host below it started.
            Claim::Implied(_) if provenance.is_found() => self.begin_seeking(now, recognised, true, false),
            Claim::Nobody | Claim::Adopted if provenance.is_found() => {
                let above = self.world.node(id).and_then(|node| node.agent);
                let above = above.filter(|agent| self.world.agent(*agent).is_some_and(Agent::is_alive));
                if above.is_some() {
                    self.begin(now, at, recognised, above);
                } else {
                    self.begin_seeking(now, recognised, true, false);
                }
            }
            Claim::Implied(maker) => self.begin_implied(now, at, recognised, maker),
            // The parent may have adopted the process. The process that holds the other end of its wire made the wire.
            Claim::Adopted if self.world.node(id).is_some_and(|n| n.stdout().is_wire()) => {
                self.begin_seeking(now, recognised, false, false);
            }
            Claim::Nobody | Claim::Adopted | Claim::Elsewhere => self.begin(now, at, recognised, None),
        }
    }

    /// A launcher starts a server again that ended after its agent, as a loop around it does. However often it does so, the launcher
    /// is one server that was left behind, which has one grace.
    fn launched_again(&mut self, now: BootTime, at: BootTime, head: ProcessId, again: NewServer) {
        let Some(node) = self.world.node(head) else { return };
        let (name, rule, client) = (again.name.clone(), again.rule.clone(), again.client.clone());
        let recognised = Recognised::new(node, name, rule, client);
        self.world.change(head, |node| node.launched = false);
        self.server_recognised(now, at, recognised);
        if let Some(key) = self.world.node(again.main).and_then(|node| node.server) {
            self.named_deeper(at, key, again);
        }
    }

    /// A server that is known by the protocol alone runs a program with the name of a server on its own streams. If nobody has read
    /// what its client said first, it has only launched that; else this is a tool.
    fn may_be_launched(&mut self, key: ServerKey, recognised: Recognised) {
        let (process, origin) = (recognised.new.main, recognised.origin);
        self.forget_first_messages(process);
        let Some(node) = self.world.node(process) else { return };
        let (turn, stdin) = (Share::of(node.uid), node.stdin());
        let about = About::FirstMessage { processes: vec![process], stdin };
        self.ask(Some((turn, Haste::AtOnce)), about, move |engine, now, answer| {
            let is_it = |node: &Node| node.origin() == origin && node.server == Some(key);
            if matches!(answer, Answer::FirstMessage { message: FirstMessage::Mcp { client: Some(_) } })
                && engine.world.node(process).is_some_and(is_it)
            {
                engine.named_deeper(now, key, recognised.new);
            }
        });
    }

    /// A server runs a process of its own package on other wires. By its name that may be a job. If it is spoken to as a server is,
    /// or nobody can tell any more, the server is a gateway.
    fn may_be_a_gateway(&mut self, now: BootTime, at: BootTime, key: ServerKey, id: ProcessId) {
        let Some(node) = self.world.node(id).filter(|node| made_by_a_host(node)) else { return };
        if node.provenance.is_found() || !self.await_first_message(now, at, id, None) {
            self.enter_gateway(at, key);
        }
    }

    pub(super) fn enter_gateway(&mut self, at: BootTime, key: ServerKey) {
        self.world.change_server(key, |server| server.gateway = true);
        self.remember_server(at, key);
    }

    /// A recognised server begins, with this owner.
    fn begin(&mut self, now: BootTime, at: BootTime, recognised: Recognised, owner: Option<AgentKey>) {
        let new = match owner {
            Some(agent) if !self.resolve_account(at, agent, &recognised) => return,
            Some(_) => NewServer { owner, ..recognised.new },
            // Without an owner the chain has no upper end: it would contain a person's own shell.
            None => NewServer { wrappers: Vec::new(), ..recognised.new },
        };
        self.start_server(now, at, new);
    }

    /// A recognised server begins, and whoever holds the other end of its wire owns it. `chain`: the processes between it
    /// and that owner are part of it. `adopted`: its parent has adopted it.
    fn begin_seeking(&mut self, now: BootTime, recognised: Recognised, chain: bool, adopted: bool) {
        let Recognised { new, late, .. } = recognised;
        // Whoever made it may have been a supervisor that lived for long: if the engine was late, its ignorance is no
        // proof.
        let adopted = adopted && !late;
        let provenance = if adopted { Provenance::Found { adopted } } else { new.provenance };
        let wrappers = if chain { new.wrappers } else { Vec::new() };
        let new = NewServer { wrappers, provenance, seeks_owner: true, ..new };
        let Some(key) = self.world.start_server(new) else { return };
        self.seek_confirmation(key);
        self.confirm_server(now, key);
        self.inspect(now, key);
    }

    /// A recognised server begins whose wire was made by a process that no rule knows.
    fn begin_implied(&mut self, now: BootTime, at: BootTime, recognised: Recognised, maker: ProcessId) {
        let node = self.world.node(maker);
        if node.is_some_and(|maker| maker.unit == ObservedUnit::Unasked) {
            self.ask_creator(maker, recognised);
        } else if node.is_none_or(ran_unseen) {
            // The maker exited before the engine could ask what it was: a helper that forked the server and exited, or
            // the host itself. If nobody holds the other end of the wire, the server has no owner.
            self.begin_seeking(now, recognised, false, true);
        } else {
            self.imply_agent(at, maker);
            let owner = self.world.agent_of(maker);
            self.begin(now, at, recognised, owner);
        }
    }

    /// The process that made the wire of this part of a server, if it is an agent that no rule knows: it is no link of
    /// the server's launch chain and no copy of one, and has other streams. What it starts serves it, and not the
    /// server's client.
    fn agent_inside(&self, key: ServerKey, part: ProcessId) -> Option<ProcessId> {
        let (server, part) = self.world.server(key).zip(self.world.node(part))?;
        let maker = part.exec.makers[0].as_ref().map(|maker| maker.process).or(part.creator)?;
        let node = self.world.node(maker)?;
        // What runs a tool hands its own standard input on, if nobody thought of it.
        let only_inherits_input =
            || node.stdout() != server.stdout && is_run_by(self.world.graph(), server, maker);
        let is_beside = node.server == Some(key)
            && node.origin().process == maker
            && (node.stdin() != server.stdin || only_inherits_input())
            && part.stdin() != server.stdin
            && !server.recognised().contains(&maker)
            && !matches!(node.role(), Some(Role::Shell | Role::Launcher | Role::ServiceManager));
        (is_beside && !ran_unseen(node)).then_some(maker)
    }

    fn start_server(&mut self, now: BootTime, at: BootTime, new: NewServer) {
        let Some(key) = self.world.start_server(new) else { return };
        // First of all: the process is about to read what was said to it.
        self.seek_confirmation(key);
        self.confirm_server(at, key);
        self.report_server_started(at, key);
        // The owner may have exited between the fork and the exec of the server.
        if let Some(since) = self.world.owner(key).and_then(Agent::exited) {
            self.left_behind(now, key, since, false);
        }
        self.follow_spawner(key);
    }

    /// Makes a process an agent because it made the wire of a server.
    fn imply_agent(&mut self, at: BootTime, maker: ProcessId) {
        let Some(program) = self.world.node(maker).and_then(|n| n.exec.program.clone()) else { return };
        // A rule may recognise it nevertheless, if its exec was not reported.
        self.agent_recognised(at, maker, program.name(), !program.is_agent());
    }

    /// Whether this server has no owner and none is sought. A shell's job is an example.
    pub(super) fn is_job(&self, key: ServerKey) -> bool {
        self.world.server(key).is_some_and(|server| server.owner().is_none() && !server.seeks_owner)
    }

    /// The process that made the wire exited before it was known as an agent. Enters it as an agent that has exited.
    fn agent_gone(&mut self, at: BootTime, id: ProcessId, maker: &Maker) -> Option<AgentKey> {
        let node = self.world.node(id)?;
        let mut new = Agent::new(maker.process, maker.origin, maker.program.name());
        (new.uid, new.sid, new.above) = (node.uid, node.sid, node.agent);
        new.implied = !maker.program.is_agent();
        let account = new.above.and_then(|a| self.world.agent(a)).map(|a| a.account.clone());
        let unsettled = account.is_none();
        new.account = account.unwrap_or_else(|| RunView::unknown(&new.name, new.uid));
        Some(self.dead_agent(at, new, unsettled, Some(maker.program.image.clone())))
    }

    /// An agent that has exited, and was not seen to.
    pub(super) fn dead_agent(
        &mut self,
        at: BootTime,
        new: Agent,
        unsettled: bool,
        ran: Option<Image>,
    ) -> AgentKey {
        let same = self.world.agents().find(|(_, agent)| !agent.is_alive() && agent.main() == new.main());
        if let Some((key, _)) = same {
            return key;
        }
        let key = self.world.start_agent(new, false);
        self.world.end_agent(key, at, false);
        let ran = ran.map(Image::shortened);
        self.world.change_agent(key, |agent| (agent.unsettled, agent.ran) = (unsettled, ran));
        self.exempt_by_rules(key);
        key
    }

    pub(super) fn confirm_server(&mut self, at: BootTime, key: ServerKey) {
        if let Some(head) = self.world.server(key).map(|s| s.id) {
            self.confirm(at, head);
        }
    }

    /// Asks what the creator of a new server runs, and comes back to the server then.
    pub(super) fn ask_creator(&mut self, creator: ProcessId, recognised: Recognised) {
        self.ask_process(creator, move |engine, now| engine.server_recognised(now, now, recognised));
    }

    /// A further process of a server was recognised; `joins`: it was none of its processes before.
    pub(super) fn recognised_again(&mut self, at: BootTime, key: ServerKey, id: ProcessId, joins: bool) {
        if joins {
            self.world.join(key, id);
            self.confirm(at, id);
        } else {
            self.world.recognise(key, id);
        }
        // What it has for those who call it, it may start only when somebody does, and end when it is idle.
        let is_gateway = self.world.server(key).is_some_and(|server| {
            self.world.inner(server).any(|node| node.id == id && !self.world.is_of_its_package(server, node))
        });
        self.world.change_server(key, |server| server.gateway |= is_gateway);
        self.server_changed(at, key);
    }

    pub(super) fn server_changed(&mut self, at: BootTime, key: ServerKey) {
        self.compare(at, key);
        self.remember_server(at, key);
        self.ask_session(key);
    }

    pub(super) fn report_server_started(&mut self, at: BootTime, key: ServerKey) {
        self.server_changed(at, key);
        self.ask_hints(key);
        let Some(view) = self.world.show(key) else { return };
        let Some(main) = self.world.server(key).map(Server::main_process) else { return };
        let (found, owner) = (self.is_found(main), self.world.owner(key));
        let sessions = self.world.node(main).map(|node| node.sid).zip(owner.map(|owner| owner.sid));
        let owner = owner.map(agent_view);
        self.emit(at, Notice::ServerStarted { server: view.clone(), owner, found });
        // Of an owner that ended before this daemon began it is not known (0).
        if let Some((sid, _)) = sessions.filter(|(own, of_owner)| own != of_owner && *of_owner != 0) {
            // The server left the session of its owner before it was recognised, between fork and exec.
            self.emit(at, Notice::ServerDetached { server: view, pid: main.pid, sid });
        }
    }

    /// The owner of a server that has just been entered exited at `since`.
    pub(super) fn left_behind(&mut self, now: BootTime, key: ServerKey, since: BootTime, recovered: bool) {
        let owner = self.world.owner(key);
        let (deadline, owner) = (now + self.grace_of(owner), owner.map(agent_view));
        self.server_event(now, key, Event::Suspected { reason: Reason::OwnerExited, since, deadline });
        if let Some(server) = self.world.view(key) {
            self.emit(now, Notice::OrphanSuspected { recovered, server, owner, deadline });
        }
    }
}

/// Whether a server has started itself again, in a session of its own and for work of its own: an index, a service that several
/// share.
fn is_helper_of(server: &Server, node: &Node) -> bool {
    let maker = node.exec.makers[0].as_ref().filter(|maker| maker.process != node.id);
    let is_ours = |maker: &Maker| {
        node.image().is_some_and(|image| are_of_one_package(image, &maker.program.image))
            && (server.processes().contains(&maker.process) || server.ended().contains(&maker.process))
    };
    node.sid != server.session && node.stdin() != server.stdin && maker.is_some_and(|maker| is_ours(maker))
}

/// Whether it is unknown what program this process ran.
fn ran_unseen(node: &Node) -> bool {
    node.image().is_none_or(|image| image.exe.is_empty() && image.argv.is_empty())
}
