//! Judging and ending: whom to signal, and when.
//!
//! A case goes suspect -> (grace) -> look at the host -> orphan -> TERM to the server proper -> look ->
//! TERM to the rest -> look -> KILL, leaves first. A guard found at any look stops it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{Engine, Purpose, ends::millis};
use crate::{
    lineage::ServerKey,
    model::{About, BootTime, Class, Fact, Guard, Mode, Notice, ProcessId, ServerFacts, Signal},
    verdict::{Case, Finding, Looks, Stage, State, agent_view, examine, server_view},
};

/// How long after a look that failed, or that was not answered, the next one is due.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// After so many looks that could not see everything the next ones are further apart.
const BLIND_LOOKS: u32 = 5;
/// The first delay of looks at a spared orphan; it doubles up to [`SPARED_MOST`].
const SPARED_FIRST: Duration = Duration::from_secs(30);
const SPARED_MOST: Duration = Duration::from_secs(600);
/// Between two rounds of SIGKILL: what was forked meanwhile is in the next one.
const SWEEP: Duration = Duration::from_millis(50);
/// Rounds after which what is left counts as unkillable.
const SWEEPS: u32 = 100;

impl Engine {
    /// A server's timer has run out.
    pub(super) fn due(&mut self, now: BootTime, key: ServerKey) {
        let Some(server) = self.servers.get(key) else { return };
        match server.case().map(|c| c.stage) {
            Some(Stage::Failed) => {}
            Some(Stage::Kill) => self.sweep(now, key),
            _ if self.doubtful => self.servers.set_timer(key, Some(now + SWEEP)),
            _ => self.look(now, key),
        }
    }

    /// Asks what the host says about a server.
    pub(super) fn look(&mut self, now: BootTime, key: ServerKey) {
        let Some(server) = self.servers.get(key) else { return };
        let processes: Vec<ProcessId> = server.processes.iter().chain(&server.wrappers).copied().collect();
        let about = About::Server { processes, wire: server.wire };
        self.servers.set_timer(key, Some(now + LOOK_AGAIN));
        self.ask(about, Purpose::Look { server: key });
    }

    /// The host answered.
    pub(super) fn looked(&mut self, now: BootTime, key: ServerKey, facts: &ServerFacts) {
        let Some(server) = self.servers.get(key) else { return };
        let blind = facts.blind.is_some() && server.strongest_signal().is_none();
        if self.doubtful || blind {
            let delay = if server.blind_looks < BLIND_LOOKS { LOOK_AGAIN } else { SPARED_FIRST };
            self.servers.set_timer(key, Some(now + delay));
            if let Some(server) = self.servers.get_mut(key) {
                server.blind_looks += u32::from(blind);
            }
            return;
        }
        if server.asked && self.asked_and_refused(now, key, facts) {
            return;
        }
        let Some(server) = self.servers.get(key) else { return };
        let is_suspect = match &server.state {
            State::Live => {
                if server.found {
                    self.found_looked(now, key, facts);
                }
                return;
            }
            State::Suspect { .. } => true,
            State::Orphan(_) => false,
        };
        let Some(finding) = self.examine(key, facts) else { return };
        if let Some(host) = finding.host {
            self.owner_found(now, key, &host);
            return;
        }
        self.take_left_behind(key, &finding.left_behind);
        self.weigh(key, facts);
        if is_suspect {
            self.declare(now, key, facts, finding);
        } else {
            self.go_on(now, key, finding.guards);
        }
    }

    /// What the facts mean for a server.
    pub(super) fn examine(&self, key: ServerKey, facts: &ServerFacts) -> Option<Finding> {
        let server = self.servers.get(key)?;
        Some(examine(&Looks {
            graph: &self.graph,
            rules: &self.settings.rules,
            agents: &self.agents,
            server,
            facts,
            other_uids: self.settings.other_uids,
            observe: self.settings.mode == Mode::Observe,
        }))
    }

    /// What an orphan that stays holds now.
    fn weigh(&mut self, key: ServerKey, facts: &ServerFacts) {
        if let Some(server) = self.servers.get_mut(key).filter(|s| s.case().is_some()) {
            server.rss_bytes = Some(facts.processes.iter().map(|p| p.rss_bytes).sum());
            self.alarms.stir();
        }
    }

    /// Forked copies of the dead owner that hold the wire open belong to what is left.
    fn take_left_behind(&mut self, key: ServerKey, copies: &[ProcessId]) {
        for copy in copies {
            let Some(node) = self.graph.get_mut(*copy).filter(|n| n.server.is_none()) else { continue };
            node.server = Some(key);
            if let Some(server) = self.servers.get_mut(key) {
                server.processes.insert(*copy);
            }
        }
    }

    /// A suspect is an orphan.
    fn declare(&mut self, now: BootTime, key: ServerKey, facts: &ServerFacts, finding: Finding) {
        let Some(server) = self.servers.get_mut(key) else { return };
        let State::Suspect { since, deadline } = server.state else { return };
        let rss_bytes = facts.processes.iter().map(|p| p.rss_bytes).sum();
        let known_pss: Vec<u64> = facts.processes.iter().filter_map(|p| p.pss_bytes).collect();
        let pss_bytes = (!known_pss.is_empty()).then(|| known_pss.iter().sum());
        server.rss_bytes = Some(rss_bytes);
        let view = server_view(server, &self.graph);
        server.last_view = Some(view.clone());
        let Finding { evidence, guards, .. } = finding;
        server.state = State::Orphan(Box::new(Case {
            since,
            evidence: evidence.clone(),
            guards: guards.clone(),
            stage: Stage::Spared,
            looks: 0,
            rss_bytes,
            pss_bytes,
            first_signal: None,
            signalled: BTreeMap::new(),
            refused: BTreeSet::new(),
        }));
        let (id, recovered, asked) = (server.id, server.recovered, server.asked);
        let owner = server.owner.and_then(|a| self.agents.get(a)).map(agent_view);
        let latency_ms = now.since(deadline).as_secs_f64() * 1e3;
        self.remember_server(now, key);
        if asked && owner.as_ref().is_none_or(|o| o.alive) {
            // Ended because a person wants it, not because it is an orphan.
            self.begin(now, key);
            return;
        }
        let fact = Fact::Orphan {
            server: id,
            evidence: evidence.clone(),
            guards: guards.clone(),
            rss_bytes,
            pss_bytes,
        };
        self.persist(now, fact);
        let notice = Notice::OrphanDetected {
            class: Class::Server,
            recovered,
            server: view,
            owner,
            evidence,
            guards: guards.clone(),
            rss_bytes,
            pss_bytes,
            after_ms: millis(now, since),
            latency_ms,
        };
        self.emit(now, notice);
        if guards.is_empty() {
            self.begin(now, key);
        } else {
            self.spare(now, key, guards, true);
        }
    }

    /// Another look at an orphan.
    fn go_on(&mut self, now: BootTime, key: ServerKey, guards: Vec<Guard>) {
        let Some(case) = self.servers.get(key).and_then(|s| s.case()) else { return };
        if !guards.is_empty() {
            let changed = case.guards != guards;
            self.spare(now, key, guards, changed);
            return;
        }
        match case.stage {
            Stage::Spared => self.begin(now, key),
            Stage::Leaf => self.terminate_rest(now, key),
            Stage::Rest => self.begin_kill(now, key),
            Stage::Kill | Stage::Failed => {}
        }
    }

    fn spare(&mut self, now: BootTime, key: ServerKey, guards: Vec<Guard>, tell: bool) {
        let Some(server) = self.servers.get_mut(key) else { return };
        let view = server_view(server, &self.graph);
        let owner = server.owner.and_then(|a| self.agents.get(a)).map(agent_view);
        let Some(case) = server.case_mut() else { return };
        case.guards.clone_from(&guards);
        case.stage = Stage::Spared;
        case.looks = if tell { 0 } else { case.looks.saturating_add(1) };
        let delay = SPARED_FIRST.saturating_mul(1 << case.looks.min(10)).min(SPARED_MOST);
        self.servers.set_timer(key, Some(now + delay));
        if tell {
            self.emit(now, Notice::OrphanSpared { class: Class::Server, server: view, owner, guards });
        }
    }

    /// A guard may have gone with the process that ended: spared orphans are looked at again at once. Observation goes with nobody.
    pub(super) fn look_again_at_spared(&mut self, now: BootTime) {
        for key in self.servers.keys() {
            let spared = |c: &Case| c.stage == Stage::Spared && c.guards.iter().any(|g| *g != Guard::Observe);
            if self.servers.get(key).and_then(|s| s.case()).is_some_and(spared) {
                self.servers.set_timer(key, Some(now));
            }
        }
    }

    /// The server proper first: it closes its browser and unlinks its pid file.
    pub(super) fn begin(&mut self, now: BootTime, key: ServerKey) {
        let leaf = self.leaf(key);
        let moment = self.moment();
        let Some(case) = self.servers.get_mut(key).and_then(|s| s.case_mut()) else { return };
        case.guards.clear();
        if self.living(key).is_empty() {
            self.tell_untouchable(now, key);
            return;
        }
        let Some(case) = self.servers.get_mut(key).and_then(|s| s.case_mut()) else { return };
        case.stage = Stage::Leaf;
        case.first_signal.get_or_insert(now);
        if let Some(server) = self.servers.get(key).map(|s| s.id) {
            self.persist(now, Fact::Reaping { server });
        }
        self.servers.set_timer(key, Some(now + moment));
        match leaf {
            Some(leaf) => self.send(key, leaf, Signal::Term),
            None => self.terminate_rest(now, key),
        }
    }

    /// What the server proper has for itself, before the rest is asked to end, too.
    fn moment(&self) -> Duration {
        Duration::from_secs(1).min(self.settings.term_timeout / 5)
    }

    fn terminate_rest(&mut self, now: BootTime, key: ServerKey) {
        for process in self.living(key) {
            if !self.was_sent(key, process, Signal::Term) {
                self.send(key, process, Signal::Term);
            }
        }
        let Some(case) = self.servers.get_mut(key).and_then(|s| s.case_mut()) else { return };
        case.stage = Stage::Rest;
        // Not from the first signal of all: a guard may have stopped an earlier try long ago.
        let patience = self.settings.term_timeout.saturating_sub(self.moment());
        self.servers.set_timer(key, Some(now + patience));
    }

    fn begin_kill(&mut self, now: BootTime, key: ServerKey) {
        if let Some(case) = self.servers.get_mut(key).and_then(|s| s.case_mut()) {
            case.stage = Stage::Kill;
            case.looks = 0;
        }
        self.sweep(now, key);
    }

    /// One round of SIGKILL to what lives, leaves first.
    fn sweep(&mut self, now: BootTime, key: ServerKey) {
        for process in self.living(key) {
            if !self.was_sent(key, process, Signal::Kill) {
                self.send(key, process, Signal::Kill);
            }
        }
        let Some(case) = self.servers.get_mut(key).and_then(|s| s.case_mut()) else { return };
        case.looks += 1;
        if case.looks < SWEEPS {
            self.servers.set_timer(key, Some(now + SWEEP));
            return;
        }
        case.stage = Stage::Failed;
        let refused = case.refused.clone();
        let left = self.living(key);
        if left.is_empty() {
            self.tell_untouchable(now, key);
        }
        for process in left.into_iter().filter(|p| !refused.contains(p)) {
            let after = SWEEP * SWEEPS;
            let error = format!("still there {} s after SIGKILL (blocked in the kernel?)", after.as_secs());
            self.fail(now, key, process, error, None);
        }
    }

    /// No guard holds, and yet nothing that is left may be signalled.
    fn tell_untouchable(&mut self, now: BootTime, key: ServerKey) {
        let Some(proper) = self.servers.get(key).map(|s| s.proper) else { return };
        let error = "not signalled: orphand itself was started below it".to_owned();
        self.fail(now, key, proper, error, None);
    }

    /// A server that is being killed forked.
    pub(super) fn pursue(&mut self, _at: BootTime, child: ProcessId) {
        let Some(key) = self.graph.get(child).and_then(|n| n.server) else { return };
        if self.servers.get(key).and_then(|s| s.case()).is_some_and(|c| c.stage == Stage::Kill) {
            self.send(key, child, Signal::Kill);
        }
    }

    pub(super) fn fail(
        &mut self,
        now: BootTime,
        key: ServerKey,
        process: ProcessId,
        error: String,
        errno: Option<i32>,
    ) {
        let Some(server) = self.servers.get_mut(key) else { return };
        let view = server_view(server, &self.graph);
        let id = server.id;
        let Some(case) = server.case_mut() else { return };
        case.refused.insert(process);
        let refused = case.refused.clone();
        if self.living(key).iter().all(|p| refused.contains(p)) {
            if let Some(case) = self.servers.get_mut(key).and_then(|s| s.case_mut()) {
                case.stage = Stage::Failed;
            }
            self.servers.set_timer(key, None);
        }
        let fact = Fact::ReapFailed { server: id, pid: process.pid, error: error.clone() };
        self.persist(now, fact);
        self.emit(now, Notice::ReapFailed { server: view, pid: process.pid, error, errno });
    }

    /// A living host was found for a suspect, a spared orphan or a server that was there before us.
    fn owner_found(&mut self, now: BootTime, key: ServerKey, host: &crate::model::Holder) {
        let since = match self.servers.get(key).map(|s| &s.state) {
            Some(State::Suspect { since, .. }) => *since,
            Some(State::Orphan(case)) => case.since,
            _ => now,
        };
        self.adopt_host(now, key, host);
        let Some(server) = self.servers.get_mut(key) else { return };
        server.state = State::Live;
        let id = server.id;
        let owner = server.owner.and_then(|a| self.agents.get(a)).map(agent_view);
        let view = server_view(server, &self.graph);
        self.servers.set_timer(key, None);
        self.persist(now, Fact::Cleared { server: id });
        let notice = Notice::OrphanCleared {
            server: view,
            after_ms: millis(now, since),
            reason: "owner_found".to_owned(),
            owner,
        };
        self.emit(now, notice);
    }
}
