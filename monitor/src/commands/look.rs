//! `orphand scan` and `orphand tree`: one look through /proc, by the same engine, without the kernel side.

use std::time::Duration;

use crate::{
    cli, clock,
    config::Config,
    daemon::{fill_units, matters},
    engine::{Engine, Settings},
    exit_code::ExitCode,
    logging,
    model::{Answer, Effect, Input, Mode, Report, ServerFacts},
    probe::Probe,
    sink::{paint::Paint, report, scan as table, tree as branches},
    source::procfs::Procfs,
};

/// Servers and orphans as a table.
pub fn scan(flags: &cli::Scan) -> anyhow::Result<ExitCode> {
    let found = look(flags.config.as_deref())?;
    let paint = Paint::of(&std::io::stdout());
    super::print(&if flags.json { report::json(&found)? } else { table::render(&found, paint) })?;
    let orphans = found.orphans().next().is_some();
    Ok(if flags.exit_code && orphans { ExitCode::Found } else { ExitCode::Done })
}

/// Agents, servers and processes as a tree.
pub fn tree(flags: &cli::Tree) -> anyhow::Result<ExitCode> {
    let found = look(flags.config.as_deref())?;
    let paint = Paint::of(&std::io::stdout());
    let width = branches::width(std::io::stdout());
    super::print(&if flags.json { report::json(&found)? } else { branches::render(&found, paint, width) })?;
    Ok(ExitCode::Done)
}

fn look(config: Option<&std::path::Path>) -> anyhow::Result<Report> {
    let config = Config::load(config)?;
    logging::start(config.log);
    let rules = config.rules();
    let procfs = Procfs::system()?;
    let probe = Probe::new()?;
    let horizon = clock::now();
    let mut snapshot = procfs.snapshot(horizon, |image| matters(&rules.role(image)))?;
    fill_units(&probe, &rules, &mut snapshot);
    let settings = Settings { mode: Mode::Observe, grace: Duration::ZERO, rules, ..Settings::default() };
    let mut engine = Engine::new(settings);
    let mut blind = Vec::new();
    engine.handle(horizon, Input::Snapshot { snapshot });
    answer_all(&mut engine, &probe, &mut blind);
    // Who holds a wire is known; now the verdicts on what nobody holds.
    engine.handle_timeout(clock::now());
    answer_all(&mut engine, &probe, &mut blind);
    measure(&mut engine, &probe);
    let mut found = engine.report();
    if !rustix::process::geteuid().is_root() {
        blind
            .push("not root: what other users' processes run and hold could be seen in part only".to_owned());
    }
    blind.dedup();
    found.blind = blind;
    Ok(found)
}

fn answer_all(engine: &mut Engine, probe: &Probe, blind: &mut Vec<String>) {
    while let Some(effect) = engine.poll_effect() {
        if let Effect::Ask { token, about } = effect {
            let answer = probe.answer(&about);
            if let Answer::Server { facts: ServerFacts { blind: Some(why), .. } } = &answer {
                blind.push(why.clone());
            }
            engine.handle(clock::now(), Input::Answered { token, answer });
        }
    }
}

/// The memory of all servers, for the report.
fn measure(engine: &mut Engine, probe: &Probe) {
    engine.measure();
    answer_all(engine, probe, &mut Vec::new());
}
