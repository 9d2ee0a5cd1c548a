//! The configuration, read again while the daemon runs. One that cannot be read changes nothing.

use std::fmt;

use super::Daemon;
use crate::{
    config::Config,
    logging::Log,
    model::{Input, Reloaded},
    sink::hook,
};

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
    pub load: Box<dyn Fn() -> anyhow::Result<(Config, Option<hook::Settings>)>>,
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Configuration").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Daemon {
    /// Reads the configuration again and goes on by it; the error is one line, and the old one stays in effect. Fails only if
    /// the daemon cannot go on at all.
    pub(super) fn reload(&mut self) -> anyhow::Result<Result<Reloaded, String>> {
        self.notify.reloading();
        let reloaded = self.read_again();
        self.notify.ready(&super::in_short(self.standing.mode, &self.engine));
        reloaded
    }

    fn read_again(&mut self) -> anyhow::Result<Result<Reloaded, String>> {
        let (fresh, hook) = match (self.configuration.load)() {
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
        let why = format!("{error:#}; the old configuration stays in effect");
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
