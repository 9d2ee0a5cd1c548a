//! `orphand doctor`: whether this host can be watched, and whether its units leave processes behind.

mod checks;
mod duplicates;
mod sources;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::{Duration, Instant},
};

use tracing_subscriber::filter::LevelFilter;

use super::offline::Offline;
use crate::{
    cli::{self, ExitCode, logging},
    host::Proc,
    os::clock,
    probe::{ManagerError, Probe},
    sink::doctor as page,
};
use orphand_core::model::{Checkup, ProcessId, Report, Unit, UnitCheckup};

/// How long all service managers together may take to answer.
const LIMIT: Duration = Duration::from_secs(20);

/// Makes the checks and prints them. The status says whether something is wrong.
pub fn doctor(flags: &cli::Doctor) -> anyhow::Result<ExitCode> {
    let config = flags.common.places.load()?;
    // Warnings at the start are among the checks.
    logging::start_at(LevelFilter::ERROR);
    let mut checks = checks::of_host(&config, &flags.lock);
    checks.push(duplicates::check());
    checks.extend(sources::all(&config));
    let seen = Offline::inspect(&config, None)?.report();
    checks.push(checks::sight(&seen));
    let found = Checkup { checks, units: units(&seen)? };
    super::answer(flags.common.json, &found, |found| page::render(found, super::paint()))?;
    Ok(if found.is_wrong() { ExitCode::Failed } else { ExitCode::Done })
}

#[derive(Debug, Default)]
struct Inhabitants {
    /// The agents: name and pid.
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
    // The host's own manager comes first because its name is empty, so a silent manager of a user cannot use
    // up its time.
    let (begun, mut silent) = (Instant::now(), BTreeMap::new());
    let checkups = inhabited.into_iter().map(|(unit, here)| {
        let asked_in_vain = silent.get(&unit.manager).copied();
        if asked_in_vain.is_some() || begun.elapsed() > LIMIT {
            let why = "not asked: its manager, or a manager before it, did not answer in time";
            return UnitCheckup {
                unit,
                place: asked_in_vain.unwrap_or_default(),
                agents: here.agents,
                orphans: here.orphans,
                properties: None,
                blind: Some(why.to_owned()),
                advice: None,
            };
        }
        let (place, said) = probe.service(here.one);
        if matches!(said, Err(ManagerError::Silent(_))) {
            silent.insert(unit.manager.clone(), place);
        }
        let (properties, blind) = match said {
            Ok(properties) => (Some(properties), None),
            Err(why) => (None, Some(why.to_string())),
        };
        let conmon = with_conmon.contains(&unit);
        let advice = properties.as_ref().and_then(|shown| shown.advice(&unit, place, conmon));
        UnitCheckup { unit, place, agents: here.agents, orphans: here.orphans, properties, blind, advice }
    });
    Ok(checkups.collect())
}

/// The units in which a program of this name runs.
fn units_of(probe: &Probe, program: &str) -> anyhow::Result<BTreeSet<Unit>> {
    let all = Proc::system()?.snapshot(clock::now(), |_| false)?.processes;
    let its = all.iter().filter(|p| Path::new(&p.image.exe).file_name().is_some_and(|name| name == program));
    Ok(its.filter_map(|p| Some(probe.unit(p.id)?.unit)).collect())
}
