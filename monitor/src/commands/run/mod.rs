//! `orphand run`: reads flags and configuration, and runs the daemon.

use std::{fs::File, io, path::Path, sync::Arc, time::Duration};

use anyhow::Context;
use rustix::{process::Signal, system::uname, thread::CapabilitySet};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    actuator::{
        hook::{self, Hooks, WriteLine},
        reaper::Reaper,
    },
    cli::{self, ExitCode, logging},
    commands::event_stream,
    config::{self, Config, DEFAULT_PATH},
    control::ControlServer,
    daemon::{
        Daemon, descriptor_shortage::DescriptorShortage, environment::Environment, inspections::Inspections,
        last_check::PendingRecords, member_shares::MemberShares, records::Completer, reload::Configuration,
        standing::Decisions, stuck_reads::StuckReads,
    },
    driver::Driver,
    host::{Alone, Instance, Proc, boot_id, process_limits},
    os::{
        capabilities, clock, descriptors,
        systemd_notify::Notify,
        trust::{self, Distrust},
        users,
    },
    probe::{Probe, registry::Registry},
    sink::{
        self,
        metrics::Metrics,
        stream::Json,
        wall_clock::{WallClock, shown},
    },
    source::{
        attach,
        kernel::{KernelOptions, KernelSource},
        kernel_side::KernelSide,
        selftest,
        trace::TraceWriter,
    },
    store::{self, Limits, StoreError, StoreWriter, Unkept, calls, standing},
};
use orphand_core::{
    engine::Engine,
    model::{BootTime, Knowledge, RING_BYTES, Status, TRACE_FORMAT, TraceHeader, members_for},
};

/// Names the user that hooks run as where the configuration names none: the service's unit sets it.
const HOOK_USER: &str = "ORPHAND_HOOK_USER";

pub fn run(flags: &cli::Run) -> anyhow::Result<ExitCode> {
    let config = effective(flags)?;
    logging::start();
    descriptors::raise()?;
    // One task; other threads write the stream and answer questions.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the event loop")?;
    let ended = runtime.block_on(watch(flags, &config));
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
fn require_own_places(flags: &cli::Run) -> anyhow::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    let places = [
        ("lock", Some(flags.lock.as_path())),
        ("socket", Some(flags.places.socket())),
        ("state-dir", Some(flags.places.state_dir())),
        ("record", flags.record.as_deref()),
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

/// Puts the daemon together, in an order in which each step has what it needs and no more rights than it needs, and runs it.
async fn watch(flags: &cli::Run, config: &Config) -> anyhow::Result<()> {
    // Where files may not grow any further (RLIMIT_FSIZE), that is a disk that is full: no end without a word.
    let _full = signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).context("cannot take SIGXFSZ")?;
    let alone = Alone::begin();
    // `--observe` is for as long as the daemon lives. What the configuration says may change.
    let rights = if flags.observe { capabilities::TO_OBSERVE } else { capabilities::TO_RUN };
    attach::require_rights(rights)?;
    attach::require_host_namespaces()?;
    let hooks = hooks(flags, config)?;
    require_own_places(flags)?;
    let instance = Instance::lock(&flags.lock)?;
    let front = ControlServer::bind(config.listen.0, flags.places.socket(), config.socket_group.as_deref())?;
    let rules = config.rules();
    let procfs = Proc::system()?;
    let decisions = Decisions::new(standing::read(flags.places.state_dir()), flags.observe);
    let policy = decisions.policy(config);
    let mut status = Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        term_timeout_ms: u64::try_from(config.term_timeout.as_millis()).unwrap_or(u64::MAX),
        mode: policy.mode,
        standing: decisions.standing.clone(),
        config: std::path::absolute(flags.places.config.as_deref().unwrap_or(DEFAULT_PATH.as_ref())).ok(),
        ..Status::default()
    };
    let ourselves = procfs.ourselves()?;
    let engine = Engine::new(policy.clone(), ourselves.clone()).context("cannot read the rules back")?;
    // Without it processes of an earlier boot would pass for those of this one.
    let boot = boot_id()?;
    let place = (flags.places.state_dir(), boot.as_str());
    let (called, earlier) = calls::read(place.0, place.1);
    let options = KernelOptions {
        candidates: rules.candidates(),
        setsid: flags.setsid.unwrap_or_default(),
        ring_bytes: flags.ring_size.unwrap_or(RING_BYTES),
        // As many as can live.
        members: flags.members.unwrap_or_else(|| members_for(process_limits())),
        wired_strangers: config.recognise_protocol,
        log: flags.debug_bpf,
        calls: called,
        ..KernelOptions::default()
    };
    let wall = WallClock { offset_ns: clock::realtime_offset() };
    let header = TraceHeader {
        format: TRACE_FORMAT,
        version: status.version.clone(),
        kernel: uname().release().to_string_lossy().into_owned(),
        realtime_offset_ns: wall.offset_ns,
        policy,
        ourselves,
    };
    let trace = flags.record.as_ref().map(|path| TraceWriter::create(path, &header)).transpose()?;
    // If SIGCHLD was ignored by the parent, nobody can wait for a child (wait(2)): that of the self-test, those of the hook.
    let _children = signal(SignalKind::child()).context("cannot take SIGCHLD")?;
    let mut kernel = KernelSource::open(&options)?;
    let early = selftest::run(&mut kernel, selftest::command())?;
    give_up(&mut kernel, flags.places.state_dir(), &hooks)?;
    drop(alone);
    let side = kernel.side();
    let probe = Probe::new()?.with_engines(config.containers.clone()).with_kernel(side.clone());
    let metrics = Metrics::new(wall);
    let (store, knowledge, unkept) = open_store(place, wall.offset_ns, instance.file()?)?;
    let unknown_before = earlier.unknown_before(&knowledge);
    status.forgotten = forgotten(knowledge.incomplete_before, unknown_before, wall);
    let configuration = configuration(flags, config);
    let (stream, events) = event_stream::open(flags.format, wall, flags.places.state_dir())?;
    let (_serving, queries) = front.start(metrics.clone(), events, flags.places.state_dir())?;
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
        inspections: Inspections::default(),
        registry: Registry::new(config.sessions.clone()),
    };
    let daemon = Daemon {
        driver: Driver::new(engine, trace).within(flags.places.below.clone()),
        outside,
        configuration,
        decisions,
        notify: Notify::from_environment(clock::now()),
        queries,
        ready_at: None,
    };
    let _keeper = keep_calls(place, side, unknown_before, unkept)?;
    daemon.run(knowledge, early).await
}

/// What earlier daemons knew and this one does not, for people.
fn forgotten(incomplete: Option<BootTime>, called: Option<BootTime>, wall: WallClock) -> Vec<String> {
    let before = |at, what: &str| {
        format!("of servers that began before {}, {what}", shown(wall.timestamp(at), &clock::zone()))
    };
    let by_person = "what they let go: only you end those (sudo orphand reap)";
    let with_port =
        "who called them: those with a TCP port stay (sudo orphand reap --include-unproven ends one)";
    let all = [incomplete.map(|at| before(at, by_person)), called.map(|at| before(at, with_port))];
    all.into_iter().flatten().collect()
}

/// Keeps who calls servers. Who called before a time is not known.
fn keep_calls(
    place: (&Path, &str),
    side: KernelSide,
    unknown_before: Option<BootTime>,
    unkept: Unkept,
) -> io::Result<calls::Keeper> {
    if let (Some(known), Some(at)) = (&side.calls, unknown_before) {
        known.forget_before(at);
    }
    let known = move || side.calls.as_ref().map(|known| known.kept()).unwrap_or_default();
    calls::Keeper::start(place, unknown_before, calls::KEEP_EVERY, unkept, known)
}

/// Opens the store in `dir`; returns what earlier daemons knew, too, and what tells the next one in the file of the lock. Fails only
/// for a store that a newer orphand wrote.
fn open_store(
    (dir, boot): (&Path, &str),
    offset_ns: i64,
    lock: File,
) -> anyhow::Result<(StoreWriter, Knowledge, Unkept)> {
    let unkept = Unkept::of(lock);
    let (store, found) = StoreWriter::open(dir, boot, offset_ns, Limits::default(), unkept.another());
    let mut knowledge = match found {
        Ok((set_aside, knowledge)) => {
            if let Some(aside) = set_aside {
                tracing::warn!("{aside}");
            }
            knowledge
        }
        Err(error @ StoreError::Newer { .. }) => return Err(error.into()),
        Err(_) => Knowledge::default(),
    };
    knowledge.incomplete_before = unkept.before();
    if knowledge.incomplete_before.is_some() {
        tracing::warn!(
            "not all that an earlier orphand knew is kept: servers from then are ended only by you (sudo orphand reap)"
        );
    }
    Ok((store, knowledge, unkept))
}

/// Gives up the capabilities that only the start needs. A thread that was started before would keep them ([`Alone`]).
fn give_up(kernel: &mut KernelSource, state_dir: &Path, hooks: &[hook::Settings]) -> anyhow::Result<()> {
    // Its parent may be another user's: afterwards it could not be made. A failure is reported when the store is opened.
    let _ = store::create_directory(state_dir);
    let become_others = hooks.iter().any(hook::Settings::is_for_another_user);
    let besides = if become_others { capabilities::OTHER_USERS } else { CapabilitySet::empty() };
    let kept = capabilities::drop_to(besides, || kernel.works())?;
    tracing::info!("capabilities that stay: {}", kept.in_words());
    Ok(())
}

fn hook_line(wall: WallClock) -> Box<WriteLine> {
    Box::new(move |number, at, notice| {
        let mut line = String::new();
        sink::Format::write(&mut Json::after(wall, number - 1), at, notice, &mut line);
        line
    })
}
