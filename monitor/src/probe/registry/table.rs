//! What `[sessions]` is read as.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ID, RedisUrl};
use orphand_core::model::{SessionMark, SessionPolicy, duration, text::is_hostile};

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
    pub(super) mark: SessionMark,
    /// The name of the key of a session, with [`ID`] in it.
    pub key: String,
    #[serde(with = "duration")]
    pub(super) idle: Duration,
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

    pub fn policy(&self) -> SessionPolicy {
        let registry = format!("{} {}", self.redis.place(), self.key);
        SessionPolicy { registry, mark: self.mark.clone(), idle: self.idle, every: self.interval() }
    }
}
