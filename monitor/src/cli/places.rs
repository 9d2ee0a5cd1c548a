//! Where the configuration, the daemon and its store are: the flags that all verbs share.

use std::path::PathBuf;

use clap::Args;

use crate::{
    config::{Config, ConfigErrors},
    host::Scope,
};

/// What most verbs share: JSON or text, and whom to ask.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub places: Places,
}

/// Flags beat the file, the file beats the defaults.
#[derive(Args, Clone, Debug, Default)]
pub struct Places {
    /// The configuration [default: /etc/orphand/config.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The daemon's control socket [default: /run/orphand/control.sock]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// The directory of the daemon's store [default: /var/lib/orphand]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Judge and signal only what is below control groups whose names begin so: for tests
    #[arg(long, value_name = "NAME", hide = true)]
    pub below: Option<Scope>,
}

impl Places {
    /// The configuration with these flags.
    pub fn load(&self) -> Result<Config, ConfigErrors> {
        Config::load(self.config.as_deref()).map(|config| self.applied(config))
    }

    /// These flags over a configuration.
    pub fn applied(&self, config: Config) -> Config {
        Config {
            socket: self.socket.clone().unwrap_or(config.socket),
            state_dir: self.state_dir.clone().unwrap_or(config.state_dir),
            ..config
        }
    }

    /// Whether a store is named and no daemon is: then the store is read, and no daemon asked.
    pub const fn names_store_alone(&self) -> bool {
        self.state_dir.is_some() && self.socket.is_none()
    }
}
