//! The command line of `orphand config`.

use std::path::PathBuf;

use clap::Subcommand;

/// The verbs of `orphand config`.
#[derive(Debug, Subcommand)]
pub enum Config {
    /// Check the configuration: a line for each mistake, with file, line and key
    #[command(long_about = "Check the configuration: a line for each mistake, with file, line and key

Reads FILE and conf.d/*.toml beside it as the daemon does. Mistakes go to standard error. What is allowed but probably not meant \
goes to standard output. As root, or with capabilities, a file that others may write is a mistake. A file that is no TOML is \
reported as that alone. Of one file the first 100 mistakes are reported. Ends with status 1 if anything is wrong.")]
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
        /// Show where each value came from
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
