//! `orphand run`: reads flags and configuration, and runs the daemon.

mod assemble;

use std::{sync::Arc, time::Duration};

use anyhow::Context;

use crate::{
    actuator::hook,
    cli::{self, ExitCode, logging},
    config::{self, Config},
    daemon::reload::Configuration,
    os::{
        descriptors,
        trust::{self, Distrust},
        users,
    },
};

/// Names the user that hooks run as where the configuration names none: the service's unit sets it.
const HOOK_USER: &str = "ORPHAND_HOOK_USER";

pub fn run(flags: &cli::Run) -> anyhow::Result<ExitCode> {
    let config = effective(flags)?;
    logging::start();
    descriptors::raise();
    // One task; other threads write the stream and answer questions.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the event loop")?;
    let ended = runtime.block_on(assemble::watch(flags, &config));
    // The look-up of a name may take half a minute.
    runtime.shutdown_background();
    ended?;
    Ok(ExitCode::Done)
}

fn effective(flags: &cli::Run) -> anyhow::Result<Config> {
    let mut config = flags.places.load()?;
    config.observe |= flags.observe;
    config.found = flags.found.unwrap_or(config.found);
    config.grace = flags.grace.unwrap_or(config.grace);
    config.term_timeout = flags.term_timeout.unwrap_or(config.term_timeout);
    config.other_uids = flags.other_uids;
    config.socket_group.clone_from(&flags.socket_group);
    config.listen = flags.listen.unwrap_or(config.listen);
    if let Some(sessions) = &mut config.sessions {
        sessions.user = flags.registry_user;
    }
    if let Some(path) = &flags.hook {
        let absolute = std::path::absolute(path);
        let absolute = absolute.with_context(|| format!("cannot tell where {} is", path.display()))?;
        config.hook = vec![config::Hook::at(absolute)];
    }
    let user = std::env::var(HOOK_USER).ok().filter(|user| !user.is_empty());
    for hook in config.hook.iter_mut().filter(|hook| hook.user.is_none()) {
        hook.user.clone_from(&user);
    }
    Ok(config)
}

/// The configuration, and how it is read again: with the same flags.
fn configuration(flags: &cli::Run, config: &Config) -> Configuration {
    let flags = flags.clone();
    let load = move || {
        let config = effective(&flags)?;
        let hooks = hooks(&flags, &config)?;
        Ok((config, hooks))
    };
    Configuration { config: config.clone(), load: Arc::new(load), loading: None }
}

fn hooks(flags: &cli::Run, config: &Config) -> Result<Vec<hook::Settings>, hook::HookError> {
    config.hook.iter().map(|hook| hook_of(hook, flags.hook_timeout)).collect()
}

pub(super) fn hook_of(config: &config::Hook, timeout: Duration) -> Result<hook::Settings, hook::HookError> {
    let events = (!config.events.contains(config::EVERY_EVENT)).then(|| config.events.clone());
    hook::Settings::new(&config.path, config.user.as_deref(), events, timeout)
}

const SERVICE_USER: &str = "orphand";

/// Refuses a place where another user could put a file in the way of what the daemon writes.
fn require_own_places(flags: &cli::Run, config: &Config) -> anyhow::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    let places = [
        ("lock", Some(&flags.lock)),
        ("socket", Some(&config.socket)),
        ("state-dir", Some(&config.state_dir)),
        ("record", flags.record.as_ref()),
    ];
    for (option, path) in places {
        let Some(path) = path else { continue };
        let mut judged = trust::check_place(path, &[own]);
        if let Err(Distrust::Owner { uid, .. }) = &judged
            && users::user(SERVICE_USER).ok().flatten().is_some_and(|user| user.uid == *uid)
        {
            // The directories of the service are the same for a daemon that is started by hand.
            judged = trust::check_place(path, &[own, *uid]);
        }
        judged.with_context(|| {
            format!(
                "cannot use {}: others could put their own there; choose another place with --{option}",
                path.display()
            )
        })?;
    }
    Ok(())
}
