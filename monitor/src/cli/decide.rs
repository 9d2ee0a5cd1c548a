//! The command line of `orphand pause`, `resume` and `mode`.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::Places;
use orphand_core::model::duration::parse_period;

/// The flags of `orphand pause`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand pause 30m                                while you look into something
  sudo orphand pause                                    until: sudo orphand resume
  orphand status --json | jq .pause                     until when, and by whom")]
pub struct Pause {
    /// For how long, such as 30m, 8h or 7d [default: until `orphand resume`]
    #[arg(value_name = "DUR", value_parser = above_zero)]
    pub time: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Configuration, daemon, store.
    #[command(flatten)]
    pub places: Places,
}

fn above_zero(typed: &str) -> Result<Duration, String> {
    let time = parse_period(typed).map_err(|error| error.to_string())?;
    if time.is_zero() { Err("a pause takes a time above zero".to_owned()) } else { Ok(time) }
}

/// The flags of `orphand resume`.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  sudo orphand resume")]
pub struct Resume {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Configuration, daemon, store.
    #[command(flatten)]
    pub places: Places,
}

/// The flags of `orphand mode`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  orphand mode                                          what is in effect, and who decided it
  sudo orphand mode observe                             end nothing from now on
  sudo orphand mode configured                          take that back: as the configuration says")]
pub struct Mode {
    /// The mode [default: show it]
    pub mode: Option<ModeWord>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Configuration, daemon, store.
    #[command(flatten)]
    pub places: Places,
}

/// A mode to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeWord {
    /// Judge and report, never send a signal
    Observe,
    /// End orphans
    Enforce,
    /// What the configuration says
    Configured,
}
