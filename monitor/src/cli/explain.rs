//! The flags of `orphand explain`.

use clap::Args;
use clap_complete::ArgValueCandidates;

use super::Places;

/// Which process, and who is asked.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand explain 4711
  sudo orphand explain context7                         the servers of this name
  sudo orphand explain 4711 --report                    to paste into an issue
  sudo orphand explain 4711@229468 --json | jq '.explained[].reached_by'")]
pub struct Explain {
    /// A process number, the id of a server, or the name of a server or an agent
    #[arg(value_name = "PID|NAME|ID", add = ArgValueCandidates::new(super::complete::servers))]
    pub process: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print a bug report for the authors of a server or a client that leaks: no path, no argument, no name of a user
    #[arg(long, conflicts_with = "json")]
    pub report: bool,
    /// Configuration, daemon, store.
    #[command(flatten)]
    pub places: Places,
}
