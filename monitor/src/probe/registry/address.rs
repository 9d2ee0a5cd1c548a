//! Where the registry is.
//!
//! Invariant: the password is in no text that this module makes, but for what is sent to the registry.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use orphand_core::model::text::is_hostile;

const LONGEST: usize = 512;

/// The address of a Redis server. It is shown without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl {
    /// The host, an IPv6 address without brackets.
    pub host: String,
    pub port: u16,
    pub database: u32,
    pub user: Option<String>,
    pub password: Option<String>,
}

impl RedisUrl {
    /// Parses `redis://HOST:PORT/DB`, with `USER:PASSWORD@` before the host where one is needed.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const WRONG: &str = "is no address of a Redis server: write it like \"redis://127.0.0.1:6379/0\", and a password \
                             before the host, like \"redis://:PASSWORD@127.0.0.1:6379/0\"";
        if text.contains(is_hostile) || text.len() > LONGEST {
            return Err(WRONG);
        }
        Self::split(text).ok_or(WRONG)
    }

    fn split(text: &str) -> Option<Self> {
        let place = text.strip_prefix("redis://")?.split(['?', '#']).next()?;
        let (place, database) = place.split_once('/').unwrap_or((place, ""));
        let (login, place) = place.rsplit_once('@').unwrap_or(("", place));
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(decoded(password)?)),
            None => (login, None),
        };
        let (host, port) = match place.strip_prefix('[').and_then(|host| host.split_once(']')) {
            Some((host, "")) => (host, "6379"),
            Some((host, port)) => (host, port.strip_prefix(':')?),
            None => place.split_once(':').unwrap_or((place, "6379")),
        };
        let port = port.parse().ok().filter(|port| *port > 0)?;
        let database = if database.is_empty() { 0 } else { database.parse().ok()? };
        let user = Some(decoded(user)?).filter(|user| !user.is_empty());
        let password = password.filter(|password| !password.is_empty());
        (!host.is_empty()).then(|| Self { host: host.to_owned(), port, database, user, password })
    }

    /// Host, port and database, for people.
    pub fn place(&self) -> String {
        let Self { host, port, database, .. } = self;
        if host.contains(':') {
            format!("[{host}]:{port}/{database}")
        } else {
            format!("{host}:{port}/{database}")
        }
    }
}

/// A text in which `%` and two hexadecimal digits stand for a byte.
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(part.get(2..)?.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

impl Default for RedisUrl {
    fn default() -> Self {
        Self { host: "127.0.0.1".to_owned(), port: 6379, database: 0, user: None, password: None }
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let password = if self.password.is_some() { ":***@" } else { "@" };
        match (&self.user, &self.password) {
            (None, None) => write!(f, "redis://{}", self.place()),
            (user, _) => {
                write!(f, "redis://{}{password}{}", user.as_deref().unwrap_or_default(), self.place())
            }
        }
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_parts() {
        for (text, shown) in [
            ("redis://h", "redis://h:6379/0"),
            ("redis://h:1/", "redis://h:1/0"),
            ("redis://[::1]:7/2", "redis://[::1]:7/2"),
            ("redis://[::1]", "redis://[::1]:6379/0"),
            ("redis://me@h", "redis://me@h:6379/0"),
            ("redis://m%40e:p@h", "redis://m@e:***@h:6379/0"),
            ("redis://:a@b@h?x=y", "redis://:***@h:6379/0"),
        ] {
            assert_eq!(RedisUrl::parse(text).map(|url| url.to_string()), Ok(shown.to_owned()), "{text}");
        }
        let url = RedisUrl::parse("redis://:%3a%2F%25@h").unwrap();
        assert_eq!((url.user, url.password.as_deref()), (None, Some(":/%")));
        for wrong in [
            "redis://",
            "redis://h:99999",
            "redis://h:0",
            "redis://h/-1",
            "redis://[::1]7",
            "redis://:%4@h",
            "h",
        ] {
            assert!(RedisUrl::parse(wrong).is_err(), "{wrong}");
        }
    }
}
