//! `orphand history`: what the store tells, with or without a running daemon.

use crate::{
    cli,
    exit_code::ExitCode,
    model::HistoryQuery,
    sink::{history as tables, paint::Paint},
    store,
};

/// Past runs and orphans as tables.
pub fn history(flags: &cli::History) -> anyhow::Result<ExitCode> {
    let now = jiff::Timestamp::now();
    let query = HistoryQuery {
        // What began before 1970 is not in any store.
        since: Some(now.checked_sub(flags.since).unwrap_or(jiff::Timestamp::UNIX_EPOCH)),
        agent: flags.agent.clone(),
        // Without it the last boot that a daemon saw is taken for this one.
        boot_id: std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .ok()
            .map(|id| id.trim().to_owned()),
    };
    let past = store::history::history(&flags.state_dir, &query)?;
    let paint = Paint::of(&std::io::stdout());
    super::print(&if flags.json {
        tables::json(&past)?
    } else {
        tables::render(&past, now, &jiff::tz::TimeZone::system(), paint)
    })?;
    Ok(ExitCode::Done)
}
