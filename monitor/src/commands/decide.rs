//! `orphand pause`, `resume` and `mode`: a person decides, and the daemon remembers.

use anyhow::bail;
use jiff::{Timestamp, tz::TimeZone};

use crate::{
    cli::{self, ExitCode, ModeWord, Places},
    control::client::Client,
    sink::{report, standing::doing},
};
use orphand_core::model::{Decided, Decision, Mode};

/// Ends nothing for a while.
pub fn pause(flags: &cli::Pause) -> anyhow::Result<ExitCode> {
    let for_ms = flags.time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    decide(&flags.places, flags.json, Decision::Pause { for_ms })
}

/// Ends the pause.
pub fn resume(flags: &cli::Resume) -> anyhow::Result<ExitCode> {
    decide(&flags.places, flags.json, Decision::Resume)
}

/// Chooses a mode, or shows the one in effect.
pub fn mode(flags: &cli::Mode) -> anyhow::Result<ExitCode> {
    let mode = match flags.mode {
        None => return show(flags),
        Some(ModeWord::Observe) => Some(Mode::Observe),
        Some(ModeWord::Enforce) => Some(Mode::Reap),
        Some(ModeWord::Configured) => None,
    };
    decide(&flags.places, flags.json, Decision::Mode { mode })
}

fn decide(places: &Places, json: bool, decision: Decision) -> anyhow::Result<ExitCode> {
    let config = super::configured(places)?;
    // Whoever uses sudo(8) is somebody.
    let decided = Client::new(&config.socket).decide(decision, std::env::var("SUDO_USER").ok())?;
    print(&decided, json)?;
    if let Some(why) = decided.not_remembered {
        bail!(
            "it is in effect, and the next daemon will not know of it: {why}; free the state directory and say it again"
        );
    }
    Ok(ExitCode::Done)
}

fn show(flags: &cli::Mode) -> anyhow::Result<ExitCode> {
    let config = super::configured(&flags.places)?;
    let status = Client::new(&config.socket).status(false)?;
    print(&Decided { mode: status.mode, standing: status.standing, not_remembered: None }, flags.json)?;
    Ok(ExitCode::Done)
}

fn print(decided: &Decided, json: bool) -> anyhow::Result<()> {
    super::print(&if json {
        report::json(decided)?
    } else {
        format!(
            "orphand {}.\n",
            doing(decided.mode, &decided.standing, Timestamp::now(), &TimeZone::system())
        )
    })
}
