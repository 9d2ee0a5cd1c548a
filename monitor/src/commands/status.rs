//! `orphand status` and `orphand reload`.

use serde_json::json;

use crate::{
    cli::{self, ExitCode, logging},
    config::Config,
    control::client::Client,
    os::clock,
    sink::{paint::Paint, report, status as page, wall_clock::WallClock},
};

/// Prints whether the running daemon is well.
pub fn status(flags: &cli::Status) -> anyhow::Result<ExitCode> {
    let config = super::configured(&flags.places)?;
    let status = Client::new(&config.socket).status(flags.pss)?;
    let wall = WallClock { offset_ns: clock::realtime_offset() };
    super::print(&if flags.json {
        let mut all = serde_json::to_value(&status)?;
        if let Some(all) = all.as_object_mut() {
            all.insert("totals".to_owned(), json!(status.report.totals()));
        }
        report::json_with_times(&all, wall)?
    } else {
        page::render(
            &status,
            clock::now(),
            wall,
            &jiff::tz::TimeZone::system(),
            Paint::of(&std::io::stdout()),
        )
    })?;
    Ok(ExitCode::Done)
}

/// Makes the running daemon read its configuration again. If the file that names the socket has the mistake,
/// the default socket or that of the flag is used.
pub fn reload(flags: &cli::Reload) -> anyhow::Result<ExitCode> {
    let config = flags.places.load().unwrap_or_else(|_| flags.places.applied(Config::default()));
    logging::start();
    let reloaded = Client::new(&config.socket).reload()?;
    super::print(&if flags.json {
        report::json(&reloaded)?
    } else if reloaded.later.is_empty() {
        "Reloaded.\n".to_owned()
    } else {
        format!("Reloaded. {} changed: this takes effect at the next start.\n", reloaded.later.join(", "))
    })?;
    Ok(ExitCode::Done)
}
