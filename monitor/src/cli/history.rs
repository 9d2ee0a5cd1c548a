//! The flags of `orphand history`.

use clap::Args;
use clap_complete::ArgValueCandidates;

use super::{Places, moment::Moment};

/// Which part of the past, and who is asked.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand history
  sudo orphand history --at 14:03                       was it orphand? what was signalled around that time
  sudo orphand history --since 9:00 --until 12:30 --agent claude
  sudo orphand history --since 30d --leaks              which runs leaked, most memory first
  sudo orphand history --since 90d --json | jq '.runs[] | select(.orphans > 0)'")]
pub struct History {
    /// From when on: 90m, 24h, 7d, 4w before now, or a time such as 14:03 [default: 7d]
    #[arg(long, value_name = "DUR|TIME")]
    pub since: Option<Moment>,
    /// Until when: a time such as 14:03 or 2026-11-23 14:03, or 2h before now
    #[arg(long, value_name = "DUR|TIME")]
    pub until: Option<Moment>,
    /// The five minutes before and after a time
    #[arg(long, value_name = "TIME", conflicts_with_all = ["since", "until"])]
    pub at: Option<Moment>,
    /// Only agents and runs that left orphans behind, most memory first
    #[arg(long)]
    pub leaks: bool,
    /// Only agents of this name, or of this systemd unit
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(super::complete::agents))]
    pub agent: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Configuration, daemon, store.
    #[command(flatten)]
    pub places: Places,
}
