//! What guards a server from below: agents, multiplexers and exempt programs that it started; and what was left on purpose. The next
//! daemon is told of them: once something has adopted them, or the shell runs another program, /proc does not say who started
//! them.

use std::collections::BTreeMap;

use super::Engine;
use crate::{
    lineage::{Left, Node, ServerKey},
    model::{BootTime, Guard, Image, ProcessId, ReachedBy, TrackedGuard, TrackedProgram, text},
    recognise::Role,
    world::{Agent, Server},
};

/// How many of them are kept of one server.
const GUARDS: usize = 16;
/// How many of those that its shells left.
const LEFT: usize = 64;
/// Of how many processes it is kept what they run, and how many bytes that may take: a user may have thousands of servers.
const PROGRAMS: usize = 24;
const ROOM: usize = 4096;

impl Engine {
    /// This agent, multiplexer or exempt program may live below a server.
    pub(super) fn guards(&mut self, at: BootTime, id: ProcessId) {
        let own = self.world.node(id).and_then(|node| node.server);
        let above = || self.world.graph().near_ancestors(id).find_map(|node| node.server);
        let Some(key) = own.or_else(above) else { return };
        let Some(mut all) = self.world.server(key).map(|server| server.guarded_by.clone()) else { return };
        all.retain(|one| self.may_live(*one));
        if all.len() < GUARDS && all.insert(id) {
            self.world.change_server(key, |server| server.guarded_by = all);
            self.remember_server(at, key);
        }
    }

    /// Whom each guard means, where it means a process of the server or below it, or its owner: the first one.
    pub(super) fn whom_guards_mean(&self, server: &Server, guards: &[Guard]) -> Vec<ReachedBy> {
        let graph = self.world.graph();
        // What is no part of it is the child of one: each process is looked at once or twice, however deep they are.
        let below = || {
            let own = server.processes().iter().filter_map(|own| graph.get(*own));
            own.flat_map(|own| std::iter::once(own).chain(graph.children(own.id)))
        };
        let step = |guard: Guard, id: ProcessId, user, program: Option<&str>, via: String| ReachedBy {
            pid: Some(id.pid),
            start: Some(id.start),
            program: program.map(str::to_owned),
            user: Some(user),
            by: guard.reason().name.to_owned(),
            via,
            to: None,
        };
        let found = |guard: Guard, is: &dyn Fn(&Node) -> Option<String>| {
            let (node, via) = below().find_map(|node| Some((node, is(node)?)))?;
            let agent = self.world.agent_of(node.id).and_then(|key| self.world.agent(key));
            let exe = node.image().map(|image| text::base(&image.exe));
            let program = agent.map(|agent| agent.name.as_str()).or(exe);
            Some(step(guard, node.id, node.uid, program, via))
        };
        let says = |says: bool, via: &str| says.then(|| via.to_owned());
        let one = |guard: &Guard| match guard {
            Guard::LiveAgentBelow => found(*guard, &|node| {
                says(self.world.agent_of(node.id).is_some(), "is an agent that lives, and is below it")
            }),
            Guard::Multiplexer => found(*guard, &|node| {
                says(
                    matches!(node.role(), Some(Role::Multiplexer)),
                    "is a terminal multiplexer that lives in it or below it",
                )
            }),
            Guard::OtherUid => found(*guard, &|node| {
                says(node.uid != server.user(), "is a part of it, and runs as another user")
            }),
            Guard::ExemptRule => found(*guard, &|node| exempt(node.role())).or_else(|| {
                let owner = self.world.owner_of(server)?;
                let name = &owner.name;
                let ran = || Image::new(name.clone(), vec![name.clone()], true);
                let by_place = || Some(by_rule(self.rules.exempt_one_of(&owner.placements)?));
                let via = exempt(Some(&self.rules.role(&owner.ran.clone().unwrap_or_else(ran))))
                    .or_else(by_place)?;
                Some(step(*guard, owner.main(), owner.uid, Some(name), format!("is its owner, and {via}")))
            }),
            _ => None,
        };
        guards.iter().filter_map(one).collect()
    }

    /// The copies of a multiplexer or an exempt program that take its place when it exits: it moves into the background.
    pub(super) fn heirs_of(&self, id: ProcessId) -> Vec<ProcessId> {
        let is_one = self.world.node(id).is_some_and(|node| node.protected);
        let heirs = self.world.graph().children(id).filter(|child| is_one && child.protected);
        heirs.map(|child| child.id).take(GUARDS).collect()
    }

    pub(super) fn tracked_guards(&self, server: &Server) -> Vec<TrackedGuard> {
        let living = server.guarded_by.iter().filter(|id| self.may_live(**id));
        let implied = |id: ProcessId| {
            let agent = self.world.agent_of(id).and_then(|key| self.world.agent(key));
            let name = agent.filter(|agent| agent.implied).map(|agent| agent.name.clone());
            name.or_else(|| self.recall.guards.get(&id)?.1.clone())
        };
        living.map(|id| TrackedGuard { process: *id, implied: implied(*id) }).collect()
    }

    /// What the processes that matter for the server run, as far as that was seen: titles may hide it later.
    pub(super) fn tracked_programs(&self, server: &Server) -> Vec<TrackedProgram> {
        let owner = self.world.owner_of(server);
        let ran = |process| owner.filter(|owner| owner.main() == process)?.ran.as_ref();
        let owner = owner.map(Agent::main);
        let first = server.guarded_by.iter().copied().chain([server.main_process()]).chain(owner);
        let chain = server.wrappers().iter().chain(server.recognised()).copied();
        let (mut programs, mut room) = (BTreeMap::new(), ROOM);
        for process in first.chain(chain).take(PROGRAMS) {
            let node = self.world.node(process);
            let Some(image) = node.and_then(Node::image).or(ran(process)).cloned() else { continue };
            let image = image.shortened();
            if programs.contains_key(&process) || image.size() > room {
                continue;
            }
            room -= image.size();
            // What a bridge left may be a tool at work, and a later daemon could not tell.
            let recognised = server.recognised().contains(&process)
                && !(server.heard.is_some() && process == server.main_process());
            let creator = node.filter(|node| node.witnessed).and_then(|node| node.creator);
            programs.insert(process, TrackedProgram { process, creator, image, recognised });
        }
        programs.into_values().collect()
    }

    /// A shell has run another program in its place, which is the parent now of what it left: a later daemon could not tell.
    pub(super) fn remember_left(&mut self, at: BootTime, id: ProcessId) {
        let Some(key) = self.world.node(id).filter(|node| node.left == Left::No).and_then(|node| node.server)
        else {
            return;
        };
        let is_left = |node: &&Node| node.creator == Some(id) && node.left == Left::Whole;
        let left: Vec<ProcessId> =
            self.world.graph().children(id).filter(is_left).map(|node| node.id).collect();
        self.keep_left(at, key, &left);
    }

    /// It began below `nohup`, and may take back what tells it: a later daemon could not tell. What has both of the server's wires may
    /// be the server.
    pub(super) fn remember_below_nohup(&mut self, at: BootTime, id: ProcessId) {
        let node = self.world.node(id).filter(|node| node.left == Left::No && node.outlives.is_some());
        let Some((key, wires)) = node.and_then(|node| Some((node.server?, node.wires()))) else { return };
        if self.world.server(key).is_some_and(|server| server.wires() != wires) {
            self.keep_left(at, key, &[id]);
        }
    }

    fn keep_left(&mut self, at: BootTime, key: ServerKey, left: &[ProcessId]) {
        if left.is_empty() {
            return;
        }
        let Some(mut known) = self.world.server(key).map(|server| server.left.clone()) else { return };
        known.retain(|process| self.may_live(*process));
        let before = known.len();
        known.extend(left.iter().copied().take(LEFT.saturating_sub(before)));
        if known.len() > before {
            self.world.change_server(key, |server| server.left = known);
            self.remember_server(at, key);
        }
    }

    /// Whether it lives, as far as is known by now: /proc may just be read.
    pub(super) fn may_live(&self, process: ProcessId) -> bool {
        self.world.node(process).is_some() || self.recall.may_live(process)
    }

    /// A process of the server, known to this daemon, that an earlier daemon saw above this guard.
    pub(super) fn guarded_by(&self, guard: ProcessId) -> Option<ProcessId> {
        let (processes, _) = self.recall.guards.get(&guard)?;
        let is_known = |process: &&ProcessId| self.world.node(**process).is_some_and(|node| !node.protected);
        processes.iter().find(is_known).copied()
    }

    /// Makes a guard an agent again that no rule knows.
    pub(super) fn guard_recalled(&mut self, now: BootTime, guard: ProcessId) {
        let Some((_, Some(name))) = self.recall.guards.get(&guard).cloned() else { return };
        if self.world.node(guard).is_some() && self.world.agent_of(guard).is_none() {
            self.agent_recognised(now, guard, name, true);
        }
    }
}

fn exempt(role: Option<&Role>) -> Option<String> {
    let Some(Role::Exempt { rule }) = role else { return None };
    Some(by_rule(rule))
}

fn by_rule(rule: &str) -> String {
    format!("is exempt by the rule {}", text::in_quotes(rule))
}
