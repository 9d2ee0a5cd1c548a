//! `orphand doctor`: whether this host can be watched, and whether its units leave processes behind.

mod checks;

use std::{
    collections::{BTreeMap, BTreeSet},
    os::fd::AsRawFd as _,
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    fs::fstat,
    io::Errno,
    process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open},
};
use tokio::runtime::Builder;
use tracing_subscriber::filter::LevelFilter;

use super::offline::Offline;
use crate::{
    cli::{self, ExitCode, Places, logging},
    config::Config,
    control::client::Client,
    host::Proc,
    os::clock,
    probe::{
        EngineVersion, ManagerError, Probe,
        registry::{self, Sessions},
    },
    sink::doctor as page,
};
use orphand_core::model::{Check, Checkup, ProcessId, Report, Status, Unit, UnitCheckup};

/// How long all service managers together may take to answer.
const LIMIT: Duration = Duration::from_secs(20);

pub fn doctor(flags: &cli::Doctor) -> anyhow::Result<ExitCode> {
    let places = &flags.common.places;
    let (config, mistake) = match places.load() {
        Ok(config) => (config, None),
        Err(why) => (Config::default(), Some(Check::wrong("configuration", why.to_string()))),
    };
    // Warnings at the start are among the checks.
    logging::start_at(LevelFilter::ERROR);
    let mut checks = checks::of_host(places, &flags.lock);
    checks.extend(mistake);
    checks.push(named_pipes(duplicate()));
    checks.extend(all(&config));
    let seen = seen(&config, places)?;
    checks.push(checks::sight(&seen));
    let found = Checkup { checks, units: units(&seen)? };
    super::answer(flags.common.json, &found, |found| page::render(found, super::paint()))?;
    Ok(if found.is_wrong() { ExitCode::Failed } else { ExitCode::Done })
}

/// What a daemon has witnessed, or else what one look finds.
fn seen(config: &Config, places: &Places) -> anyhow::Result<Report> {
    match Client::new(places.socket()).within(checks::PATIENCE).status(false) {
        Ok(Status { mut report, blind, .. }) => {
            report.blind.extend(blind);
            Ok(report)
        }
        Err(_) => Ok(Offline::with(config, places)?.report()),
    }
}

#[derive(Debug, Default)]
struct Inhabitants {
    agents: Vec<(String, u32)>,
    orphans: usize,
    /// One of them. The manager of the unit is found through one of its processes.
    one: ProcessId,
}

/// The units that contain agents (with or without a rule) or what agents left behind.
fn units(seen: &Report) -> anyhow::Result<Vec<UnitCheckup>> {
    let probe = Probe::new()?;
    let mut inhabited: BTreeMap<Unit, Inhabitants> = BTreeMap::new();
    for agent in seen.agents.iter().map(|found| &found.agent).filter(|agent| agent.alive) {
        let one = agent.id();
        let Some(facts) = probe.unit(one) else { continue };
        let here = inhabited.entry(facts.unit).or_default();
        here.agents.push((agent.name.clone(), agent.pid));
        here.one = one;
    }
    for orphan in seen.orphans() {
        let mut processes = orphan.server.ids().into_iter();
        let Some((one, facts)) = processes.find_map(|one| Some((one, probe.unit(one)?))) else { continue };
        let here = inhabited.entry(facts.unit).or_default();
        here.orphans += 1;
        here.one = one;
    }
    let with_conmon = if inhabited.is_empty() { BTreeSet::new() } else { units_of(&probe, "conmon")? };
    // The host's own manager comes first, as its name is empty: a silent one of a user cannot use up its time.
    let (begun, mut silent) = (Instant::now(), BTreeMap::new());
    let checkups = inhabited.into_iter().map(|(unit, here)| {
        let asked_in_vain = silent.get(&unit.manager).copied();
        let (place, said) = if asked_in_vain.is_some() || begun.elapsed() > LIMIT {
            let why = "not asked: its manager, or a manager before it, did not answer in time";
            (asked_in_vain.unwrap_or_default(), Err(why.to_owned()))
        } else {
            let (place, said) = probe.service(here.one);
            if matches!(said, Err(ManagerError::Silent(_))) {
                silent.insert(unit.manager.clone(), place);
            }
            (place, said.map_err(|why| why.to_string()))
        };
        let (properties, blind) = said.map_or_else(|why| (None, Some(why)), |said| (Some(said), None));
        let conmon = with_conmon.contains(&unit);
        let advice = properties.as_ref().and_then(|shown| shown.advice(&unit, place, conmon));
        UnitCheckup { unit, place, agents: here.agents, orphans: here.orphans, properties, blind, advice }
    });
    Ok(checkups.collect())
}

fn units_of(probe: &Probe, program: &str) -> anyhow::Result<BTreeSet<Unit>> {
    let all = Proc::system()?.snapshot(clock::now(), |_| false, BTreeMap::new())?.processes;
    let its = all.iter().filter(|p| Path::new(&p.image.exe).file_name().is_some_and(|name| name == program));
    Ok(its.filter_map(|p| Some(probe.unit(p.id)?.unit)).collect())
}

/// The checks of the registry and of each engine that is configured; of others none.
fn all(config: &Config) -> Vec<Check> {
    let engines = &config.containers;
    let asked = [("Docker", &engines.docker), ("podman", &engines.podman)];
    let checks = asked.into_iter().filter_map(|(name, path)| {
        let socket = path.as_ref()?.display().to_string();
        Some(engine(name, &socket, engines.version(&name.to_lowercase())))
    });
    config.sessions.iter().map(registry).chain(checks).collect()
}

fn registry(sessions: &Sessions) -> Check {
    let (name, place) = ("session registry", sessions.redis.place());
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Check::wrong(name, format!("cannot ask it: {error}")),
    };
    let checked = runtime.block_on(registry::check(sessions));
    runtime.shutdown_background();
    match checked {
        Ok(()) => Check::ok(name, format!("{place} answers; its user may use INFO and EXISTS")),
        Err(why) => {
            Check::wrong(name, format!("{place} cannot be asked, so no session counts as expired: {why}"))
        }
    }
}

fn engine(name: &str, socket: &str, version: Result<EngineVersion, String>) -> Check {
    let check = format!("engine {name}");
    match version {
        Ok(EngineVersion { api, engine }) => {
            Check::ok(&check, format!("{socket} answers: version {engine}, API version {api}"))
        }
        Err(why) => Check::wrong(
            &check,
            format!(
                "{socket} does not answer ({why}), so orphans in its containers are reported and stay: is {name} running, and is this its socket?"
            ),
        ),
    }
}

/// Tries it with a descriptor of this process, which only a filter or an old kernel refuses.
fn duplicate() -> Result<bool, Errno> {
    let (read, _write) = rustix::pipe::pipe()?;
    let ourselves = pidfd_open(getpid(), PidfdFlags::empty())?;
    let copy = pidfd_getfd(&ourselves, read.as_raw_fd(), PidfdGetfdFlags::empty())?;
    Ok(fstat(&copy)?.st_ino == fstat(&read)?.st_ino)
}

fn named_pipes(tried: Result<bool, Errno>) -> Check {
    const NAME: &str = "named pipes";
    const COST: &str =
        "servers whose wires are named pipes cannot be judged and stay unproven (wire_unknown)";
    let (why, what) = match tried {
        Ok(true) => return Check::ok(NAME, "their ends can be inspected through a duplicate (pidfd_getfd)"),
        Ok(false) => return Check::wrong(NAME, format!("pidfd_getfd returns a wrong file: {COST}")),
        Err(Errno::NOSYS) => {
            ("this kernel or sandbox has no pidfd_getfd (ENOSYS)".to_owned(), "; it needs Linux 5.6")
        }
        Err(Errno::PERM) => (
            "a sandbox forbids pidfd_getfd (EPERM)".to_owned(),
            "; in a unit, SystemCallFilter=pidfd_getfd allows it",
        ),
        Err(errno) => (format!("pidfd_getfd fails ({errno})"), ""),
    };
    Check::note(NAME, format!("{why}: {COST}{what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use orphand_core::model::Health;

    fn config(text: &str) -> Config {
        Config::parse(text, "config.toml".as_ref()).unwrap()
    }

    #[test]
    fn what_is_not_configured_is_not_asked() {
        assert_eq!(all(&config("")), []);
    }

    #[test]
    fn an_engine_tells_its_version_or_is_no_engine() {
        let version = EngineVersion { api: "1.45".to_owned(), engine: "26.1.5".to_owned() };
        let well = engine("Docker", "/run/docker.sock", Ok(version));
        assert_eq!(well.is, Health::Ok);
        assert!(well.found.ends_with("answers: version 26.1.5, API version 1.45"), "{}", well.found);
        let other = engine("Docker", "/run/docker.sock", Err("no answer".to_owned()));
        assert_eq!(other.is, Health::Wrong);
        assert!(
            other.found.contains("(no answer), so") && other.found.contains("is Docker running"),
            "{}",
            other.found
        );
    }

    #[test]
    fn what_is_not_there_is_told() {
        let checks = all(&config(
            "[sessions]\nredis = \"redis://127.0.0.1:1/0\"\n[containers]\npodman = \"/nowhere/podman.sock\"\n",
        ));
        let of = |name: &str| checks.iter().find(|check| check.name == name).unwrap();
        let (registry, engine) = (of("session registry"), of("engine podman"));
        assert_eq!((registry.is, engine.is), (Health::Wrong, Health::Wrong));
        assert!(registry.found.contains("127.0.0.1:1/0 cannot be asked"), "{}", registry.found);
        assert!(engine.found.contains("/nowhere/podman.sock does not answer"), "{}", engine.found);
    }

    mod duplicates {
        use super::super::*;
        use orphand_core::model::Health;

        #[test]
        fn it_works_here() {
            assert_eq!(duplicate(), Ok(true));
            assert_eq!(named_pipes(duplicate()).is, Health::Ok);
        }

        #[test]
        fn what_it_costs_is_told_with_the_reason() {
            for (errno, word) in [(Errno::PERM, "EPERM"), (Errno::NOSYS, "ENOSYS"), (Errno::MFILE, "fails")] {
                let check = named_pipes(Err(errno));
                assert!(check.is == Health::Note && check.found.contains(word), "{check:?}");
                assert!(check.found.contains("wire_unknown"), "{check:?}");
            }
            assert_eq!(named_pipes(Ok(false)).is, Health::Wrong);
        }
    }
}
