//! The handle of the daemon's loop: sends it queries, and does what would be too slow in the loop.

use std::{
    collections::HashMap,
    io,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{
        Semaphore,
        mpsc::{self, error::TrySendError},
        oneshot,
    },
    time::timeout,
};

use super::Query;
use crate::{
    host::{Proc, with_deadline},
    os::users,
    probe::{Sampler, holdings},
    store::{StoreError, history, standing, timeline},
};
use orphand_core::model::{
    Asked, Decided, Decision, Explained, History, HistoryQuery, Holdings, Memory, ProcessId, ReapRequest,
    Report, ServerReport, Status, Timeline, TimelineQuery,
};

/// How long the loop may take to answer. Normally it takes a few milliseconds.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Of how many servers a plan says what they block.
const HELD: usize = 64;

/// How many threads may read the store at a time. A read whose client went away counts until it is done, so
/// that reads do not pile up.
const HISTORY_READS: usize = 2;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The queue of queries is full.
    #[error("the daemon is busy: too many requests at a time; try again")]
    Busy,
    /// The loop did not answer in time.
    #[error("the daemon did not answer in time: it is still starting, or is stuck; nothing was done")]
    Late,
    #[error("the daemon is stopping")]
    Stopped,
    /// It was answered, and refused or failed.
    #[error("{0}")]
    Refused(String),
}

#[derive(Clone, Debug)]
pub struct LoopHandle {
    queries: mpsc::Sender<Query>,
    proc: Arc<Proc>,
    sampler: Arc<Mutex<Sampler>>,
    state_dir: Arc<Path>,
    history_reads: Arc<Semaphore>,
    /// How many decisions were made; that of the last one that was written.
    decisions: Arc<(AtomicU64, Mutex<u64>)>,
}

impl LoopHandle {
    pub(super) fn new(queries: mpsc::Sender<Query>, proc: Proc, state_dir: &Path) -> Self {
        let history_reads = Arc::new(Semaphore::new(HISTORY_READS));
        Self {
            queries,
            proc: Arc::new(proc),
            sampler: Arc::default(),
            state_dir: state_dir.into(),
            history_reads,
            decisions: Arc::default(),
        }
    }

    /// The status with memory measured now, and with proportional memory (PSS) if `pss` is set.
    pub async fn status(&self, pss: bool) -> Result<Status, QueryError> {
        let status = self.query(Query::Status).await?;
        let (proc, sampler) = (Arc::clone(&self.proc), Arc::clone(&self.sampler));
        let measured = tokio::task::spawn_blocking(move || {
            with_deadline(move || {
                // It is moved out of the lock, because a process may block the thread that reads its memory.
                let locked = || sampler.lock().unwrap_or_else(PoisonError::into_inner);
                let mut taken = std::mem::take(&mut *locked());
                let mut status = status.clone();
                measure(&proc, &mut taken, &mut status.report, pss);
                mark_stale_binaries(&proc, &mut status.report);
                *locked() = taken;
                status
            })
        });
        measured.await.map_err(|_| QueryError::Stopped)
    }

    pub async fn plan(&self, request: ReapRequest) -> Result<Vec<ServerReport>, QueryError> {
        let mut planned = self.query(|reply| Query::Plan(request, reply)).await?;
        let shown = |one: &ServerReport| {
            one.server.processes.iter().map(|one| ProcessId::new(one.pid, one.start)).collect()
        };
        let held = self.holdings(planned.iter().take(HELD).map(shown).collect()).await?;
        for (one, holdings) in planned.iter_mut().zip(held) {
            one.holdings = holdings;
        }
        Ok(planned)
    }

    async fn holdings(&self, groups: Vec<Vec<ProcessId>>) -> Result<Vec<Holdings>, QueryError> {
        let proc = Arc::clone(&self.proc);
        let read = move || with_deadline(move || groups.iter().map(|group| holdings(&proc, group)).collect());
        tokio::task::spawn_blocking(read).await.map_err(|_| QueryError::Stopped)
    }

    pub async fn explain(&self, process: Asked) -> Result<Vec<Explained>, QueryError> {
        let mut explained = self.query(|reply| Query::Explain(process, reply)).await?;
        let held = self.holdings(explained.iter().map(Explained::processes).collect()).await?;
        for (one, holdings) in explained.iter_mut().zip(held) {
            one.holdings = holdings;
        }
        Ok(explained)
    }

    /// Takes a decision into effect, and has it remembered for the next daemon. `user` asked, for somebody else if it is root and
    /// says so.
    pub async fn decide(
        &self,
        decision: Decision,
        user: u32,
        on_behalf_of: Option<String>,
    ) -> Result<Decided, QueryError> {
        let by = tokio::task::spawn_blocking(move || person(user, on_behalf_of)).await;
        let by = by.map_err(|_| QueryError::Stopped)?;
        let decided = self.query(|reply| Query::Decide(decision, by, reply)).await?;
        let mut decided = decided.map_err(QueryError::Refused)?;
        // Answers come in the order of the decisions.
        let number = self.decisions.0.fetch_add(1, Ordering::Relaxed) + 1;
        let (decisions, dir, standing) =
            (Arc::clone(&self.decisions), Arc::clone(&self.state_dir), decided.standing.clone());
        let write = tokio::task::spawn_blocking(move || {
            let mut last = decisions.1.lock().unwrap_or_else(PoisonError::into_inner);
            if *last < number {
                standing::write(&dir, &standing)?;
                *last = number;
            }
            drop(last);
            Ok::<(), io::Error>(())
        });
        decided.not_remembered = match timeout(TIMEOUT, write).await {
            Ok(Ok(Ok(()))) => None,
            Ok(Ok(Err(error))) => Some(format!("cannot write into {}: {error}", self.state_dir.display())),
            Ok(Err(_)) | Err(_) => Some(format!("{} does not answer", self.state_dir.display())),
        };
        Ok(decided)
    }

    pub async fn history(&self, query: HistoryQuery) -> Result<History, QueryError> {
        self.read_store(move |dir| history::history(dir, &query)).await
    }

    /// Reads from the store what was left behind over time.
    pub async fn timeline(&self, query: TimelineQuery) -> Result<Timeline, QueryError> {
        self.read_store(move |dir| timeline::timeline(dir, &query)).await
    }

    /// Reads the store through a read-only connection of its own, without the loop.
    async fn read_store<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Path) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, QueryError> {
        let permit = Arc::clone(&self.history_reads).try_acquire_owned().map_err(|_| QueryError::Busy)?;
        let dir = Arc::clone(&self.state_dir);
        let read = tokio::task::spawn_blocking(move || {
            let past = read(&dir);
            drop(permit);
            past
        });
        read.await.map_err(|_| QueryError::Stopped)?.map_err(|error| QueryError::Refused(error.to_string()))
    }

    /// Asks the loop.
    pub(super) async fn query<T>(
        &self,
        query: impl FnOnce(oneshot::Sender<T>) -> Query,
    ) -> Result<T, QueryError> {
        let (reply, answer) = oneshot::channel();
        self.queries.try_send(query(reply)).map_err(|error| match error {
            TrySendError::Full(_) => QueryError::Busy,
            TrySendError::Closed(_) => QueryError::Stopped,
        })?;
        match timeout(TIMEOUT, answer).await {
            Ok(answer) => answer.map_err(|_| QueryError::Stopped),
            Err(_) => Err(QueryError::Late),
        }
    }
}

/// The name of a user who decided.
fn person(uid: u32, on_behalf_of: Option<String>) -> String {
    let claimed = on_behalf_of.filter(|name| uid == 0 && !name.is_empty() && name.len() <= 64);
    claimed.or_else(|| users::local_names().remove(&uid)).unwrap_or_else(|| format!("user {uid}"))
}

/// Measures memory and CPU time of all servers and of agents that were left behind: resident memory, and
/// proportional if requested. A process that has exited counts as 0. If one cannot be read, the proportional sum is absent.
pub fn measure(proc: &Proc, sampler: &mut Sampler, report: &mut Report, pss: bool) {
    let all: Vec<&mut ServerReport> = report.servers_mut().collect();
    let processes: Vec<ProcessId> = all.iter().flat_map(|one| &one.members).copied().collect();
    let found = sampler.of(proc, &processes);
    let found: HashMap<ProcessId, &Memory> = found.iter().map(|one| (one.process, one)).collect();
    for one in all {
        let own = || one.members.iter().copied();
        let used = || own().filter_map(|process| found.get(&process));
        one.server.rss_bytes = Some(used().map(|one| one.rss_bytes).sum());
        one.server.cpu_ms = Some(used().map(|one| one.cpu_ms).sum());
        if pss {
            one.pss_bytes = own().try_fold(0, |sum, process| Some(sum + proportional(proc, process)?));
        }
    }
}

/// Marks the processes shown whose executable was replaced or deleted on disk by now. What the engine knows is as
/// old as the last inspection, and a server in use is not inspected.
fn mark_stale_binaries(proc: &Proc, report: &mut Report) {
    for process in report.servers_mut().flat_map(|one| &mut one.server.processes) {
        if let Ok(Some(dir)) = proc.identified(ProcessId::new(process.pid, process.start)) {
            process.stale_binary = dir.has_stale_binary();
        }
    }
}

/// Proportional memory in bytes: 0 if the process has exited, absent if it cannot be read.
fn proportional(proc: &Proc, process: ProcessId) -> Option<u64> {
    let Ok(Some(dir)) = proc.identified(process) else { return Some(0) };
    dir.proportional_bytes().ok()
}
