//! Asks the registry of sessions (Redis) which sessions have a key.
//!
//! One task with one connection, beside the daemon's loop: whatever the registry does, nothing else waits for it. It asks
//! only for the sessions of living servers, in batches of bounded size, and not at all while there is none. Every step has
//! a time limit, and what is read for one batch is bounded.
//!
//! Invariant: a session is told to be missing only if the registry said so, in a round in which nothing failed and in
//! which the registry was one and the same. Whatever else happens is told as unknown.

mod connection;
mod far_end;
mod life;
mod trouble;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use redis::RedisConnectionInfo;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{Instant, sleep},
};

use self::{connection::Connection, trouble::Trouble};
use crate::os::clock;
use orphand_core::model::{KeyState, RegistryLife, SessionsSeen};

/// Keys that are asked for at a time.
const BATCH: usize = 256;
/// The longest pause after rounds that failed.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Between two warnings of the same: a registry that comes and goes does not fill the log.
const WARN_AGAIN: Duration = Duration::from_secs(300);
/// Rounds that the daemon has not taken in yet.
const QUEUE: usize = 4;

/// Where the registry is, and what is asked there.
#[derive(Clone)]
pub struct Options {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Database, user and password.
    pub login: RedisConnectionInfo,
    /// The user that it runs as, if it is a person and on this host: else no password is sent to a person.
    pub user: Option<u32>,
    /// Where it is, for people: without a password.
    pub place: String,
    /// The name of a key, before the id of the session and after it.
    pub key: [String; 2],
    /// The time from one round to the next.
    pub every: Duration,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("place", &self.place).field("key", &self.key).finish_non_exhaustive()
    }
}

/// The registry, if there is one: its task, and what it said.
#[derive(Debug)]
pub struct Registry {
    task: Option<Task>,
    report: mpsc::Sender<SessionsSeen>,
    /// What it said, a round at a time.
    pub news: mpsc::Receiver<SessionsSeen>,
    /// What was said and is to be handed in.
    pub pending: Vec<SessionsSeen>,
    /// The number of the set of ids that the task has.
    followed: Option<u64>,
    account: Arc<Account>,
}

#[derive(Debug)]
struct Task {
    ids: watch::Sender<Vec<String>>,
    handle: JoinHandle<()>,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

/// Asks once for a key that no session has. The error is a sentence that says what is missing.
pub async fn check(options: &Options) -> Result<(), String> {
    let [before, after] = &options.key;
    let answer = Connection::default().ask(options, &[format!("{before}orphand-doctor{after}")]).await;
    answer.map(drop).map_err(|trouble| trouble.to_string())
}

/// How many rounds failed, by what.
#[derive(Debug, Default)]
struct Account(Mutex<BTreeMap<String, u64>>);

impl Account {
    fn count(&self, kind: &str) {
        // Nothing panics while it is locked.
        let mut errors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *errors.entry(kind.to_owned()).or_default() += 1;
    }
}

impl Registry {
    /// The registry at this place. Must be called inside the runtime that the task is to run in.
    pub fn new(options: Option<Options>) -> Self {
        let (report, news) = mpsc::channel(QUEUE);
        let account = Arc::default();
        let mut registry = Self { task: None, report, news, pending: Vec::new(), followed: None, account };
        registry.replace(options);
        registry
    }

    /// Another configuration is in effect. What the registry of before said is dropped.
    pub fn replace(&mut self, options: Option<Options>) {
        (self.report, self.news) = mpsc::channel(QUEUE);
        self.pending.clear();
        self.followed = None;
        self.task = options.map(|options| {
            let (ids, wanted) = watch::channel(Vec::new());
            let asker = Asker {
                pause: options.every.min(Duration::from_secs(1)),
                options,
                connection: Connection::default(),
                failed: 0,
                warned: None,
                account: Arc::clone(&self.account),
            };
            let handle = tokio::spawn(asker.run(wanted, self.report.clone()));
            Task { ids, handle }
        });
    }

    /// From now on these sessions are asked for. `changes` is the number of this set of ids.
    pub fn follow(&mut self, changes: u64, ids: impl FnOnce() -> Vec<String>) {
        let Some(task) = &self.task else { return };
        if self.followed != Some(changes) {
            self.followed = Some(changes);
            task.ids.send_replace(ids());
        }
    }

    /// How many rounds failed since the start, by what.
    pub fn errors(&self) -> BTreeMap<String, u64> {
        let counted = self.account.0.lock().unwrap_or_else(PoisonError::into_inner);
        trouble::KINDS
            .iter()
            .map(|kind| ((*kind).to_owned(), counted.get(*kind).copied().unwrap_or(0)))
            .collect()
    }
}

/// The task.
struct Asker {
    options: Options,
    connection: Connection,
    account: Arc<Account>,
    /// The pause after the first round that failed.
    pause: Duration,
    /// How many rounds in a row have failed.
    failed: u32,
    /// The last warning: when, and of what.
    warned: Option<(Instant, &'static str)>,
}

impl Asker {
    async fn run(mut self, mut wanted: watch::Receiver<Vec<String>>, report: mpsc::Sender<SessionsSeen>) {
        loop {
            if wanted.borrow().is_empty() {
                self.connection.close();
                if wanted.wait_for(|ids| !ids.is_empty()).await.is_err() {
                    return;
                }
            }
            let ids = wanted.borrow_and_update().clone();
            let asked = clock::now();
            let answer = self.round(&ids).await;
            let pause = self.account_for(answer.as_ref().err());
            let (registry, states) = match answer {
                Ok((life, states)) => (Some(life), states),
                Err(_) => (None, vec![KeyState::Unknown; ids.len()]),
            };
            let seen = SessionsSeen { asked, registry, sessions: ids.into_iter().zip(states).collect() };
            if report.send(seen).await.is_err() {
                return;
            }
            sleep(pause).await;
        }
    }

    /// Asks for all of them once.
    async fn round(&mut self, ids: &[String]) -> Result<(RegistryLife, Vec<KeyState>), Trouble> {
        let mut life: Option<RegistryLife> = None;
        let mut states = Vec::with_capacity(ids.len());
        for batch in ids.chunks(BATCH) {
            let [before, after] = &self.options.key;
            let keys: Vec<String> = batch.iter().map(|id| format!("{before}{id}{after}")).collect();
            let (now, said) = self.connection.ask(&self.options, &keys).await?;
            if life.as_ref().is_some_and(|life| life.name != now.name) {
                return Err(Trouble::Changed);
            }
            life.get_or_insert(now);
            states.extend(said);
        }
        Ok((life.ok_or(Trouble::Reply)?, states))
    }

    /// Counts and tells a failure, or its end. Returns the pause before the next round.
    fn account_for(&mut self, trouble: Option<&Trouble>) -> Duration {
        let place = &self.options.place;
        let Some(trouble) = trouble else {
            if std::mem::take(&mut self.failed) > 0 {
                tracing::info!("the session registry at {place} answers again");
            }
            return self.options.every;
        };
        self.connection.close();
        self.account.count(trouble.kind());
        let is_news = |(at, kind): (Instant, &str)| at.elapsed() >= WARN_AGAIN || kind != trouble.kind();
        // A stranger comes when the registry is down, which has been told.
        let is_stranger = matches!(trouble, Trouble::Stranger(_));
        if (self.failed == 0 || is_stranger) && self.warned.is_none_or(is_news) {
            self.warned = Some((Instant::now(), trouble.kind()));
            tracing::warn!(
                "the session registry at {place} cannot be asked: {trouble}; until it answers, sessions are unknown and no \
                 server is ended for its session"
            );
        }
        let pause = self.pause.saturating_mul(1 << self.failed.min(10)).min(LONGEST_PAUSE);
        self.failed = self.failed.saturating_add(1);
        pause
    }
}

#[cfg(test)]
mod tests;
