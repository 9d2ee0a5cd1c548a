//! All hooks. Each has a queue and a thread of its own: none waits for another one.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    net::Shutdown,
    os::unix::net::UnixStream,
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    time::{Duration, Instant},
};

use super::{
    HookError, Settings,
    run::{self, Outcome, Report},
};
use crate::os::{lock, start};
use orphand_core::model::{BootTime, EventSubject, Notice, Share, text};

/// How many events wait at most, and the most memory that they take, in bytes.
const QUEUE: Load = Load { events: 128, bytes: 2 << 20 };

/// The time that a runner needs to stop after it was told to.
const MOMENTS: Duration = Duration::from_secs(1);

/// The number of orphans that are alive, and their memory in bytes: of all, or of those of one agent or unit.
pub type Orphans<'a> = dyn Fn(Option<&str>) -> [u64; 2] + 'a;

/// Formats an event, whose cause happened at that time, as the line of this number that a hook reads.
pub type WriteLine = dyn Fn(u64, BootTime, &Notice) -> String + Send;

pub struct Hooks {
    all: Vec<Hook>,
    write_line: Box<WriteLine>,
}

struct Hook {
    state: Arc<Mutex<State>>,
    /// None: no further event will come.
    events: Option<Sender<Event>>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

#[derive(Default)]
struct State {
    /// None: the configuration does not name it any more.
    settings: Option<Settings>,
    /// What waits of each user, and of what concerns none.
    waiting: BTreeMap<Option<Share>, Load>,
    queued: u64,
    dropped: u64,
    /// Whether one was dropped since none waited. Only the first one is logged.
    dropping: bool,
    runs: BTreeMap<String, u64>,
    /// The socket of the runner at work.
    running: Option<UnixStream>,
    stop: bool,
}

/// What waits.
#[derive(Clone, Copy, Default)]
struct Load {
    events: usize,
    bytes: usize,
}

pub(super) struct Event {
    /// Whose server or agent it is about.
    share: Option<Share>,
    pub(super) name: &'static str,
    pub(super) variables: Variables,
    pub(super) line: String,
}

impl Hooks {
    pub fn start(settings: Vec<Settings>, write_line: Box<WriteLine>) -> Result<Self, HookError> {
        let mut hooks = Self { all: Vec::new(), write_line };
        hooks.replace(settings)?;
        Ok(hooks)
    }

    /// Replaces the hooks from the next run on. A new hook gets the events that wait for the one at its place;
    /// where there is none any more they are dropped.
    pub fn replace(&mut self, settings: Vec<Settings>) -> Result<(), HookError> {
        while self.all.len() < settings.len() {
            let (events, inbox) = mpsc::channel();
            let (end, ended) = mpsc::channel();
            let state = Arc::new(Mutex::new(State::default()));
            let served = Arc::clone(&state);
            let started = start("hook", move || {
                serve(&served, inbox);
                drop(end);
            });
            started
                .map_err(|error| HookError::Other(format!("cannot start the thread of the hook: {error}")))?;
            self.all.push(Hook { state, events: Some(events), ended });
        }
        let mut settings = settings.into_iter();
        for hook in &self.all {
            lock(&hook.state).settings = settings.next();
        }
        Ok(())
    }

    /// Queues an event for each hook that is run for it. Never blocks.
    pub fn push(&mut self, at: BootTime, notice: &Notice, orphans: &Orphans<'_>) {
        let (name, share) = (notice.kind().name(), EventSubject::of(notice).share());
        for hook in &self.all {
            let mut state = lock(&hook.state);
            let (Some(settings), Some(events)) = (&state.settings, &hook.events) else { continue };
            if settings.events.as_ref().is_some_and(|events| !events.contains(name)) {
                continue;
            }
            if !state.has_room(share, notice.queued_bytes()) {
                let (path, waiting) = (settings.path.display().to_string(), state.all_waiting().events);
                if state.drops() {
                    tracing::warn!(
                        "hook {path}: {waiting} events wait for it already, further ones are dropped"
                    );
                }
                continue;
            }
            let line = (self.write_line)(state.queued + 1, at, notice);
            state.put(share, line.len());
            // The thread lives until the sender is dropped.
            let _ = events.send(Event { share, name, variables: variables(notice, orphans), line });
        }
    }

    pub fn dropped(&self) -> u64 {
        self.all.iter().map(|hook| lock(&hook.state).dropped).sum()
    }

    /// How many runs had each outcome so far: `ok`, `failed`, `timed_out`, `refused`, `stopped`.
    pub fn runs(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for hook in &self.all {
            for (outcome, number) in &lock(&hook.state).runs {
                *all.entry(outcome.clone()).or_default() += number;
            }
        }
        all
    }

    /// Runs the hooks for the events that wait, for at most `patience`; then kills what still runs.
    pub fn finish(&mut self, patience: Duration) {
        let until = Instant::now() + patience;
        for hook in &mut self.all {
            hook.events = None;
        }
        for hook in &self.all {
            let left = until.saturating_duration_since(Instant::now());
            if hook.ended.recv_timeout(left) == Err(RecvTimeoutError::Disconnected) {
                continue;
            }
            {
                let mut state = lock(&hook.state);
                state.stop = true;
                if let Some(running) = &state.running {
                    let _ = running.shutdown(Shutdown::Write);
                }
            }
            let _ = hook.ended.recv_timeout(MOMENTS);
        }
    }
}

impl State {
    /// An event is dropped. Returns whether the log is to tell.
    const fn drops(&mut self) -> bool {
        self.dropped += 1;
        !std::mem::replace(&mut self.dropping, true)
    }

    /// An event of this user waits from now on.
    fn put(&mut self, share: Option<Share>, bytes: usize) {
        // While others wait the next ones may be dropped as well, of which the log has told.
        self.dropping &= self.all_waiting().events > 0;
        self.queued += 1;
        let waiting = self.waiting.entry(share).or_default();
        waiting.events += 1;
        waiting.bytes += bytes;
    }

    fn all_waiting(&self) -> Load {
        self.waiting.values().fold(Load::default(), |sum, one| Load {
            events: sum.events + one.events,
            bytes: sum.bytes + one.bytes,
        })
    }

    /// Whether one more event of this user may wait: what waits of one takes no more than it leaves free. So one user alone has half
    /// of the room, and one of whom nothing waits finds some beside any number of others.
    fn has_room(&self, share: Option<Share>, bytes: usize) -> bool {
        let (all, own) = (self.all_waiting(), self.waiting.get(&share).copied().unwrap_or_default());
        all.events + own.events < QUEUE.events && all.bytes + own.bytes + bytes <= QUEUE.bytes
    }

    fn taken(&mut self, event: &Event) {
        if let Entry::Occupied(mut own) = self.waiting.entry(event.share) {
            let waiting = own.get_mut();
            waiting.events -= 1;
            waiting.bytes -= event.line.len();
            if waiting.events == 0 {
                own.remove();
            }
        }
    }
}

fn serve(state: &Mutex<State>, events: Receiver<Event>) {
    for event in events {
        let settings = {
            let mut state = lock(state);
            state.taken(&event);
            if state.stop {
                return;
            }
            state.dropped += u64::from(state.settings.is_none());
            state.settings.clone()
        };
        let Some(settings) = settings else { continue };
        let running = |socket| {
            let mut state = lock(state);
            state.running = Some(socket);
            !state.stop
        };
        let report = match settings.check() {
            Err(error) => Report { outcome: Outcome::Refused, why: error.to_string() },
            Ok(()) => {
                run::run(&settings, &event, running).unwrap_or_else(|error| Report::not_started(&error))
            }
        };
        let (path, name) = (settings.path.display(), event.name);
        if report.outcome == Outcome::Ok {
            tracing::debug!("hook {path} on {name}: done");
        } else {
            tracing::warn!("hook {path} on {name}: {}; going on", text::sanitise(&report.why));
        }
        let mut state = lock(state);
        state.running = None;
        *state.runs.entry(text::word(report.outcome)).or_default() += 1;
    }
}

/// The most characters of a name. The variable is for a line of a message; the JSON has the whole name.
const LONGEST: usize = 256;

pub(super) type Variables = [(&'static str, String); 6];

pub(super) fn variables(notice: &Notice, orphans: &Orphans<'_>) -> Variables {
    let about = EventSubject::of(notice);
    let own = match notice {
        // The event is about all orphans of the agent or unit that it names.
        Notice::Alert { .. } | Notice::AlertResolved { .. } => None,
        _ => about.rss_bytes,
    };
    [
        ("ORPHAND_EVENT", notice.kind().name().to_owned()),
        ("ORPHAND_AGENT", about.agent().map(clean).unwrap_or_default()),
        ("ORPHAND_GENERATION", about.generation().map(|n| n.to_string()).unwrap_or_default()),
        ("ORPHAND_ORPHANS", orphans(None)[0].to_string()),
        ("ORPHAND_RSS_BYTES", own.unwrap_or_else(|| orphans(about.named)[1]).to_string()),
        ("ORPHAND_SERVER", about.server.map(|server| clean(&server.name)).unwrap_or_default()),
    ]
}

/// The name without what a terminal or a line-based format obeys, and without NUL, which no variable can contain.
fn clean(name: &str) -> String {
    text::sanitise(name).chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests;
