//! `orphand status` and `orphand reload`.

use crate::{
    cli::{self, ExitCode, logging},
    config::Config,
    control::client::Client,
    sink::{paint::Paint, report, status as table},
};

/// Prints the status of the running daemon.
pub fn status(flags: &cli::Status) -> anyhow::Result<ExitCode> {
    let config = Config::load(flags.config.as_deref())?;
    logging::start(config.log);
    let socket = flags.socket.as_deref().unwrap_or(&config.socket);
    let status = Client::new(socket).status(flags.pss)?;
    let paint = Paint::of(&std::io::stdout());
    super::print(&if flags.json { report::json(&status)? } else { table::render(&status, paint) })?;
    Ok(ExitCode::Done)
}

/// Makes the running daemon read its configuration again. If the file that names the socket has the mistake,
/// the default socket or that of the flag is used.
pub fn reload(flags: &cli::Reload) -> anyhow::Result<ExitCode> {
    let config = Config::load(flags.config.as_deref()).unwrap_or_default();
    logging::start(config.log);
    let socket = flags.socket.as_deref().unwrap_or(&config.socket);
    let reloaded = Client::new(socket).reload()?;
    super::print(&if flags.json {
        report::json(&reloaded)?
    } else if reloaded.later.is_empty() {
        "Reloaded.\n".to_owned()
    } else {
        format!("Reloaded. {} changed: this takes effect at the next start.\n", reloaded.later.join(", "))
    })?;
    Ok(ExitCode::Done)
}
