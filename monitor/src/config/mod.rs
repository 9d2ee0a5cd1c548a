//! The configuration: TOML in one file and in `conf.d/*.toml` beside it, every key optional, an unknown or impossible one an
//! error that names file, line, column and key. Later files beat earlier ones, flags beat the files, the files beat the
//! defaults; the commands apply the flags.
//!
//! Only `files` reads; the rest is pure. What a key means is said once, in [`options`].
//!
//! ```
//! # let text = r#"
//! grace = "30s"
//! observe = false
//!
//! [[server]]                        # python3 /srv/tools/server.py, however it is started
//! name = "tools"
//! script = "/srv/tools/server.py"
//!
//! [[agent]]                         # node /usr/bin/mybot run
//! name = "mybot"
//! program = "mybot"
//! args = ["run"]
//!
//! [[exempt]]                        # never touched, nor what it starts
//! name = "shared broker"
//! package = "@me/broker-mcp"
//! # "#;
//! # orphand::config::Config::parse(text, "config.toml".as_ref()).unwrap();
//! ```

mod check;
mod error;
mod files;
mod hook;
mod listen;
mod loaded;
mod nearest;
mod notes;
pub mod options;
mod text;
pub mod written;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};

pub use self::{
    check::ENOUGH,
    error::{ConfigError, ConfigErrors, Content, Place, shown},
    hook::{ALL as EVERY_EVENT, Hook},
    listen::Listen,
    loaded::Loaded,
    text::Origins,
};
use orphand_core::{
    model::{AlertRule, MemberCount, Mode, Policy, RingSize, SetsidHook, duration},
    recognise::{Rule, RuleBook, Rules, not_agents},
};

/// Where the configuration is read from if nothing else is said. It need not exist.
pub const DEFAULT_PATH: &str = "/etc/orphand/config.toml";

/// The control socket, if nothing else is said.
pub const SOCKET: &str = "/run/orphand/control.sock";

/// The state directory, if nothing else is said.
pub const STATE_DIR: &str = "/var/lib/orphand";

/// The effective configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Judge, never signal.
    pub observe: bool,
    /// From the owner's exit to the verdict: at most a day.
    #[serde(with = "duration")]
    pub grace: Duration,
    /// From SIGTERM to SIGKILL: at most a day.
    #[serde(with = "duration")]
    pub term_timeout: Duration,
    /// Whether servers that run as another user than their owner may be ended.
    pub other_uids: bool,
    /// How setsid(2) is seen.
    pub setsid: SetsidHook,
    /// Size of the ring between kernel and daemon.
    pub ring_size: RingSize,
    /// How many processes can be followed at once; as many as can live, if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<MemberCount>,
    /// What is logged on standard error, unless the variable `ORPHAND_LOG` says otherwise.
    pub log: LogLevel,
    /// Where metrics are served.
    pub listen: Listen,
    /// The control socket.
    pub socket: PathBuf,
    /// The group whose members may use the control socket, beside root and the daemon's own user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket_group: Option<String>,
    /// What is to be remembered over restarts.
    pub state_dir: PathBuf,
    /// The alert hook.
    pub hook: Hook,
    /// Left alone, with all below.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "not_agents")]
    pub exempt: Vec<Rule>,
    /// Terminal multiplexers and the like.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "not_agents")]
    pub multiplexer: Vec<Rule>,
    /// MCP servers.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "not_agents")]
    pub server: Vec<Rule>,
    /// Agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agent: Vec<Rule>,
    /// Never an agent.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "not_agents")]
    pub steward: Vec<Rule>,
    /// Run other programs on their own standard streams.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "not_agents")]
    pub launcher: Vec<Rule>,
    /// Thresholds to be told of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alert: Vec<AlertRule>,
}

/// What is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// What failed.
    Error,
    /// What is odd.
    Warn,
    /// What happens.
    #[default]
    Info,
    /// What was decided and why.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// The word for it, as `tracing` reads it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            observe: false,
            grace: Duration::from_secs(10),
            term_timeout: Duration::from_secs(5),
            other_uids: false,
            setsid: SetsidHook::default(),
            ring_size: RingSize::default(),
            members: None,
            log: LogLevel::default(),
            listen: Listen::default(),
            socket: SOCKET.into(),
            socket_group: None,
            state_dir: STATE_DIR.into(),
            hook: Hook::default(),
            exempt: Vec::new(),
            multiplexer: Vec::new(),
            server: Vec::new(),
            agent: Vec::new(),
            steward: Vec::new(),
            launcher: Vec::new(),
            alert: Vec::new(),
        }
    }
}

impl Config {
    /// Reads `path`, or the default path, and `conf.d` beside it. A missing file is an error only if it was asked for. As root,
    /// or with capabilities, a file that others may write is refused.
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigErrors> {
        Loaded::read(path).config
    }

    /// Reads `text`, which came from `path`.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigErrors> {
        Loaded::of_text(text, path).config
    }

    /// The effective configuration as TOML; reading it gives the same configuration.
    pub fn render(&self) -> String {
        // it cannot fail: every key is a string and every value one that TOML has
        toml::to_string(self).unwrap_or_default()
    }

    /// The rules, those built in included.
    pub fn rules(&self) -> Rules {
        Rules::new(self.rule_book())
    }

    /// The rules of the file.
    fn rule_book(&self) -> RuleBook {
        let Self { exempt, multiplexer, server, agent, steward, launcher, .. } = self.clone();
        RuleBook { exempt, multiplexer, server, agent, steward, launcher }
    }

    /// What the engine judges by.
    pub fn policy(&self) -> Policy {
        Policy {
            mode: self.mode(),
            grace: self.grace,
            term_timeout: self.term_timeout,
            other_uids: self.other_uids,
            rules: self.rules().source(),
            alerts: self.alert.clone(),
        }
    }

    /// Whether to act.
    pub const fn mode(&self) -> Mode {
        if self.observe { Mode::Observe } else { Mode::Reap }
    }
}

#[cfg(test)]
mod tests;
