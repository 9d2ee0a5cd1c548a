//! `orphand history`: reads the store. The daemon is asked first, because a user who may ask it need not have
//! access to its files. Without a daemon, or with a given directory, the file is read.

use crate::{
    cli::{self, ExitCode, logging},
    config::Config,
    control::client::{Client, ClientError},
    host::boot_id,
    sink::{history as tables, paint::Paint},
    store,
};
use orphand_core::model::{History, HistoryQuery};

/// Prints past runs and orphans as tables.
pub fn history(flags: &cli::History) -> anyhow::Result<ExitCode> {
    let now = jiff::Timestamp::now();
    let query = HistoryQuery {
        // Nothing in a store began before 1970.
        since: Some(now.checked_sub(flags.since).unwrap_or(jiff::Timestamp::UNIX_EPOCH)),
        agent: flags.agent.clone(),
        // Without the boot id, the last boot that a daemon saw counts as the present one.
        boot_id: boot_id().ok(),
    };
    let past = past(flags, &query)?;
    let paint = Paint::of(&std::io::stdout());
    super::print(&if flags.json {
        tables::json(&past)?
    } else {
        tables::render(&past, now, &jiff::tz::TimeZone::system(), paint)
    })?;
    Ok(ExitCode::Done)
}

fn past(flags: &cli::History, query: &HistoryQuery) -> anyhow::Result<History> {
    if let Some(dir) = &flags.state_dir {
        return Ok(store::history::history(dir, query)?);
    }
    let config = Config::load(flags.config.as_deref())?;
    logging::start(config.log);
    let client = Client::new(flags.socket.as_deref().unwrap_or(&config.socket));
    match client.history(query.clone()) {
        Err(asked @ (ClientError::NoDaemon { .. } | ClientError::Forbidden { .. })) => {
            store::history::history(&config.state_dir, query)
                .map_err(|read| anyhow::anyhow!("{asked}; its store cannot be read either: {read}"))
        }
        answer => Ok(answer?),
    }
}
