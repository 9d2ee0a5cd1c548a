//! All hooks. Each has a queue and a thread of its own: none waits for another one.

use std::{
    collections::{BTreeMap, VecDeque},
    net::Shutdown,
    os::unix::net::UnixStream,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::{
    HookError, Settings,
    facts::{Account, Variables, variables},
    run::{self, Outcome, Report},
};
use orphand_core::model::{BootTime, Notice, text};

/// The most events that wait for their run.
const QUEUE: usize = 64;

/// The most memory that waiting events take together, in bytes.
const QUEUE_BYTES: usize = 2 << 20;

/// The time that a runner needs to stop after it was told to.
const MOMENTS: Duration = Duration::from_secs(1);

/// Formats an event, whose cause happened at that time, as the line of this number that a hook reads.
pub type WriteLine = dyn Fn(u64, BootTime, &Notice) -> String + Send;

pub struct Hooks {
    /// One that the configuration does not name any more has no settings.
    all: Vec<Arc<Hook>>,
    account: Account,
    write_line: Box<WriteLine>,
}

impl Hooks {
    pub fn start(settings: Vec<Settings>, write_line: Box<WriteLine>) -> Result<Self, HookError> {
        let mut hooks = Self { all: Vec::new(), account: Account::default(), write_line };
        hooks.replace(settings)?;
        Ok(hooks)
    }

    /// Replaces the hooks from the next run on. A new hook gets the events that wait for the one at its place;
    /// where there is none any more they are dropped.
    pub fn replace(&mut self, settings: Vec<Settings>) -> Result<(), HookError> {
        while self.all.len() < settings.len() {
            let hook = Arc::new(Hook::default());
            let served = Arc::clone(&hook);
            let thread = thread::Builder::new().name("orphand-hook".to_owned()).spawn(move || served.serve());
            thread
                .map_err(|error| HookError::Other(format!("cannot start the thread of the hook: {error}")))?;
            self.all.push(hook);
        }
        let mut settings = settings.into_iter();
        for hook in &self.all {
            let mut state = hook.lock();
            state.settings = settings.next();
            if state.settings.is_none() {
                state.dropped += state.queue.len() as u64;
                state.queue.clear();
            }
        }
        Ok(())
    }

    /// Queues an event for each hook that is run for it. Never blocks. The caller must pass every event.
    pub fn push(&mut self, at: BootTime, notice: &Notice) {
        self.account.note(notice);
        for hook in &self.all {
            let line = |number| (self.write_line)(number, at, notice);
            hook.push(notice, &self.account, line);
        }
    }

    /// How many events were dropped because too many waited.
    pub fn dropped(&self) -> u64 {
        self.all.iter().map(|hook| hook.lock().dropped).sum()
    }

    /// How many runs had each outcome so far: `ok`, `failed`, `timed_out`, `refused`, `stopped`.
    pub fn runs(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for hook in &self.all {
            for (outcome, number) in &hook.lock().runs {
                *all.entry((*outcome).to_owned()).or_default() += number;
            }
        }
        all
    }

    /// Runs the hooks for the events that wait, for at most `patience`. Then ends the runs in progress and kills
    /// their processes.
    pub fn finish(&self, patience: Duration) {
        let until = Instant::now() + patience;
        for hook in &self.all {
            hook.lock().stop = Stop::Soon;
            hook.changed.notify_all();
        }
        for hook in &self.all {
            let mut state = hook.wait_for_end(hook.lock(), until.saturating_duration_since(Instant::now()));
            state.stop = Stop::Now;
            if let Some(running) = &state.running {
                let _ = running.shutdown(Shutdown::Write);
            }
            drop(hook.wait_for_end(state, MOMENTS));
        }
    }
}

/// The queue of one hook, which its thread shares.
#[derive(Default)]
struct Hook {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    settings: Option<Settings>,
    queue: VecDeque<Event>,
    /// How many events were queued so far.
    queued: u64,
    dropped: u64,
    /// Whether the last event was dropped. Only the first drop of a series is logged.
    dropping: bool,
    runs: BTreeMap<&'static str, u64>,
    /// The socket of the runner at work.
    running: Option<UnixStream>,
    stop: Stop,
    ended: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stop {
    #[default]
    No,
    /// The hook is still run for the events that wait.
    Soon,
    /// No further run is started.
    Now,
}

pub(super) struct Event {
    pub(super) name: &'static str,
    pub(super) variables: Variables,
    pub(super) line: String,
}

impl Hook {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock; if one did, the state would still be consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_end<'a>(&self, state: MutexGuard<'a, State>, patience: Duration) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout_while(state, patience, |state| !state.ended);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn push(&self, notice: &Notice, account: &Account, line: impl FnOnce(u64) -> String) {
        let mut state = self.lock();
        let name = notice.kind().name();
        let Some(settings) = &state.settings else { return };
        if settings.events.as_ref().is_some_and(|events| !events.contains(name)) {
            return;
        }
        let waiting: usize = state.queue.iter().map(|event| event.line.len()).sum();
        if state.queue.len() >= QUEUE || waiting + notice.queued_bytes() > QUEUE_BYTES {
            if !state.dropping {
                let (path, waiting) = (settings.path.display(), state.queue.len());
                tracing::warn!("hook {path}: {waiting} events wait for it already, further ones are dropped");
            }
            state.dropping = true;
            state.dropped += 1;
            return;
        }
        state.dropping = false;
        state.queued += 1;
        let event = Event { name, variables: variables(notice, account), line: line(state.queued) };
        state.queue.push_back(event);
        self.changed.notify_all();
    }

    /// The main function of the thread.
    fn serve(&self) {
        while let Some((settings, event)) = self.next() {
            let Report { outcome, why } = self.run(&settings, &event);
            let (path, name) = (settings.path.display(), event.name);
            if outcome == Outcome::Ok {
                tracing::debug!("hook {path} on {name}: done");
            } else {
                tracing::warn!("hook {path} on {name}: {}; going on", text::sanitise(&why));
            }
            let mut state = self.lock();
            state.running = None;
            *state.runs.entry(outcome.name()).or_default() += 1;
        }
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// Waits for the next event, and returns it with its hook; `None` if all are done and no more will come.
    fn next(&self) -> Option<(Settings, Event)> {
        let is_idle = |state: &mut State| state.queue.is_empty() && state.stop == Stop::No;
        let waited = self.changed.wait_while(self.lock(), is_idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.stop == Stop::Now {
            return None;
        }
        Some((state.settings.clone()?, state.queue.pop_front()?))
    }

    fn run(&self, settings: &Settings, event: &Event) -> Report {
        if let Err(error) = settings.check() {
            return Report { outcome: Outcome::Refused, why: error.to_string() };
        }
        let running = |socket| {
            let mut state = self.lock();
            state.running = Some(socket);
            state.stop != Stop::Now
        };
        run::run(settings, event, running).unwrap_or_else(|error| Report::not_started(&error))
    }
}
