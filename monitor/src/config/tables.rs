//! What `[[hook]]`, `[sessions]` and `listen` are read as.

use std::{collections::BTreeSet, fmt, net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::probe::registry::{ID, RedisUrl};
use orphand_core::model::{EventKind, SessionMark, SessionPolicy, duration, text::is_hostile};

pub const ALL: &str = "all";

fn known() -> Vec<&'static str> {
    [ALL].into_iter().chain(EventKind::ALL.iter().map(|kind| kind.name())).collect()
}

#[rustfmt::skip]
const DEFAULT: &[&str] = &[
    "orphan_detected", "orphan_spared", "orphan_reaped", "orphan_exited", "reap_failed", "alert", "alert_resolved", "lost",
];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    pub path: PathBuf,
    /// The user it runs as; absent for the daemon's user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The events it runs for; `all` means every event.
    #[serde(default = "usual_events", deserialize_with = "events")]
    pub events: BTreeSet<String>,
}

impl Hook {
    pub fn at(path: PathBuf) -> Self {
        Self { path, user: None, events: usual_events() }
    }
}

fn usual_events() -> BTreeSet<String> {
    DEFAULT.iter().map(ToString::to_string).collect()
}

fn events<'de, D: Deserializer<'de>>(d: D) -> Result<BTreeSet<String>, D::Error> {
    let names = BTreeSet::<String>::deserialize(d)?;
    let known = known();
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(names),
        Some(unknown) => {
            let advice = super::check::among(unknown, &known);
            Err(D::Error::custom(format!("unknown event \"{unknown}\": {advice}")))
        }
    }
}

/// An address to listen at; none: nothing is served over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen(pub Option<SocketAddr>);

impl Default for Listen {
    fn default() -> Self {
        Self(Some(SocketAddr::from(([127, 0, 0, 1], 9477))))
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |_| {
            format!(
                "\"{text}\" is not an address: write it like \"127.0.0.1:9477\" or \"[::1]:9477\", or \"none\" for off"
            )
        };
        if text == "none" { Ok(Self(None)) } else { text.parse().map(|it| Self(Some(it))).map_err(wrong) }
    }
}

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Listen {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("none"),
            Some(address) => address.fmt(f),
        }
    }
}

const LONGEST: usize = 512;

const LEAST_INTERVAL: Duration = Duration::from_millis(100);
const MOST_INTERVAL: Duration = Duration::from_secs(15);

const VARIABLE: &str = "MCP_SESSION_ID";
const KEY: &str = "mcp:session:{id}";
const IDLE: Duration = Duration::from_secs(5 * 60);

/// The registry in which a manager keeps the sessions that it starts servers for. The table alone turns it on: what a variable of
/// the environment means to another program says nothing here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Sessions {
    pub redis: RedisUrl,
    #[serde(flatten)]
    mark: SessionMark,
    /// The name of the key of a session, with [`ID`] in it.
    pub key: String,
    #[serde(with = "duration")]
    idle: Duration,
    /// The user that it runs as on this host, if it is neither root nor a service of the system. From a flag.
    #[serde(skip)]
    pub user: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    redis: RedisUrl,
    variable: Option<String>,
    flag: Option<String>,
    key: Option<String>,
    #[serde(default = "usual_idle", with = "duration")]
    idle: Duration,
}

const fn usual_idle() -> Duration {
    IDLE
}

impl TryFrom<Written> for Sessions {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        let Written { redis, variable, flag, key, idle } = written;
        let key = key.unwrap_or_else(|| KEY.to_owned());
        let is_name = |name: &str| !name.is_empty() && name.len() <= LONGEST && !name.contains(is_hostile);
        let is_part = |name: &String| is_name(name) && !name.contains('=');
        if variable.is_some() && flag.is_some() {
            return Err(
                "variable and flag are both given, and a server has its id in one place: remove one of them",
            );
        } else if !variable.iter().all(is_part) {
            return Err(
                "the name of an environment variable is not empty and has no =, for example \"MCP_SESSION_ID\"",
            );
        } else if !flag.iter().all(|flag| is_part(flag) && flag.starts_with('-')) {
            return Err("a flag begins with - and has no =, for example \"--session\"");
        } else if !is_name(&key) || key.matches(ID).count() != 1 {
            return Err(
                "the name of a key must contain {id} once, where the id of the session is, for example \"mcp:session:{id}\"",
            );
        } else if !(Duration::from_secs(1)..=Duration::from_secs(24 * 60 * 60)).contains(&idle) {
            return Err("idle is from 1s to 24h");
        }
        let variable = || SessionMark::Variable(variable.unwrap_or_else(|| VARIABLE.to_owned()));
        Ok(Self { redis, mark: flag.map_or_else(variable, SessionMark::Flag), key, idle, user: None })
    }
}

impl Sessions {
    /// The time from one question to the next: a key that is missing for `idle` is missing in many answers.
    pub fn interval(&self) -> Duration {
        (self.idle / 20).clamp(LEAST_INTERVAL, MOST_INTERVAL)
    }

    pub(super) fn policy(&self) -> SessionPolicy {
        let registry = format!("{} {}", self.redis.place(), self.key);
        SessionPolicy { registry, mark: self.mark.clone(), idle: self.idle, every: self.interval() }
    }
}

#[cfg(test)]
mod sessions_tests;
#[cfg(test)]
mod tests {
    use super::*;
    use orphand_core::model::Notice;

    #[test]
    fn every_event_has_its_name_here() {
        // serde's error lists the known names.
        let error = serde_json::from_str::<Notice>(r#"{"event":"?"}"#).unwrap_err().to_string();
        let names: Vec<_> = error.split('`').skip(1).step_by(2).filter(|name| *name != "?").collect();
        assert!(names.len() > 10, "{error}");
        for name in names {
            assert!(known().contains(&name), "{name} is missing");
        }
        assert!(DEFAULT.iter().all(|name| known().contains(name)));
        // Of what is unproven nothing need come.
        assert!(known().contains(&"orphan_unproven") && !DEFAULT.contains(&"orphan_unproven"));
    }

    mod containers {
        use crate::config::Config;

        #[test]
        fn sockets_are_absolute_paths() {
            let read = |text: &str| Config::parse(text, "config.toml".as_ref());
            let config = read("[containers]\ndocker = \"/run/docker.sock\"\n").unwrap();
            assert_eq!(config.containers.docker.as_deref(), Some("/run/docker.sock".as_ref()));
            assert_eq!(read(&config.render()).unwrap(), config);
            assert!(read("[containers]\npodman = \"podman.sock\"\n").is_err());
            assert!(read("[containers]\nlxc = \"/x\"\n").is_err());
            assert!(read("").unwrap().containers.is_empty());
            assert_eq!(
                (config.policy().engines, read("").unwrap().policy().engines),
                (vec!["docker".to_owned()], vec![])
            );
        }
    }
}
