//! What is known of single processes, apart from whom they belong to.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::World;
use crate::{
    lineage::{Exec, Maker, Node, ObservedUnit, Origin, Program, Provenance},
    model::{Image, ProcessId, SnapshotProcess, Stdio},
    recognise::Rules,
};

impl World {
    fn change(&mut self, id: ProcessId, change: impl FnOnce(&mut Node)) {
        if let Some(node) = self.graph.get_mut(id) {
            change(node);
        }
    }

    /// A process runs another program.
    pub fn run(&mut self, rules: &Rules, seen: &SnapshotProcess, provenance: Provenance) {
        self.change(seen.id, |node| {
            node.run(program(rules, &seen.image), seen.stdio, provenance);
            (node.uid, node.sid) = (seen.uid, seen.sid);
        });
    }

    /// What a process runs, and on which streams if that was seen, if only its identity was known until now. Whether that is so.
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

    /// The rules have changed: what each program is to orphand is found out again.
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

    /// A process is not a copy of its creator, though it seemed to be one: its exec was lost.
    pub fn is_no_copy(&mut self, id: ProcessId) {
        let origin = Origin { process: id, execs: 0 };
        self.change(id, |node| {
            node.correct(|exec| exec.origin = origin);
            node.witnessed = false;
        });
        if let Some(agent) = self.agents.of(id).and_then(|key| self.agents.get_mut(key)) {
            agent.origin = origin;
        }
    }

    /// How it is known what a process runs.
    pub fn set_provenance(&mut self, id: ProcessId, provenance: Provenance) {
        self.change(id, |node| node.provenance = provenance);
    }

    /// The unit that a process lives in.
    pub fn set_unit(&mut self, id: ProcessId, unit: ObservedUnit) {
        self.change(id, |node| node.unit = unit);
    }

    /// The real user of a process.
    pub fn set_user(&mut self, id: ProcessId, uid: u32) {
        self.change(id, |node| node.uid = uid);
    }

    /// The session of a process.
    pub fn set_session(&mut self, id: ProcessId, sid: u32) {
        self.change(id, |node| node.sid = sid);
    }

    /// A child of a multiplexer or of an exempt program runs a program of its own. `pending`: it is not known to matter.
    pub fn unprotect(&mut self, id: ProcessId, pending: bool) {
        self.change(id, |node| (node.protected, node.pending) = (false, pending));
    }

    /// A process matters, and so does what it created. Those of them that were not known to.
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
    Program { image: image.clone(), role: rules.role(image) }
}
