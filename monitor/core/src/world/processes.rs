//! Changes to what is known of single processes, apart from membership.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Agent, Server, World};
use crate::{
    lineage::{AgentKey, Exec, Left, Maker, Node, Origin, Program, Provenance, ServerKey},
    model::{Image, ProcessId, SnapshotProcess, Stdio},
    recognise::{Role, Rules, runs_itself},
};

impl World {
    /// Changes what is known of a process. Membership is changed by the methods of its own room only.
    pub fn change(&mut self, id: ProcessId, change: impl FnOnce(&mut Node)) {
        if let Some(node) = self.graph.get_mut(id) {
            change(node);
        }
    }

    pub fn change_server(&mut self, key: ServerKey, change: impl FnOnce(&mut Server)) {
        if let Some(server) = self.servers.get_mut(&key) {
            change(server);
        }
    }

    pub fn change_agent(&mut self, key: AgentKey, change: impl FnOnce(&mut Agent)) {
        if let Some(agent) = self.agents.get_mut(&key) {
            change(agent);
        }
    }

    pub fn run(&mut self, rules: &Rules, seen: &SnapshotProcess, provenance: Provenance) {
        let is_a_shell = self.graph.get(seen.id).and_then(Node::role) == Some(&Role::Shell);
        if provenance == Provenance::Witnessed && is_a_shell {
            self.leaves_below(seen.id, Left::Whole);
        }
        self.change(seen.id, |node| {
            node.run(program(rules, &seen.image), seen.stdio, provenance);
            (node.uid, node.sid, node.stale_binary) = (seen.uid, seen.sid, seen.stale_binary);
        });
    }

    /// Records what a process runs, and on which streams if that was seen. Applies only if just the identity of the
    /// process was known; returns whether it did.
    pub fn identify(
        &mut self,
        rules: &Rules,
        id: ProcessId,
        image: &Image,
        streams: Option<[Stdio; 3]>,
    ) -> bool {
        let Some(node) = self.graph.get_mut(id).filter(|node| node.exec.program.is_none()) else {
            return false;
        };
        node.correct(|exec| {
            exec.program = Some(Arc::new(program(rules, image)));
            exec.streams = streams.unwrap_or(exec.streams);
        });
        true
    }

    /// Classifies every program again, because the rules have changed.
    pub fn reclassify(&mut self, rules: &Rules) {
        let mut programs: FxHashMap<*const Program, Arc<Program>> = FxHashMap::default();
        let mut execs: FxHashMap<*const Exec, Arc<Exec>> = FxHashMap::default();
        let mut classified = |old: &Arc<Program>| {
            let new = programs.entry(Arc::as_ptr(old));
            Arc::clone(new.or_insert_with(|| Arc::new(program(rules, &old.image))))
        };
        for node in self.graph.all_mut() {
            let new = execs.entry(Arc::as_ptr(&node.exec)).or_insert_with(|| {
                let mut exec = Exec::clone(&node.exec);
                exec.program = exec.program.as_ref().map(&mut classified);
                for maker in exec.makers.iter_mut().flatten() {
                    let program = classified(&maker.program);
                    *maker = Arc::new(Maker { program, ..Maker::clone(maker) });
                }
                Arc::new(exec)
            });
            node.exec = Arc::clone(new);
        }
    }

    /// Records that a process is not a copy of its creator. It seemed to be one because its exec was lost.
    pub fn is_no_copy(&mut self, id: ProcessId) {
        let origin = Origin { process: id, execs: 0 };
        self.change(id, |node| {
            node.correct(|exec| exec.origin = origin);
            node.witnessed = false;
        });
        if let Some(agent) = self.agent_of(id).and_then(|key| self.agents.get_mut(&key)) {
            agent.origin = origin;
        }
    }

    /// Marks a process, and what it created, as processes that matter. Returns those that were not marked before.
    pub fn confirm(&mut self, id: ProcessId) -> Vec<ProcessId> {
        let mut confirmed = Vec::new();
        for process in [id].into_iter().chain(self.graph.descendants(id)) {
            if let Some(node) = self.graph.get_mut(process).filter(|node| node.pending) {
                node.pending = false;
                confirmed.push(process);
            }
        }
        confirmed
    }
}

fn program(rules: &Rules, image: &Image) -> Program {
    let role = rules.role(image);
    Program { image: image.clone(), runs_itself: runs_itself(image, &role), role }
}
