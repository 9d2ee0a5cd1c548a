//! The configuration, read again while the daemon runs. One that cannot be read changes nothing.
//!
//! Invariant: it is read by a thread of its own. A name service or a file system that does not answer holds up nobody but whoever
//! asked for the reload.

use std::{fmt, mem, sync::Arc, thread, time::Duration};

use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use super::Daemon;
use crate::{actuator::hook, cli::logging::Log, config::Config};
use orphand_core::model::{Input, Reloaded, text::with_causes};

/// Keys that are read at the start only: doors that are open, a store and a ring in use.
const AT_THE_START: [&str; 7] =
    ["listen", "members", "ring_size", "setsid", "socket", "socket_group", "state_dir"];

/// The configuration in effect, and the way to read it again.
pub struct Configuration {
    /// In effect.
    pub config: Config,
    /// The log, which follows it.
    pub log: Log,
    /// Reads it again, flags included; with the hook that it names, checked.
    pub load: Arc<dyn Fn() -> Loaded + Send + Sync>,
    /// It is being read.
    pub loading: Option<Loading>,
}

/// What was read, or why not.
pub type Loaded = anyhow::Result<(Config, Option<hook::Settings>)>;

/// What is told to whoever asked for it; nobody waits for the word about a signal.
pub type Reply = oneshot::Sender<Result<Reloaded, String>>;

/// The longest that reading may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Threads that may hang in reading.
const HUNG: usize = 4;

/// A reading that goes on.
#[derive(Debug)]
pub struct Loading {
    read: oneshot::Receiver<Loaded>,
    until: Instant,
    replies: Vec<Reply>,
    /// Those who asked since it began: it is read once more for them.
    again: Option<Vec<Reply>>,
}

impl Configuration {
    /// Waits for what is read; for ever where nothing is.
    pub async fn loaded(loading: &mut Option<Loading>) -> Loaded {
        let Some(loading) = loading else { return std::future::pending().await };
        match timeout_at(loading.until, &mut loading.read).await {
            Ok(Ok(loaded)) => loaded,
            Ok(Err(_)) => anyhow::bail!("whoever read it has ended without a word"),
            Err(_) => anyhow::bail!(
                "it was not read within {PATIENCE:?}: a name service, or a file system that it is on, does not answer"
            ),
        }
    }
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Configuration").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Daemon {
    /// Begins to read the configuration again.
    pub(super) fn reload(&mut self, reply: Option<Reply>) {
        if let Some(loading) = &mut self.configuration.loading {
            loading.again.get_or_insert_default().extend(reply);
            return;
        }
        self.notify.reloading();
        let replies = reply.into_iter().collect();
        if let Err(error) = self.begin_to_load(replies) {
            self.stay(&error);
            self.notify.ready(&super::in_short(self.standing.mode, &self.engine));
        }
    }

    fn begin_to_load(&mut self, replies: Vec<Reply>) -> anyhow::Result<()> {
        let load = Arc::clone(&self.configuration.load);
        let refuse = |error: anyhow::Error, replies: Vec<Reply>| {
            for reply in replies {
                let _ = reply.send(Err(format!(
                    "{}; the old configuration stays in effect",
                    with_causes(error.as_ref())
                )));
            }
            Err(error)
        };
        // One is ours, one this thread's to be.
        if Arc::strong_count(&load) > HUNG + 2 {
            return refuse(anyhow::anyhow!("{HUNG} attempts to read it hang already"), replies);
        }
        let (tell, read) = oneshot::channel();
        let thread = thread::Builder::new().name("orphand-reload".to_owned());
        if let Err(error) = thread.spawn(move || drop(tell.send(load()))) {
            return refuse(anyhow::Error::new(error).context("cannot start a thread"), replies);
        }
        let until = Instant::now() + PATIENCE;
        self.configuration.loading = Some(Loading { read, until, replies, again: None });
        Ok(())
    }

    /// Goes on by what was read; the error is one line, and the old configuration stays in effect. Fails only if the daemon cannot
    /// go on at all.
    pub(super) fn loaded(&mut self, loaded: Loaded) -> anyhow::Result<()> {
        let Some(loading) = mem::take(&mut self.configuration.loading) else { return Ok(()) };
        let reloaded = self.apply(loaded)?;
        self.notify.ready(&super::in_short(self.standing.mode, &self.engine));
        for reply in loading.replies {
            // Whoever asked may be gone.
            let _ = reply.send(reloaded.clone());
        }
        if let Some(replies) = loading.again {
            self.notify.reloading();
            if let Err(error) = self.begin_to_load(replies) {
                self.stay(&error);
            }
        }
        Ok(())
    }

    fn apply(&mut self, loaded: Loaded) -> anyhow::Result<Result<Reloaded, String>> {
        let (fresh, hook) = match loaded {
            Ok(read) => read,
            Err(error) => return Ok(Err(self.stay(&error))),
        };
        if let Err(error) = self.hook.replace(hook) {
            return Ok(Err(self.stay(&error.into())));
        }
        let later = later(&self.configuration.config, &fresh);
        let rules = fresh.rules();
        let changed = rules.source() != self.rules.source();
        if changed {
            // What was entered until it failed is reported for nothing, and nothing is missed.
            if let Err(error) = self.kernel.set_candidates(&rules.candidates()) {
                return Ok(Err(self.stay(&error.into())));
            }
            self.rules = rules;
        }
        self.configuration.log.set(fresh.log);
        self.standing.mode = fresh.mode();
        self.standing.term_timeout_ms = u64::try_from(fresh.term_timeout.as_millis()).unwrap_or(u64::MAX);
        self.standing.config_error = None;
        self.hand_in(Input::Configured { policy: fresh.policy() })?;
        if changed {
            // As at the start: the first look enters who matters now, the second finds what they forked meanwhile.
            self.look_at_proc()?;
            self.look_at_proc()?;
        }
        self.configuration.config = fresh;
        tracing::info!("the configuration was reloaded");
        if !later.is_empty() {
            tracing::warn!("{} changed: that takes effect at the next start", later.join(", "));
        }
        Ok(Ok(Reloaded { later }))
    }

    /// Everything stays as it is; says so.
    fn stay(&mut self, error: &anyhow::Error) -> String {
        let why = format!("{}; the old configuration stays in effect", with_causes(error.as_ref()));
        tracing::error!("cannot reload: {why}");
        self.standing.config_error = Some(why.clone());
        why
    }
}

/// The changed keys that take effect at the next start only.
fn later(old: &Config, new: &Config) -> Vec<String> {
    let table = |config: &Config| toml::Table::try_from(config).unwrap_or_default();
    let (old, new) = (table(old), table(new));
    AT_THE_START.iter().filter(|key| old.get(**key) != new.get(**key)).map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_the_next_start_is_told() {
        let read = |text| Config::parse(text, "config.toml".as_ref()).unwrap();
        let old = read("grace = '10s'\nsocket_group = 'adm'\nlisten = 'none'");
        assert_eq!(later(&old, &old), Vec::<String>::new());
        let new = read("grace = '20s'\nstate_dir = '/srv/x'\nlisten = 'none'\nobserve = true");
        assert_eq!(later(&old, &new), ["socket_group", "state_dir"]);
    }

    /// A key is either applied or told to wait: whoever adds one has to choose.
    #[test]
    fn every_key_is_applied_or_waits() {
        let applied = [
            "agent",
            "alert",
            "exempt",
            "grace",
            "hook",
            "launcher",
            "log",
            "multiplexer",
            "observe",
            "other_uids",
            "server",
            "steward",
            "term_timeout",
        ];
        let mut keys: Vec<&str> = applied.into_iter().chain(AT_THE_START).collect();
        let mut known = crate::config::options::names(crate::config::options::SECTIONS);
        keys.sort_unstable();
        known.sort_unstable();
        assert_eq!(keys, known);
    }
}
