//! Where the registry is.
//!
//! Invariant: the password is in no text that this module makes, but for what is sent to the registry.

use std::fmt;

use redis::{ConnectionAddr, IntoConnectionInfo as _, RedisConnectionInfo};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use orphand_core::model::text::is_hostile;

/// The longest address, in bytes.
const LONGEST: usize = 512;

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
            ConnectionAddr::Tcp(host, port) if !host.is_empty() && *port > 0 => Ok(Self {
                host: host.clone(),
                port: *port,
                login: info.redis_settings().clone().set_skip_set_lib_name(),
            }),
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
        Self {
            host: "127.0.0.1".to_owned(),
            port: 6379,
            login: RedisConnectionInfo::default().set_skip_set_lib_name(),
        }
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
