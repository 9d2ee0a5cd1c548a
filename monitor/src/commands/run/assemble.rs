//! Puts the daemon together.

use anyhow::Context;
use rustix::{system::uname, thread::CapabilitySet};
use tokio::signal::unix::{SignalKind, signal};

use super::{configuration, hooks, require_own_places};
use crate::{
    actuator::{
        hook::{self, Hooks, WriteLine},
        reaper::Reaper,
    },
    cli,
    commands::event_stream,
    config::{Config, DEFAULT_PATH},
    control::ControlServer,
    daemon::{
        Daemon, command_lines::Completer, descriptor_shortage::DescriptorShortage, environment::Environment,
        inspections::Inspections, last_check::PendingRecords, member_shares::MemberShares, persistence,
        reload, standing::Decisions, stuck_reads::StuckReads,
    },
    driver::Driver,
    host::{Alone, Instance, Proc},
    os::{capabilities, clock, systemd_notify::Notify},
    probe::{Engines, Probe, registry::Registry},
    sink::{self, metrics::Metrics, stream::Json, wall_clock::WallClock},
    source::{
        attach,
        kernel::{KernelOptions, KernelSource},
        members, selftest,
        trace::TraceWriter,
    },
    store::{self, standing},
};
use orphand_core::{
    engine::{Engine, Settings},
    model::{Policy, RingSize, Status, TRACE_FORMAT, TraceHeader},
};

/// Puts the daemon together, in an order in which each step has what it needs and no more rights than it needs, and runs it.
pub(super) async fn watch(flags: &cli::Run, config: &Config) -> anyhow::Result<()> {
    let alone = Alone::begin();
    attach::require_rights()?;
    attach::require_initial_pid_namespace()?;
    let hooks = hooks(flags, config)?;
    require_own_places(flags, config)?;
    let _instance = Instance::lock(&flags.lock)?;
    let front = ControlServer::bind(config.listen.0, &config.socket, config.socket_group.as_deref())?;
    let rules = config.rules();
    let procfs = Proc::system()?;
    let decisions = Decisions::new(standing::read(&config.state_dir), flags.observe);
    let policy = decisions.policy(config);
    let mut status = status_at_start(config);
    (status.mode, status.standing) = (policy.mode, decisions.standing.clone());
    status.config = std::path::absolute(flags.places.config.as_deref().unwrap_or(DEFAULT_PATH.as_ref())).ok();
    let ourselves = procfs.ourselves()?;
    let settings = Settings::new(policy.clone(), ourselves).context("cannot read the rules back")?;
    let options = KernelOptions {
        candidates: rules.candidates(),
        setsid: flags.setsid.unwrap_or_default(),
        ring_bytes: flags.ring_size.unwrap_or(RingSize::DEFAULT).bytes(),
        members: flags.members.unwrap_or_else(members::as_many_as_can_live).get(),
        wired_strangers: config.recognise_protocol,
        log: flags.debug_bpf,
        ..KernelOptions::default()
    };
    let wall = WallClock { offset_ns: clock::realtime_offset() };
    let trace = match &flags.record {
        Some(path) => Some(TraceWriter::create(path, &header(policy, &settings, wall))?),
        None => None,
    };
    // If SIGCHLD was ignored by the parent, nobody can wait for a child (wait(2)): that of the self-test, those of the hook.
    let _children = signal(SignalKind::child()).context("cannot take SIGCHLD")?;
    let mut kernel = KernelSource::open(&options)?;
    let early = selftest::run(&mut kernel, selftest::command())?;
    give_up(&mut kernel, config, &hooks)?;
    drop(alone);
    let (docker, podman) = (config.containers.docker.clone(), config.containers.podman.clone());
    let probe = Probe::new()?.with_engines(Engines { docker, podman }).with_kernel(kernel.side());
    let metrics = Metrics::new(wall);
    let (store, knowledge) = persistence::open(&config.state_dir, wall.offset_ns)?;
    let configuration = configuration(flags, config);
    let (stream, events) = event_stream::open(flags.format, wall, &config.state_dir)?;
    let (_serving, queries) = front.start(metrics.clone(), events, &config.state_dir)?;
    let outside = Environment {
        rules,
        kernel,
        procfs,
        probe,
        reaper: Reaper::new()?.within(flags.places.below.clone()),
        stream,
        hooks: Hooks::start(hooks, hook_line(wall))?,
        metrics,
        store,
        status,
        pending: PendingRecords::default(),
        seen_until: clock::now(),
        doubtful: false,
        completer: Completer::default(),
        gone: Vec::new(),
        no_room: false,
        shares: MemberShares::default(),
        descriptors: DescriptorShortage::default(),
        stuck: StuckReads::default(),
        inspections: Inspections::new(),
        registry: Registry::new(config.sessions.as_ref().map(reload::registry)),
    };
    let daemon = Daemon {
        driver: Driver::new(Engine::new(settings), trace).within(flags.places.below.clone()),
        outside,
        configuration,
        decisions,
        notify: Notify::from_environment(clock::now()),
        queries,
        ready_at: None,
    };
    daemon.run(knowledge, early).await
}

/// Gives up the capabilities that only the start needs. No other thread may have been started before: it would keep them
/// ([`Alone`]).
fn give_up(kernel: &mut KernelSource, config: &Config, hooks: &[hook::Settings]) -> anyhow::Result<()> {
    // The directory above it may belong to another user: afterwards it could not be made. A failure is reported when the
    // store is opened.
    let _ = store::create_directory(&config.state_dir);
    let become_others = hooks.iter().any(hook::Settings::is_for_another_user);
    let besides = if become_others { capabilities::OTHER_USERS } else { CapabilitySet::empty() };
    let kept = capabilities::drop_to(besides, || kernel.works())?;
    tracing::info!("capabilities that stay: {}", kept.in_words());
    Ok(())
}

/// What `status` says of the daemon from the start on.
fn status_at_start(config: &Config) -> Status {
    Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        term_timeout_ms: u64::try_from(config.term_timeout.as_millis()).unwrap_or(u64::MAX),
        ..Status::default()
    }
}

/// The line that a hook reads of an event: that of the stream.
fn hook_line(wall: WallClock) -> Box<WriteLine> {
    Box::new(move |number, at, notice| {
        let mut line = String::new();
        sink::Format::write(&mut Json::after(wall, number - 1), at, notice, &mut line);
        line
    })
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
