//! Who uses a server in truth, whoever owned it: the standard that every verdict and every signal is measured by.

use std::{collections::BTreeSet, time::Duration};

use orphand_core::model::{BootTime, Class, ExitStatus, Notice, ProcessId};

use crate::{
    files::End,
    kernel::{Kernel, Process},
    laws,
    truth::{Bar, Service, Truth},
};

/// The daemon hears of an exit so much later at most, and only then sees what the copies have done so far.
const NOTICED: Duration = Duration::from_millis(70);

/// The daemon hears of a birth, and asks who made it, so much later at most.
pub const UNASKED: Duration = Duration::from_millis(100);

impl Truth {
    /// Somebody outside who uses the server now, if there is one.
    pub fn user(&self, kernel: &Kernel, service: &Service) -> Option<String> {
        self.user_of(kernel, service, true, true)
    }

    /// The same; what belongs to one piece only of a chain that has fallen into pieces counts if it is looked at as a `whole`, and
    /// what only seems to be a part of it if it is looked at `exactly`.
    fn user_of(&self, kernel: &Kernel, service: &Service, whole: bool, exactly: bool) -> Option<String> {
        let parts = self.parts(kernel, service);
        let is_part = |id: ProcessId| parts.iter().any(|p| p.id == id);
        let wires = service.wires.iter().filter(|_| whole || !service.mute);
        for end in wires {
            // What nothing of it has open connects it with nobody.
            let Some(other) = kernel.opposite(*end).filter(|_| parts.iter().any(|p| p.files.has(*end)))
            else {
                continue;
            };
            if kernel.in_flight.contains(&other) {
                return Some(format!("{other:?} is in flight"));
            }
            let outside =
                |p: &&Process| !is_part(p.id) && (exactly || !self.seems_inside(kernel, service, p));
            let mut users = kernel.holders(other).filter(outside);
            let user = users.find(|p| !self.is_accident(kernel, service, p));
            if let Some(user) = user {
                return Some(format!("{} holds {other:?}", user.id));
            }
        }
        whole.then(|| Self::guest(&parts)).flatten()
    }

    /// Who uses these processes otherwise than by a wire.
    fn guest(parts: &[&Process]) -> Option<String> {
        let is_part = |id: ProcessId| parts.iter().any(|p| p.id == id);
        parts.iter().find_map(|part| {
            if part.conduct.serves_clients || part.doings.clients.iter().any(|client| !is_part(*client)) {
                return Some(format!("{} has a client", part.id));
            }
            let tracer = part.doings.tracer.filter(|tracer| !is_part(*tracer))?;
            Some(format!("{tracer} traces {}", part.id))
        })
    }

    /// Whether it is what an agent below the server started, whose own exec was lost, or the server that had become something else
    /// before anybody looked: that agent, or that server, shows as part of the server.
    fn seems_inside(&self, kernel: &Kernel, service: &Service, p: &Process) -> bool {
        let unseen = self.lossy || service.found_over;
        unseen && kernel.descends(p.id, service.head()) && !self.agents.contains(&p.id)
    }

    /// Whether a holder is one of the two proven accidents: another server of a dead owner that nobody else uses and that may be
    /// ended, too, or an idle copy of it. The client of a container stays, and asks nobody.
    fn is_accident(&self, kernel: &Kernel, service: &Service, holder: &Process) -> bool {
        let Some((_, status)) = self.last_owner(kernel, service).and_then(|owner| owner.died) else {
            return false;
        };
        // Who went into the background is the same owner under another number.
        let heir = |s: &Service, of: &Service| s.owner.is_some_and(|o| self.heirs_of(of).contains(&o));
        let owners = |s: &Service| s.owner == service.owner || heir(s, service) || heir(service, s);
        let dead = |s: &Service| s.owner.is_some_and(|o| !kernel.alive(o)) && !self.has_heir(kernel, s);
        let same = |s: &Service| s.owner.is_some() && (owners(s) || dead(s)) && s.head() != service.head();
        let stays = |s: &Service| self.bars(kernel, s).iter().any(|bar| *bar != Bar::Container);
        let sibling = |s: &Service| {
            let parts = self.parts(kernel, s);
            same(s) && !stays(s) && parts.iter().any(|p| p.id == holder.id) && Self::guest(&parts).is_none()
        };
        if self.services.iter().any(sibling) {
            return true;
        }
        if matches!(status, ExitStatus::Signal(_)) && self.is_idle_copy(kernel, service, holder, NOTICED) {
            return true;
        }
        // Who was given the wire is the owner from then on.
        let patrons = service.patrons.iter().filter_map(|patron| kernel.history.get(patron));
        let mut killed = patrons.filter(|p| matches!(p.died, Some((_, ExitStatus::Signal(_)))));
        killed.any(|patron| {
            let (owner, maker) = (Some(patron.id), patron.id);
            let taken = Service { owner, maker, former: Vec::new(), ..service.clone() };
            self.is_idle_copy(kernel, &taken, holder, NOTICED)
        })
    }

    /// Whether it has the other end of another server's wire, or an end is held by what another server of the owner started, which may be let go, or by a piece of its own launch chain
    /// that the records show as something else: such a one may stay unproven.
    pub fn is_entangled(&self, kernel: &Kernel, service: &Service) -> bool {
        let in_chain = |s: &Service, p: &Process| s.chain.contains(&p.id) || s.behind.contains(&p.id);
        let started_by_sibling = |p: &Process| {
            let siblings = self.services.iter().filter(|s| s.head() != service.head());
            let mut siblings = siblings.filter(|s| s.owner == service.owner && !in_chain(s, p));
            siblings.any(|s| kernel.descends(p.id, s.head()))
        };
        let piece = |p: &Process| {
            let same = self.services.iter().filter(|s| s.owner == service.owner && s.chain.len() > 1);
            // Of one that a go-between started the launchers are not known either.
            same.into_iter().any(|s| (self.lossy || s.go_between.is_some()) && in_chain(s, p))
        };
        // Nobody can tell the other end of another server's wire that was inherited from one that was handed on.
        let parts = self.parts(kernel, service);
        let of_others = self.services.iter().filter(|s| s.head() != service.head()).flat_map(|s| s.wires);
        let mut ends = of_others.filter_map(|wire| kernel.opposite(wire));
        if ends.any(|end| parts.iter().any(|part| part.files.has(end))) {
            return true;
        }
        // Whose wires a copy has besides, or who holds it and is judged apart, may be in use.
        let mut siblings =
            self.services.iter().filter(|s| s.head() != service.head() && s.owner == service.owner);
        let visited = siblings.any(|s| Self::guest(&self.parts(kernel, s)).is_some());
        let of_another = |p: &Process| {
            let is_another = |s: &&Service| s.owner != service.owner && in_chain(s, p);
            self.services.iter().any(|s| is_another(&s))
        };
        let mut others = service.wires.iter().filter_map(|wire| kernel.opposite(*wire));
        others.any(|other| {
            let mut holders = kernel.holders(other);
            holders.any(|p| visited || started_by_sibling(p) || piece(p) || of_another(p))
        })
    }

    /// Whether a process is a fork of the dead owner that has nothing of its own and did nothing since; what it did within `slack`
    /// of the owner's end does not count.
    pub fn is_idle_copy(&self, kernel: &Kernel, service: &Service, p: &Process, slack: Duration) -> bool {
        let hands: Vec<ProcessId> = service.hands().copied().collect();
        let Some(owner) = self.last_owner(kernel, service) else { return false };
        let Some((died, _)) = owner.died else { return false };
        // Its servers' wires are no connections, nor is that of one that its owner took over. Another may have been taken over by
        // somebody else since: who is surely idle has no socket at all.
        let servers = self.services.iter().filter(|_| slack > Duration::ZERO);
        let of_servers = servers.flat_map(|s| self.parts(kernel, s)).map(|part| part.id);
        let copies = hands.iter().flat_map(|hand| Self::copies(kernel, *hand)).map(|copy| copy.id);
        let known: BTreeSet<ProcessId> = of_servers.chain(copies).collect();
        hands.iter().any(|hand| Self::copies(kernel, *hand).iter().any(|copy| copy.id == p.id))
            && p.doings.busy <= died + slack
            && p.sid == owner.sid
            && !kernel.is_connected(p, &known.iter().collect())
            && (slack > Duration::ZERO || !p.files.ends().any(|end| matches!(end, End::Socket(_))))
            && !kernel.living().any(|child| child.creator == p.id)
            && !self.services.iter().any(|s| s.maker == p.id && self.lives(kernel, s))
    }

    /// A process is about to end: its copies in sessions of their own go on with its work if it is an agent, and any of them if it
    /// leaves on its own accord.
    pub fn may_leave_heirs(&mut self, kernel: &Kernel, id: ProcessId, status: ExitStatus) {
        let is_agent = self.agents.contains(&id) || self.heirs.values().flatten().any(|heir| *heir == id);
        let Some(owner) = kernel.get(id).filter(|_| is_agent) else { return };
        let leaves = matches!(status, ExitStatus::Code(_));
        // One that was there before the daemon looks like another instance of the program.
        let hosts = |c: &Process| self.services.iter().any(|s| s.maker == c.id && self.lives(kernel, s));
        let goes_on = |c: &&Process| {
            c.died.is_none() && c.born >= self.since && (leaves || c.sid != owner.sid || hosts(c))
        };
        let heirs = Self::copies(kernel, id).into_iter().filter(goes_on).map(|copy| copy.id);
        let heirs = heirs.collect();
        self.heirs.insert(id, heirs);
    }

    /// Whether an heir of the owner lives.
    pub fn has_heir(&self, kernel: &Kernel, service: &Service) -> bool {
        if self.partial || !self.agents.contains(&service.maker) {
            return false;
        }
        // Whoever runs a version that its owner has replaced since is no copy of it any more.
        let replaced = service.owner.and_then(|owner| kernel.history.get(&owner)?.execed);
        let is_one = |p: &Process| p.execed.is_none() && replaced.is_none_or(|at| at < p.born);
        self.heirs_of(service).into_iter().any(|heir| kernel.get(heir).is_some_and(is_one))
    }

    /// The heirs of all who owned it, and theirs.
    fn heirs_of(&self, service: &Service) -> BTreeSet<ProcessId> {
        let mut found = BTreeSet::new();
        let mut next: Vec<ProcessId> = service.hands().copied().collect();
        while let Some(one) = next.pop() {
            let heirs = self.heirs.get(&one).into_iter().flatten().copied();
            next.extend(heirs.filter(|heir| found.insert(*heir)));
        }
        found
    }

    /// The last of those who owned it or were heirs of such, if all have ended.
    fn last_owner<'k>(&self, kernel: &'k Kernel, service: &Service) -> Option<&'k Process> {
        let owner = service.owner.into_iter();
        // Heirs are not known where records were lost.
        let heirs = if self.partial { BTreeSet::new() } else { self.heirs_of(service) };
        let all = owner.chain(heirs);
        let all: Vec<&Process> = all.filter_map(|id| kernel.history.get(&id)).collect();
        let ended = all.iter().all(|p| p.died.is_some());
        all.into_iter().max_by_key(|p| p.died.map(|(at, _)| at)).filter(|_| ended)
    }

    /// Whether its history was seen: nothing happened before the start, no records were lost, and who started it is known.
    fn is_seen(&self, service: &Service) -> bool {
        let by_rule = self.agents.contains(&service.maker);
        let hands = service.hands().any(|hand| self.unheard.contains(hand));
        !self.partial && (service.go_between.is_none() || by_rule) && !hands
    }

    /// Whether what made it, which is no agent by rule, may have ended before anybody could ask what it was.
    pub fn is_nameless(&self, kernel: &Kernel, service: &Service) -> bool {
        let born = kernel.history.get(&service.head()).map(|p| p.born);
        let maker = Some(service.maker).filter(|maker| !self.agents.contains(maker));
        let died = maker.and_then(|maker| kernel.history.get(&maker)?.died).map(|(at, _)| at);
        born.zip(died).is_some_and(|(born, died)| died < born + UNASKED)
    }

    /// Why this server may not be called an orphan, or ended, now; nothing if it may.
    pub fn not_an_orphan(&self, kernel: &Kernel, service: &Service) -> Option<String> {
        // A chain with a lost link may have fallen into pieces: what one of them is connected with says nothing about another.
        let whole = !self.lossy || service.chain.len() == 1;
        let abandoned = self.is_abandoned(kernel, service);
        if let Some(user) = self.user_of(kernel, service, whole, false).filter(|_| !abandoned) {
            return Some(user);
        }
        let parts = self.parts(kernel, service);
        // Whoever started it: nobody can use it any more.
        let let_go = !service.wires.iter().any(|end| {
            let other = kernel.opposite(*end).filter(|_| parts.iter().any(|p| p.files.has(*end)));
            let outside = |p: &Process| !parts.iter().any(|part| part.id == p.id);
            other.is_some_and(|other| kernel.holders(other).any(outside))
        });
        // Nobody's, until somebody was given its wires: whoever holds them then is its host.
        let taken = service.owner.is_none() && !service.patrons.is_empty();
        let core = |p: &&Process| service.chain.contains(&p.id) || service.behind.contains(&p.id);
        // What a job started seems to be a part of it as long as the job seems to be a server.
        let started = |s: &Service| service.over && s.maker == service.leaf() && self.lives(kernel, s);
        let has_core = parts.iter().any(core)
            || self.ending.contains_key(&service.head())
            || self.services.iter().any(started);
        let nameless = has_core && self.is_nameless(kernel, service);
        if let_go && (taken || nameless || !self.is_seen(service)) {
            return None;
        }
        let Some(owner) = service.owner else { return Some("it is nobody's server".to_owned()) };
        if kernel.alive(owner) && !abandoned {
            return Some(format!("its owner {owner} lives"));
        }
        if self.has_heir(kernel, service) && !abandoned {
            return Some("an heir of its owner lives".to_owned());
        }
        None
    }

    /// Whether its owner, which is alive, cannot use it any more: it has let go of both wires, or of the standard input when the
    /// head of the launch chain had been killed. Nobody else has the wires, the server has its own ends still, and no socket.
    pub fn is_abandoned(&self, kernel: &Kernel, service: &Service) -> bool {
        let parts = self.parts(kernel, service);
        let has = |end: &End| parts.iter().any(|p| p.files.has(*end));
        let outside = |end: End| {
            let others = kernel.holders(end).map(|p| p.id).filter(|id| !parts.iter().any(|p| p.id == *id));
            others.collect::<Vec<_>>()
        };
        let [input, output] = service.wires.map(|own| kernel.opposite(own));
        let head = kernel.history.get(&service.head()).and_then(|head| head.died);
        let head_killed = matches!(head, Some((_, ExitStatus::Signal(_))));
        let heirs = self.heirs_of(service);
        let is_closer = |id: &ProcessId| head_killed && (Some(*id) == service.owner || heirs.contains(id));
        let in_flight = |end: Option<End>| end.is_some_and(|end| kernel.in_flight.contains(&end));
        let traced = |p: &Process| p.doings.tracer.is_some_and(|by| !parts.iter().any(|p| p.id == by));
        let has_sockets = |p: &Process| p.has_sockets() || p.doings.listens || p.conduct.serves_clients;
        let begun = self.ending.contains_key(&service.head());
        let let_go = (begun || service.wires.iter().all(has))
            && !in_flight(input)
            && !in_flight(output)
            && input.is_none_or(|end| outside(end).is_empty())
            && output.is_none_or(|end| outside(end).iter().all(is_closer));
        // What is behind a bridge is reached through it only.
        let bridge_ended = service.bridged && !service.chain.iter().any(|link| kernel.alive(*link));
        (let_go || bridge_ended) && !parts.iter().any(|p| traced(p) || has_sockets(p))
    }

    /// Whether it may have been abandoned: nobody but its owner's side has been given a wire, and the owner has none any more.
    pub fn was_abandoned(&self, kernel: &Kernel, service: &Service) -> bool {
        let input = kernel.opposite(service.wires[0]);
        !input.is_some_and(|end| kernel.is_open(end) && self.lives(kernel, service))
    }

    /// When the owner ended.
    pub fn owner_died(kernel: &Kernel, service: &Service) -> Option<BootTime> {
        service.owner.and_then(|owner| kernel.history.get(&owner)?.died).map(|(at, _)| at)
    }

    /// Whether a notice calls something an orphan that is none at this moment: why.
    pub fn verdict_is_wrong(&self, kernel: &Kernel, notice: &Notice) -> Option<String> {
        let Notice::OrphanDetected { class: Class::Server, server, .. } = notice else { return None };
        if server.processes.is_empty() {
            return Some(format!("server {} is an orphan without processes", server.id));
        }
        let service = self.services.iter().find(|s| laws::is_about(server, s))?;
        let why = self.not_an_orphan(kernel, service)?;
        Some(format!("server {} was called an orphan, but {why}", server.id))
    }

    /// Whether both wires are held by nobody outside, whoever that may be: the plainest orphan there is.
    pub fn is_silent(&self, kernel: &Kernel, service: &Service) -> bool {
        let parts = self.parts(kernel, service);
        let outside = |end: End| kernel.holders(end).any(|p| !parts.iter().any(|part| part.id == p.id));
        let open = service.wires.iter().filter(|wire| parts.iter().any(|p| p.files.has(**wire)));
        let mut others = open.filter_map(|wire| kernel.opposite(*wire));
        !others.any(|other| kernel.in_flight.contains(&other) || outside(other))
    }
}

impl Kernel {
    /// Whether it has a socket that leads to somebody who is not known, or that somebody may connect to.
    fn is_connected(&self, p: &Process, known: &BTreeSet<&ProcessId>) -> bool {
        let leads_out = |end: End| {
            let peer = self.opposite(end).filter(|_| matches!(end, End::Socket(_)));
            peer.is_some_and(|peer| {
                self.in_flight.contains(&peer) || self.holders(peer).any(|other| !known.contains(&other.id))
            })
        };
        p.has_sockets() || p.files.ends().any(leads_out)
    }
}
