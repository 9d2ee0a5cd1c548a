//! Asks the loop, and does what would be too slow there.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
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
    host::{Proc, patiently},
    probe::Sampler,
    store::{StoreError, history},
};
use orphand_core::model::{
    History, HistoryQuery, Planned, ProcessId, ReapRequest, Reloaded, Report, ServerReport, Status,
};

/// How long the loop may take to answer. It answers within some milliseconds as long as it is well.
const PATIENCE: Duration = Duration::from_secs(2);

/// Looks into the store at a time. One whose asker went away still counts until it is done: they do not pile up.
const LOOKS: usize = 2;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Too many questions wait already.
    #[error("the daemon is busy: too many questions at a time; ask again")]
    Busy,
    /// The loop did not answer in time.
    #[error("the daemon did not answer in time: it has not finished to start, or is stuck; nothing was done")]
    Late,
    /// The loop has ended.
    #[error("the daemon is stopping")]
    Stopped,
}

/// The way to the loop.
#[derive(Clone, Debug)]
pub struct Asker {
    queries: mpsc::Sender<Query>,
    proc: Arc<Proc>,
    sampler: Arc<Mutex<Sampler>>,
    state_dir: Arc<Path>,
    looks: Arc<Semaphore>,
}

impl Asker {
    pub(super) fn new(queries: mpsc::Sender<Query>, proc: Proc, state_dir: &Path) -> Self {
        let looks = Arc::new(Semaphore::new(LOOKS));
        Self { queries, proc: Arc::new(proc), sampler: Arc::default(), state_dir: state_dir.into(), looks }
    }

    /// How the daemon stands, memory as last measured. Cheap.
    pub async fn standing(&self) -> Result<Status, AskError> {
        self.ask(Query::Status).await
    }

    /// How the daemon stands, with memory measured now; proportional memory where asked for.
    pub async fn status(&self, pss: bool) -> Result<Status, AskError> {
        let status = self.standing().await?;
        let (proc, sampler) = (Arc::clone(&self.proc), Arc::clone(&self.sampler));
        let measured = tokio::task::spawn_blocking(move || {
            patiently(move || {
                // Taken out: a thread that waits for a process for ever must not keep it.
                let locked = || sampler.lock().unwrap_or_else(PoisonError::into_inner);
                let mut taken = std::mem::take(&mut *locked());
                let mut status = status.clone();
                measure(&proc, &mut taken, &mut status.report, pss);
                *locked() = taken;
                status
            })
        });
        measured.await.map_err(|_| AskError::Stopped)
    }

    /// Which servers a request means.
    pub async fn plan(&self, request: ReapRequest) -> Result<Vec<Planned>, AskError> {
        self.ask(|reply| Query::Plan(request, reply)).await
    }

    /// Ends them.
    pub async fn reap(&self, request: ReapRequest) -> Result<Vec<Planned>, AskError> {
        self.ask(|reply| Query::Reap(request, reply)).await
    }

    /// Has the configuration read again.
    pub async fn reload(&self) -> Result<Result<Reloaded, String>, AskError> {
        self.ask(Query::Reload).await
    }

    /// What the store tells, through a read-only connection of its own: the loop knows nothing of it.
    pub async fn history(&self, query: HistoryQuery) -> Result<Result<History, StoreError>, AskError> {
        let place = Arc::clone(&self.looks).try_acquire_owned().map_err(|_| AskError::Busy)?;
        let dir = Arc::clone(&self.state_dir);
        let read = tokio::task::spawn_blocking(move || {
            let past = history::history(&dir, &query);
            drop(place);
            past
        });
        read.await.map_err(|_| AskError::Stopped)
    }

    async fn ask<T>(&self, query: impl FnOnce(oneshot::Sender<T>) -> Query) -> Result<T, AskError> {
        let (reply, answer) = oneshot::channel();
        self.queries.try_send(query(reply)).map_err(|error| match error {
            TrySendError::Full(_) => AskError::Busy,
            TrySendError::Closed(_) => AskError::Stopped,
        })?;
        match timeout(PATIENCE, answer).await {
            Ok(answer) => answer.map_err(|_| AskError::Stopped),
            Err(_) => Err(AskError::Late),
        }
    }
}

/// Measures the memory of all servers and of agents that were left behind: resident, and proportional where asked for. A
/// process that has ended meanwhile counts nothing; one that may not be read leaves the proportional sum out.
pub fn measure(proc: &Proc, sampler: &mut Sampler, report: &mut Report, pss: bool) {
    let mut all: Vec<&mut ServerReport> = report.unowned.iter_mut().collect();
    for agent in &mut report.agents {
        all.extend(agent.left_behind.as_deref_mut());
        all.extend(&mut agent.servers);
    }
    let processes: Vec<ProcessId> = all.iter().flat_map(|one| &one.members).copied().collect();
    let resident: HashMap<ProcessId, u64> =
        sampler.of(proc, &processes).into_iter().map(|memory| (memory.process, memory.rss_bytes)).collect();
    for one in all {
        let own = || one.members.iter().copied();
        let sum = own().filter_map(|process| resident.get(&process)).sum();
        if pss {
            one.pss_bytes = own().try_fold(0, |sum, process| Some(sum + proportional(proc, process)?));
        }
        one.server.rss_bytes = Some(sum);
    }
}

/// Proportional memory in bytes; none of a process that has ended, absent where it may not be read.
fn proportional(proc: &Proc, process: ProcessId) -> Option<u64> {
    let Ok(Some(dir)) = proc.identified(process) else { return Some(0) };
    dir.proportional_bytes().ok()
}
