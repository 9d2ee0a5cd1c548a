//! Judging: a look at the host, and what follows from it for a server whose owner is gone.
//!
//! Suspect -> (grace) -> look -> orphan, unproven, or cleared. An unproven one is looked at again and becomes an orphan when its
//! last doubt has gone; a doubt or a guard at any later look stops what was begun.

use std::time::Duration;

use super::{Engine, ends::millis};
use crate::{
    lineage::{Provenance, ServerKey},
    model::{BootTime, Class, Doubt, Fact, Guard, Mode, Notice, ServerFacts},
    verdict::{Finding, Look, Members, examine},
    world::{Case, Server, Stage, State, agent_view},
};

/// How long after a look that failed, or that was not answered, the next one is due.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// After so many looks that could not see everything the next ones are further apart.
const BLIND_LOOKS: u32 = 5;
/// The first delay of looks at a spared orphan; it doubles up to [`STAYS_MOST`].
const SPARED_FIRST: Duration = Duration::from_secs(30);
/// The same for what is unproven: a doubt may go at any moment.
const UNPROVEN_FIRST: Duration = Duration::from_secs(5);
const STAYS_MOST: Duration = Duration::from_secs(600);
/// Until the files of an owner that has just ended are closed.
const CLOSING: Duration = Duration::from_millis(100);

impl Engine {
    /// The wires of all servers whose owner is gone: one pass over the descriptors of the host serves them all.
    pub fn judged_wires(&self) -> Vec<crate::model::Stdio> {
        let judged = |server: &&Server| !matches!(server.state, State::Live) || server.seeks_owner;
        let keys = self.world.servers().keys();
        let servers = keys.iter().filter_map(|key| self.world.server(*key)).filter(judged);
        servers.flat_map(|server| [server.stdin, server.stdout]).filter(|wire| wire.is_wire()).collect()
    }

    /// The host answered.
    pub(super) fn looked(&mut self, now: BootTime, key: ServerKey, facts: &ServerFacts) {
        let Some(server) = self.world.server(key) else { return };
        let blind = facts.blind.is_some();
        if self.is_doubtful(key) || (blind && !self.tell_blind(now, key)) {
            self.look_later(now, key, blind);
            return;
        }
        let asked = server.asked;
        self.take_users(facts);
        if asked && self.asked_and_refused(now, key, facts) {
            return;
        }
        let Some(mut finding) = self.examine(key, facts) else { return };
        if blind {
            finding.doubts.push(Doubt::WireUnknown);
            finding.doubts.sort_unstable();
            finding.doubts.dedup();
            self.look_later(now, key, true);
            self.unproven(now, key, facts, finding);
            return;
        }
        if let Some(server) = self.world.server_mut(key) {
            server.blind_looks = 0;
        }
        if self.let_go_of(now, key, &finding.members) {
            return;
        }
        let Some(server) = self.world.server(key) else { return };
        let is_suspect = match server.state {
            State::Live if server.seeks_owner => return self.seek_owner(now, key, facts),
            State::Live => return,
            // The server proper ended early: the look was about what it left.
            State::Suspect { deadline, .. } if now < deadline && !server.asked => {
                self.world.set_timer(key, Some(deadline));
                return;
            }
            State::Suspect { .. } => true,
            State::Unproven(_) | State::Orphan(_) => false,
        };
        let asked = server.asked;
        if finding.too_early && !asked {
            self.world.set_timer(key, Some(now + self.closing(now, key)));
            return;
        }
        if let Some(host) = finding.host.as_ref().filter(|_| !asked) {
            self.owner_found(now, key, host);
            return;
        }
        self.weigh(key, facts);
        if !finding.doubts.is_empty() && !asked {
            self.unproven(now, key, facts, finding);
        } else if is_suspect || self.world.server(key).is_some_and(Server::is_unproven) {
            self.declare(now, key, facts, finding);
        } else {
            self.go_on(now, key, finding);
        }
    }

    /// How long to wait for the owner to close its files: a moment, unless it hangs in that.
    fn closing(&self, now: BootTime, key: ServerKey) -> Duration {
        let since = self.world.server(key).and_then(Server::suspected_since).unwrap_or(now);
        if now.since(since) < self.settings.grace + LOOK_AGAIN { CLOSING } else { LOOK_AGAIN }
    }

    /// Whether looks have failed so often that it is told: what cannot be seen is a doubt.
    fn tell_blind(&self, now: BootTime, key: ServerKey) -> bool {
        self.world.server(key).is_some_and(|server| {
            let due = match server.state {
                State::Live => false,
                State::Suspect { deadline, .. } => deadline <= now,
                State::Unproven(_) | State::Orphan(_) => true,
            };
            due && !server.asked && server.blind_looks >= BLIND_LOOKS
        })
    }

    /// A look that could not see everything says nothing.
    fn look_later(&mut self, now: BootTime, key: ServerKey, blind: bool) {
        let Some(server) = self.world.server_mut(key) else { return };
        let delay = if server.blind_looks < BLIND_LOOKS { LOOK_AGAIN } else { SPARED_FIRST };
        server.blind_looks += u32::from(blind);
        self.world.set_timer(key, Some(now + delay));
    }

    /// What the facts mean for a server.
    pub(super) fn examine(&self, key: ServerKey, facts: &ServerFacts) -> Option<Finding> {
        Some(examine(&self.all_of(key, facts)?))
    }

    fn all_of<'a>(&'a self, key: ServerKey, facts: &'a ServerFacts) -> Option<Look<'a>> {
        Some(Look {
            graph: self.world.graph(),
            rules: &self.settings.rules,
            agents: self.world.agents(),
            makers: self,
            server: self.world.server(key)?,
            facts,
            other_uids: self.settings.other_uids,
            observe: self.settings.mode == Mode::Observe,
        })
    }

    /// What a server whose proper ended by itself had only started is not part of it. Whether that was all that was left.
    fn let_go_of(&mut self, now: BootTime, key: ServerKey, members: &Members) -> bool {
        // What seemed to be the server proper may have left its session unseen.
        let ended = |server: &mut Server| {
            server.proper_ended |= members.core.is_empty() && server.strongest_signal().is_none();
            server.proper_ended
        };
        if self.world.server_mut(key).is_some_and(ended) {
            self.world.release(key, &members.let_go);
            self.end_if_done(now, key);
        }
        self.world.server(key).is_none()
    }

    /// What a judged server that stays holds now.
    fn weigh(&mut self, key: ServerKey, facts: &ServerFacts) {
        if let Some(server) = self.world.server_mut(key).filter(|s| s.judged().is_some()) {
            server.rss_bytes = Some(facts.processes.iter().map(|p| p.rss_bytes).sum());
            self.alarms.stir();
        }
    }

    /// The owner is gone, and somebody may use the server all the same.
    fn unproven(&mut self, now: BootTime, key: ServerKey, facts: &ServerFacts, finding: Finding) {
        let Finding { evidence, doubts, guards, .. } = finding;
        let Some(server) = self.world.server_mut(key) else { return };
        let Some(since) = server.suspected_since() else { return };
        let rss_bytes = facts.processes.iter().map(|p| p.rss_bytes).sum();
        let before = std::mem::replace(&mut server.state, State::Live);
        let (mut case, was_unproven) = match before {
            State::Unproven(case) => (case, true),
            State::Orphan(case) => (case, false),
            State::Live | State::Suspect { .. } => (Box::new(Case::since(since)), false),
        };
        let news = !was_unproven || case.doubts != doubts;
        (case.evidence, case.doubts, case.rss_bytes) = (evidence.clone(), doubts.clone(), rss_bytes);
        // Known to a person who asks what may be ended.
        case.guards = guards;
        case.stage = Stage::Spared;
        case.looks = if news { 0 } else { case.looks.saturating_add(1) };
        let delay = UNPROVEN_FIRST.saturating_mul(1 << case.looks.min(10)).min(STAYS_MOST);
        server.state = State::Unproven(case);
        server.rss_bytes = Some(rss_bytes);
        let id = server.id;
        let Some(view) = self.world.show(key) else { return };
        let owner = self.world.owner(key).map(agent_view);
        self.world.set_timer(key, Some(now + delay));
        if !news {
            return;
        }
        self.remember_server(now, key);
        let fact =
            Fact::Unproven { server: id, evidence: evidence.clone(), doubts: doubts.clone(), rss_bytes };
        self.persist(now, fact);
        let after_ms = millis(now, since);
        self.emit(now, Notice::OrphanUnproven { server: view, owner, evidence, doubts, rss_bytes, after_ms });
    }

    /// A suspect, or one that was unproven, is an orphan.
    fn declare(&mut self, now: BootTime, key: ServerKey, facts: &ServerFacts, finding: Finding) {
        let Some(server) = self.world.server_mut(key) else { return };
        let Some(since) = server.suspected_since() else { return };
        let due = match server.state {
            State::Suspect { deadline, .. } => deadline,
            // From here on it was known: the last doubt has just gone.
            _ => now,
        };
        let rss_bytes = facts.processes.iter().map(|p| p.rss_bytes).sum();
        let known_pss: Vec<u64> = facts.processes.iter().filter_map(|p| p.pss_bytes).collect();
        let pss_bytes = (!known_pss.is_empty()).then(|| known_pss.iter().sum());
        server.rss_bytes = Some(rss_bytes);
        let Some(view) = self.world.show(key) else { return };
        let Some(server) = self.world.server_mut(key) else { return };
        let Finding { evidence, doubts, guards, members, .. } = finding;
        let before = std::mem::replace(&mut server.state, State::Live);
        let mut case = match before {
            State::Unproven(case) | State::Orphan(case) => case,
            State::Live | State::Suspect { .. } => Box::new(Case::since(since)),
        };
        (case.evidence, case.guards) = (evidence.clone(), guards.clone());
        (case.rss_bytes, case.pss_bytes) = (rss_bytes, pss_bytes);
        case.doubts.clear();
        case.looks = 0;
        server.state = State::Orphan(case);
        let (id, recovered, asked) = (server.id, server.provenance == Provenance::Recovered, server.asked);
        let owner = self.world.owner(key).map(agent_view);
        self.remember_server(now, key);
        if asked && (!doubts.is_empty() || owner.as_ref().is_none_or(|o| o.alive)) {
            // Ended because a person wants it, not because it is an orphan.
            self.begin(now, key, &members);
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
            latency_ms: now.since(due).as_secs_f64() * 1e3,
        };
        self.emit(now, notice);
        if guards.is_empty() {
            self.begin(now, key, &members);
        } else {
            self.spare(now, key, guards, true);
        }
    }

    /// Another look at an orphan.
    fn go_on(&mut self, now: BootTime, key: ServerKey, finding: Finding) {
        let Some(case) = self.world.server(key).and_then(|s| s.case()) else { return };
        let Finding { guards, members, .. } = finding;
        if !guards.is_empty() {
            let changed = case.guards != guards;
            self.spare(now, key, guards, changed);
            return;
        }
        match case.stage {
            Stage::Spared => self.begin(now, key, &members),
            Stage::Leaf => {
                self.world.release(key, &members.let_go);
                self.terminate_rest(now, key);
            }
            Stage::Rest => {
                self.world.release(key, &members.let_go);
                self.begin_kill(now, key);
            }
            Stage::Kill => {}
            Stage::Failed => self.world.set_timer(key, None),
        }
        self.end_if_done(now, key);
    }

    fn spare(&mut self, now: BootTime, key: ServerKey, guards: Vec<Guard>, tell: bool) {
        let Some(view) = self.world.view(key) else { return };
        let owner = self.world.owner(key).map(agent_view);
        let Some(case) = self.world.server_mut(key).and_then(Server::case_mut) else { return };
        case.guards.clone_from(&guards);
        case.stage = Stage::Spared;
        case.looks = if tell { 0 } else { case.looks.saturating_add(1) };
        let delay = SPARED_FIRST.saturating_mul(1 << case.looks.min(10)).min(STAYS_MOST);
        self.world.set_timer(key, Some(now + delay));
        if tell {
            self.emit(now, Notice::OrphanSpared { class: Class::Server, server: view, owner, guards });
        }
    }

    /// The server proper first: what is not part of the server stays.
    fn begin(&mut self, now: BootTime, key: ServerKey, members: &Members) {
        self.world.release(key, &members.let_go);
        if let Some(case) = self.world.server_mut(key).and_then(|s| s.case_mut()) {
            case.sessions.clone_from(&members.sessions);
            case.tied.clone_from(&members.tied);
        }
        self.begin_to_end(now, key);
    }
}
