//! `[sessions]`: the registry in which a manager keeps the sessions that it starts servers for.
//!
//! The table alone turns it on. Some keys have their default in an environment variable that such managers use; the
//! variables alone turn nothing on.
//!
//! Invariant: the password of the registry is in no text that this module makes, but for what is sent to the registry.

use std::{fmt, time::Duration};

use redis::{ConnectionAddr, IntoConnectionInfo as _, RedisConnectionInfo};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use orphand_core::model::{
    SessionMark, SessionPolicy,
    duration::{format_duration, parse_duration},
    text::is_hostile,
};

/// The longest name of a key, variable or flag, in bytes.
const LONGEST: usize = 512;
/// What stands for the id of a session in the name of its key.
pub const ID: &str = "{id}";

const LEAST_IDLE: Duration = Duration::from_secs(1);
const MOST_IDLE: Duration = Duration::from_secs(24 * 60 * 60);
const LEAST_INTERVAL: Duration = Duration::from_millis(100);
const MOST_INTERVAL: Duration = Duration::from_secs(60 * 60);

const VARIABLE: &str = "MCP_SESSION_ID";
const KEY: &str = "mcp:session:{id}";
const IDLE: Duration = Duration::from_secs(5 * 60);
const INTERVAL: Duration = Duration::from_secs(15);

/// The registry of sessions. A key that is absent has its default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Sessions {
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<RedisUrl>,
    /// The user that it runs as on this host, if it is neither root nor a service of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The environment variable of a server that has the id of its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// The argument of a server before the id of its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flag: Option<String>,
    /// The name of the key of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How long the key must be missing.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "written")]
    pub idle: Option<Duration>,
    /// The time from one question to the next.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "written")]
    pub interval: Option<Duration>,
}

/// The table as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Written {
    redis: Option<RedisUrl>,
    uid: Option<u32>,
    #[serde(deserialize_with = "variable")]
    variable: Option<String>,
    #[serde(deserialize_with = "flag")]
    flag: Option<String>,
    #[serde(deserialize_with = "key")]
    key: Option<String>,
    #[serde(deserialize_with = "idle")]
    idle: Option<Duration>,
    #[serde(deserialize_with = "interval")]
    interval: Option<Duration>,
}

impl TryFrom<Written> for Sessions {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        let Written { redis, uid, variable, flag, key, idle, interval } = written;
        if variable.is_some() && flag.is_some() {
            return Err(
                "variable and flag are both given, and a server has its id in one place: remove one of them",
            );
        }
        Ok(Self { redis, uid, variable, flag, key, idle, interval })
    }
}

impl Sessions {
    /// The same with every default filled in. `variable` reads an environment variable. The error names the variable
    /// that cannot be used.
    pub(super) fn completed(self, variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let seconds = |name: &str, least: Duration, most: Duration, key: &str| match variable(name) {
            None => Ok(None),
            Some(text) => match text.parse().map(Duration::from_secs) {
                Ok(time) if (least..=most).contains(&time) => Ok(Some(time)),
                _ => Err(format!(
                    "the environment variable {name} is no whole number of seconds from 1 to {}: correct it, or write \
                     {key} into [sessions]",
                    most.as_secs()
                )),
            },
        };
        let redis = match self.redis {
            Some(redis) => redis,
            None => place(variable("REDIS_HOST"), variable("REDIS_PORT"))?,
        };
        let idle = match self.idle {
            Some(idle) => Some(idle),
            None => seconds("MCP_SESSION_IDLE_TTL", LEAST_IDLE, MOST_IDLE, "idle")?,
        };
        let interval = match self.interval {
            Some(interval) => Some(interval),
            None => seconds("MCP_PROCESS_CLEANUP_INTERVAL", LEAST_INTERVAL, MOST_INTERVAL, "interval")?,
        };
        let marked = self.variable.is_some() || self.flag.is_some();
        Ok(Self {
            redis: Some(redis),
            uid: self.uid,
            variable: if marked { self.variable } else { Some(VARIABLE.to_owned()) },
            flag: self.flag,
            key: self.key.or_else(|| Some(KEY.to_owned())),
            idle: Some(idle.unwrap_or(IDLE)),
            interval: Some(interval.unwrap_or(INTERVAL)),
        })
    }

    /// Where the registry is.
    pub fn redis(&self) -> RedisUrl {
        self.redis.clone().unwrap_or_default()
    }

    /// The name of a key, with [`ID`] in it.
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or(KEY)
    }

    /// The time from one question to the next.
    pub fn interval(&self) -> Duration {
        self.interval.unwrap_or(INTERVAL)
    }

    /// How the engine judges sessions.
    pub(super) fn policy(&self) -> SessionPolicy {
        let mark = match &self.flag {
            Some(flag) => SessionMark::Flag(flag.clone()),
            None => SessionMark::Variable(self.variable.clone().unwrap_or_else(|| VARIABLE.to_owned())),
        };
        SessionPolicy {
            registry: format!("{} {}", self.redis().place(), self.key()),
            mark,
            idle: self.idle.unwrap_or(IDLE),
            every: self.interval(),
        }
    }
}

/// Where the registry is, by two environment variables.
fn place(host: Option<String>, port: Option<String>) -> Result<RedisUrl, String> {
    let host = host.unwrap_or_else(|| "127.0.0.1".to_owned());
    let port = match port {
        None => 6379,
        Some(port) => port.parse::<u16>().ok().filter(|port| *port > 0).ok_or(
            "the environment variable REDIS_PORT is no port number: correct it, or write redis into [sessions]",
        )?,
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let host = if bare.contains(':') { format!("[{bare}]") } else { host };
    let plain = |host: &str| host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_:[]".contains(&b));
    let wrong = || {
        "the environment variable REDIS_HOST is no name of a host: correct it, or write redis into [sessions]"
            .to_owned()
    };
    if !plain(&host) {
        return Err(wrong());
    }
    RedisUrl::parse(&format!("redis://{host}:{port}/0")).map_err(|_| wrong())
}

/// The address of a Redis server. It is shown without its password.
#[derive(Clone)]
pub struct RedisUrl {
    /// The host, an IPv6 address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Database, user and password.
    pub login: RedisConnectionInfo,
}

impl RedisUrl {
    /// Parses `redis://HOST:PORT/DB`, with `USER:PASSWORD@` before the host where one is needed.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const WRONG: &str = "is no address of a Redis server: write it like \"redis://127.0.0.1:6379/0\", and a password \
                             before the host, like \"redis://:PASSWORD@127.0.0.1:6379/0\"";
        if !text.starts_with("redis://") || text.contains(is_hostile) || text.len() > LONGEST {
            return Err(WRONG);
        }
        let info = text.into_connection_info().map_err(|_| WRONG)?;
        match info.addr() {
            ConnectionAddr::Tcp(host, port) if !host.is_empty() && *port > 0 => {
                Ok(Self { host: host.clone(), port: *port, login: info.redis_settings().clone() })
            }
            _ => Err(WRONG),
        }
    }

    /// Host, port and database, for people.
    pub fn place(&self) -> String {
        let Self { host, port, login } = self;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        format!("{host}:{port}/{}", login.db())
    }
}

impl Default for RedisUrl {
    fn default() -> Self {
        Self { host: "127.0.0.1".to_owned(), port: 6379, login: RedisConnectionInfo::default() }
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.login.username().unwrap_or_default();
        match self.login.password() {
            Some(_) => write!(f, "redis://{user}:***@{}", self.place()),
            None if !user.is_empty() => write!(f, "redis://{user}@{}", self.place()),
            None => write!(f, "redis://{}", self.place()),
        }
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl PartialEq for RedisUrl {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&self.login, &other.login);
        self.place() == other.place() && (a.username(), a.password()) == (b.username(), b.password())
    }
}

impl Eq for RedisUrl {}

impl Serialize for RedisUrl {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RedisUrl {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(d)?).map_err(|why| D::Error::custom(format!("the value {why}")))
    }
}

#[expect(clippy::ref_option, reason = "serde calls it so")]
fn written<S: Serializer>(time: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
    time.map(format_duration).serialize(s)
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

fn time<'de, D: Deserializer<'de>>(
    d: D,
    least: Duration,
    most: Duration,
) -> Result<Option<Duration>, D::Error> {
    let time = parse_duration(&String::deserialize(d)?).map_err(D::Error::custom)?;
    if (least..=most).contains(&time) {
        return Ok(Some(time));
    }
    let [least, most] = [least, most].map(format_duration);
    Err(D::Error::custom(format!("{} is not from {least} to {most}", format_duration(time))))
}

fn idle<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
    time(d, LEAST_IDLE, MOST_IDLE)
}

fn interval<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
    time(d, LEAST_INTERVAL, MOST_INTERVAL)
}

#[cfg(test)]
mod tests;
