//! `orphand doctor`: can this host be watched, and do its units leave processes behind?

use std::{collections::BTreeMap, os::unix::process::CommandExt as _, process::Command};

use crate::{
    cli, clock,
    config::Config,
    exit_code::ExitCode,
    logging,
    model::{Check, Checkup, Image, Unit, UnitCheckup, UnitProperties},
    probe::Probe,
    recognise::Role,
    sink::{doctor as page, paint::Paint, report},
    source::{
        kernel::{KernelOptions, KernelSource},
        procfs::Procfs,
    },
};

const PROPERTIES: &str = "MainPID,KillMode,Restart,TimeoutStopUSec,Delegate,FragmentPath";

/// Looks, prints, and says by its status whether something is wrong.
pub fn doctor(flags: &cli::Doctor) -> anyhow::Result<ExitCode> {
    let config = Config::load(flags.config.as_deref())?;
    logging::start(config.log);
    let rules = config.rules();
    let found = Checkup { checks: checks(), units: units(&|image| rules.role(image))? };
    let paint = Paint::of(&std::io::stdout());
    super::print(&if flags.json { report::json(&found)? } else { page::render(&found, paint) })?;
    Ok(if found.is_wrong() { ExitCode::Failed } else { ExitCode::Done })
}

/// The programs are loaded and attached as the daemon does it, and taken off again: nothing else proves as much.
fn checks() -> Vec<Check> {
    let kernel = match KernelSource::open(&KernelOptions::default()) {
        Ok(source) => Check {
            name: "kernel".to_owned(),
            good: true,
            found: format!("rights, BTF, ring buffer and hooks are there: {}", source.hooks().join(", ")),
        },
        Err(error) => Check { name: "kernel".to_owned(), good: false, found: error.to_string() },
    };
    let root = rustix::process::geteuid().is_root();
    let sight = if root { "all processes" } else { "not root: other users' processes in part only" };
    vec![kernel, Check { name: "sight".to_owned(), good: root, found: sight.to_owned() }]
}

/// What lives in one unit.
#[derive(Default)]
struct Inhabitants {
    agents: Vec<(String, u32)>,
    uid: u32,
    conmon: bool,
}

fn units(role: &dyn Fn(&Image) -> Role) -> anyhow::Result<Vec<UnitCheckup>> {
    let probe = Probe::new()?;
    let mut inhabited: BTreeMap<Unit, Inhabitants> = BTreeMap::new();
    let mut monitors = Vec::new();
    for process in Procfs::system()?.snapshot(clock::now(), |_| false)?.processes {
        let conmon = process.image.exe.rsplit('/').next() == Some("conmon");
        let agent = match role(&process.image) {
            Role::Agent { name, .. } => Some(name),
            _ => None,
        };
        if !conmon && agent.is_none() {
            continue;
        }
        let Some(facts) = probe.unit(process.id) else { continue };
        match agent {
            Some(name) => {
                let unit = inhabited.entry(facts.unit).or_default();
                unit.agents.push((name, process.id.pid));
                unit.uid = process.uid;
            }
            None => monitors.push(facts.unit),
        }
    }
    for unit in monitors {
        if let Some(unit) = inhabited.get_mut(&unit) {
            unit.conmon = true;
        }
    }
    Ok(inhabited.into_iter().map(|(unit, who)| checkup(unit, who)).collect())
}

fn checkup(unit: Unit, who: Inhabitants) -> UnitCheckup {
    let user = unit.manager.rsplit('/').next().and_then(|name| name.strip_prefix("user@")).is_some();
    let (properties, blind) = match ask(&unit, user, who.uid) {
        Ok(properties) => (Some(properties), None),
        Err(why) => (None, Some(why)),
    };
    let advice = properties.as_ref().and_then(|shown| shown.advice(&unit, user, who.conmon));
    UnitCheckup { unit, agents: who.agents, properties, blind, advice }
}

/// Asks the unit's manager; a user's as that user, for it answers nobody else.
fn ask(unit: &Unit, user: bool, uid: u32) -> Result<UnitProperties, String> {
    let mut systemctl = Command::new("systemctl");
    if user {
        let runtime = format!("/run/user/{uid}");
        systemctl.arg("--user").env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={runtime}/bus"));
        systemctl.env("XDG_RUNTIME_DIR", runtime);
        if uid != rustix::process::geteuid().as_raw() {
            systemctl.uid(uid);
        }
    } else if !unit.manager.is_empty() {
        return Err(format!("its manager lives in {}: run `orphand doctor` there", unit.manager));
    }
    let shown = systemctl.args(["show", "-p", PROPERTIES, "--", &unit.name]).output();
    let shown = shown.map_err(|error| format!("cannot run systemctl: {error}"))?;
    let properties = UnitProperties::parse(&String::from_utf8_lossy(&shown.stdout));
    if !shown.status.success() || properties.kill_mode.is_empty() {
        let said = String::from_utf8_lossy(&shown.stderr);
        return Err(format!("systemctl show failed: {}", said.lines().next().unwrap_or("it said nothing")));
    }
    Ok(properties)
}
