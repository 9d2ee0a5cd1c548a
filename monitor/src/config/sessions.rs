//! `[sessions]`: the registry in which a manager keeps the sessions that it starts servers for.
//!
//! The table alone turns it on. No variable of the environment is a default: what one means to another program on this host
//! says nothing here.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, de::Error};

use crate::probe::registry::{ID, RedisUrl};
use orphand_core::model::{
    SessionMark, SessionPolicy,
    duration::{self, format_duration, parse_duration},
    text::is_hostile,
};

const LONGEST: usize = 512;

const LEAST_IDLE: Duration = Duration::from_secs(1);
const MOST_IDLE: Duration = Duration::from_secs(24 * 60 * 60);
const LEAST_INTERVAL: Duration = Duration::from_millis(100);
const MOST_INTERVAL: Duration = Duration::from_secs(15);

const VARIABLE: &str = "MCP_SESSION_ID";
const KEY: &str = "mcp:session:{id}";
const IDLE: Duration = Duration::from_secs(5 * 60);

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

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    redis: RedisUrl,
    #[serde(deserialize_with = "variable")]
    variable: Option<String>,
    #[serde(deserialize_with = "flag")]
    flag: Option<String>,
    #[serde(deserialize_with = "key")]
    key: Option<String>,
    #[serde(deserialize_with = "idle")]
    idle: Option<Duration>,
}

impl TryFrom<Written> for Sessions {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        let Written { redis, variable, flag, key, idle } = written;
        let mark = match (variable, flag) {
            (Some(_), Some(_)) => {
                return Err(
                    "variable and flag are both given, and a server has its id in one place: remove one of them",
                );
            }
            (_, Some(flag)) => SessionMark::Flag(flag),
            (variable, None) => SessionMark::Variable(variable.unwrap_or_else(|| VARIABLE.to_owned())),
        };
        let (key, idle) = (key.unwrap_or_else(|| KEY.to_owned()), idle.unwrap_or(IDLE));
        Ok(Self { redis, mark, key, idle, user: None })
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

fn name<'de, D: Deserializer<'de>>(
    d: D,
    fits: impl Fn(&str) -> bool,
    wrong: &str,
) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(d)?;
    if fits(&name) && !name.is_empty() && name.len() <= LONGEST && !name.contains(is_hostile) {
        Ok(Some(name))
    } else {
        Err(D::Error::custom(wrong))
    }
}

fn variable<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    let fits = |name: &str| !name.contains('=');
    name(
        d,
        fits,
        "the name of an environment variable is not empty and has no =, for example \"MCP_SESSION_ID\"",
    )
}

fn flag<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    let fits = |name: &str| name.starts_with('-') && !name.contains('=');
    name(d, fits, "a flag begins with - and has no =, for example \"--session\"")
}

fn key<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    let fits = |name: &str| name.matches(ID).count() == 1;
    name(
        d,
        fits,
        "the name of a key must contain {id} once, where the id of the session is, for example \"mcp:session:{id}\"",
    )
}

fn idle<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
    let time = parse_duration(&String::deserialize(d)?).map_err(D::Error::custom)?;
    if (LEAST_IDLE..=MOST_IDLE).contains(&time) {
        return Ok(Some(time));
    }
    let [time, least, most] = [time, LEAST_IDLE, MOST_IDLE].map(format_duration);
    Err(D::Error::custom(format!("{time} is not from {least} to {most}")))
}

#[cfg(test)]
mod tests;
