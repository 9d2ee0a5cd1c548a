//! What `[[hook]]` and `listen` are read as.

use std::{collections::BTreeSet, fmt, net::SocketAddr, path::PathBuf, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::probe::absolute;
use orphand_core::model::EventKind;

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
    #[serde(deserialize_with = "absolute")]
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
