//! The flags of `orphand ps`.

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCandidates;

use super::Places;
use crate::sink::list::Column;
use orphand_core::model::State;

/// What is listed, and how.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand ps
  sudo orphand ps --sort mem -o wide                    what costs most, and why it is there
  sudo orphand ps -t --agent claude                     the runs of claude, with all processes
  orphand ps --no-daemon --json | jq .totals
  orphand ps --exit-code > /dev/null || echo 'orphans, or a failure'")]
#[expect(clippy::struct_excessive_bools, reason = "they are flags")]
pub struct Ps {
    /// Show a tree: agents, runs, servers, processes
    #[arg(short, long)]
    pub tree: bool,
    /// Show it again and again, until Ctrl-C
    #[arg(short, long)]
    pub watch: bool,
    /// Look through /proc once, even if a daemon runs
    #[arg(long)]
    pub no_daemon: bool,
    /// What comes first
    #[arg(long, value_name = "COLUMN", default_value = "state")]
    pub sort: Column,
    /// Only servers in these states: orphan, ending, kept, unproven, suspect, live; or what ended agents
    /// left that is no server: leftover
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    pub state: Vec<State>,
    /// Only servers of agents of this name, or of this systemd unit
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(super::complete::agents))]
    pub agent: Option<String>,
    /// `wide` cuts nothing, and says why and by which command
    #[arg(short, value_name = "FORMAT")]
    pub output: Option<Width>,
    /// Print JSON, with totals
    #[arg(long)]
    pub json: bool,
    /// Exit with status 3 if there is an orphan (an unproven server is not one)
    #[arg(long)]
    pub exit_code: bool,
    /// Configuration, daemon, store.
    #[command(flatten)]
    pub places: Places,
}

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Width {
    /// Everything
    Wide,
}
