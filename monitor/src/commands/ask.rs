//! `orphand status` and `orphand reload`.

use crate::{
    cli::{self, ExitCode, logging},
    config::Config,
    control::client::Client,
    sink::{paint::Paint, report, status as table},
};

/// The state of the running daemon.
pub fn status(flags: &cli::Status) -> anyhow::Result<ExitCode> {
    let config = Config::load(flags.config.as_deref())?;
    logging::start(config.log);
    let socket = flags.socket.as_deref().unwrap_or(&config.socket);
    let status = Client::new(socket).status(flags.pss)?;
    let paint = Paint::of(&std::io::stdout());
    super::print(&if flags.json { report::json(&status)? } else { table::render(&status, paint) })?;
    Ok(ExitCode::Done)
}

/// Has the running daemon read its configuration again. The file that names the socket may be the one with the mistake: then the
/// default socket is used, or that of the flag.
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
        format!("Reloaded. {} changed: that takes effect at the next start.\n", reloaded.later.join(", "))
    })?;
    Ok(ExitCode::Done)
}
