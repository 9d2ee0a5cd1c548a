//! Bootstrap and repair: they make the graph agree with /proc.

use std::{collections::BTreeMap, iter::successors, mem::discriminant, time::Duration};

use rustc_hash::FxHashMap;

use super::{Engine, agenda::Task, cases::CaseOf};
use crate::{
    case::{Event, Reason},
    lineage::{Difference, Left, NEAR, Node, ObservedUnit, Provenance, ServerKey, compare},
    model::{
        BootTime, Effect, Fact, Losses, Notice, ProcessId, ServerFacts, Share, Snapshot, SnapshotProcess,
        Stdio, scene::ProcessRow, text::base,
    },
    reach::Rows,
    recognise::Role,
    verdict::{Inspection, seek},
};

/// The minimum time between two repairs. Under lasting overload the daemon must do more than read /proc.
const BETWEEN_REPAIRS: Duration = Duration::from_secs(1);
/// The time between two inspections of a server whose owner is being sought.
const LOOK_FOR_OWNER: Duration = Duration::from_secs(30);

/// The processes of a snapshot that are not known yet.
type Others<'a> = FxHashMap<ProcessId, &'a SnapshotProcess>;

impl Engine {
    /// Records were lost: decides what must not be judged until a repair, and asks for one.
    pub(super) fn lost(&mut self, now: BootTime, losses: Losses) {
        if losses == Losses::default() {
            return;
        }
        self.persist(now, Fact::Lost { losses });
        self.emit(now, Notice::Lost { records: losses, sink: BTreeMap::new() });
        if losses == (Losses { member: losses.member, ..Losses::default() }) {
            // It is known which users have processes that could not be followed. The records of all other users are
            // complete.
            return;
        }
        self.doubtful = true;
        self.execs_lost |= losses.exec > 0;
        if losses.exec > 0 {
            self.forget_spawners(now, None);
        }
        self.repair_soon(now);
    }

    pub(super) fn repair_soon(&mut self, now: BootTime) {
        match self.last_repair.map(|at| at + BETWEEN_REPAIRS) {
            Some(earliest) if earliest > now => self.agenda.set(Task::Repair, Some(earliest)),
            _ => self.ask_for_repair(now),
        }
    }

    /// There is no room for what the processes of these users do: some are not followed, and records of others are missing.
    pub(super) fn crowded(&mut self, now: BootTime, users: Vec<u32>) {
        let before = std::mem::replace(&mut self.crowded, users.into_iter().map(Share::of).collect());
        let is_new = |uid: u32| self.is_crowded(uid) && !before.contains(&Share::of(uid));
        // An exec may be among what is missing: it ends all threads.
        let agents = self.agents_where(|_, agent| is_new(agent.uid));
        for agent in agents {
            self.forget_spawners(now, Some(agent));
        }
    }

    /// Whether records about processes of this user may be missing.
    pub(super) fn is_crowded(&self, uid: u32) -> bool {
        self.crowded.contains(&Share::of(uid))
    }

    /// Whether the engine must not judge this server, because records about it may be missing.
    pub(super) fn is_doubtful(&self, key: ServerKey) -> bool {
        let Some(server) = self.world.server(key).filter(|_| !self.doubtful) else { return self.doubtful };
        let forgot = |process: ProcessId| self.world.node(process).is_some_and(|node| node.forgot.is_some());
        if server.all().any(forgot) {
            return true;
        }
        let owner = self.world.owner_of(server).map(|owner| owner.uid);
        let processes = server.processes().iter().filter_map(|id| self.world.node(*id)).map(|node| node.uid);
        !self.crowded.is_empty() && owner.into_iter().chain(processes).any(|uid| self.is_crowded(uid))
    }

    /// What seems to be a copy of a server ends, and the record of its exec may be lost: it may have been a shell.
    pub(super) fn ran_unseen(&mut self, id: ProcessId) {
        let Some(node) = self.world.node(id) else { return };
        let server = node.server.and_then(|key| self.world.server(key));
        let is_copy = node.origin().process != id
            && server.is_some_and(|server| server.main_process() != id && !server.recognised().contains(&id));
        if is_copy && (self.execs_lost || self.is_crowded(node.uid)) {
            self.world.is_no_copy(id);
            self.world.change(id, |node| node.correct(|exec| exec.program = None));
        }
    }

    pub(super) fn ask_for_repair(&mut self, now: BootTime) {
        self.agenda.set(Task::Repair, None);
        self.last_repair = Some(now);
        self.effects.push_back(Effect::Resync);
    }

    pub(super) fn reconcile(&mut self, now: BootTime, mut snapshot: Snapshot) {
        let was_doubtful = std::mem::replace(&mut self.doubtful, self.agenda.at(Task::Repair).is_some());
        let repair = was_doubtful && !self.doubtful;
        self.recall.alive(&snapshot);
        for process in &mut snapshot.processes {
            self.recall.look_behind_title(process);
        }
        let mains = self.find_managers(&snapshot);
        let Difference { gone, unknown, known } = compare(self.world.graph(), snapshot);
        let before = self.world.graph().count();
        let removed = gone.len() as u64;
        for id in gone {
            self.exit(now, now, id, None);
            // Many processes may be gone. Each exit is reported before anything that follows from it.
            self.report_unanswered_exits(now);
        }
        let by_id: Others<'_> = unknown.iter().map(|p| (p.id, p)).collect();
        let (forgotten, known): (Vec<_>, Vec<_>) =
            known.iter().partition(|process| self.was_forgotten(process, &by_id));
        for process in known {
            self.refresh(now, process);
            self.report_unanswered_exits(now);
        }
        self.execs_lost &= self.doubtful;
        let after_removal = self.world.graph().count().min(before);
        for process in &unknown {
            self.found(now, process, &by_id, mains.contains(&process.id));
            self.report_unanswered_exits(now);
        }
        for process in forgotten {
            self.place_again(now, process);
        }
        self.read_what_was_forgotten(now);
        // Whoever spoke to an agent may have ended before the daemon began.
        let is_left = |seen: &SnapshotProcess| {
            let chain = self.launch_chain(seen, &by_id);
            self.is_adopted(chain.last().unwrap_or(&seen), &by_id)
        };
        let wired = unknown.iter().filter(|seen| seen.stdio[0].is_wire());
        let agents = wired.filter_map(|seen| Some((self.world.agent_of(seen.id)?, seen)));
        let left: Vec<_> = agents.filter(|(_, seen)| is_left(seen)).map(|(key, _)| key).collect();
        self.suspect(now, Reason::OwnerExited, &left);
        // The end of a thread may have been among records that were lost.
        for key in self.world.server_keys() {
            self.follow_spawner(key);
        }
        if repair || !self.crowded.is_empty() {
            let added = self.world.graph().count().saturating_sub(after_removal) as u64;
            self.emit(now, Notice::Resynced { added, removed });
        }
    }

    /// Whether it was dismissed below a process that matters by now, and entered again alone, because of what it started.
    fn was_forgotten(&self, seen: &SnapshotProcess, others: &Others<'_>) -> bool {
        let graph = self.world.graph();
        let is_alone = |node: &Node| node.pending && node.origin().execs == 0 && graph.up(node.id).is_none();
        let unknown = |id: &ProcessId| graph.get(*id).is_none();
        let above = successors(seen.parent, |up| others.get(up).filter(|_| unknown(up))?.parent);
        let mut above = above.take(NEAR).filter_map(|up| graph.get(up));
        graph.get(seen.id).is_some_and(is_alone)
            && above.next().is_some_and(|up| !up.pending && up.forgot.is_some() && up.id != seen.id)
    }

    /// It is placed, with what it started, below its parent, which is known by now.
    fn place_again(&mut self, now: BootTime, seen: &SnapshotProcess) {
        let graph = self.world.graph();
        let below: Vec<ProcessId> = graph.children(seen.id).map(|node| node.id).collect();
        self.world.exit(seen.id, Left::No);
        self.place(now, seen, seen.parent, Provenance::FOUND);
        for process in below {
            self.world.link(process, seen.id);
        }
        for process in self.world.graph().descendants(seen.id) {
            let is_protected = self.world.node(process).is_some_and(|node| node.protected);
            if is_protected || self.world.agent_of(process).is_some() {
                self.guards(now, process);
            }
        }
        self.classify(now, now, seen.id);
    }

    /// What these started before they mattered has been found, if its parents live. Else nobody knows of it, as of what was there
    /// before the daemon.
    fn read_what_was_forgotten(&mut self, now: BootTime) {
        let all = self.world.graph().ids().filter_map(|id| self.world.node(id));
        let read = all.filter(|node| !node.pending && node.forgot.is_some()).map(|node| node.id);
        for process in read.collect::<Vec<_>>() {
            self.remember_left(now, process);
            self.world.change(process, |node| (node.forgot, node.provenance) = (None, Provenance::FOUND));
        }
    }

    /// Updates a known process: an exec or a setsid of it may have been lost.
    fn refresh(&mut self, now: BootTime, seen: &SnapshotProcess) {
        self.world.change(seen.id, |node| (node.sid, node.stale_binary) = (seen.sid, seen.stale_binary));
        let is_copy = |node: &Node| node.origin().process != seen.id;
        let execs_lost = self.execs_lost || self.is_crowded(seen.uid);
        let may_have_run = execs_lost && self.world.node(seen.id).is_some_and(is_copy);
        if may_have_run {
            // An agent that starts its own program again (gemini, qwen) is not a copy of its launcher, but /proc
            // cannot tell the two apart.
            self.world.is_no_copy(seen.id);
        }
        let Some(node) = self.world.node(seen.id) else { return };
        let old = node.exec.program.as_deref();
        let is_titled = old.is_some_and(|old| seen.is_title_of(&old.image));
        if is_titled && !may_have_run {
            return;
        }
        let is = self.rules.role(&seen.image);
        // The kernel's record names the file that was requested. /proc names the file that a link led to (python3,
        // python3.11).
        let same = old.is_some_and(|old| {
            is_titled
                || base(&old.image.exe) == base(&seen.image.exe)
                || (old.image.argv == seen.image.argv && old.role == is)
        });
        let matters = |role: &Role| matches!(role, Role::Agent { .. } | Role::Server { .. });
        // For example, a fork of an agent that has become a server run by the same interpreter.
        let another = old.is_none_or(|old| {
            !matters(&old.role)
                || (self.world.agent_of(seen.id).is_none() && discriminant(&old.role) != discriminant(&is))
        });
        // A title written over argv is no exec. A different program is one, and so is a program that matters now.
        if !same || (matters(&is) && another) {
            self.ran(now, now, seen, Provenance::FOUND);
        }
    }

    fn found(&mut self, now: BootTime, seen: &SnapshotProcess, others: &Others<'_>, main_of_unit: bool) {
        if self.world.node(seen.id).is_some() {
            return;
        }
        if let Some(stdin) = self.recall.stdin_at_birth(seen.id).filter(|stdin| *stdin != seen.stdio[0]) {
            let [_, stdout, stderr] = seen.stdio;
            let at_birth = SnapshotProcess { stdio: [stdin, stdout, stderr], ..seen.clone() };
            return self.found(now, &at_birth, others, main_of_unit);
        }
        let parent_matters =
            seen.parent.and_then(|p| self.world.node(p)).is_some_and(|p| !p.pending && !p.protected);
        let wired = Stdio::are_wires(seen.stdio[0], seen.stdio[1]);
        let was_a_server = || wired && self.recall.known_by_protocol(seen.id, seen.stdio[0]).is_some();
        let guarded = self.guarded_by(seen.id);
        let (up, provenance) = match self.rules.role(&seen.image) {
            _ if main_of_unit => (None, Provenance::FOUND),
            _ if parent_matters => (seen.parent, Provenance::FOUND),
            _ if guarded.is_some() => (guarded, Provenance::FOUND),
            Role::Agent { .. } => (None, Provenance::FOUND),
            // What is exempt is followed, too.
            _ if was_a_server()
                || (wired
                    && matches!(self.rules.role_but_for_exemption(&seen.image), Role::Server { .. })) =>
            {
                let chain = self.launch_chain(seen, others);
                let adopted = self.recall.may_be_adopted(seen.id)
                    && self.is_adopted(chain.last().map_or(seen, |top| top), others);
                for link in chain.iter().rev() {
                    self.place(now, link, link.parent, Provenance::FOUND);
                }
                (seen.parent, Provenance::Found { adopted })
            }
            _ => return,
        };
        self.place(now, seen, up, provenance);
        self.classify(now, now, seen.id);
        self.guard_recalled(now, seen.id);
    }

    /// The shells, the launchers, and what an earlier daemon saw there, that are ancestors of a server and share its wire, nearest
    /// first.
    fn launch_chain<'a>(&self, seen: &SnapshotProcess, others: &Others<'a>) -> Vec<&'a SnapshotProcess> {
        let launches = |link: &SnapshotProcess| {
            link.stdio[0] == seen.stdio[0]
                && (matches!(self.rules.role(&link.image), Role::Launcher | Role::Shell)
                    || self.recall.has_seen(link.id))
                && self.world.node(link.id).is_none()
        };
        let mut chain: Vec<&SnapshotProcess> = Vec::new();
        let mut at = seen.parent;
        while let Some(link) = at.and_then(|p| others.get(&p).copied()).filter(|link| launches(link))
            && chain.iter().all(|before| before.id != link.id)
        {
            chain.push(link);
            at = link.parent;
        }
        chain
    }

    /// Whether the parent of a launch chain that was found in /proc is a service manager or init. Then its creator cannot be
    /// known: it ended before the daemon began, or the records about it are lost.
    fn is_adopted(&self, head: &SnapshotProcess, others: &Others<'_>) -> bool {
        let Some(parent) = head.parent else { return false };
        let manager = |p: &&SnapshotProcess| matches!(self.rules.role(&p.image), Role::ServiceManager);
        parent.pid == 1 || others.get(&parent).is_some_and(manager)
    }

    /// Enters a process whose creator is inferred from its parent in /proc.
    fn place(&mut self, now: BootTime, seen: &SnapshotProcess, up: Option<ProcessId>, how: Provenance) {
        if self.world.node(seen.id).is_some() {
            return;
        }
        self.make_room(now, seen.id);
        let inherited = up.and_then(|u| self.world.node(u)).filter(|u| !u.protected);
        let forgot = inherited.and_then(|up| up.forgot);
        let forked = inherited.map(|up| up.fork(seen.id, seen.uid, seen.sid));
        let mut node = forked.unwrap_or_else(|| Node::bare(seen.id));
        // An earlier daemon may have witnessed its creation. Its parent may have adopted it.
        let witnessed = self.recall.creators.get(&seen.id).copied();
        (node.witnessed, node.creator) = (witnessed.is_some(), witnessed.or(seen.parent));
        node.left = node.left.max(forgot.unwrap_or_default());
        if self.recall.left.contains(&seen.id) {
            node.left = Left::Whole;
        }
        // That of an agent behind a title was not read.
        if !seen.titled || seen.place.is_some() {
            node.unit = ObservedUnit::Known(seen.unit.clone().map(Box::new));
        }
        node.place = seen.place.as_deref().map(Into::into);
        node.slices = seen.place.is_some().then(|| seen.slices.clone().into());
        node.hints.clone_from(&seen.hints);
        let confirmed = !node.pending;
        self.world.enter(node, up);
        self.world.run(&self.rules, seen, how);
        if confirmed {
            let tracking = crate::model::Tracking::Member;
            self.effects.push_back(Effect::Track { process: seen.id, tracking });
        }
    }

    /// Seeks the owner of a server in the answer to an inspection: the process that holds the other end of its wire.
    pub(super) fn seek_owner(&mut self, now: BootTime, key: ServerKey, facts: &ServerFacts, rows: &Rows<'_>) {
        let Some(server) = self.world.server(key) else { return };
        // The server is new; only the process that made its wire is unknown.
        let sought = server.provenance == Provenance::Witnessed;
        let first = server.last_view.is_none();
        let account = rows.unit(server).map(|unit| self.world.runs().left_behind(unit));
        let seek = |inspection: &Inspection<'_>| seek(inspection, sought);
        let (owner, proven) = self.with_inspection(key, facts, rows, seek).unwrap_or_default();
        self.world.change_server(key, |server| server.account = account.or_else(|| server.account.take()));
        if let Some(host) = owner {
            self.adopt_host(now, key, &host);
            self.set_deadline(CaseOf::Server(key), None);
        } else if sought && !proven {
            // It has no owner, like a server that was started on a terminal.
            self.world.change_server(key, |server| server.seeks_owner = false);
            self.set_deadline(CaseOf::Server(key), None);
            if !first {
                self.remember_server(now, key);
            }
        } else if proven {
            let deadline = now + self.policy.grace;
            self.server_event(now, key, Event::Suspected { reason: Reason::NoOwner, since: now, deadline });
        } else {
            self.set_deadline(CaseOf::Server(key), Some(now + LOOK_FOR_OWNER));
        }
        if first {
            self.report_server_started(now, key);
        }
    }

    /// Makes `host`, which holds the other end of the server's wire, the owner of the server.
    pub(super) fn adopt_host(&mut self, now: BootTime, key: ServerKey, host: &ProcessRow) {
        let id = host.process;
        self.enter_host(now, id, |node| (node.uid, node.sid) = (host.uid, host.sid));
        self.world.change(id, |node| {
            if node.unit == ObservedUnit::Unasked {
                node.unit = ObservedUnit::Known(host.unit.clone().map(Box::new));
                node.slices = Some(host.slices.clone().into());
            }
        });
        self.world.identify(&self.rules, id, &host.image, None);
        let agent = self.world.node(id).and_then(|node| self.world.agent_run_by(node));
        let agent = agent.or_else(|| {
            let (name, implied) = match self.rules.role(&host.image) {
                Role::Agent { name } => (name, false),
                Role::Server { name, .. } | Role::Other { name } => (name, true),
                // A program that launches or adopts others is no agent, so the server stays without an owner.
                _ => return None,
            };
            self.agent_recognised(now, id, name, implied);
            self.world.agent_of(id)
        });
        if let Some(agent) = agent {
            self.report_withheld(agent);
        }
        self.world.set_owner(key, agent);
        self.world.change_server(key, |server| server.seeks_owner = false);
        self.server_changed(now, key);
        self.follow_spawner(key);
        self.world.forget_dead_agents();
    }
}
