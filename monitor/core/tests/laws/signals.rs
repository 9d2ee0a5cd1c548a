//! Whether a signal is lawful at the moment it lands. What is doubtful is not, if the doubt could be seen.

use std::time::Duration;

use orphand_core::model::ProcessId;

use crate::{
    kernel::{Kernel, Process},
    truth::{Bar, Service, Truth},
};

impl Truth {
    /// Whether a signal to `process` is lawful now; if not, why.
    pub fn permits(&self, kernel: &Kernel, process: ProcessId, grace: Duration) -> Result<(), String> {
        if process.pid == 1 || self.ourselves.contains(&process) {
            return Err(format!("{process} is pid 1 or the daemon's own line"));
        }
        let mut why = format!("{process} is part of no server");
        let part = |s: &&Service| {
            // An agent below whose exec was lost does not show as what it is.
            let unseen = self.lossy && kernel.descends(process, s.head()) && !self.agents.contains(&process);
            // Nor does a server that had become another program before anybody looked.
            let became =
                s.found_over && kernel.descends(process, s.head()) && !self.agents.contains(&process);
            unseen
                || became
                || self.seems_part(kernel, process, s)
                || self.parts(kernel, s).iter().any(|p| p.id == process)
        };
        for service in self.services.iter().filter(part) {
            match self.unlawful(kernel, service, grace) {
                None => return Ok(()),
                Some(reason) => why = format!("{process} of server {}: {reason}", service.head()),
            }
        }
        Err(why)
    }

    /// /proc was read: children whose parent is not their creator (`CLONE_PARENT`), and whose fork was not seen, seem to be that one's.
    pub fn shows_parents(&mut self, kernel: &Kernel) {
        let unseen = |p: &&Process| self.lossy || p.born <= self.since;
        let apart = kernel.living().filter(|p| p.parent != p.creator && p.parent.pid != 1).filter(unseen);
        let apart: Vec<_> = apart.map(|p| (p.id, p.parent)).collect();
        self.shown.extend(apart);
    }

    /// Whether it descends from such a child of the server.
    fn seems_part(&self, kernel: &Kernel, process: ProcessId, service: &Service) -> bool {
        let seems = |(child, parent): (&ProcessId, &ProcessId)| {
            kernel.descends(process, *child) && kernel.descends(*parent, service.head())
        };
        self.shown.iter().any(seems)
    }

    fn unlawful(&self, kernel: &Kernel, service: &Service, grace: Duration) -> Option<String> {
        if let Some(why) = self.not_an_orphan(kernel, service) {
            return Some(why);
        }
        // The owner that records show was the go-between or the launcher, whose heir nobody saw: the grace that
        // counts is that one's. A patron, too, may have ended later than the owner, unnoticed within the grace.
        // Nor does a launcher show whose inner agent's exec was lost.
        let unseen_heir = service.owner.is_some_and(|o| self.unheard.contains(&o))
            || (self.partial && service.owner != Some(service.maker));
        let found = self.partial && self.is_silent(kernel, service);
        let other_grace = self.lossy
            || found
            || service.of_worker
            || service.go_between.is_some()
            || !service.patrons.is_empty()
            || self.services.iter().any(|s| s.leaf() == service.maker && self.is_nameless(kernel, s))
            || unseen_heir;
        let begins = match Self::owner_died(kernel, service) {
            Some(died) if !other_grace => died.max(self.since),
            _ => self.since,
        };
        if kernel.now() < begins + grace {
            return Some("its grace has not passed".to_owned());
        }
        let mut bars = self.bars(kernel, service);
        let unknown = self.partial || !self.agents.contains(&service.maker);
        // A server behind a bridge that had ended is one of its own.
        let alone = self.partial && service.bridged;
        if alone || (unknown && self.is_silent(kernel, service)) {
            // Of whoever let go of it before anybody saw him not even the user is known.
            bars.remove(&Bar::OtherUid);
        }
        if self.lossy && service.chain.len() > 1 {
            // A chain with a lost link may have fallen into pieces, and only one of them asks to be left alone.
            bars.remove(&Bar::OptedOut);
        }
        (!bars.is_empty()).then(|| format!("{bars:?}"))
    }
}
