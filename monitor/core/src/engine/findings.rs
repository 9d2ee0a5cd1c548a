//! What an inspection of the host means for a server: it computes the finding that the server's case continues with.

use std::{collections::BTreeSet, time::Duration};

use super::{Engine, cases::CaseOf};
use crate::{
    case::{Event, INSPECT_AGAIN},
    lineage::ServerKey,
    model::{BootTime, Doubt, Mode, ProcessId, ServerFacts},
    verdict::{Inspection, Members, Rows, examine},
    world::{Look, Server},
};

/// After this number of inspections in a row that could not see everything, the next ones are further apart.
const BLIND_INSPECTIONS: u32 = 5;
/// The time between inspections of a server that cannot be fully seen.
const WHILE_BLIND: Duration = Duration::from_secs(30);

impl Engine {
    /// An inspection of a server was answered.
    pub(super) fn inspected(&mut self, now: BootTime, key: ServerKey, facts: &ServerFacts) {
        let Some(server) = self.world.server(key) else { return };
        let all: Vec<_> = server.processes().iter().chain(server.wrappers()).copied().collect();
        let blind = facts.scene.blind(&all).is_some();
        if self.is_doubtful(key) || (blind && !says_blind(server, now)) {
            let again = self.next_after_failure(key, blind);
            self.server_event(now, key, Event::Inconclusive { again });
            return;
        }
        let asked = server.phase.asked();
        self.work_answered(now, key, Look::Later, &facts.work);
        if self.keep_duplicate(now, key) {
            return;
        }
        self.update_users(facts);
        self.container_found(key, facts);
        let rows = Rows::new(&facts.scene);
        let Some(mut finding) = self.with_inspection(key, facts, &rows, examine) else { return };
        if let Some(server) = self.world.server_mut(key) {
            server.reached_by = std::mem::take(&mut finding.path);
        }
        if blind {
            finding.case.doubts.push(Doubt::WireUnknown);
            finding.case.doubts.sort_unstable();
            finding.case.doubts.dedup();
            (finding.host, finding.case.has_owner, finding.case.too_early) = (None, false, false);
            self.next_after_failure(key, true);
        } else if !asked || finding.case.guards.is_empty() {
            if let Some(server) = self.world.server_mut(key) {
                server.blind_inspections = 0;
            }
            if self.let_go_of(now, key, &finding.members) {
                return;
            }
            if self.world.server(key).is_some_and(|server| server.phase.is_clear() && server.seeks_owner) {
                self.seek_owner(now, key, facts, &rows);
                return;
            }
        }
        if let Some(again) = self.judge_session(now, key).or_else(|| self.must_rest(now, key, &finding)) {
            self.server_event(now, key, Event::Inconclusive { again });
            return;
        }
        self.wait_for_tools(now, key, &mut finding);
        if let Some(server) = self.world.server_mut(key) {
            let own: Vec<_> = rows.full(server).collect();
            server.cpu_ms = Some(own.iter().map(|row| row.cpu_ms).sum());
            // The client is small; what counts is in the container that ends with it.
            let container = finding.case.container.as_ref().and(facts.container.as_ref());
            let inside = container.map(|found| found.bytes()).unwrap_or_default();
            // A sum over only some of them would be wrong.
            let pss_bytes: Option<u64> = own.iter().map(|row| row.pss_bytes).sum();
            finding.case.rss_bytes = own.iter().map(|row| row.rss_bytes).sum::<u64>() + inside;
            finding.case.pss_bytes = pss_bytes.filter(|_| !own.is_empty()).map(|bytes| bytes + inside);
        }
        let event = Event::Inspected(Box::new(finding.case.clone()));
        self.advance(now, CaseOf::Server(key), event, Some(&finding));
        self.look_at_tools_again(now, key);
    }

    /// The time until the next inspection, after one that could not see everything or that means nothing because
    /// records are missing.
    fn next_after_failure(&mut self, key: ServerKey, blind: bool) -> Duration {
        let Some(server) = self.world.server_mut(key) else { return INSPECT_AGAIN };
        let delay = if server.blind_inspections < BLIND_INSPECTIONS { INSPECT_AGAIN } else { WHILE_BLIND };
        server.blind_inspections += u32::from(blind);
        delay
    }

    /// What `judge` makes of a server and what the host reports about it.
    pub(super) fn with_inspection<T>(
        &self,
        key: ServerKey,
        facts: &ServerFacts,
        rows: &Rows<'_>,
        judge: impl FnOnce(&Inspection<'_>) -> T,
    ) -> Option<T> {
        let server = self.world.server(key)?;
        let siblings = self.siblings(key, server);
        Some(judge(&Inspection {
            world: &self.world,
            rules: &self.settings.rules,
            server,
            siblings: &siblings,
            facts,
            rows,
            other_uids: self.settings.other_uids,
            observe: self.settings.mode == Mode::Observe,
            found: self.is_from_before(server),
            rest: self.settings.abandoned_grace,
        }))
    }

    /// Removes processes from a server that it has let go.
    pub(super) fn let_go(&mut self, now: BootTime, key: ServerKey, let_go: &BTreeSet<ProcessId>) {
        self.world.release(key, let_go);
        if !let_go.is_empty() {
            let owner = self.world.server(key).and_then(Server::owner);
            self.await_leftovers(now, owner);
        }
    }

    /// Removes what a server had merely started, once the main process has exited by itself: it is no longer part of
    /// the server. Returns whether nothing is left of the server.
    fn let_go_of(&mut self, now: BootTime, key: ServerKey, members: &Members) -> bool {
        // The process that seemed to be the main process may have left its session without a record.
        let ended = |server: &mut Server| {
            server.main_ended |= members.core.is_empty() && server.phase.strongest_signal().is_none();
            server.main_ended
        };
        if self.world.server_mut(key).is_some_and(ended) {
            self.let_go(now, key, &members.let_go);
            self.end_if_done(now, key);
        }
        self.world.server(key).is_none()
    }
}

/// Whether so many inspections have failed that this is reported: what cannot be seen is a doubt.
fn says_blind(server: &Server, now: BootTime) -> bool {
    let is_due = !server.phase.is_clear() && server.phase.grace().is_none_or(|deadline| deadline <= now);
    is_due && !server.phase.asked() && server.blind_inspections >= BLIND_INSPECTIONS
}
