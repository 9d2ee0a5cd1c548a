//! `orphand scan` and `orphand tree`: one look through /proc, by the same engine, without the kernel side.

use std::time::Duration;

use crate::{
    cli::{self, ExitCode, logging},
    config::Config,
    control::client::{Client, ClientError},
    daemon::{snapshot, unanswered},
    host::Procfs,
    os::clock,
    probe::Probe,
    sink::{paint::Paint, report, scan as table, tree as branches},
};
use orphand_core::{
    engine::{Engine, Settings},
    model::{Answer, Effect, Input, Mode, Report, ServerFacts, text},
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
    let found = if flags.no_daemon { look(flags.config.as_deref())? } else { asked(flags)? };
    let paint = Paint::of(&std::io::stdout());
    let width = branches::width(std::io::stdout());
    super::print(&if flags.json { report::json(&found)? } else { branches::render(&found, paint, width) })?;
    Ok(ExitCode::Done)
}

/// What the running daemon knows, who has witnessed it; without one, a look.
fn asked(flags: &cli::Tree) -> anyhow::Result<Report> {
    let config = Config::load(flags.config.as_deref())?;
    let client = Client::new(flags.socket.as_deref().unwrap_or(&config.socket));
    match client.status(false) {
        Ok(mut status) => {
            status.report.blind.append(&mut status.blind);
            Ok(status.report)
        }
        Err(ClientError::NoDaemon { .. }) => look(flags.config.as_deref()),
        Err(error @ ClientError::Forbidden { .. }) => {
            let mut found = look(flags.config.as_deref())?;
            found.blind.push(format!("what the daemon knows: {error}"));
            Ok(found)
        }
        Err(error) => Err(error.into()),
    }
}

/// One look, by the rules of this configuration.
pub(super) fn look(config: Option<&std::path::Path>) -> anyhow::Result<Report> {
    let config = Config::load(config)?;
    logging::start(config.log);
    let rules = config.rules();
    let procfs = Procfs::system()?;
    let probe = Probe::new()?;
    let snapshot = snapshot(&procfs, &probe, &rules)?;
    let settings = Settings { mode: Mode::Observe, grace: Duration::ZERO, rules, ..Settings::default() };
    let mut engine = Engine::new(settings);
    let mut blind = Vec::new();
    engine.handle(snapshot.horizon, Input::Snapshot { snapshot });
    answer_all(&mut engine, &probe, &mut blind);
    // Who holds a wire is known; now the verdicts on what nobody holds, some at a time.
    let now = clock::now();
    while engine.poll_timeout().is_some_and(|due| due <= now) {
        engine.handle_timeout(now);
        answer_all(&mut engine, &probe, &mut blind);
    }
    measure(&mut engine, &probe);
    let mut found = engine.report();
    if !rustix::process::geteuid().is_root() {
        blind
            .push("not root: what other users' processes run and hold could be seen in part only".to_owned());
    }
    let stuck = unanswered::all();
    if !stuck.is_empty() {
        blind.push(text::unanswered(&stuck));
    }
    blind.dedup();
    found.blind = blind;
    Ok(found)
}

fn answer_all(engine: &mut Engine, probe: &Probe, blind: &mut Vec<String>) {
    while let Some(effect) = engine.poll_effect() {
        if let Effect::Ask { token, about } = effect {
            let answer = probe.answer(&about, &Vec::new);
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
