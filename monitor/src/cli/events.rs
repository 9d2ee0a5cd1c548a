//! The flags of `orphand events`.

use clap::Args;

use super::{Format, Places, moment::Moment};

/// Which events, and who is asked.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand events                                   the last 24 hours
  sudo orphand events --follow                          what happens from now on
  sudo orphand events --since 14:03 --follow            the same, and what was told since 14:03
  sudo orphand events --since 7d --json | jq 'select(.event == \"orphan_reaped\")'")]
pub struct Events {
    /// Go on with what happens from now on
    #[arg(short, long)]
    pub follow: bool,
    /// From when on: 90m, 24h, 7d before now, or a time such as 14:03 [default: 24h; with --follow: now]
    #[arg(long, value_name = "DUR|TIME")]
    pub since: Option<Moment>,
    /// Output format [default: text on a terminal, otherwise json]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Print JSON, one object a line: --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Configuration, daemon, store.
    #[command(flatten)]
    pub places: Places,
}
