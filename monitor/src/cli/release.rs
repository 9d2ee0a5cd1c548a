//! The flags of `orphand release`.

use clap::Args;
use clap_complete::ArgValueCandidates;

use super::{Places, target};
use orphand_core::model::Asked;

/// Which servers, and who is told.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  orphand release 4711                                  the server that has this process
  orphand release 4711@229468 4712@229470 --json
  orphand release --session 0b8c8f2e                    all servers of a session")]
pub struct Release {
    /// Servers with these processes, by process number or by the id of the server
    #[arg(value_name = "PID|ID", value_parser = target, required_unless_present = "session")]
    #[arg(add = ArgValueCandidates::new(super::complete::servers))]
    pub targets: Vec<Asked>,
    /// The servers of this session, by its whole id
    #[arg(long, value_name = "ID", conflicts_with = "targets")]
    pub session: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Configuration, daemon, store.
    #[command(flatten)]
    pub places: Places,
}
