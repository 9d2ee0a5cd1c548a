//! What is true in the model world, computed from its history and from the intent of who acted in it.
//!
//! It never looks at what the engine says. Where the words leave a case open the answer is "unclear": then the
//! engine may call the server an orphan or not, and what the laws ask of it is only what is safe.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use orphand_core::model::{BootTime, ExitStatus, ProcessId};

use crate::{
    files::End,
    kernel::{Kernel, Process},
};

/// A server as whoever started it knows it.
#[derive(Clone, Debug)]
pub struct Service {
    /// From the head of the launch chain to the server's main process.
    pub chain: Vec<ProcessId>,
    /// The server's ends of its wires: what it reads, what it writes.
    pub wires: [End; 2],
    /// Who made the wire and talks to it; nobody if it is no agent (a shell, a steward, a terminal).
    pub owner: Option<ProcessId>,
    /// Who started it: its first owner, before any went into the background.
    pub maker: ProcessId,
    /// Its owners before the present one, each of which went into the background.
    pub former: Vec<ProcessId>,
    /// The agent above an owner that is none (a shell below an agent).
    pub above: Option<ProcessId>,
    /// Processes that the other end of a wire was handed to.
    pub patrons: Vec<ProcessId>,
    /// Whether its owner is a forked worker of an agent: whose it is after the worker has ended, the words leave open.
    pub of_worker: bool,
    /// Whether it has moved its wires off its standard streams.
    pub moved: bool,
    /// Whether it has closed one of its own ends.
    pub mute: bool,
    /// Whether the server's main process has become another program, which nobody may touch.
    pub over: bool,
    /// Who forked it for its owner and ended at once.
    pub go_between: Option<ProcessId>,
    /// Whether it is a bridge to a server on another wire, which may outlive it.
    pub bridged: bool,
    /// The server behind the bridge, with its launch chain: part of it.
    pub behind: Vec<ProcessId>,
    /// Whether it was there before the daemon, and nothing could tell whose: its host, which no rule knows, had
    /// let go of the wire.
    pub found_silent: bool,
    /// Whether it was there before the daemon, and had become another program by then.
    pub found_over: bool,
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
    /// Its owner lives, or an heir.
    Owned,
    /// The words leave it open.
    Unclear,
    /// Its owner ended then, and nobody uses it.
    Ownerless(BootTime),
}

/// Why a server must not be ended though its owner is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bar {
    OtherUid,
    OptedOut,
    AgentBelow,
    Ourselves,
    /// A container would live on.
    Container,
}

/// What the actors of the world meant.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    pub services: Vec<Service>,
    pub heads: BTreeSet<ProcessId>,
    /// Processes that are agents by rule.
    pub agents: BTreeSet<ProcessId>,
    /// Hosts no rule knows whose first process ended before the daemon could ask what it was.
    pub unheard: BTreeSet<ProcessId>,
    /// Whether some of what happened was not seen: before the start, or because records were lost.
    pub partial: bool,
    /// Whether records were lost.
    pub lossy: bool,
    /// Whether the daemon was restarted.
    pub restarted: bool,
    /// When the daemon began to watch.
    pub since: BootTime,
    /// Multiplexers and exempt programs: nothing at or below them is ever touched.
    pub sanctuaries: BTreeSet<ProcessId>,
    /// Servers that became another program.
    pub converts: BTreeSet<ProcessId>,
    /// The sessions of each server whose end has begun, by its head.
    pub ending: BTreeMap<ProcessId, BTreeSet<u32>>,
    /// For each agent that ended, its copies in sessions of their own.
    pub heirs: BTreeMap<ProcessId, Vec<ProcessId>>,
    /// The daemon and its ancestors.
    pub ourselves: Vec<ProcessId>,
    /// Whether servers of another user than their owner's may be ended.
    pub other_uids: bool,
    /// Whose children those seem to be whose fork nobody saw, if not their creator's: a look at /proc tells nothing else.
    pub shown: BTreeMap<ProcessId, ProcessId>,
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
        if self.converts.contains(&head) {
            return false;
        }
        while at != head {
            let apart = [&self.sanctuaries, &self.agents, &self.heads, &self.converts]
                .into_iter()
                .any(|set| set.contains(&at));
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
        !self.parts(kernel, service).is_empty()
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

    /// The processes that run the same program in the same state: forks of it or of what it was forked from, none of which ever
    /// ran another program since, the dead included.
    pub fn copies(kernel: &Kernel, owner: ProcessId) -> Vec<&Process> {
        let origin = |p: &Process| {
            let (mut at, mut born) = (p, None);
            while at.execed.is_none() {
                let Some(up) = kernel.history.get(&at.creator) else { break };
                (born, at) = (Some(at.born), up);
            }
            // A copy of an earlier version is not one of what it was forked from any more.
            (at.id, born.is_some_and(|born| at.execed > Some(born)))
        };
        let Some(root) = kernel.history.get(&owner).map(origin) else { return Vec::new() };
        kernel.history.values().filter(|p| p.id != owner && origin(p) == root).collect()
    }

    /// How the server stands with its owner now.
    pub fn standing(&self, kernel: &Kernel, service: &Service) -> Standing {
        let Some(owner) = service.owner else {
            // Safe side: a server below a shell of an agent is at most that agent's.
            return match service.above {
                Some(agent) if !kernel.alive(agent) => Standing::Unclear,
                _ if !service.patrons.is_empty() => Standing::Unclear,
                _ => Standing::Unowned,
            };
        };
        let Some((died, status)) = kernel.history.get(&owner).and_then(|p| p.died) else {
            // An heir that nobody saw and that let go of the wire cannot be known by any means.
            let unseen = self.unheard.contains(&owner) || (self.partial && owner != service.maker);
            let silent = unseen && self.user(kernel, service).is_none();
            return if silent { Standing::Unclear } else { Standing::Owned };
        };
        let by_rule = self.agents.contains(&service.maker);
        if self.has_heir(kernel, service) {
            return if by_rule && !self.partial { Standing::Owned } else { Standing::Unclear };
        }
        let killed = matches!(status, ExitStatus::Signal(_));
        let living =
            service.hands().flat_map(|hand| Self::copies(kernel, *hand)).filter(|c| c.died.is_none());
        let idle = |p: &Process| {
            by_rule && !self.partial && killed && self.is_idle_copy(kernel, service, p, Duration::ZERO)
        };
        let copies = living.into_iter().all(|copy| service.hands().count() == 2 && idle(copy));
        let patrons = service.patrons.iter().any(|patron| kernel.alive(*patron));
        let siblings = self.services.iter().any(|s| s.owner == service.owner && !s.patrons.is_empty());
        // Of a host that no rule knows, what listens may be a service that somebody visits.
        let serves = !by_rule && self.parts(kernel, service).iter().any(|part| part.doings.listens);
        let unclear = service.over
            || serves
            || service.of_worker
            || service.found_ownerless
            || !copies
            || patrons
            || (siblings && !self.is_silent(kernel, service))
            || self.user(kernel, service).is_some();
        if unclear { Standing::Unclear } else { Standing::Ownerless(died) }
    }

    /// What forbids to end it now.
    pub fn bars(&self, kernel: &Kernel, service: &Service) -> BTreeSet<Bar> {
        let mut bars = BTreeSet::new();
        let owner = service.owner.or(service.above);
        let owner_uid = owner.and_then(|o| kernel.history.get(&o)).map(|p| p.uid);
        let parts = self.parts(kernel, service);
        for p in &parts {
            if owner_uid != Some(p.uid) && !self.other_uids {
                bars.insert(Bar::OtherUid);
            }
            if p.image.argv.first().is_some_and(|name| name == "docker") {
                bars.insert(Bar::Container);
            }
            if p.conduct.opted_out {
                bars.insert(Bar::OptedOut);
            }
            if self.ourselves.contains(&p.id) {
                bars.insert(Bar::Ourselves);
            }
        }
        let below = |a: &ProcessId| {
            // Of an adopted process whose fork was not seen nobody can know whom it came from, nor of one below it.
            let seen = !self.partial && !self.restarted;
            let traceable = |p: &Process| !self.lossy && (seen || kernel.descends(p.parent, service.head()));
            // What it has let go is below it no longer.
            let is_below = |p: &&Process| kernel.descends(*a, p.id);
            kernel.get(*a).is_some_and(traceable) && parts.iter().any(is_below)
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
}
