//! What is true in the model world, computed from its history and from the intent of who acted in it.
//!
//! It never looks at what the engine says. Where the words leave a case open the answer is "unclear": then the
//! engine may call the server an orphan or not, and what the laws ask of it is only what is safe.

use std::{collections::BTreeSet, time::Duration};

use monitor::model::{BootTime, ExitStatus, ProcessId};

use crate::{
    files::End,
    kernel::{Kernel, Process},
};

/// A server as whoever started it knows it.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Service {
    /// From the head of the launch chain to the server proper.
    pub chain: Vec<ProcessId>,
    /// The server's end of its wire.
    pub wire: Option<End>,
    /// Who made the wire and talks to it; nobody if it is no agent (a shell, a steward, a terminal).
    pub owner: Option<ProcessId>,
    /// Who started it: its first owner, before any went into the background.
    pub maker: ProcessId,
    /// Its owners before the present one, each of which went into the background.
    pub former: Vec<ProcessId>,
    /// The agent above an owner that is none (a shell below an agent).
    pub above: Option<ProcessId>,
    /// Older processes that the other end of the wire was handed to.
    pub patrons: Vec<ProcessId>,
    /// Who forked it for its owner and ended at once.
    pub go_between: Option<ProcessId>,
    /// Whether it is a bridge to a server on another wire, which may outlive it.
    pub bridged: bool,
    /// Whether it was there before the daemon, and nothing could tell whose: its host, which no rule knows, had
    /// let go of the wire.
    pub found_silent: bool,
    /// Whether it was there before the daemon, and nobody but itself held its wire by then: nobody can ever talk to it again.
    pub found_hung_up: bool,
    /// Whether it was there before the daemon and its owner was gone by then.
    pub found_ownerless: bool,
}

impl Service {
    pub fn head(&self) -> ProcessId {
        self.chain.first().copied().unwrap_or_default()
    }

    /// All that owned it.
    pub fn hands(&self) -> impl Iterator<Item = &ProcessId> {
        [&self.maker].into_iter().chain(&self.former).chain(&self.owner)
    }

    pub fn leaf(&self) -> ProcessId {
        self.chain.last().copied().unwrap_or_default()
    }
}

/// How a server stands with its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nobody's: it can never be anybody's orphan.
    Unowned,
    /// Somebody alive talks to it.
    Owned,
    /// The words leave it open.
    Unclear,
    /// Its owner and whoever else could talk to it ended, the last of them then.
    Ownerless(BootTime),
}

/// Why a server must not be ended though its owner is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bar {
    OtherUid,
    OptedOut,
    Clients,
    AgentBelow,
    Ourselves,
}

/// What the actors of the world meant.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    pub services: Vec<Service>,
    /// Their heads.
    pub heads: BTreeSet<ProcessId>,
    /// Processes that are agents by rule.
    pub agents: BTreeSet<ProcessId>,
    /// Hosts no rule knows whose first process ended before the daemon could ask what it was.
    pub unheard: BTreeSet<ProcessId>,
    /// Whether some of what happened was not seen: before the start, or because records were lost.
    pub partial: bool,
    /// Whether records were lost.
    pub lossy: bool,
    /// When the daemon began to watch.
    pub since: BootTime,
    /// Multiplexers and exempt programs: nothing at or below them is ever touched.
    pub sanctuaries: BTreeSet<ProcessId>,
    /// The daemon and its ancestors.
    pub ourselves: Vec<ProcessId>,
    /// Whether servers of another user than their owner's may be ended.
    pub other_uids: bool,
}

impl Truth {
    /// Everything that lives and belongs to a server: chain, what they created, less the sanctuaries.
    pub fn members<'k>(&self, kernel: &'k Kernel, service: &Service) -> Vec<&'k Process> {
        let head = service.head();
        kernel.living().filter(|p| self.is_member(kernel, p.id, head)).collect()
    }

    /// Whether `id` was created by the server with this head, and by nothing in it that is not part of it: a
    /// sanctuary, an agent, an agent's server. (What an agent starts in a terminal of tmux is its own: the
    /// server's head is below the sanctuary then, not above it.)
    pub fn is_member(&self, kernel: &Kernel, id: ProcessId, head: ProcessId) -> bool {
        if !kernel.descends(id, head) {
            return false;
        }
        let mut at = id;
        while at != head {
            let apart =
                self.sanctuaries.contains(&at) || self.agents.contains(&at) || self.heads.contains(&at);
            let up = kernel.history.get(&at).map(|p| p.creator);
            match up {
                Some(up) if !apart => at = up,
                _ => return false,
            }
        }
        true
    }

    /// Whether anything of it lives.
    pub fn lives(&self, kernel: &Kernel, service: &Service) -> bool {
        !self.members(kernel, service).is_empty()
    }

    /// When the last of everything it ever was died; nothing if something lives.
    pub fn ended(&self, kernel: &Kernel, service: &Service) -> Option<BootTime> {
        if self.lives(kernel, service) {
            return None;
        }
        let head = service.head();
        let all = kernel.history.values().filter(|p| self.is_member(kernel, p.id, head));
        all.filter_map(|p| p.died).map(|(at, _)| at).max()
    }

    /// The forks of a process, and theirs, that never ran another program, the dead included.
    pub fn copies(kernel: &Kernel, owner: ProcessId) -> Vec<&Process> {
        kernel
            .history
            .values()
            .filter(|p| {
                let mut at = *p;
                loop {
                    if at.execed.is_some() || at.id == owner {
                        return false;
                    }
                    if at.creator == owner {
                        return true;
                    }
                    let Some(up) = kernel.history.get(&at.creator) else { return false };
                    at = up;
                }
            })
            .collect()
    }

    /// Pool workers of a killed owner that keep the wire open: they are left behind with the server (o10).
    pub fn left_behind(kernel: &Kernel, service: &Service) -> Vec<ProcessId> {
        let Some(owner) = service.owner.and_then(|o| kernel.history.get(&o)) else { return Vec::new() };
        let killed = matches!(owner.died, Some((_, ExitStatus::Signal(_))));
        let end = service.wire.and_then(|w| kernel.opposite(w)).filter(|_| killed);
        let session = |o: &ProcessId| kernel.history.get(o).map_or(0, |p| p.sid);
        let sessions: Vec<u32> = service.hands().map(session).collect();
        service
            .hands()
            .flat_map(|o| Self::copies(kernel, *o))
            .filter(|copy| copy.died.is_none() && sessions.contains(&copy.sid))
            .filter(|copy| end.is_some_and(|end| copy.files.has(end)))
            .map(|copy| copy.id)
            .collect()
    }

    /// How the server stands with its owner now.
    pub fn standing(&self, kernel: &Kernel, service: &Service) -> Standing {
        let Some(owner) = service.owner else {
            // Safe side: a server below a shell of an agent is at most that agent's.
            return match service.above {
                Some(agent) if !kernel.alive(agent) => Standing::Unclear,
                _ => Standing::Unowned,
            };
        };
        // A wire that nothing of it reads any more connects it with nobody.
        let members = self.members(kernel, service);
        let read = service.wire.filter(|w| members.is_empty() || members.iter().any(|p| p.files.has(*w)));
        let other_end = read.and_then(|w| kernel.opposite(w));
        let Some((died, status)) = kernel.history.get(&owner).and_then(|p| p.died) else {
            // An heir that nobody saw and that let go of the wire cannot be known by any means.
            let silent = other_end.is_none_or(|end| kernel.holders(end).next().is_none());
            let unseen = self.unheard.contains(&owner) || (self.partial && owner != service.maker);
            return if unseen && silent { Standing::Unclear } else { Standing::Owned };
        };
        let session = kernel.history.get(&owner).map_or(0, |p| p.sid);
        let asked = Self::asked(kernel, service);
        let mut unclear = service.found_ownerless;
        let mut last = died;
        if service.maker != owner {
            // A worker of the launcher that went into the background: is it the agent's or nobody's?
            let lives = |o: &ProcessId| Self::copies(kernel, *o).iter().any(|c| c.died.is_none());
            unclear |= service.former.iter().any(lives);
        }
        for copy in Self::copies(kernel, owner) {
            if let Some((at, _)) = copy.died {
                // While it lived it may have counted as the owner.
                last = if matches!(status, ExitStatus::Code(_)) { last.max(at) } else { last };
                continue;
            }
            // A copy of an earlier version of itself: is it a worker of this one?
            unclear |= kernel.history.get(&owner).and_then(|o| o.execed) > Some(copy.born);
            // Nor does /proc tell a copy from another instance of the program.
            unclear |= copy.born < self.since || self.partial;
            // Nor was a copy seen that a host made which no rule knows, before the daemon asked who that was.
            unclear |= !self.agents.contains(&service.maker) && copy.born < asked;
            match (copy.sid == session, status) {
                // It went into the background of its own will and works on.
                (false, ExitStatus::Code(_)) => return Standing::Owned,
                // A pool worker holds the wire only because it was forked (o10), if the owner was killed.
                (true, ExitStatus::Signal(_)) => {}
                (false, ExitStatus::Signal(_)) | (true, ExitStatus::Code(_)) => unclear = true,
            }
        }
        let copies: BTreeSet<ProcessId> = Self::copies(kernel, owner).iter().map(|c| c.id).collect();
        for holder in other_end.into_iter().flat_map(|end| kernel.holders(end)) {
            if copies.contains(&holder.id) {
                continue;
            }
            if holder.id.start < service.head().start {
                return Standing::Owned;
            }
            unclear |= self.may_host(kernel, service, holder);
        }
        if unclear {
            return Standing::Unclear;
        }
        let patrons = service.patrons.iter().filter_map(|p| kernel.history.get(p)?.died).map(|(at, _)| at);
        Standing::Ownerless(patrons.fold(last, BootTime::max))
    }

    /// Whether this holder of the other end of its wire, no copy of its owner, may be talking to it. Who is
    /// older is; what its owner started later, other servers too, inherited a descriptor by accident unless it
    /// is a host in its own right; of whoever else there is a doubt.
    pub fn may_host(&self, kernel: &Kernel, service: &Service, holder: &Process) -> bool {
        if self.is_member(kernel, holder.id, service.head()) {
            return false;
        }
        // Ticks do not tell who of two is older that were born in one.
        let younger = holder.id.start > service.head().start;
        if kernel.descends(holder.id, service.head()) {
            let between =
                |s: &ProcessId| kernel.descends(holder.id, *s) && kernel.descends(*s, service.head());
            return !younger && self.sanctuaries.iter().any(between);
        }
        let hosts = self.agents.contains(&holder.id)
            || self
                .services
                .iter()
                .any(|s| s.owner.is_some() && [Some(s.maker), s.owner].contains(&Some(holder.id)));
        let started = |o: &ProcessId| kernel.descends(holder.id, *o);
        let inherited = younger && service.hands().any(started);
        let sibling = self.services.iter().any(|s| {
            let other = s.head() != service.head() && s.owner == service.owner;
            other && self.is_member(kernel, holder.id, s.head())
        });
        hosts || !(inherited || sibling)
    }

    /// What forbids to end it now.
    pub fn bars(&self, kernel: &Kernel, service: &Service) -> BTreeSet<Bar> {
        let mut bars = BTreeSet::new();
        let owner = service.owner.or(service.above);
        let owner_uid = owner.and_then(|o| kernel.history.get(&o)).map(|p| p.uid);
        for p in self.members(kernel, service) {
            if owner_uid != Some(p.uid) && !self.other_uids {
                bars.insert(Bar::OtherUid);
            }
            if p.conduct.opted_out {
                bars.insert(Bar::OptedOut);
            }
            if p.conduct.serves_clients {
                bars.insert(Bar::Clients);
            }
            if self.ourselves.contains(&p.id) {
                bars.insert(Bar::Ourselves);
            }
        }
        let below = |a: &ProcessId| {
            // Of an adopted process whose fork was not seen nobody can know whom it came from, nor of one below it.
            let traceable =
                |p: &Process| !self.lossy && (!self.partial || kernel.descends(p.parent, service.head()));
            kernel.get(*a).is_some_and(traceable) && kernel.descends(*a, service.head())
        };
        if self.agents.iter().any(below) {
            bars.insert(Bar::AgentBelow);
        }
        bars
    }

    /// Whether a sanctuary lives below it: what follows for the server itself is for the guards to say.
    pub fn shelters(&self, kernel: &Kernel, service: &Service) -> bool {
        let head = service.head();
        kernel.living().any(|p| kernel.descends(p.id, head) && !self.is_member(kernel, p.id, head))
    }

    /// When the daemon has asked who started the server, at the latest.
    fn asked(kernel: &Kernel, service: &Service) -> BootTime {
        let born = kernel.history.get(&service.head()).map_or(BootTime(0), |p| p.born);
        born + Duration::from_millis(100)
    }

    /// Whether somebody whom nobody follows inherited the other end of its wire: one in a sanctuary, or one that
    /// a host which no rule knows forked before the daemon asked who that was. A doubt.
    pub fn held_unseen(&self, kernel: &Kernel, service: &Service) -> bool {
        let asked = Self::asked(kernel, service);
        let unknown = !self.agents.contains(&service.maker);
        let unseen = |h: &Process| {
            let early = unknown && h.born < asked && kernel.descends(h.id, service.maker);
            let unowned = |s: &Service| {
                let stray = s.go_between.is_some() && !self.agents.contains(&s.maker);
                stray && kernel.descends(h.id, s.head())
            };
            // What was not seen from its birth may be anybody's.
            early
                || self.partial
                || self.sanctuaries.iter().any(|s| kernel.descends(h.id, *s))
                || self.services.iter().any(unowned)
        };
        let other_end = service.wire.and_then(|w| kernel.opposite(w));
        let mut holders = other_end.into_iter().flat_map(|end| kernel.holders(end));
        holders.any(|h| !self.is_member(kernel, h.id, service.head()) && unseen(h))
    }
}
