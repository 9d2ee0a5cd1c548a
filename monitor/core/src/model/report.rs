//! The state of the host: the answer of `orphand ps`. Plain data, filled from the engine's state.

use serde::{Deserialize, Serialize};

use super::{
    AgentView, Asked, BootTime, Doubt, Evidence, Guard, Holdings, LeftoverReport, NextStep, ProcessId,
    ReachedBy, RunReport, RunView, ServerView, SessionState, State,
};

/// Agents, their servers, and servers without an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The agents in display order.
    pub agents: Vec<AgentReport>,
    /// Servers without a known owner.
    pub unowned: Vec<ServerReport>,
    /// What agents that have ended left behind and that is no server.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub leftovers: Vec<LeftoverReport>,
    /// The runs that are alive or have servers left, and the latest run of each agent; by number.
    pub runs: Vec<RunReport>,
    /// What could not be seen, one sentence each. If this is not empty, an absence of orphans proves nothing.
    pub blind: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentReport {
    /// Set if the agent itself was left behind: its evidence, guards and state.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub left_behind: Option<Box<ServerReport>>,
    pub agent: AgentView,
    /// The run that it is accounted to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub run: Option<RunView>,
    /// The servers that it owns.
    pub servers: Vec<ServerReport>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerReport {
    pub server: ServerView,
    pub evidence: Vec<Evidence>,
    /// What prevents the proof.
    pub doubts: Vec<Doubt>,
    /// The path by which an unproven server is reached; empty if that is not known.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub reached_by: Vec<ReachedBy>,
    pub guards: Vec<Guard>,
    /// Whom the guards mean, where that is a process of it or below it, or its owner; `by` is the guard.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub guarded_by: Vec<ReachedBy>,
    /// Proportional memory (PSS) in bytes, if it was asked for or the server is an orphan.
    pub pss_bytes: Option<u64>,
    /// The verdict.
    pub state: State,
    /// What happens next; absent without a daemon.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next: Option<NextStep>,
    /// When that is due. In nanoseconds since boot.
    #[serde(rename = "deadline_boot_ns", skip_serializing_if = "Option::is_none", default)]
    pub deadline: Option<BootTime>,
    /// The state of the session that it was started for, if there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<SessionState>,
    /// Whether it may have been left behind, and is from before the first start of orphand on this host, or from before what it knew
    /// was lost: then only a person ends it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub found: bool,
    /// The newest server of the same owner with the same identity, if this is not it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub duplicate_of: Option<String>,
    /// What it blocks; empty where that was not asked for.
    #[serde(flatten)]
    pub holdings: Holdings,
    /// All its processes, including those not listed. The field stays inside the daemon.
    #[serde(skip)]
    pub members: Vec<ProcessId>,
}

/// Sums over the servers of a report. What is ending or kept is an orphan, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Agents that are alive.
    pub agents: u64,
    /// Servers.
    pub servers: u64,
    /// Their processes.
    pub processes: u64,
    /// Their resident memory in bytes.
    pub rss_bytes: u64,
    /// The CPU time of their living processes in milliseconds.
    pub cpu_ms: u64,
    /// Orphans.
    pub orphans: u64,
    /// Their resident memory in bytes.
    pub orphan_rss_bytes: u64,
    /// The CPU time of their living processes in milliseconds.
    pub orphan_cpu_ms: u64,
    /// Orphans that are being ended.
    pub ending: u64,
    /// Orphans that stay because of a guard.
    pub kept: u64,
    /// Orphans from before the first start, or from before what was known was lost, that stay until a person ends them.
    pub found: u64,
    /// Their resident memory in bytes.
    pub found_rss_bytes: u64,
    /// Unproven servers.
    pub unproven: u64,
    /// Their resident memory in bytes.
    pub unproven_rss_bytes: u64,
    /// Servers whose grace is not over.
    pub suspects: u64,
    /// Servers of which their living owner has a newer one with the same identity.
    pub duplicates: u64,
    /// Their resident memory in bytes.
    pub duplicate_rss_bytes: u64,
    /// Servers of which an executable was replaced or deleted on disk.
    pub stale_binaries: u64,
    /// What agents that have ended left behind and that is no server.
    pub leftovers: u64,
    /// Its resident memory in bytes.
    pub leftover_rss_bytes: u64,
}

impl ServerReport {
    /// Whether it is meant: by its name, its id, or one of its processes. Outside of the daemon only the first processes of a large
    /// server are known.
    pub fn is_meant_by(&self, target: &Asked) -> bool {
        let has = || self.server.ids().iter().chain(&self.members).any(|id| target.is(*id));
        target.names(&self.server.name) || target.is_id(&self.server.id) || has()
    }

    pub const fn is_orphan(&self) -> bool {
        self.state.is_orphan()
    }

    pub fn is_unproven(&self) -> bool {
        self.state == State::Unproven
    }

    /// Whether it is an orphan from before, and `orphand reap` would end it.
    pub fn waits_for_person(&self) -> bool {
        self.found && self.state == State::Kept && self.guards.iter().all(|guard| guard.yields_to_person())
    }

    /// Whether it is one of a run that has this name; true without a name.
    pub fn belongs_to(&self, name: Option<&str>) -> bool {
        name.is_none_or(|name| self.server.run.as_ref().is_some_and(|run| run.is_called(name)))
    }

    /// Takes away the guards that a person overrules. What was kept only because of them is an orphan that can be ended.
    pub fn lift_for_person(&mut self) {
        self.guards.retain(|guard| !guard.yields_to_person());
        if self.guards.is_empty() && self.state == State::Kept {
            self.state = State::Orphan;
        }
    }

    /// Whether its living owner has a newer server with the same identity.
    pub const fn is_duplicate(&self) -> bool {
        self.duplicate_of.is_some()
    }

    /// Whether the executable of one of the processes shown was replaced or deleted on disk.
    pub fn has_stale_binary(&self) -> bool {
        self.server.processes.iter().any(|process| process.stale_binary)
    }

    pub fn rss_bytes(&self) -> u64 {
        self.server.rss_bytes.unwrap_or_default()
    }
}

/// A server that may still be used because of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// The id of the server.
    pub id: String,
    pub name: String,
    /// What the process can do, in words that follow its name.
    pub via: String,
    /// What it can do that to, if that is another process on the path and not the server.
    pub pid: Option<u32>,
}

impl Report {
    /// The unproven servers whose path a process is on.
    pub fn kept_by(&self, process: ProcessId) -> Vec<Kept> {
        let kept = self.servers().filter_map(|(_, one)| {
            let step = one.reached_by.iter().find(|step| step.process() == Some(process))?;
            Some(Kept {
                id: one.server.id.clone(),
                name: one.server.name.clone(),
                via: step.via.clone(),
                pid: step.to,
            })
        });
        kept.collect()
    }

    /// All servers with their owners; servers without an owner come last.
    pub fn servers(&self) -> impl Iterator<Item = (Option<&AgentView>, &ServerReport)> {
        let owned = self.agents.iter().flat_map(|a| a.servers.iter().map(|server| (Some(&a.agent), server)));
        owned.chain(self.unowned.iter().map(|server| (None, server)))
    }

    /// The agents that were left behind themselves, each as its own owner.
    pub fn left_agents(&self) -> impl Iterator<Item = (Option<&AgentView>, &ServerReport)> {
        self.agents.iter().filter_map(|one| Some((Some(&one.agent), one.left_behind.as_deref()?)))
    }

    /// Takes away the guards that a person overrules, from every server and every agent that was left behind.
    pub fn lift_for_person(&mut self) {
        self.servers_mut().for_each(ServerReport::lift_for_person);
    }

    /// All servers, the agents that were left behind, and the leftovers.
    pub fn servers_mut(&mut self) -> impl Iterator<Item = &mut ServerReport> {
        let agents = self.agents.iter_mut();
        let owned = agents.flat_map(|one| one.servers.iter_mut().chain(one.left_behind.as_deref_mut()));
        owned.chain(&mut self.unowned).chain(self.leftovers.iter_mut().flat_map(|one| &mut one.heads))
    }

    pub fn leftovers(&self) -> impl Iterator<Item = (&AgentView, &ServerReport)> {
        self.leftovers.iter().flat_map(|one| one.heads.iter().map(|head| (&one.agent, head)))
    }

    pub fn totals(&self) -> Totals {
        let agents = self.agents.iter().filter(|one| one.agent.alive).count() as u64;
        let mut sum = Totals { agents, ..Totals::default() };
        for (_, one) in self.servers() {
            let (bytes, cpu) = (one.rss_bytes(), one.server.cpu_ms.unwrap_or_default());
            sum.servers += 1;
            sum.processes += one.server.count();
            sum.rss_bytes = sum.rss_bytes.saturating_add(bytes);
            sum.cpu_ms = sum.cpu_ms.saturating_add(cpu);
            for (is_such, count, of_such) in [
                (one.is_orphan(), &mut sum.orphans, &mut sum.orphan_rss_bytes),
                (one.waits_for_person(), &mut sum.found, &mut sum.found_rss_bytes),
                (one.is_unproven(), &mut sum.unproven, &mut sum.unproven_rss_bytes),
                (one.is_duplicate(), &mut sum.duplicates, &mut sum.duplicate_rss_bytes),
            ] {
                *count += u64::from(is_such);
                *of_such = of_such.saturating_add(if is_such { bytes } else { 0 });
            }
            if one.is_orphan() {
                sum.orphan_cpu_ms = sum.orphan_cpu_ms.saturating_add(cpu);
            }
            sum.ending += u64::from(one.state == State::Ending);
            sum.kept += u64::from(one.state == State::Kept);
            sum.suspects += u64::from(one.state == State::Suspect);
            sum.stale_binaries += u64::from(one.has_stale_binary());
        }
        for one in &self.leftovers {
            sum.leftovers += one.count;
            sum.leftover_rss_bytes = sum.leftover_rss_bytes.saturating_add(one.rss_bytes());
        }
        sum
    }

    /// Takes away the numbers of runs, which are not known.
    pub fn forget_numbers(&mut self) {
        self.agents.iter_mut().for_each(|one| one.agent.generation = None);
        for run in self.servers_mut().filter_map(|one| one.server.run.as_mut()) {
            run.generation = None;
        }
        self.runs.clear();
    }

    pub fn orphans(&self) -> impl Iterator<Item = &ServerReport> {
        self.servers().map(|(_, server)| server).filter(|server| server.is_orphan())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(pid: u32, via: &str) -> ReachedBy {
        ReachedBy { pid: Some(pid), start: Some(1), via: via.to_owned(), ..ReachedBy::default() }
    }

    #[test]
    fn what_a_process_keeps_is_what_its_path_leads_to() {
        let far = ReachedBy { to: Some(8), ..step(9, "is connected with it") };
        let reached_by = vec![far, step(8, "can write to its standard input")];
        let server = ServerView { id: "7@1".to_owned(), ..ServerView::default() };
        let one = ServerReport { server, reached_by, ..ServerReport::default() };
        let report = Report { unowned: vec![one, ServerReport::default()], ..Report::default() };
        let kept = |pid, start| {
            let kept = report.kept_by(ProcessId::new(pid, start));
            kept.into_iter().map(|one| (one.id, one.via, one.pid)).collect::<Vec<_>>()
        };
        let near = ("7@1".to_owned(), "can write to its standard input".to_owned(), None);
        let far = ("7@1".to_owned(), "is connected with it".to_owned(), Some(8));
        assert_eq!((kept(8, 1), kept(9, 1)), (vec![near], vec![far]));
        // Another process has that number now.
        assert_eq!((kept(8, 2), kept(7, 1)), (Vec::new(), Vec::new()));
    }
}
