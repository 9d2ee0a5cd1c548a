//! `orphand run`: puts the daemon together.

use std::{io, sync::Arc};

use anyhow::Context;
use rustix::system::uname;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    actuator::{
        hook::{self, Hook},
        reaper::Reaper,
    },
    cli::{
        self, ExitCode, Format,
        logging::{self, Log},
    },
    config::{self, Config},
    control::ControlServer,
    daemon::{
        Daemon, complete::Completer, crowd::Crowd, looks::Looks, memory::Memory, moment::Waiting,
        reload::Configuration, unanswered::Unanswered, want::Want,
    },
    host::Procfs,
    os::{
        capabilities::{self, Later},
        clock, descriptors,
        journald::{self, Journal},
        lock_file::Instance,
        systemd_notify::Notify,
        trust::{self, Distrust},
        users,
    },
    probe::Probe,
    sink::{
        self,
        event_writer::{self, EventWriter},
        event_writers::EventWriters,
        human::Text,
        journal::JournalEntries,
        metrics::Metrics,
        paint::Paint,
        stream::Json,
        wall_clock::WallClock,
    },
    source::{
        attach,
        kernel::{KernelOptions, KernelSource},
        members, selftest,
        trace::TraceWriter,
    },
};
use orphand_core::{
    engine::{Engine, Settings},
    model::{BootTime, Notice, Policy, Status, TRACE_FORMAT, TraceHeader},
};

/// The user of the service as it is shipped.
const SERVICE_USER: &str = "orphand";

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
    runtime.block_on(watch(flags, &config, log))?;
    Ok(ExitCode::Done)
}

/// Flags beat the file, the file beats the defaults.
fn effective(flags: &cli::Run) -> anyhow::Result<Config> {
    let mut config = Config::load(flags.config.as_deref())?;
    config.observe |= flags.observe;
    config.grace = flags.grace.unwrap_or(config.grace);
    config.term_timeout = flags.term_timeout.unwrap_or(config.term_timeout);
    config.ring_size = flags.ring_size.unwrap_or(config.ring_size);
    config.setsid = flags.setsid.map_or(config.setsid, Into::into);
    config.listen = flags.listen.unwrap_or(config.listen);
    config.socket = flags.socket.clone().unwrap_or(config.socket);
    config.state_dir = flags.state_dir.clone().unwrap_or(config.state_dir);
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

async fn watch(flags: &cli::Run, config: &Config, log: Log) -> anyhow::Result<()> {
    attach::require_rights()?;
    attach::require_initial_pid_namespace()?;
    let hook = hook_of(&config.hook)?;
    require_own_places(flags, config)?;
    let _instance = Instance::lock(&flags.lock)?;
    let control =
        ControlServer::bind(config.listen.address(), &config.socket, config.socket_group.as_deref())?;
    let rules = config.rules();
    let procfs = Procfs::system()?;
    let policy = config.policy();
    let ourselves = procfs.ourselves()?;
    let settings = Settings::new(policy.clone(), ourselves).context("cannot read the rules back")?;
    let options = KernelOptions {
        candidates: rules.candidates(),
        setsid: config.setsid,
        ring_bytes: config.ring_size.bytes(),
        members: config.members.unwrap_or_else(members::as_many_as_can_live).get(),
        log: flags.debug_bpf,
        ..KernelOptions::default()
    };
    let wall = WallClock { offset_ns: clock::realtime_offset() };
    let trace = match &flags.record {
        Some(path) => Some(TraceWriter::create(path, &header(policy, &settings, wall))?),
        None => None,
    };
    // Whoever is started with SIGCHLD ignored has no children to wait for (wait(2)): the self-test's, the hook's.
    let _children = signal(SignalKind::child()).context("cannot take SIGCHLD")?;
    let mut kernel = KernelSource::open(&options)?;
    let early = selftest::run(&mut kernel, selftest::command())?;
    give_up(&mut kernel, config, hook.as_ref())?;
    let mut probe = Probe::new()?;
    if let Some(holders) = kernel.take_holders() {
        probe = probe.with_passes(Box::new(holders));
    }
    let metrics = Metrics::new(wall);
    let (memory, knowledge) = Memory::open(&config.state_dir, wall.offset_ns)?;
    let configuration = configuration(flags, config, log);
    let (_serving, queries) = control.start(metrics.clone(), &config.state_dir)?;
    let daemon = Daemon {
        engine: Engine::new(settings),
        configuration,
        rules,
        kernel,
        procfs,
        probe,
        reaper: Reaper::new()?,
        stream: stream(flags.format, wall)?,
        hook: Hook::start(hook, hook_line(wall))?,
        memory,
        knowledge,
        metrics,
        notify: Notify::from_environment(clock::now()),
        queries,
        standing: standing(config),
        ready_at: None,
        doubtful: false,
        trace,
        seen_until: clock::now(),
        gone: Vec::new(),
        no_room: false,
        completer: Completer::default(),
        crowd: Crowd::default(),
        want: Want::default(),
        waiting: Waiting::default(),
        unanswered: Unanswered::default(),
        looks: Looks::new(),
    };
    daemon.run(early).await
}

/// Refuses a place where somebody else could put something of his own in the way of what we write.
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

/// Gives up what only the start took. No other thread may have been started before: it would keep all.
fn give_up(kernel: &mut KernelSource, config: &Config, hook: Option<&hook::Settings>) -> anyhow::Result<()> {
    // Its parent may belong to somebody else.
    Memory::prepare(&config.state_dir);
    let later = Later { other_users: hook.is_some_and(hook::Settings::is_for_another_user) };
    let kept = capabilities::drop_to(later, || kernel.works())?;
    tracing::info!("capabilities that stay: {}", kept.in_words());
    Ok(())
}

/// What the daemon says of itself whenever it is asked.
fn standing(config: &Config) -> Status {
    Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        mode: config.mode(),
        term_timeout_ms: u64::try_from(config.term_timeout.as_millis()).unwrap_or(u64::MAX),
        ..Status::default()
    }
}

/// The hook that the configuration names, checked.
fn hook_of(config: &config::Hook) -> Result<Option<hook::Settings>, hook::HookError> {
    let events = if config.events.contains(config::EVERY_EVENT) {
        hook::Selection::All
    } else {
        hook::Selection::Of(config.events.clone())
    };
    let Some(path) = &config.path else { return Ok(None) };
    hook::Settings::new(path, config.user.as_deref(), events, config.timeout).map(Some)
}

/// The line that a hook reads of an event: that of the stream.
fn hook_line(wall: WallClock) -> impl FnMut(BootTime, &Notice) -> String {
    let mut json = Json::new(wall);
    move |at, notice| {
        let mut line = String::new();
        sink::Format::write(&mut json, at, notice, &mut line);
        line
    }
}

fn header(policy: Policy, settings: &Settings, wall: WallClock) -> TraceHeader {
    TraceHeader {
        format: TRACE_FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: uname().release().to_string_lossy().into_owned(),
        realtime_offset_ns: wall.offset_ns,
        policy,
        ourselves: settings.ourselves.clone(),
    }
}

/// To standard output, and to the journal where standard error leads there. What would be in the journal twice is there once: as
/// entries, unless lines were asked for.
fn stream(asked: Option<Format>, wall: WallClock) -> anyhow::Result<EventWriters> {
    let ways = ways(journald::is_at(io::stdout()), journald::is_at(io::stderr()), asked.is_some());
    let mut writers = EventWriters::default();
    if ways.lines {
        let format = format_of(asked, wall);
        let writer = EventWriter::start("stream", io::stdout(), format, event_writer::QUEUE);
        writers.add(writer.context("cannot start the writer of the stream")?);
    }
    if ways.entries {
        let journal = Journal::open(true).context("cannot open a way to the journal")?;
        let writer = EventWriter::start("journal", journal, JournalEntries::new(wall), event_writer::QUEUE);
        writers.add(writer.context("cannot start the writer of the journal")?);
    }
    Ok(writers)
}

/// Which ways events take.
#[derive(Debug, PartialEq, Eq)]
struct Ways {
    lines: bool,
    entries: bool,
}

/// `out`, `error`: whether these streams lead to the journal. `asked`: whether lines of a format were asked for.
const fn ways(out: bool, error: bool, asked: bool) -> Ways {
    let entries = error && !(out && asked);
    Ways { lines: !(out && entries), entries }
}

/// The way to write the stream that was asked for; text on a terminal, JSON to a program.
pub(super) fn format_of(format: Option<Format>, wall: WallClock) -> Box<dyn sink::Format> {
    match Format::or_default(format, super::on_terminal()) {
        Format::Json => Box::new(Json::new(wall)),
        Format::Text => Box::new(Text::new(wall, jiff::tz::TimeZone::system(), Paint::of(&io::stdout()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_in_the_journal_once() {
        let (lines, entries) = (Ways { lines: true, entries: false }, Ways { lines: false, entries: true });
        let both = Ways { lines: true, entries: true };
        // As systemd starts it, and with --format.
        assert_eq!(ways(true, true, false), entries);
        assert_eq!(ways(true, true, true), lines);
        // A pipe or a file beside the journal.
        assert_eq!(ways(false, true, false), both);
        assert_eq!(ways(false, true, true), both);
        for asked in [false, true] {
            assert_eq!(ways(false, false, asked), lines);
            assert_eq!(ways(true, false, asked), lines);
        }
    }
}
