//! The alert hooks: programs that the daemon runs for events, one run of each at a time.
//!
//! Invariant: the hook can neither delay the caller nor outlive its run. Events wait in a short queue; when
//! it is full, the newest are dropped and counted. A thread passes one event after the other to a [`runner`],
//! a process of its own that ends everything that the hook starts. The hook's file is checked at the start,
//! and again before every run.

mod facts;
mod hooks;
mod report;
mod run;
pub mod runner;
pub mod step;
mod user;

use std::{
    collections::{BTreeMap, VecDeque},
    fmt, io,
    net::Shutdown,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

pub use self::{facts::Selection, hooks::Hooks};
use self::{
    facts::{Account, Facts},
    report::Report,
};
use crate::os::trust::{self, Distrust};
use orphand_core::model::{BootTime, Notice};

/// The most events that wait for their run.
pub const QUEUE: usize = 64;

/// The most memory that waiting events take together, in bytes.
const QUEUE_BYTES: usize = 2 << 20;

/// The time that a runner needs to stop after it was told to.
const MOMENTS: Duration = Duration::from_secs(1);

/// Why a hook is not run.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// The path is relative, so it depends on the working directory.
    #[error("the hook {} is no absolute path: write it from / on", path.display())]
    Relative {
        /// The path of the hook.
        path: PathBuf,
    },
    /// Other users could replace or change the file.
    #[error("the hook is refused: {0}")]
    Distrust(#[from] Distrust),
    /// The mode of the file does not let the user execute it.
    #[error("user {user} may not execute the hook {} (mode {mode:04o}): chmod +x it", path.display())]
    Mode {
        /// The path of the hook.
        path: PathBuf,
        /// The user that would run it.
        user: String,
        /// The permission bits of the file.
        mode: u32,
    },
    /// The user that should run the hook cannot be found.
    #[error("cannot run the hook as user \"{user}\": {why}; correct hook.user in the configuration")]
    User {
        /// The name of the user.
        user: String,
        /// The reason.
        why: String,
    },
    /// The daemon may not become another user.
    #[error(
        "cannot run the hook as user {user}: orphand must be started as root, or with CAP_SETUID and CAP_SETGID, and with hook.user set \
         already: restart it so (the service: systemctl restart orphand)"
    )]
    Rights {
        /// The name of the user.
        user: String,
    },
    /// The thread that runs the hook could not be started.
    #[error("cannot start the thread of the hook: {0}")]
    Thread(#[source] io::Error),
}

/// A hook that has passed the checks, and how it is run.
#[derive(Clone, Debug)]
pub struct Settings {
    path: PathBuf,
    user: user::Account,
    events: Selection,
    timeout: Duration,
}

impl Settings {
    /// Checks the hook at `path`. It is run for `events` as `user` (a name; without one, our own user), for
    /// at most `timeout`.
    pub fn new(
        path: &Path,
        user: Option<&str>,
        events: Selection,
        timeout: Duration,
    ) -> Result<Self, HookError> {
        if !path.is_absolute() {
            return Err(HookError::Relative { path: path.into() });
        }
        let settings = Self { path: path.into(), user: user::Account::find(user)?, events, timeout };
        settings.check()?;
        Ok(settings)
    }

    /// Whether the hook is run as another user than ours.
    pub const fn is_for_another_user(&self) -> bool {
        self.user.other.is_some()
    }

    /// Whether the file may be run now. Other users may have changed it since the last check.
    fn check(&self) -> Result<(), HookError> {
        trust::check(&self.path, rustix::process::geteuid().as_raw())?;
        self.user.may_execute(&self.path)
    }
}

/// The queue of events for the hook, and the thread that runs it.
struct Hook {
    shared: Arc<Shared>,
    write_line: Arc<Mutex<Box<WriteLine>>>,
}

/// Formats an event, whose cause happened at that time, as the line that the hook reads.
pub type WriteLine = dyn FnMut(BootTime, &Notice) -> String + Send;

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook").field("shared", &self.shared).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Wakes the thread when there is something to do.
    filled: Condvar,
    /// Signals that the thread has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    settings: Option<Arc<Settings>>,
    account: Account,
    queue: VecDeque<Item>,
    dropped: u64,
    /// Whether the last event was dropped. Only the first drop of a series is logged.
    dropping: bool,
    runs: BTreeMap<String, u64>,
    /// The socket of the runner at work.
    running: Option<UnixStream>,
    /// Whether the thread is running.
    thread: bool,
    end: Stop,
}

/// Whether and how the hook stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stop {
    #[default]
    No,
    /// The hook is still run for the events that wait.
    Soon,
    /// No further run is started.
    Now,
}

#[derive(Debug)]
struct Item {
    at: BootTime,
    notice: Notice,
    facts: Facts,
}

impl Hook {
    /// A hook without a program, with what is known of the orphans so far.
    fn new(write_line: Box<WriteLine>, account: Account) -> Self {
        let state = Mutex::new(State { account, ..State::default() });
        let shared = Shared { state, ..Shared::default() };
        Self { shared: Arc::new(shared), write_line: Arc::new(Mutex::new(write_line)) }
    }

    /// What is known of the orphans so far.
    fn account(&self) -> Account {
        self.shared.lock().account.clone()
    }

    /// Replaces the hook from the next run on. The new hook gets the events that wait; without a new hook
    /// they are dropped.
    fn replace(&self, settings: Option<Settings>) -> Result<(), HookError> {
        let mut state = self.shared.lock();
        if settings.is_none() {
            state.dropped += state.queue.len() as u64;
            state.queue.clear();
        } else if !state.thread {
            let (shared, write_line) = (Arc::clone(&self.shared), Arc::clone(&self.write_line));
            let thread = thread::Builder::new().name("orphand-hook".to_owned());
            thread.spawn(move || shared.serve(&write_line)).map_err(HookError::Thread)?;
            state.thread = true;
        }
        state.settings = settings.map(Arc::new);
        Ok(())
    }

    /// Queues an event, if the hook is run for it. Never blocks.
    fn push(&self, at: BootTime, notice: &Notice) {
        let mut state = self.shared.lock();
        state.account.note(notice);
        let Some(settings) = state.settings.as_ref().map(Arc::clone) else { return };
        if !settings.events.has(notice.kind().name()) {
            return;
        }
        let waiting: usize = state.queue.iter().map(|item| item.notice.queued_bytes()).sum();
        let full = state.queue.len() >= QUEUE || waiting + notice.queued_bytes() > QUEUE_BYTES;
        let begins = full && !state.dropping;
        state.dropping = full;
        if full {
            state.dropped += 1;
        } else {
            let facts = Facts::of(notice, &state.account);
            state.queue.push_back(Item { at, notice: notice.clone(), facts });
        }
        let waiting_events = state.queue.len();
        drop(state);
        self.shared.filled.notify_one();
        if begins {
            let path = settings.path.display();
            tracing::warn!(
                "hook {path}: {waiting_events} events wait for it already, further ones are dropped"
            );
        }
    }

    /// How many events were dropped because too many waited.
    fn dropped(&self) -> u64 {
        self.shared.lock().dropped
    }

    /// How many runs had each outcome so far: `ok`, `failed`, `timed_out`, `refused`, `stopped`.
    fn runs(&self) -> BTreeMap<String, u64> {
        self.shared.lock().runs.clone()
    }

    /// No further events come.
    fn end_soon(&self) {
        self.shared.lock().end = Stop::Soon;
        self.shared.filled.notify_one();
    }

    /// Runs the hook for the events that wait, for at most `patience`. Then ends a run in progress and kills
    /// its processes.
    fn finish(&self, patience: Duration) {
        let mut state = self.shared.wait_for_end(self.shared.lock(), patience);
        state.end = Stop::Now;
        if let Some(running) = &state.running {
            let _ = running.shutdown(Shutdown::Write);
        }
        drop(self.shared.wait_for_end(state, MOMENTS));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock; if one did, the state would still be consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_end<'a>(&self, state: MutexGuard<'a, State>, patience: Duration) -> MutexGuard<'a, State> {
        let waited = self.ended.wait_timeout_while(state, patience, |state| state.thread);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// The main function of the thread.
    fn serve(&self, write_line: &Mutex<Box<WriteLine>>) {
        while let Some((settings, item)) = self.next() {
            let line = write_line.lock().unwrap_or_else(PoisonError::into_inner)(item.at, &item.notice);
            let outcome = self.run(&settings, &item.facts, &line);
            let mut state = self.lock();
            state.running = None;
            *state.runs.entry(outcome.to_owned()).or_default() += 1;
        }
        self.lock().thread = false;
        self.ended.notify_all();
    }

    /// Waits for the next event, and returns it with its hook; `None` if all are done and no more will come.
    fn next(&self) -> Option<(Arc<Settings>, Item)> {
        let state = self.lock();
        let waited = self.filled.wait_while(state, |state| state.queue.is_empty() && state.end == Stop::No);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.end == Stop::Now {
            return None;
        }
        let item = state.queue.pop_front()?;
        Some((state.settings.as_ref().map(Arc::clone)?, item))
    }

    /// Runs the hook for one event. Returns the outcome that the run is counted by.
    fn run(&self, settings: &Settings, facts: &Facts, line: &str) -> &'static str {
        let failed = |why: &dyn std::fmt::Display| {
            tracing::warn!("hook {} on {}: {why}; going on", settings.path.display(), facts.event);
        };
        if let Err(error) = settings.check() {
            failed(&error);
            return "refused";
        }
        let running = |socket| {
            let mut state = self.lock();
            state.running = Some(socket);
            state.end != Stop::Now
        };
        let began = Instant::now();
        match run::run(settings, facts, line, running) {
            Ok(report) => {
                log_outcome(settings, facts, &report, began.elapsed());
                report.outcome()
            }
            Err(error) => {
                failed(&format!("it could not be started: {error}"));
                "failed"
            }
        }
    }
}

fn log_outcome(settings: &Settings, facts: &Facts, report: &Report, took: Duration) {
    let (path, event, outcome) = (settings.path.display(), &facts.event, report.outcome());
    if outcome == "ok" {
        tracing::debug!("hook {path} on {event}: done in {took:?}");
    } else {
        tracing::warn!("hook {path} on {event}: {report}; going on");
    }
}
