//! `orphand history`: the past, from the daemon, whose files not everybody may read; without one from its store.

use std::time::Duration;

use jiff::{Timestamp, Zoned};

use crate::{
    cli::{self, ExitCode, moment::Moment},
    host::boot_id,
    os::clock,
    sink::history::{self as tables, Watched},
    store,
};
use orphand_core::model::{History, HistoryQuery, text};

const AROUND: Duration = Duration::from_secs(5 * 60);

const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

pub fn history(flags: &cli::History) -> anyhow::Result<ExitCode> {
    let zoned = Timestamp::now().to_zoned(clock::zone());
    let now = zoned.timestamp();
    let (since, until) = window(flags, &zoned)?;
    let query = HistoryQuery {
        since: Some(since),
        until,
        agent: flags.agent.clone(),
        // Without the boot id, the last boot that a daemon saw counts as the present one.
        boot_id: boot_id().ok(),
        never_judged: false,
    };
    let (past, asked_daemon) = past(flags, &query)?;
    let watched = if asked_daemon { Watched::Now(now) } else { Watched::without_daemon(&past) };
    let (zone, paint) = (clock::zone(), super::paint());
    super::print(&match (flags.leaks, flags.common.json) {
        (true, true) => tables::leaks::json(&past)?,
        (true, false) => tables::leaks::render(&past, &zone, paint),
        (false, true) => tables::json(&past, watched)?,
        (false, false) => tables::render(&past, watched, &zone, paint),
    })?;
    let none = past.runs.is_empty() && past.orphans.is_empty() && past.unproven.is_empty();
    Ok(match &flags.agent {
        Some(name) if none => super::unmatched(&format!("no run of {} in that time", text::quoted(name))),
        _ => ExitCode::Done,
    })
}

/// From when until when; what has not happened yet is not answered for.
fn window(flags: &cli::History, now: &Zoned) -> anyhow::Result<(Timestamp, Option<Timestamp>)> {
    let resolve = |typed: Option<Moment>| typed.map(|typed| super::resolve(typed, now)).transpose();
    let present = now.timestamp();
    let (since, until) = match (resolve(flags.at)?, resolve(flags.until)?, resolve(flags.since)?) {
        (Some(at), _, _) => (at.checked_sub(AROUND)?, Some(at.checked_add(AROUND)?)),
        (None, until, Some(since)) => (since, until),
        (None, until, None) => (until.unwrap_or(present).checked_sub(WEEK)?, until),
    };
    if since > present {
        anyhow::bail!("that time has not come yet; give an earlier one");
    }
    if until.is_some_and(|until| until < since) {
        anyhow::bail!("--until is before --since; give an earlier --since");
    }
    Ok((since, until.map(|until| until.min(present))))
}

fn past(flags: &cli::History, query: &HistoryQuery) -> anyhow::Result<(History, bool)> {
    let places = &flags.common.places;
    let client = super::daemon(places);
    let stored = || store::history::history(places.state_dir(), query);
    if places.names_store_alone() {
        return Ok((stored()?, false));
    }
    match super::asked(client.history(query.clone()))? {
        Ok(past) => {
            let store_error = client.status(false).ok().and_then(|status| status.store_error);
            Ok((History { store_error, ..past }, true))
        }
        Err(why) => match stored() {
            Ok(past) => Ok((past, false)),
            Err(read) => anyhow::bail!("{why}; its store cannot be read either: {read}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    fn told(flags: &[&str]) -> Result<(String, Option<String>), String> {
        let now: Zoned = "2026-11-21T15:00:00+00:00[UTC]".parse().unwrap();
        let typed = ["orphand", "history"].iter().chain(flags);
        let cli::Verb::History(flags) = cli::Cli::try_parse_from(typed).unwrap().verb else { panic!() };
        let (since, until) = window(&flags, &now).map_err(|error| error.to_string())?;
        Ok((since.to_string(), until.map(|until| until.to_string())))
    }

    #[test]
    fn from_when_until_when() {
        let between = |since: &str, until: Option<&str>| {
            Ok((format!("2026-11-{since}:00Z"), until.map(|at| format!("2026-11-{at}:00Z"))))
        };
        assert_eq!(told(&[]), between("14T15:00", None));
        assert_eq!(told(&["--since", "90m"]), between("21T13:30", None));
        assert_eq!(told(&["--at", "14:03"]), between("21T13:58", Some("21T14:08")));
        assert_eq!(told(&["--until", "14:03"]), between("14T14:03", Some("21T14:03")));
        // What has not happened yet is not answered for.
        assert_eq!(told(&["--at", "14:58"]), between("21T14:53", Some("21T15:00")));
        assert!(told(&["--at", "2026-11-22"]).unwrap_err().contains("not come yet"));
        assert!(told(&["--since", "1h", "--until", "2h"]).unwrap_err().contains("before --since"));
    }
}
