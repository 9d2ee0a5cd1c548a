//! The command line of `orphand config`.

use std::path::PathBuf;

use clap::Subcommand;

/// The verbs of `orphand config`.
#[derive(Debug, Subcommand)]
pub enum Config {
    /// Check the configuration: print every mistake with file, line and key
    #[command(long_about = "Check the configuration: print every mistake with file, line and key

Reads FILE and conf.d/*.toml next to it as the daemon does. Prints all mistakes on standard error, and notes about values that \
are probably not intended on standard output. As root, or with capabilities, a file that others can write is a mistake. For a \
file that is not TOML only that is printed, and at most 100 mistakes for one file. Exits with status 1 if there are mistakes.")]
    #[command(after_help = "Examples:
  orphand config check
  orphand config check ./config.toml
  orphand config check --json | jq -r '.errors[] | \"\\(.file):\\(.line) \\(.message)\"'")]
    Check {
        /// The file [default: /etc/orphand/config.toml, if it exists]
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the configuration in effect, including defaults
    #[command(after_help = "Examples:
  orphand config show --origin
  orphand config show --json | jq .grace")]
    Show {
        /// The configuration [default: /etc/orphand/config.toml, if it exists]
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Add to each value where it comes from
        #[arg(long, conflicts_with = "json")]
        origin: bool,
        /// Print JSON instead of TOML
        #[arg(long)]
        json: bool,
    },
    /// Print a configuration file with every key, commented out and explained
    #[command(after_help = "Example:
  orphand config default | sudo tee /etc/orphand/config.toml")]
    Default,
}
