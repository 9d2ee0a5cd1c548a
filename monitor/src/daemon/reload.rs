//! The configuration, read again while the daemon runs. One that cannot be read changes nothing.
//!
//! Invariant: it is read by a thread of its own. A name service or a file system that does not answer delays only the client that
//! asked for the reload.

use std::{mem, sync::Arc, time::Duration};

use anyhow::Context as _;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use super::Daemon;
use crate::{
    actuator::hook,
    config::Config,
    control::{Answer, Reply},
    os::start,
};
use orphand_core::model::{Input, Reloaded, text::with_causes};

/// Keys that are read at the start only: sockets and store are open already.
const AT_THE_START: [&str; 2] = ["containers", "listen"];

pub struct Configuration {
    pub config: Config,
    /// Reads it again, flags included; with the hooks that it names, checked.
    pub load: Arc<dyn Fn() -> Loaded + Send + Sync>,
    pub loading: Option<Loading>,
}

pub type Loaded = anyhow::Result<(Config, Vec<hook::Settings>)>;

const PATIENCE: Duration = Duration::from_secs(10);

/// Threads that may hang while they read.
const HUNG: usize = 4;

#[derive(Debug)]
pub struct Loading {
    read: oneshot::Receiver<Loaded>,
    until: Instant,
    replies: Vec<Reply>,
    /// Clients that asked since reading began: it is read once more for them.
    again: Option<Vec<Reply>>,
}

impl Configuration {
    /// Waits for the result; for ever if nothing is being read.
    pub async fn loaded(loading: &mut Option<Loading>) -> Loaded {
        let Some(loading) = loading else { return std::future::pending().await };
        match timeout_at(loading.until, &mut loading.read).await {
            Ok(Ok(loaded)) => loaded,
            Ok(Err(_)) => anyhow::bail!("the thread that read it has ended without a result"),
            Err(_) => anyhow::bail!(
                "it was not read within {PATIENCE:?}: a name service, or a file system that it is on, does not answer"
            ),
        }
    }
}

impl Daemon {
    pub(super) fn reload(&mut self, reply: Option<Reply>) {
        if let Some(loading) = &mut self.configuration.loading {
            loading.again.get_or_insert_default().extend(reply);
            return;
        }
        self.begin_to_load(reply.into_iter().collect());
    }

    fn begin_to_load(&mut self, replies: Vec<Reply>) {
        self.notify.reloading();
        let load = Arc::clone(&self.configuration.load);
        let (tell, read) = oneshot::channel();
        // One is that of the daemon, one that of the thread to be started.
        let started = if Arc::strong_count(&load) > HUNG + 2 {
            Err(anyhow::anyhow!("{HUNG} attempts to read it hang already"))
        } else {
            start("reload", move || drop(tell.send(load()))).context("cannot start a thread")
        };
        if let Err(error) = started {
            let why = self.keep_old(&error);
            for reply in replies {
                let _ = reply.send(Err(why.clone()));
            }
            self.notify.ready(&self.summary());
            return;
        }
        let until = Instant::now() + PATIENCE;
        self.configuration.loading = Some(Loading { read, until, replies, again: None });
    }

    /// Puts what was read into effect, or says why the old one stays. Fails only if the daemon cannot go on at all.
    pub(super) fn loaded(&mut self, loaded: Loaded) -> anyhow::Result<()> {
        let Some(loading) = mem::take(&mut self.configuration.loading) else { return Ok(()) };
        let reloaded = self.apply(loaded)?;
        self.notify.ready(&self.summary());
        for reply in loading.replies {
            // The client may have gone.
            let _ = reply.send(reloaded.clone().map(|reloaded| Answer::Reloaded { reloaded }));
        }
        if let Some(replies) = loading.again {
            self.begin_to_load(replies);
        }
        Ok(())
    }

    fn apply(&mut self, loaded: Loaded) -> anyhow::Result<Result<Reloaded, String>> {
        let outside = &mut self.outside;
        let taken_over = loaded.and_then(|(fresh, hooks)| {
            outside.hooks.replace(hooks)?;
            let rules = fresh.rules();
            let changed = rules.source() != outside.rules.source();
            if changed {
                // If it fails midway, some processes are reported without need, and none is missed.
                outside.kernel.set_candidates(&rules.candidates())?;
                outside.rules = rules;
            }
            Ok((fresh, changed))
        });
        let (fresh, changed) = match taken_over {
            Ok(taken_over) => taken_over,
            Err(error) => return Ok(Err(self.keep_old(&error))),
        };
        let later = later(&self.configuration.config, &fresh);
        let policy = self.decisions.policy(&fresh);
        self.outside.status.mode = policy.mode;
        self.outside.status.term_timeout_ms =
            u64::try_from(fresh.term_timeout.as_millis()).unwrap_or(u64::MAX);
        self.outside.status.config_error = None;
        if fresh.sessions != self.configuration.config.sessions {
            self.outside.registry.replace(fresh.sessions.clone());
        }
        self.handle(Input::Configured { policy })?;
        if changed {
            self.outside.enter_all(&mut self.driver)?;
        }
        self.configuration.config = fresh;
        tracing::info!("the configuration was reloaded");
        if !later.is_empty() {
            tracing::warn!("{} changed: that takes effect at the next start", later.join(", "));
        }
        Ok(Ok(Reloaded { later }))
    }

    /// Everything stays as it is; the log says why.
    fn keep_old(&mut self, error: &anyhow::Error) -> String {
        let why = format!("{}; the old configuration stays in effect", with_causes(error.as_ref()));
        tracing::error!("cannot reload: {why}");
        self.outside.status.config_error = Some(why.clone());
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
    fn what_waits_for_the_next_start_is_named() {
        let read = |text| Config::parse(text, "config.toml".as_ref()).unwrap();
        let old = read("grace = '10s'\nlisten = 'none'\n[containers]\ndocker = '/d'");
        assert_eq!(later(&old, &old), Vec::<String>::new());
        let new = read("grace = '20s'\nlisten = '127.0.0.1:1'\nobserve = true");
        assert_eq!(later(&old, &new), ["containers", "listen"]);
    }

    /// A key is either applied or named as one that waits: a new key must be put into one of the lists.
    #[test]
    fn every_key_is_applied_or_waits() {
        let applied = [
            "abandoned_grace",
            "work_grace",
            "agent",
            "alert",
            "exempt",
            "found",
            "grace",
            "hook",
            "observe",
            "program",
            "recognise_protocol",
            "sessions",
        ];
        let mut keys: Vec<&str> = applied.into_iter().chain(AT_THE_START).collect();
        let mut known = crate::config::options::names();
        keys.sort_unstable();
        known.sort_unstable();
        assert_eq!(keys, known);
    }
}
