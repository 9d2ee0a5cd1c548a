//! `orphand scan` and `orphand tree`: one reading of /proc, judged by the same engine, without the kernel side.

use super::offline::Offline;
use crate::{
    cli::{self, ExitCode, logging},
    config::Config,
    control::client::{Client, ClientError},
    sink::{paint::Paint, report, scan as table, tree as branches},
};
use orphand_core::model::Report;

/// Servers and orphans as a table.
pub fn scan(flags: &cli::Scan) -> anyhow::Result<ExitCode> {
    let found = inspect(flags.config.as_deref())?;
    let paint = Paint::of(&std::io::stdout());
    super::print(&if flags.json { report::json(&found)? } else { table::render(&found, paint) })?;
    let orphans = found.orphans().next().is_some();
    Ok(if flags.exit_code && orphans { ExitCode::Found } else { ExitCode::Done })
}

/// Agents, servers and processes as a tree.
pub fn tree(flags: &cli::Tree) -> anyhow::Result<ExitCode> {
    let found = if flags.no_daemon { inspect(flags.config.as_deref())? } else { ask_daemon(flags)? };
    let paint = Paint::of(&std::io::stdout());
    let width = branches::width(std::io::stdout());
    super::print(&if flags.json { report::json(&found)? } else { branches::render(&found, paint, width) })?;
    Ok(ExitCode::Done)
}

/// What the running daemon knows, which has witnessed it; without a daemon, what /proc shows.
fn ask_daemon(flags: &cli::Tree) -> anyhow::Result<Report> {
    let config = Config::load(flags.config.as_deref())?;
    let client = Client::new(flags.socket.as_deref().unwrap_or(&config.socket));
    match client.status(false) {
        Ok(mut status) => {
            status.report.blind.append(&mut status.blind);
            Ok(status.report)
        }
        Err(ClientError::NoDaemon { .. }) => inspect(flags.config.as_deref()),
        Err(error @ ClientError::Forbidden { .. }) => {
            let mut found = inspect(flags.config.as_deref())?;
            found.blind.push(format!("what the daemon knows: {error}"));
            Ok(found)
        }
        Err(error) => Err(error.into()),
    }
}

/// Reads /proc and judges by this configuration, without a daemon.
pub(super) fn inspect(config: Option<&std::path::Path>) -> anyhow::Result<Report> {
    let config = Config::load(config)?;
    logging::start(config.log);
    Ok(Offline::inspect(&config)?.report())
}
