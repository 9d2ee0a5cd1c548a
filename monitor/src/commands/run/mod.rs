//! `orphand run`: reads flags and configuration, and runs the daemon.

mod assemble;
mod own_places;

use std::sync::Arc;

use anyhow::Context;

use crate::{
    actuator::hook,
    cli::{
        self, ExitCode,
        logging::{self, Log},
    },
    config::{self, Config},
    daemon::reload::Configuration,
    os::descriptors,
};

/// Names the user that hooks run as where the configuration names none: the service's unit sets it.
const HOOK_USER: &str = "ORPHAND_HOOK_USER";

/// Watches until it is told to stop.
pub fn run(flags: &cli::Run) -> anyhow::Result<ExitCode> {
    let config = effective(flags)?;
    let log = logging::start(config.log);
    descriptors::raise();
    // One task; other threads write the stream and answer questions.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the event loop")?;
    runtime.block_on(assemble::watch(flags, &config, log))?;
    Ok(ExitCode::Done)
}

/// Flags beat the file, the file beats the defaults.
fn effective(flags: &cli::Run) -> anyhow::Result<Config> {
    let mut config = flags.places.load()?;
    config.observe |= flags.observe;
    config.found = flags.found.map_or(config.found, Into::into);
    config.grace = flags.grace.unwrap_or(config.grace);
    config.term_timeout = flags.term_timeout.unwrap_or(config.term_timeout);
    config.ring_size = flags.ring_size.unwrap_or(config.ring_size);
    config.setsid = flags.setsid.map_or(config.setsid, Into::into);
    config.listen = flags.listen.unwrap_or(config.listen);
    if let Some(path) = &flags.hook {
        let absolute = std::path::absolute(path);
        config.hook.path =
            Some(absolute.with_context(|| format!("cannot tell where {} is", path.display()))?);
    }
    if config.hook.user.is_none() {
        config.hook.user = std::env::var(HOOK_USER).ok().filter(|user| !user.is_empty());
    }
    Ok(config)
}

/// The configuration, and how it is read again: with the same flags.
fn configuration(flags: &cli::Run, config: &Config, log: Log) -> Configuration {
    let flags = flags.clone();
    let load = move || {
        let config = effective(&flags)?;
        let hook = hook_of(&config.hook)?;
        Ok((config, hook))
    };
    Configuration { config: config.clone(), log, load: Arc::new(load), loading: None }
}

/// The hook that the configuration names, checked.
pub(super) fn hook_of(config: &config::Hook) -> Result<Option<hook::Settings>, hook::HookError> {
    let events = if config.events.contains(config::EVERY_EVENT) {
        hook::Selection::All
    } else {
        hook::Selection::Of(config.events.clone())
    };
    let Some(path) = &config.path else { return Ok(None) };
    hook::Settings::new(path, config.user.as_deref(), events, config.timeout).map(Some)
}
