//! `orphand pause`, `resume` and `mode`: a person decides, and the daemon remembers.

use anyhow::bail;
use jiff::{Timestamp, tz::TimeZone};

use crate::{
    cli::{self, Common, ExitCode},
    sink::standing::doing,
};
use orphand_core::model::{Decided, Decision};

/// Ends nothing for a while.
pub fn pause(flags: &cli::Pause) -> anyhow::Result<ExitCode> {
    let for_ms = flags.time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    decide(&flags.common, Decision::Pause { for_ms })
}

/// Chooses a mode, or shows the one in effect.
pub fn mode(flags: &cli::Mode) -> anyhow::Result<ExitCode> {
    if let Some(decision) = flags.mode.clone() {
        return decide(&flags.common, decision);
    }
    let (_, client) = super::configured(&flags.common.places)?;
    let status = client.status(false)?;
    let decided = Decided { mode: status.mode, standing: status.standing, not_remembered: None };
    super::answer(flags.common.json, &decided, text)
}

pub fn decide(flags: &Common, decision: Decision) -> anyhow::Result<ExitCode> {
    let (_, client) = super::configured(&flags.places)?;
    // Whoever uses sudo(8) is somebody.
    let decided = client.decide(decision, std::env::var("SUDO_USER").ok())?;
    super::answer(flags.json, &decided, text)?;
    if let Some(why) = decided.not_remembered {
        bail!(
            "it is in effect, and the next daemon will not know of it: {why}; free the state directory and say it again"
        );
    }
    Ok(ExitCode::Done)
}

fn text(decided: &Decided) -> String {
    let doing = doing(decided.mode, &decided.standing, Timestamp::now(), &TimeZone::system());
    format!("orphand {doing}.\n")
}
