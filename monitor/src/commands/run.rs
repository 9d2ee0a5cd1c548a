//! `orphand run`: puts the daemon together.

use std::{io, time::Duration};

use anyhow::Context;
use rustix::system::uname;

use crate::{
    cli::{self, Format},
    clock,
    config::{self, Config},
    daemon::{Daemon, memory::Memory, ourselves},
    engine::{Engine, Settings},
    exit_code::ExitCode,
    front::Front,
    instance::Instance,
    logging,
    model::Status,
    probe::Probe,
    sink::{
        self,
        hook::{self, Hook},
        human::Text,
        metrics::Metrics,
        outlet::{self, Outlet},
        paint::Paint,
        reaper::Reaper,
        stream::Json,
        wall::Wall,
    },
    source::{
        attach,
        kernel::{KernelOptions, KernelSource},
        procfs::Procfs,
        selftest,
        trace::{FORMAT, Header, TraceWriter},
    },
};

/// Watches until it is told to stop.
pub fn run(flags: &cli::Run) -> anyhow::Result<ExitCode> {
    let config = effective(flags)?;
    logging::start(config.log);
    // One task; other threads write the stream and answer questions.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the event loop")?;
    runtime.block_on(watch(flags, &config))?;
    Ok(ExitCode::Done)
}

/// Flags beat the file, the file beats the defaults.
fn effective(flags: &cli::Run) -> anyhow::Result<Config> {
    let mut config = Config::load(flags.config.as_deref())?;
    config.observe |= flags.observe;
    config.grace = flags.grace.unwrap_or(config.grace);
    config.term_timeout = flags.term_timeout.unwrap_or(config.term_timeout);
    config.ring_size = flags.ring_size.unwrap_or(config.ring_size);
    config.setsid = flags.setsid.unwrap_or(config.setsid);
    config.listen = flags.listen.unwrap_or(config.listen);
    config.socket = flags.socket.clone().unwrap_or(config.socket);
    config.state_dir = flags.state_dir.clone().unwrap_or(config.state_dir);
    config.hook.path = flags.hook.clone().or(config.hook.path);
    Ok(config)
}

async fn watch(flags: &cli::Run, config: &Config) -> anyhow::Result<()> {
    attach::require_rights()?;
    attach::require_initial_pid_namespace()?;
    let hook = hook_of(&config.hook)?;
    let _instance = Instance::lock(&flags.lock)?;
    let front = Front::bind(config.listen.address(), &config.socket, config.socket_group.as_deref())?;
    let rules = config.rules();
    let procfs = Procfs::system()?;
    let settings = Settings {
        mode: config.mode(),
        grace: config.grace,
        term_timeout: config.term_timeout,
        other_uids: config.other_uids,
        rules: rules.clone(),
        ourselves: ourselves(&procfs.snapshot(clock::now(), |_| false)?),
    };
    let options = KernelOptions {
        candidates: rules.candidates(),
        setsid: config.setsid,
        ring_bytes: config.ring_size.bytes(),
        log: flags.debug_bpf,
        ..KernelOptions::default()
    };
    let wall = Wall { offset_ns: clock::realtime_offset() };
    let trace = match &flags.record {
        Some(path) => Some(TraceWriter::create(path, &header(&settings, wall, rules.source()))?),
        None => None,
    };
    let mut kernel = KernelSource::open(&options)?;
    let early = selftest::run(&mut kernel, selftest::command())?;
    let metrics = Metrics::new(wall);
    let (memory, knowledge) = Memory::open(&config.state_dir, wall.offset_ns)?;
    let (_serving, queries) = front.start(metrics.clone(), &config.state_dir)?;
    let daemon = Daemon {
        engine: Engine::new(settings),
        rules,
        kernel,
        procfs,
        probe: Probe::new()?,
        reaper: Reaper::new()?,
        stream: stream(flags.format, wall, config.grace)?,
        hook: Hook::start(hook, wall)?,
        memory,
        knowledge,
        metrics,
        queries,
        standing: standing(config),
        ready_at: None,
        doubtful: false,
        trace,
        seen_until: clock::now(),
        gone: Vec::new(),
    };
    daemon.run(early).await
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

fn header(settings: &Settings, wall: Wall, config: String) -> Header {
    Header {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: uname().release().to_string_lossy().into_owned(),
        realtime_offset_ns: wall.offset_ns,
        mode: settings.mode,
        grace: settings.grace,
        term_timeout: settings.term_timeout,
        other_uids: settings.other_uids,
        ourselves: settings.ourselves.clone(),
        config,
    }
}

fn stream(format: Option<Format>, wall: Wall, grace: Duration) -> anyhow::Result<Outlet> {
    let format = format_of(format, wall, grace);
    Outlet::start("stream", io::stdout(), format, outlet::QUEUE)
        .context("cannot start the writer of the stream")
}

/// The way to write the stream that was asked for; text on a terminal, JSON to a program.
pub(super) fn format_of(format: Option<Format>, wall: Wall, grace: Duration) -> Box<dyn sink::Format> {
    match Format::or_default(format, super::on_terminal()) {
        Format::Json => Box::new(Json::new(wall)),
        Format::Text => {
            Box::new(Text::new(wall, jiff::tz::TimeZone::system(), Paint::of(&io::stdout()), grace))
        }
    }
}
