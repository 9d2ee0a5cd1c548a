//! The command line of `orphand spare`.

use clap::Args;
use clap_complete::ArgValueCandidates;

use super::Places;

/// The flags of `orphand spare`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand spare 4711                               the program of this process, wherever it runs
  sudo orphand spare inventory                          the servers of this name, as `orphand ps` shows it
  sudo orphand spare --unit gateway.service             what runs in this unit
  sudo orphand spare --slice mcp.slice                  what runs below this slice
  sudo orphand spare --unit gateway.service --user bob  what runs in it as this user
  orphand spare --list
  sudo orphand spare --remove inventory                 take it back")]
pub struct Spare {
    /// The program of this process, server or agent
    #[arg(value_name = "PID|ID|NAME", required_unless_present_any = ["unit", "user", "remove", "list"])]
    #[arg(conflicts_with_all = ["unit", "user", "remove", "list"])]
    #[arg(add = ArgValueCandidates::new(super::complete::servers))]
    pub what: Option<String>,
    /// What runs in this systemd service, or below this slice
    #[arg(long, visible_alias = "slice", value_name = "UNIT", conflicts_with_all = ["remove", "list"])]
    pub unit: Option<String>,
    /// What runs as this user
    #[arg(long, value_name = "USER", conflicts_with_all = ["remove", "list"])]
    pub user: Option<String>,
    /// Take an exemption back that this verb made, by its name
    #[arg(long, value_name = "NAME", conflicts_with = "list")]
    pub remove: Option<String>,
    /// Show the exemptions that this verb made
    #[arg(long)]
    pub list: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Configuration, daemon, store.
    #[command(flatten)]
    pub places: Places,
}
