//! The handle of the daemon's loop: sends it queries, and does what would be too slow in the loop.

use std::{
    collections::HashMap,
    io,
    path::Path,
    sync::{
        Arc, Mutex,
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

use super::{
    Query,
    protocol::{Answer, Request},
};
use crate::{
    host::{Proc, with_deadline},
    os::{self, lock, users},
    probe::holdings,
    store::{StoreError, history, standing},
};
use orphand_core::model::{Decided, Explained, Memory, ProcessId, Report, ServerReport, Status};

/// How long the loop may take to answer. Normally it takes a few milliseconds.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The same for a reload: files are read by a thread that may take its time, for one that came before, too, and then /proc.
const RELOAD: Duration = Duration::from_secs(30);

/// Of how many servers a plan says what they block.
const HELD: usize = 64;

/// How many threads may read the store. A read whose client went away counts until it is done: reads do not pile up.
const HISTORY_READS: usize = 2;

pub(super) const BUSY: &str = "the daemon is busy: too many requests at a time; try again";
pub(super) const LATE: &str = "the daemon did not answer in time, and nothing was done: it is busy, or still starting; try again, or see its log";
const STOPPED: &str = "the daemon is stopping";

#[derive(Clone, Debug)]
pub(super) struct LoopHandle {
    queries: mpsc::Sender<Query>,
    proc: Proc,
    state_dir: Arc<Path>,
    history_reads: Arc<Semaphore>,
    /// How many decisions were made; that of the last one that was written.
    decisions: Arc<(AtomicU64, Mutex<u64>)>,
}

impl LoopHandle {
    pub(super) fn new(queries: mpsc::Sender<Query>, proc: Proc, state_dir: &Path) -> Self {
        let history_reads = Arc::new(Semaphore::new(HISTORY_READS));
        Self { queries, proc, state_dir: state_dir.into(), history_reads, decisions: Arc::default() }
    }

    /// Answers a request of this user: what only the loop knows from there, the rest from here.
    pub(super) async fn answer(&self, request: Request, user: u32) -> Result<Answer, String> {
        let is_plan = matches!(request, Request::Plan { .. });
        let request = match request {
            // Without the loop. While too many others read, it is an error.
            Request::History { query } => {
                let history = self.read_store(move |dir| history::history(dir, &query)).await?;
                return Ok(Answer::History { history: Box::new(history) });
            }
            Request::Status { pss } => {
                return Ok(Answer::Status { status: Box::new(self.status(pss).await?) });
            }
            Request::Decide { decision, on_behalf_of } => {
                let by = beside(move || person(user, on_behalf_of)).await?;
                Request::Decide { decision, on_behalf_of: Some(by) }
            }
            Request::Reap { request, on_behalf_of } => {
                let by = beside(move || person(user, on_behalf_of)).await?;
                Request::Reap { request, on_behalf_of: Some(by) }
            }
            request => request,
        };
        Ok(match self.query(request, user).await? {
            Answer::Decided { decided } => Answer::Decided { decided: self.remembered(decided).await },
            Answer::Plan { planned } if is_plan => {
                let look = |proc: &Proc, planned: &mut Vec<ServerReport>| {
                    measure(proc, planned.iter_mut().collect(), false);
                    for one in planned.iter_mut().take(HELD) {
                        one.holdings = holdings(proc, &one.server.ids());
                    }
                };
                Answer::Plan { planned: self.look(planned, look).await? }
            }
            Answer::Explained { explained } => {
                let look = |proc: &Proc, explained: &mut Vec<Explained>| {
                    for one in explained.iter_mut() {
                        one.holdings = holdings(proc, &one.processes());
                    }
                    let reports = explained.iter_mut().filter_map(|one| one.report.as_deref_mut());
                    measure(proc, reports.collect(), false);
                };
                Answer::Explained { explained: self.look(explained, look).await? }
            }
            other => other,
        })
    }

    /// The status with memory measured now, and with proportional memory (PSS) if `pss` is set.
    pub(super) async fn status(&self, pss: bool) -> Result<Status, String> {
        let Answer::Status { status } = self.query(Request::Status { pss }, 0).await? else {
            return Err(STOPPED.to_owned());
        };
        let look = move |proc: &Proc, status: &mut Status| {
            measure(proc, status.report.servers_mut().collect(), pss);
            mark_stale_binaries(proc, &mut status.report);
        };
        self.look(*status, look).await
    }

    /// The same, with what a look at /proc adds to it.
    async fn look<T: Clone + Send + Sync + 'static>(
        &self,
        of: T,
        look: impl Fn(&Proc, &mut T) + Send + Sync + 'static,
    ) -> Result<T, String> {
        let proc = self.proc.clone();
        let looked = move || {
            let mut of = of.clone();
            look(&proc, &mut of);
            of
        };
        beside(|| with_deadline(looked)).await
    }

    async fn remembered(&self, mut decided: Decided) -> Decided {
        // Answers come in the order of the decisions.
        let number = self.decisions.0.fetch_add(1, Ordering::Relaxed) + 1;
        let (decisions, dir, standing) =
            (Arc::clone(&self.decisions), Arc::clone(&self.state_dir), decided.standing.clone());
        let write = beside(move || {
            let mut last = lock(&decisions.1);
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
        decided
    }

    /// Reads the store through a read-only connection of its own, without the loop.
    pub(super) async fn read_store<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Path) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, String> {
        let permit = Arc::clone(&self.history_reads).try_acquire_owned().map_err(|_| BUSY)?;
        let dir = Arc::clone(&self.state_dir);
        let read = beside(move || {
            let past = read(&dir);
            drop(permit);
            past
        });
        read.await?.map_err(|error| error.to_string())
    }

    async fn query(&self, request: Request, user: u32) -> Result<Answer, String> {
        let (reply, answer) = oneshot::channel();
        let patience = if matches!(request, Request::Reload) { RELOAD } else { TIMEOUT };
        self.queries.try_send(Query { request, user, reply }).map_err(|error| match error {
            TrySendError::Full(_) => BUSY,
            TrySendError::Closed(_) => STOPPED,
        })?;
        timeout(patience, answer).await.map_err(|_| LATE)?.map_err(|_| STOPPED)?
    }
}

async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    os::beside(work).await.map_err(|error| format!("cannot start a thread: {error}; try again"))
}

fn person(uid: u32, on_behalf_of: Option<String>) -> String {
    let claimed = on_behalf_of.filter(|name| uid == 0 && !name.is_empty() && name.len() <= 64);
    claimed.or_else(|| users::local_names().remove(&uid)).unwrap_or_else(|| format!("user {uid}"))
}

/// Memory and CPU time of servers and left agents; proportional memory if `pss`, absent where one process cannot be read.
pub fn measure(proc: &Proc, all: Vec<&mut ServerReport>, pss: bool) {
    let processes: Vec<ProcessId> = all.iter().flat_map(|one| &one.members).copied().collect();
    let found = proc.used(&processes);
    let found: HashMap<ProcessId, &Memory> = found.iter().map(|one| (one.process, one)).collect();
    for one in all {
        let own = || one.members.iter().copied();
        let used = || own().filter_map(|process| found.get(&process));
        one.server.rss_bytes = Some(used().map(|one| one.rss_bytes).sum());
        one.server.cpu_ms = Some(used().map(|one| one.cpu_ms).sum());
        if pss {
            one.pss_bytes = own().try_fold(0, |sum, process| Some(sum + proc.proportional(process).ok()?));
        }
    }
}

/// Whether executables were replaced or deleted on disk by now: a server in use is not inspected, so the engine does not know.
fn mark_stale_binaries(proc: &Proc, report: &mut Report) {
    for process in report.servers_mut().flat_map(|one| &mut one.server.processes) {
        if let Ok(Some(dir)) = proc.identified(process.id()) {
            process.stale_binary = dir.has_stale_binary();
        }
    }
}
