//! `orphand status`.

use crate::{
    cli,
    config::Config,
    exit_code::ExitCode,
    front::client::Client,
    logging,
    sink::{paint::Paint, report, status as table},
};

/// How the running daemon stands.
pub fn status(flags: &cli::Status) -> anyhow::Result<ExitCode> {
    let config = Config::load(flags.config.as_deref())?;
    logging::start(config.log);
    let socket = flags.socket.as_deref().unwrap_or(&config.socket);
    let status = Client::new(socket).status(flags.pss)?;
    let paint = Paint::of(&std::io::stdout());
    super::print(&if flags.json { report::json(&status)? } else { table::render(&status, paint) })?;
    Ok(ExitCode::Done)
}
