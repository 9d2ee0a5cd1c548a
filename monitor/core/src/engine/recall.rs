//! Servers that earlier daemons of this boot followed: each is found again, or has ended meanwhile.

use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Engine, servers::Recognised};
use crate::{
    lineage::{AgentKey, ObservedUnit, Origin, Provenance},
    model::{
        BootTime, Class, Fact, Fate, Image, Knowledge, Notice, Placement, ProcessId, RememberedServer,
        RunView, ServerView, Snapshot, SnapshotProcess, Stdio, Tracked, TrackedOwner, TrackedProgram,
        TrackedStart,
    },
    recognise::PROTOCOL,
    world::{Agent, NewServer},
};

/// What began in so much time before a daemon ended may not have been seen by it.
const LAST_MOMENT: Duration = Duration::from_secs(2);

/// The servers of earlier daemons that are still to be found again.
#[derive(Debug, Default)]
pub(super) struct Recall {
    servers: FxHashMap<ProcessId, RememberedServer>,
    by_process: FxHashMap<ProcessId, ProcessId>,
    /// By the guard: the processes of the server that it guards, and the name of an agent that no rule knows.
    pub(super) guards: FxHashMap<ProcessId, (Vec<ProcessId>, Option<String>)>,
    /// What processes that matter were seen to run, and who was seen to create them.
    witnessed: FxHashMap<ProcessId, Image>,
    pub(super) creators: FxHashMap<ProcessId, ProcessId>,
    /// What shells left that have run another program since, and what began below `nohup`.
    pub(super) left: FxHashSet<ProcessId>,
    /// What was announced as an orphan, and not cleared since. Whether an earlier daemon was ending it, and no look has found it going
    /// on.
    pub(super) announced: FxHashMap<ProcessId, bool>,
    /// The processes that were alive when /proc was last read.
    alive: FxHashSet<ProcessId>,
    /// Process numbers that could not be read in /proc. These processes may be alive.
    unread: FxHashSet<u32>,
    /// Whether there was an earlier daemon in this boot.
    pub(super) restarted: bool,
    /// Until when that watched.
    watched_until: Option<BootTime>,
    /// Whether this one has read /proc to its end.
    has_looked: bool,
}

impl Recall {
    /// Whether an earlier daemon stored what this process runs, because it matters for a server.
    pub(super) fn has_seen(&self, process: ProcessId) -> bool {
        self.witnessed.contains_key(&process)
    }

    /// Whether a server that is nobody's child now can be known to have been so ever since somebody looked. What was
    /// started under the eyes of a daemon, and is not known as a server, was none for a reason, or its records are lost.
    pub(super) fn may_be_adopted(&self, process: ProcessId) -> bool {
        let known = self.get(process);
        let adopted = |start: &TrackedStart| start.adopted;
        let began_later = || self.watched_until.is_some_and(|until| process.born() >= until);
        known.map_or(!self.has_looked && (!self.restarted || began_later()), |known| {
            known.server.start.as_ref().is_some_and(adopted)
        })
    }

    /// Whether an earlier daemon saw this process start, and took it for no server, but at most for something that one started.
    pub(super) fn was_no_server(&self, process: ProcessId) -> bool {
        let shows_it = |program: &TrackedProgram| program.process == process && program.recognised;
        let is_part = |start: &TrackedStart| start.stdin.is_wire() && !start.programs.iter().any(shows_it);
        let known = self.get(process).map(|known| &known.server).filter(|server| server.id != process);
        self.watched_until.is_some_and(|until| process.born() + LAST_MOMENT < until)
            && known.map_or(!self.by_process.contains_key(&process), |known| {
                known.start.as_ref().is_some_and(is_part)
            })
    }

    /// Records which processes are alive, after /proc was read.
    pub(super) fn alive(&mut self, snapshot: &Snapshot) {
        if !self.servers.is_empty() {
            self.alive = snapshot.processes.iter().map(|process| process.id).collect();
            self.unread = snapshot.unread.iter().copied().collect();
        }
    }

    /// The name of the server whose head this process, with this standard input, was, if it was recognised by the protocol. Its
    /// first message was read long ago. What was not recognised then is something that the server started.
    pub(super) fn known_by_protocol(&self, process: ProcessId, stdin: Stdio) -> Option<String> {
        let Tracked { id, name, rule, start, .. } = &self.get(process)?.server;
        let was_recognised = |start: &TrackedStart| {
            let mut recognised = start.programs.iter().filter(|program| program.recognised);
            start.stdin == stdin && recognised.any(|program| program.process == process)
        };
        let is_head = *id == process || (!self.may_live(*id) && start.as_ref().is_some_and(was_recognised));
        (rule == PROTOCOL && is_head).then(|| name.clone())
    }

    /// The standard input at birth of a server whose head this process is: it may have moved it since.
    pub(super) fn stdin_at_birth(&self, process: ProcessId) -> Option<Stdio> {
        let known = self.get(process).filter(|known| known.server.id == process)?;
        known.server.start.as_ref().map(|start| start.stdin).filter(|stdin| stdin.is_wire())
    }

    /// Puts what an earlier daemon saw this process run in place of a title.
    pub(super) fn look_behind_title(&self, seen: &mut SnapshotProcess) {
        if let Some(witnessed) = self.witnessed.get(&seen.id).filter(|image| seen.is_title_of(image)) {
            seen.image.clone_from(witnessed);
        }
    }

    pub(super) fn may_live(&self, process: ProcessId) -> bool {
        self.alive.contains(&process) || self.unread.contains(&process.pid)
    }

    /// Whether an earlier daemon, which was ending this server, has stopped what `is_held` of it now.
    pub(super) fn has_stopped(&mut self, server: ProcessId, is_held: bool) -> bool {
        let ending = self.announced.get_mut(&server);
        ending.is_some_and(|ending| {
            *ending &= is_held;
            *ending
        })
    }

    /// Takes out what was known of the server that has this process.
    fn take(&mut self, process: ProcessId) -> Option<RememberedServer> {
        self.servers.remove(self.by_process.get(&process)?)
    }

    fn get(&self, process: ProcessId) -> Option<&RememberedServer> {
        self.servers.get(self.by_process.get(&process)?)
    }
}

impl Engine {
    pub(super) fn remember(&mut self, knowledge: Knowledge) {
        self.world.runs_mut().remember(knowledge.runs);
        self.recall.restarted = knowledge.restarted;
        self.recall.watched_until = knowledge.watched_until;
        self.first_start = knowledge.first_start;
        self.incomplete_before = knowledge.incomplete_before;
        for mut server in knowledge.servers {
            let id = server.server.id;
            for process in &server.server.processes {
                self.recall.by_process.insert(*process, id);
            }
            self.recall.by_process.insert(id, id);
            for guard in server.server.start.iter().flat_map(|start| &start.guarded_by) {
                let guarded = (server.server.processes.clone(), guard.implied.clone());
                self.recall.guards.insert(guard.process, guarded);
            }
            if let Some(orphan) = server.orphan.as_ref().filter(|orphan| orphan.announced) {
                self.recall.announced.insert(id, orphan.reaping);
            }
            self.recall.left.extend(server.server.start.iter().flat_map(|start| &start.left));
            for program in server.server.start.iter_mut().flat_map(|start| &mut start.programs) {
                self.recall.creators.extend(program.creator.map(|creator| (program.process, creator)));
                self.recall.witnessed.insert(program.process, std::mem::take(&mut program.image));
            }
            self.recall.servers.insert(id, server);
        }
    }

    /// Enters a server that was found in /proc and that an earlier daemon followed, with what that daemon knew: its
    /// owner, which is alive or has exited meanwhile, or that it has none. Returns false if the owner was still sought;
    /// then the wire has to show it.
    pub(super) fn server_recalled(&mut self, now: BootTime, recognised: &Recognised) -> bool {
        let new = &recognised.new;
        let mut chain = [new.main].into_iter().chain(new.wrappers.iter().copied());
        let known = chain.find_map(|process| Some((process, self.recall.get(process)?.server.clone())));
        let Some((head, Tracked { owner, run, start, rule, .. })) = known else { return false };
        if owner.is_none() && start.as_ref().is_none_or(|start| start.seeks_owner) {
            return false;
        }
        if let Some(owner) = owner.clone()
            && !self.owner_recalled(now, owner, recognised)
        {
            // It matters, whatever its owner turns out to run: what it created is entered below it meanwhile.
            [new.main].iter().chain(&new.wrappers).for_each(|process| self.confirm(now, *process));
            return true;
        }
        self.recall.take(head);
        // Its first message was seen by the daemon of that time.
        let rule = if rule == PROTOCOL { rule } else { new.rule.clone() };
        let only_named = self.is_only_named(new.main, &rule);
        let spoken = rule == PROTOCOL || start.as_ref().is_some_and(|start| start.spoken);
        let living = owner.as_ref().and_then(|owner| self.world.agent_of(owner.main));
        let dead = owner.filter(|owner| living.is_none() && !self.recall.may_live(owner.main));
        // If nobody saw it exit, it did while no daemon was running.
        let exited = start.as_ref().and_then(|start| start.owner_exited);
        let since = exited.map_or(now, |at| at.min(now));
        let dead = dead.map(|owner| {
            let TrackedOwner { main, name, uid, implied, placements } = owner;
            let account = run.and_then(|(key, generation)| self.world.runs().account_of(&key, generation));
            let mut new = Agent::new(main, Origin { process: main, execs: 0 }, name);
            (new.implied, new.uid) = (implied, uid);
            new.account = account.unwrap_or_else(|| RunView::unknown(&new.name, uid));
            let ran = self.recall.witnessed.get(&main).cloned();
            let key = self.dead_agent(since, new, false, ran);
            self.restore_placements(key, placements);
            key
        });
        let provenance = if living.is_some() { Provenance::FOUND } else { Provenance::Recovered };
        let owner = living.or(dead);
        // Without an owner the chain has no upper end: it would contain a person's own shell.
        let wrappers = if owner.is_some() { new.wrappers.clone() } else { Vec::new() };
        let new = NewServer { rule, only_named, spoken, owner, wrappers, provenance, ..new.clone() };
        let (main, chain) = (new.main, new.wrappers.clone());
        let Some(key) = self.world.start_server(new) else { return true };
        // What that daemon recognised above it is no mere launcher.
        let programs = start.iter().flat_map(|start| &start.programs);
        for program in programs.filter(|program| program.recognised && chain.contains(&program.process)) {
            self.world.join(key, program.process);
        }
        self.world.recognise(key, main);
        self.world.change_server(key, |server| {
            server.made_apart |= start.as_ref().is_none_or(|start| start.made_apart);
            // They are found later, and the next daemon may come before.
            server
                .guarded_by
                .extend(start.iter().flat_map(|start| &start.guarded_by).map(|guard| guard.process));
            server.left.extend(start.iter().flat_map(|start| &start.left));
            server.gateway |= start.as_ref().is_some_and(|start| start.gateway);
        });
        self.confirm_server(now, key);
        self.report_server_started(now, key);
        if dead.is_some() {
            self.left_behind(now, key, since, exited.is_none());
        }
        true
    }

    /// Makes the owner that an earlier daemon knew an agent again, if it is alive: no rule may know it. Returns false
    /// if it has to be asked what it runs; the server is recognised once more with the answer.
    fn owner_recalled(&mut self, now: BootTime, owner: TrackedOwner, recognised: &Recognised) -> bool {
        let TrackedOwner { main, name, implied, placements, .. } = owner;
        if self.world.agent_of(main).is_none() && self.recall.alive.contains(&main) {
            self.enter_host(now, main, |_| {});
            let Some(node) = self.world.node(main).filter(|node| !node.protected) else { return true };
            if node.unit == ObservedUnit::Unasked {
                self.ask_creator(main, recognised.clone());
                return false;
            }
            self.agent_recognised(now, main, name, implied);
        }
        if let Some(key) = self.world.agent_of(main) {
            self.restore_placements(key, placements);
        }
        true
    }

    /// It ran here, and the agents above it did, which may have ended.
    fn restore_placements(&mut self, key: AgentKey, placements: Vec<Placement>) {
        for one in placements {
            self.world.add_placement(key, one);
        }
        self.exempt_by_rules(key);
    }

    /// Reports the remaining servers as ended: every server that still exists has been found by now.
    pub(super) fn resolve_recalled(&mut self, now: BootTime) {
        let mut recall = std::mem::take(&mut self.recall);
        (self.recall.restarted, self.recall.has_looked) = (recall.restarted, true);
        self.recall.announced = std::mem::take(&mut recall.announced);
        let mut gone: Vec<RememberedServer> = recall.servers.drain().map(|(_, server)| server).collect();
        gone.sort_unstable_by_key(|s| s.server.id);
        for RememberedServer { server, orphan } in gone {
            if server.processes.iter().any(|process| recall.may_live(*process)) {
                continue;
            }
            let reaped = orphan.filter(|o| o.reaping);
            let end = reaped.as_ref().map_or(Fate::Unseen, |o| Fate::Reaped {
                signal: None,
                took_ms: None,
                freed_bytes: o.rss_bytes,
                freed_pss_bytes: o.pss_bytes,
            });
            self.persist(now, Fact::Ended { server: server.id, end });
            if let Some(orphan) = reaped {
                let run = server.run.as_ref().and_then(|(key, g)| self.world.runs().account_of(key, *g));
                let (id, name, rule) = (server.id.to_string(), server.name, server.rule);
                self.emit(
                    now,
                    Notice::OrphanReaped {
                        cpu_ms: None,
                        class: Class::Server,
                        recovered: true,
                        asked: orphan.asked_by.is_some(),
                        asked_by: orphan.asked_by,
                        // Its processes are not known any more.
                        server: ServerView { id, name, rule, run, ..ServerView::default() },
                        owner: None,
                        signal: None,
                        took_ms: None,
                        freed_bytes: orphan.rss_bytes,
                        freed_pss_bytes: orphan.pss_bytes,
                        let_go: Vec::new(),
                    },
                );
            }
        }
        for (key, generation) in self.world.runs().alive() {
            if !self.world.run_lives(&key, generation)
                && let Some(run) = self.world.runs_mut().end(&key, generation)
            {
                self.persist(now, Fact::Run { run });
            }
        }
        self.forget_runs(now);
    }
}
