//! Processes of which it is not known yet whether they matter: they are dismissed, or confirmed.
//!
//! Invariant: who is confirmed and had something below it dismissed is not judged before /proc was read again.

use super::Engine;
use crate::{
    lineage::Left,
    model::{BootTime, Effect, ProcessId, Tracking},
};

impl Engine {
    /// Removes a process that does not matter from the graph and from the kernel's map. A parent that was kept only
    /// because of it is removed, too.
    pub(super) fn dismiss_if_pending(&mut self, id: ProcessId) {
        if self.world.node(id).is_none_or(|n| !n.pending) {
            return;
        }
        let up = self.world.graph().up(id).map(|n| n.id);
        for process in self.world.graph().descendants(id).into_iter().rev().chain([id]) {
            if self.world.node(process).is_some_and(|n| n.pending) {
                self.world.exit(process, Left::No);
                self.untrack(process);
            }
        }
        if let Some(up) = up {
            self.world.change(up, |up| {
                if up.pending && up.origin().execs > 0 {
                    _ = up.forgot.get_or_insert_default();
                }
            });
            self.dismiss_if_idle(up);
        }
    }

    /// Removes a bare parent without children: there is no reason to watch it.
    pub(super) fn dismiss_if_idle(&mut self, id: ProcessId) {
        let idle = self.world.node(id).is_some_and(|n| n.pending && n.origin().execs == 0);
        if idle && self.world.graph().children(id).next().is_none() {
            self.world.exit(id, Left::No);
            self.untrack(id);
        }
    }

    /// Marks a process as one that matters. The kernel side keeps following it and everything that it creates. What it created
    /// and was dismissed is looked for in /proc.
    pub(super) fn confirm(&mut self, at: BootTime, id: ProcessId) {
        let mut forgot = false;
        for process in self.world.confirm(id) {
            forgot |= self.world.node(process).is_some_and(|node| node.forgot.is_some());
            self.effects.push_back(Effect::Track { process, tracking: Tracking::Member });
        }
        if forgot {
            self.repair_soon(at);
        }
    }
}
