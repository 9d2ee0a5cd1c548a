//! Whether a signal is lawful at the moment it lands. What is doubtful is not, if the doubt could be seen.

use std::{collections::BTreeSet, time::Duration};

use monitor::model::ProcessId;

use crate::{
    kernel::Kernel,
    truth::{Bar, Service, Standing, Truth},
};

impl Truth {
    /// Whether somebody who is no part of what is left behind may be talking to it.
    fn may_be_used(&self, kernel: &Kernel, service: &Service) -> bool {
        let Some(wire) = service.wire else { return false };
        let reads = self.members(kernel, service).iter().any(|p| p.files.has(wire));
        let left_behind = Self::left_behind(kernel, service);
        let copies: BTreeSet<ProcessId> =
            service.hands().flat_map(|o| Self::copies(kernel, *o)).map(|copy| copy.id).collect();
        let mut holders = kernel.opposite(wire).into_iter().flat_map(|end| kernel.holders(end));
        reads
            && holders.any(|h| {
                if copies.contains(&h.id) {
                    !left_behind.contains(&h.id)
                } else {
                    self.may_host(kernel, service, h)
                }
            })
    }

    /// Whether a signal to `process` is lawful now; if not, why.
    pub fn permits(&self, kernel: &Kernel, process: ProcessId, grace: Duration) -> Result<(), String> {
        if process.pid == 1 || self.ourselves.contains(&process) {
            return Err(format!("{process} is pid 1 or the daemon's own line"));
        }
        let mut why = format!("{process} is part of no server");
        let part = |s: &&Service| {
            // An agent below whose exec was lost does not show as what it is.
            let unseen = self.lossy && kernel.descends(process, s.head()) && !self.agents.contains(&process);
            unseen
                || self.is_member(kernel, process, s.head())
                || Self::left_behind(kernel, s).contains(&process)
        };
        for service in self.services.iter().filter(part) {
            match self.unlawful(kernel, service, grace) {
                None => return Ok(()),
                Some(reason) => why = format!("{process} of server {}: {reason}", service.head()),
            }
        }
        Err(why)
    }

    fn unlawful(&self, kernel: &Kernel, service: &Service, grace: Duration) -> Option<String> {
        // A bridge that had ended by then left what it talked to in the same state.
        let cut = service.bridged && self.partial && !kernel.alive(service.leaf());
        if (service.found_hung_up || cut) && kernel.now() >= self.since + grace {
            let mut bars = self.bars(kernel, service);
            // Whose user it is not is known only of an owner.
            bars.remove(&Bar::OtherUid);
            return (!bars.is_empty()).then(|| format!("{bars:?}"));
        }
        if service.found_ownerless {
            return Some("found without an owner: weak evidence".to_owned());
        }
        // The owner that records show was the go-between or the launcher, whose heir nobody saw: the grace that
        // counts is that one's.
        let unseen_heir = service.owner.is_some_and(|o| self.unheard.contains(&o))
            || (self.partial && service.owner != Some(service.maker));
        // A patron, too, may have ended later than the owner, unnoticed within the grace.
        // Nor does a launcher show whose inner agent's exec was lost.
        let other_grace =
            self.lossy || service.go_between.is_some() || !service.patrons.is_empty() || unseen_heir;
        match self.standing(kernel, service) {
            // A bridge whose exec was lost looks like the host of the server behind it.
            Standing::Unowned | Standing::Owned if service.bridged && self.lossy => {}
            Standing::Unowned => return Some("nobody's server".to_owned()),
            Standing::Owned => return Some("somebody talks to it".to_owned()),
            // In doubt nothing is ended that somebody could be talking to, if he could be seen.
            Standing::Unclear if !self.partial && !unseen_heir && self.may_be_used(kernel, service) => {
                return Some("somebody may be talking to it".to_owned());
            }
            Standing::Ownerless(since) if !other_grace && kernel.now() < since + grace => {
                return Some("its grace has not passed".to_owned());
            }
            Standing::Unclear | Standing::Ownerless(_) => {}
        }
        let mut bars = self.bars(kernel, service);
        let hung_up = |wire| kernel.opposite(wire).is_none_or(|end| kernel.holders(end).next().is_none());
        if self.partial && service.wire.is_some_and(hung_up) {
            // Of whoever let go of it before anybody saw him not even the user is known.
            bars.remove(&Bar::OtherUid);
        }
        (!bars.is_empty()).then(|| format!("{bars:?}"))
    }
}
