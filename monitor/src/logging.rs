//! The log on standard error: what is wrong or odd with orphand itself. Events are the stream's business.
//!
//! Set up once by the commands, as soon as they know the configuration: nothing before that logs.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::LogLevel;

/// Beats the configuration: a level, or the directives of `tracing_subscriber::EnvFilter`.
const VARIABLE: &str = "ORPHAND_LOG";

/// Starts the log. `level` is the configuration's.
pub fn start(level: LogLevel) {
    let asked = std::env::var(VARIABLE).ok();
    let (filter, odd) = filter(asked.as_deref(), level);
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        // Nobody reads the log: no reason to end.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    // Fails where a log was started before: that one goes on.
    if log.try_init().is_ok()
        && let Some(why) = odd
    {
        tracing::warn!("{VARIABLE} is not understood ({why}): write error, warn, info, debug or trace");
    }
}

/// What is logged, and what is wrong with the variable.
fn filter(variable: Option<&str>, level: LogLevel) -> (EnvFilter, Option<String>) {
    let configured = || EnvFilter::new(level.as_str());
    match variable.map(str::trim).filter(|text| !text.is_empty()).map(EnvFilter::try_new) {
        None => (configured(), None),
        Some(Ok(asked)) => (asked, None),
        Some(Err(error)) => (configured(), Some(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_beats_the_file() {
        for (variable, level, effective) in [
            (None, LogLevel::Info, "info"),
            (None, LogLevel::Off, "off"),
            (Some(""), LogLevel::Debug, "debug"),
            (Some("warn"), LogLevel::Debug, "warn"),
            (Some("monitor=trace"), LogLevel::Error, "monitor=trace"),
        ] {
            let (filter, odd) = filter(variable, level);
            assert_eq!((filter.to_string().as_str(), odd), (effective, None), "{variable:?}");
        }
        let (filter, odd) = filter(Some("monitor=loud"), LogLevel::Warn);
        assert_eq!(filter.to_string(), "warn");
        assert!(odd.is_some());
    }
}
