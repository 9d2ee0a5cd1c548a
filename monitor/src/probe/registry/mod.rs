//! Asks the registry of sessions (Redis) which sessions have a key.
//!
//! One task beside the daemon's loop: whatever the registry does, nothing else waits for it. It asks only for the sessions
//! of living servers, in rounds with a connection each, and not at all while there is none. Every step has a time limit,
//! and what is read in one round is bounded.
//!
//! Invariant: a session is told to be missing only if the registry said so, in a round in which nothing failed and in
//! which the registry was one and the same. Whatever else happens is told as unknown.

mod address;
mod connection;
mod far_end;
mod table;
mod trouble;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep},
};

use self::trouble::{KINDS, STRANGER, Trouble};
pub use self::{address::RedisUrl, table::Sessions};
use crate::os::{clock, lock};
use orphand_core::model::{KeyState, SessionsSeen};

pub const ID: &str = "{id}";

/// The longest pauses after a round that failed, and after many.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Between two warnings of the same: a registry that comes and goes does not fill the log.
const WARN_AGAIN: Duration = Duration::from_secs(300);
/// Rounds that the daemon has not taken in yet.
const QUEUE: usize = 4;

/// Rounds that failed, by what: each of [`KINDS`].
type Errors = Arc<Mutex<BTreeMap<String, u64>>>;

#[derive(Debug)]
pub struct Registry {
    /// One at the most.
    task: JoinSet<()>,
    ids: watch::Sender<Vec<String>>,
    /// What it said, a round at a time. Closed while there is none.
    pub news: mpsc::Receiver<SessionsSeen>,
    /// What was said and is to be handed in.
    pub pending: Vec<SessionsSeen>,
    errors: Errors,
}

/// Asks once for a key that no session has. The error is a sentence that says what is missing.
pub async fn check(options: &Sessions) -> Result<(), String> {
    let answer = connection::ask(options, &[options.key.replace(ID, "orphand-doctor")]).await;
    answer.map(drop).map_err(|trouble| trouble.to_string())
}

impl Registry {
    /// The registry at this place. Must be called inside the runtime that the task is to run in.
    pub fn new(options: Option<Sessions>) -> Self {
        let none = KINDS.map(|kind| (kind.to_owned(), 0));
        Self::counting(options, Arc::new(Mutex::new(none.into())))
    }

    fn counting(options: Option<Sessions>, errors: Errors) -> Self {
        let ((report, news), ids, mut task) =
            (mpsc::channel(QUEUE), watch::Sender::default(), JoinSet::new());
        if let Some(options) = options {
            let asker = Asker { options, failed: 0, warned: None, errors: Arc::clone(&errors) };
            task.spawn(asker.run(ids.subscribe(), report));
        }
        Self { task, ids, news, pending: Vec::new(), errors }
    }

    /// Another configuration is in effect. What the registry of before said is dropped, and its task ends.
    pub fn replace(&mut self, options: Option<Sessions>) {
        *self = Self::counting(options, Arc::clone(&self.errors));
    }

    /// From now on these sessions are asked for.
    pub fn follow<'a>(&self, ids: impl Iterator<Item = &'a String> + Clone) {
        if !self.task.is_empty() && !ids.clone().eq(self.ids.borrow().iter()) {
            self.ids.send_replace(ids.cloned().collect());
        }
    }

    pub fn errors(&self) -> BTreeMap<String, u64> {
        lock(&self.errors).clone()
    }
}

struct Asker {
    options: Sessions,
    errors: Errors,
    failed: u32,
    /// The last warning: when, of what, and whether it named a user.
    warned: Option<(Instant, &'static str, bool)>,
}

impl Asker {
    async fn run(mut self, mut wanted: watch::Receiver<Vec<String>>, report: mpsc::Sender<SessionsSeen>) {
        loop {
            if wanted.wait_for(|ids| !ids.is_empty()).await.is_err() {
                return;
            }
            let ids = wanted.borrow_and_update().clone();
            let asked = clock::now();
            let keys: Vec<String> = ids.iter().map(|id| self.options.key.replace(ID, id)).collect();
            let answer = connection::ask(&self.options, &keys).await;
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

    /// Counts and tells a failure, or its end. Returns the pause before the next round.
    fn account_for(&mut self, trouble: Option<&Trouble>) -> Duration {
        let place = self.options.redis.place();
        let Some(trouble) = trouble else {
            if std::mem::take(&mut self.failed) > 0 {
                tracing::info!("the session registry at {place} answers again");
            }
            return self.options.interval();
        };
        let kind = trouble.kind();
        *lock(&self.errors).entry(kind.to_owned()).or_default() += 1;
        let names_user = matches!(trouble, Trouble::Stranger(_));
        // Who is slow to accept the connection has no name at first.
        let is_news = |(at, last, named): (Instant, _, bool)| {
            at.elapsed() >= WARN_AGAIN || last != kind || (names_user && !named)
        };
        // A stranger comes when the registry is down, which has been told.
        if (self.failed == 0 || kind == STRANGER) && self.warned.is_none_or(is_news) {
            self.warned = Some((Instant::now(), kind, names_user));
            tracing::warn!(
                "the session registry at {place} cannot be asked: {trouble}; until it answers, sessions are unknown and no \
                 server is ended for its session"
            );
        }
        let first = self.options.interval().min(FIRST_PAUSE);
        let pause = first.saturating_mul(1 << self.failed.min(10)).min(LONGEST_PAUSE);
        self.failed = self.failed.saturating_add(1);
        pause
    }
}

#[cfg(test)]
mod tests;
