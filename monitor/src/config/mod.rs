//! The configuration: TOML in one file and in `conf.d/*.toml` next to it. Every key is optional.
//!
//! An unknown key or an impossible value is an error that names file, line, column and key. Later files override
//! earlier ones, and the flags, which the commands apply, override all files.
//!
//! Only `files` does I/O; everything else is pure. The meaning of the keys is in [`options`].

mod check;
mod error;
mod files;
pub mod options;
mod spared;
mod tables;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use self::files::Input;
use crate::{
    os::users,
    probe::{Engines, registry::Sessions},
};
use orphand_core::{
    model::{AlertRule, Found, Mode, Policy, duration},
    recognise::{Rule, Rules, agents, exemptions, programs},
};

pub use self::{
    check::Origins,
    error::{Location, Mistake, shown},
    spared::Spared,
    tables::{ALL as EVERY_EVENT, Hook, Listen},
};

/// The default path of the configuration. The file need not exist.
pub const DEFAULT_PATH: &str = "/etc/orphand/config.toml";

pub const SOCKET: &str = "/run/orphand/control.sock";

pub const STATE_DIR: &str = "/var/lib/orphand";

/// What holds after all files and flags. The table [`options`] says what each key means; what is skipped is from flags.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub observe: bool,
    pub found: Found,
    #[serde(with = "duration")]
    pub grace: Duration,
    #[serde(with = "duration")]
    pub abandoned_grace: Duration,
    #[serde(with = "duration")]
    pub work_grace: Duration,
    /// The time from SIGTERM to SIGKILL, at most a day.
    #[serde(skip)]
    pub term_timeout: Duration,
    #[serde(skip)]
    pub other_uids: bool,
    pub recognise_protocol: bool,
    pub listen: Listen,
    /// The group whose members may use the control socket, besides root and the daemon's user.
    #[serde(skip)]
    pub socket_group: Option<String>,
    pub alert: Vec<AlertRule>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hook: Vec<Hook>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Sessions>,
    #[serde(skip_serializing_if = "Engines::is_empty")]
    pub containers: Engines,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "exemptions")]
    pub exempt: Vec<Rule>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "agents")]
    pub agent: Vec<Rule>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "programs")]
    pub program: Vec<Rule>,
}

impl Default for Config {
    fn default() -> Self {
        let policy = Policy::default();
        Self {
            observe: false,
            found: policy.found,
            grace: policy.grace,
            abandoned_grace: policy.abandoned_grace,
            work_grace: policy.work_grace,
            term_timeout: policy.term_timeout,
            other_uids: policy.other_uids,
            recognise_protocol: policy.recognise_protocol,
            listen: Listen::default(),
            socket_group: None,
            hook: Vec::new(),
            sessions: None,
            containers: Engines::default(),
            exempt: Vec::new(),
            agent: Vec::new(),
            program: Vec::new(),
            alert: Vec::new(),
        }
    }
}

impl Config {
    /// Reads `path`, or the default path, which need not exist, and `conf.d` next to it. With rights, what others can write is refused.
    pub fn load(path: Option<&Path>) -> Result<Self, Box<Mistake>> {
        Loaded::read(path).map(|loaded| loaded.config)
    }

    pub fn parse(text: &str, path: &Path) -> Result<Self, Box<Mistake>> {
        Loaded::of_inputs(vec![(path.into(), text.to_owned())]).map(|loaded| loaded.config)
    }

    /// The configuration as TOML; reading it gives the same configuration.
    pub fn render(&self) -> String {
        // Cannot fail: every key is a string, and every value has a TOML type.
        toml::to_string(self).unwrap_or_default()
    }

    pub fn rules(&self) -> Rules {
        let Self { exempt, agent, program, .. } = self.clone();
        Rules { exempt, agent, program }
    }

    pub fn policy(&self) -> Policy {
        Policy {
            mode: self.mode(),
            decided_by: None,
            found: self.found,
            grace: self.grace,
            abandoned_grace: self.abandoned_grace,
            work_grace: self.work_grace,
            term_timeout: self.term_timeout,
            other_uids: self.other_uids,
            rules: self.rules().source(),
            recognise_protocol: self.recognise_protocol,
            alerts: self.alert.clone(),
            sessions: self.sessions.as_ref().map(Sessions::policy),
            engines: self.containers.names(),
        }
    }

    pub const fn mode(&self) -> Mode {
        if self.observe { Mode::Observe } else { Mode::Enforce }
    }
}

#[derive(Debug)]
pub struct Loaded {
    /// In order: later ones override earlier ones.
    pub files: Vec<PathBuf>,
    pub config: Config,
    pub origins: Origins,
}

impl Loaded {
    /// Reads the same files as [`Config::load`]. An exemption of a user whom nobody knows would exempt nothing.
    pub fn read(path: Option<&Path>) -> Result<Self, Box<Mistake>> {
        let mut loaded = Self::of_inputs(files::inputs(path, files::guard())?)?;
        let number = |name: &str| users::user(name).ok().flatten().map(|user| user.uid);
        for (index, rule) in loaded.config.exempt.iter_mut().enumerate() {
            if let Err(name) = rule.resolve_user(number)
                && let Some(location) = loaded.origins.location("exempt", index)
            {
                let message = format!("there is no user \"{name}\" on this host");
                return Err(Mistake::new(location, Some("exempt.user"), message));
            }
        }
        Ok(loaded)
    }

    fn of_inputs(inputs: Vec<Input>) -> Result<Self, Box<Mistake>> {
        let (config, origins) = check::read::<Config>(&inputs)?;
        Ok(Self { files: inputs.into_iter().map(|(path, _)| path).collect(), config, origins })
    }
}

#[cfg(test)]
mod tests;
