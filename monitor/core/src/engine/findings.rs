//! What an inspection of the host means for a server: it computes the finding that the server's case continues with.
//!
//! Tools of orphans: a command that a server was asked to run, and that goes on with its work when nobody is left to
//! hear of it, a migration for instance. The end of the server waits for it, for a bounded time.
//!
//! A tool is a process that is tied to the server and no part of its launch chain. A browser is none: it never comes to
//! an end by itself, and does a little all the time.

use std::{collections::BTreeSet, iter, time::Duration};

use super::{Engine, cases::CaseOf};
use crate::{
    case::{Event, INSPECT_AGAIN},
    lineage::{Node, ServerKey},
    model::{
        BootTime, Doubt, ProcessId, ServerFacts, Work,
        scene::{ProcessRow, Wait},
    },
    reach::{Rows, waits_for_a_command},
    recognise::is_browser,
    verdict::{Finding, Inspection, Members, at_work, examine},
    world::{Accounts, Look, Server, accounts},
};

/// After this number of inspections in a row that could not see everything, the next ones are further apart.
const BLIND_INSPECTIONS: u32 = 5;
/// The time between inspections of a server that cannot be fully seen.
const WHILE_BLIND: Duration = Duration::from_secs(30);

impl Engine {
    pub(super) fn inspected(&mut self, now: BootTime, key: ServerKey, facts: &ServerFacts) {
        let Some(server) = self.world.server(key) else { return };
        let blind = facts.scene.blind(|process| server.contains(process)).is_some();
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
        let before = self.reached(key, std::mem::take(&mut finding.path));
        if blind {
            finding.case.doubts.push(Doubt::WireUnknown);
            finding.case.doubts.sort_unstable();
            finding.case.doubts.dedup();
            (finding.host, finding.case.has_owner, finding.case.too_early) = (None, false, false);
            self.next_after_failure(key, true);
        } else if !asked || finding.case.guards.is_empty() {
            self.world.change_server(key, |server| server.blind_inspections = 0);
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
        self.wait_for_tools(now, key, &mut finding, &rows, facts.stopping);
        if let Some(server) = self.world.server_mut(key) {
            server.apart.clone_from(&finding.members.let_go);
            let own: Vec<_> = rows.full(server).filter(|row| !server.apart.contains(&row.process)).collect();
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
        // Who kept it until now may be a leftover.
        let server = self.world.server(key).filter(|server| server.reached_by != before);
        let owner = server.and_then(Server::owner).filter(|_| !before.is_empty());
        self.await_leftovers(now, owner);
        // The tools are looked at again before long, and at the end of their time.
        if let Some(deadline) = self.tools_deadline(key) {
            let rests = self.tools.get(&key).is_some_and(|tools| tools.rests.is_some());
            let next = now + if rests { LEAST } else { self.policy.grace.max(LEAST) };
            self.set_deadline(CaseOf::Server(key), Some(next.min(deadline)));
        }
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
            rules: &self.rules,
            server,
            siblings: &siblings,
            facts,
            rows,
            policy: &self.policy,
            found: self.is_from_before(server),
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
            server.main_ended |= members.core.is_empty() && !server.phase.is_signalled();
            server.main_ended
        };
        if self.world.server_mut(key).is_some_and(ended) {
            self.let_go(now, key, &members.let_go);
            self.end_if_done(now, key);
        }
        self.world.server(key).is_none()
    }

    /// Adds a doubt if nothing speaks against the end of a server but the work of its tools, or that its unit is `stopping`:
    /// its manager is ending it. They still have time.
    fn wait_for_tools(
        &mut self,
        now: BootTime,
        key: ServerKey,
        finding: &mut Finding,
        rows: &Rows<'_>,
        stopping: bool,
    ) {
        let Some(server) = self.world.server(key) else { return };
        let is_in_grace = server.phase.grace().is_some_and(|deadline| now < deadline);
        if server.phase.is_terminating() || server.phase.asked_anyway() || is_in_grace {
            return;
        }
        let named = self.named_tools(server);
        let seen = self.tools.entry(key).or_default();
        if !(finding.case.doubts.is_empty() && finding.case.guards.is_empty()) {
            seen.awaited = None;
            return;
        }
        let is_of_a_browser = |process: ProcessId| {
            let core = &finding.members.core;
            let is_above = |node: &&Node| node.server == Some(key) && !core.contains(&node.id);
            let above = self.world.graph().near_ancestors(process).take_while(is_above);
            let mut line = self.world.node(process).into_iter().chain(above);
            line.any(|node| node.name().is_some_and(|name| is_browser(&name)))
        };
        // What was let go works on, as a part of the server or not; who waits for it goes on when that is done (`nohup make > log;
        // deploy`).
        let members = finding.members.all().filter_map(|member| rows.row(member));
        let is_apart =
            |job: &&Node| job.server.is_none_or(|server| server == key) && !finding.members.contains(job.id);
        let jobs: Vec<(&Node, &ProcessRow)> = members
            .flat_map(|row| {
                self.world.graph().children(row.process).filter(is_apart).map(move |job| (job, row))
            })
            .filter(|(job, row)| job.creator == Some(row.process))
            .collect();
        let awaits = |parent: &ProcessRow, job: &Node| {
            rows.row(job.id).map_or(parent.awaits_child, |row| parent.awaits(row))
        };
        let waiting = jobs.iter().filter(|(job, parent)| parent.reaps || awaits(parent, job));
        let waiting: BTreeSet<ProcessId> = waiting.map(|(_, parent)| parent.process).collect();
        // It goes on when its time has come, or when somebody answers who works for it elsewhere.
        let goes_on = |process: ProcessId| {
            let goes = |row: &ProcessRow| row.waits == Wait::Anything && !waits_for_a_command(row);
            rows.row(process).is_some_and(goes)
                || waiting.contains(&process)
                || rows.is_connected(process, server.wires(), &finding.members)
        };
        let tied = finding.members.tied.iter().copied();
        let working = tied.chain(named).filter(|process| seen.worked(*process) || goes_on(*process));
        // Whether the server needs a job of whose end it is told, nobody knows: it may be a step of its work, itself or by what is below
        // it. Who waits for a time may look then. For the end of a service nobody waits.
        let hears =
            |parent: &ProcessRow| parent.reaps || parent.hears_of_ends || parent.waits == Wait::Anything;
        let held = rows.sides_of(finding.members.all());
        let is_needed = |(job, parent): &&(&Node, &ProcessRow)| {
            hears(parent) || awaits(parent, job) || rows.has_input_alone(job.id, &held)
        };
        let needed = jobs.iter().filter(is_needed).filter_map(|(job, _)| {
            let below = self.world.graph().below(job.id).map(|below| below.id);
            let step: Vec<ProcessId> = iter::once(job.id).chain(below).collect();
            // A service may wait for callers alone, and a step for who works for it elsewhere (`ssh` with ControlMaster, terraform).
            let is_service = step.iter().any(|process| rows.listens(*process));
            let works = |process: &ProcessId| {
                seen.worked(*process)
                    || if is_service {
                        rows.has_called(*process, &step, &finding.members)
                    } else {
                        goes_on(*process)
                    }
            };
            step.iter().copied().find(works)
        });
        let works: Vec<_> = working.chain(needed).filter(|process| !is_of_a_browser(*process)).collect();
        if works.is_empty() && !stopping {
            // Who looks from time to time whether a step has ended goes on only then, and may just be between two.
            let mut core = finding.members.core.iter().filter_map(|process| rows.row(*process));
            let may_look = core.any(|row| row.waits == Wait::Anything);
            if may_look && seen.has_one_ended() {
                seen.awaited.get_or_insert(now);
                seen.one_ended = Some(now);
            }
            let begins = now < *seen.rests.get_or_insert(now) + LEAST;
            let looks = may_look && seen.one_ended.is_some_and(|ended| now < ended + UNTIL_IT_LOOKS);
            let is_due = seen.awaited.is_none_or(|since| since + self.policy.work_grace <= now);
            if !is_due && (begins || looks) {
                finding.case.doubts.push(Doubt::Working);
            } else {
                (seen.awaited, seen.rests, seen.one_ended) = (None, None, None);
            }
            return;
        }
        seen.rests = None;
        let is_held = works.iter().any(|tool| rows.row(*tool).is_some_and(|row| row.held));
        let by_us = self.recall.has_stopped(server.id, is_held);
        if seen.awaited_since(now, is_held && !by_us) + self.policy.work_grace <= now {
            return;
        }
        let own = [(!works.is_empty(), Doubt::Working), (stopping, Doubt::Stopping)];
        finding.case.doubts.extend(own.into_iter().filter(|(is, _)| *is).map(|(_, doubt)| doubt));
        if let Some(&tool) = works.first() {
            let path = vec![at_work(&self.rules, rows, tool)];
            self.reached(key, path);
        }
    }

    /// What a server has started on other wires, and what nothing but its name shows to be a server: it may be a job. So may
    /// what is of its own package, whatever that is called, and what a bridge was seen to speak to.
    fn named_tools(&self, server: &Server) -> Vec<ProcessId> {
        let is_one = |node: &&Node| {
            node.image().is_some_and(|image| self.rules.is_only_named(image))
                || self.world.is_of_its_package(server, node)
        };
        let main = server.heard.as_ref().map(|_| server.main_process());
        self.world.inner(server).filter(is_one).map(|node| node.id).chain(main).collect()
    }

    /// Until when the end of a server waits for its tools, if it does.
    pub(super) fn tools_deadline(&self, key: ServerKey) -> Option<BootTime> {
        let verdict = self.world.server(key)?.phase.verdict()?;
        let awaited = self.tools.get(&key)?.awaited.filter(|_| verdict.has_deadline())?;
        Some(awaited + self.policy.work_grace)
    }
}

/// Whether so many inspections have failed that this is reported: what cannot be seen is a doubt.
fn says_blind(server: &Server, now: BootTime) -> bool {
    let is_due = !server.phase.is_clear() && server.phase.grace().is_none_or(|deadline| deadline <= now);
    is_due && !server.phase.asked_anyway() && server.blind_inspections >= BLIND_INSPECTIONS
}

/// Between two looks at a tool that works, at least.
const LEAST: Duration = Duration::from_secs(1);
/// How long a server that waits for a time may take to look whether a step of its work has ended.
const UNTIL_IT_LOOKS: Duration = Duration::from_secs(15);

/// What the processes of a server had done at the last two looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tools {
    before: Option<Accounts>,
    last: Accounts,
    /// Since when the end of the server waits for its tools.
    pub(super) awaited: Option<BootTime>,
    /// Since when none of them is at work any more.
    rests: Option<BootTime>,
    /// When the last one of its processes was missed.
    one_ended: Option<BootTime>,
    /// Whether one at work was stopped or frozen at the last look.
    held: bool,
}

impl Tools {
    /// Takes in what the processes have done until now.
    pub(super) fn look(&mut self, work: &[Work]) {
        self.before = Some(std::mem::replace(&mut self.last, accounts(work)));
    }

    /// Since when it is waited for those at work. For who can do nothing no time passes: at the first look that finds it going on, all
    /// of it begins.
    fn awaited_since(&mut self, now: BootTime, is_held: bool) -> BootTime {
        if std::mem::replace(&mut self.held, is_held) || is_held {
            self.awaited = Some(now);
        }
        *self.awaited.get_or_insert(now)
    }

    /// Whether one has ended between the last two looks.
    fn has_one_ended(&self) -> bool {
        let mut before = self.before.iter().flat_map(|before| before.keys());
        before.any(|process| !self.last.contains_key(process))
    }

    /// Whether this one has done something between the last two looks. One that could not be read may have, and one that is
    /// new has.
    fn worked(&self, tool: ProcessId) -> bool {
        let last = self.last.get(&tool);
        last.is_none() || self.before.as_ref().is_none_or(|before| before.get(&tool) != last)
    }
}

/// Whether a server may have tools: it is more than its main process, or that was one.
pub(super) fn may_have_tools(server: &Server) -> bool {
    server.processes().len() > 1
        || server.heard.is_some()
        || !server.recognised().contains(&server.main_process())
}
