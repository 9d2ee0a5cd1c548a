//! What a situation states about itself and its processes.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use crate::host::Identity;

/// What a situation needs that uses the registry of sessions, Docker, or podman. All situations share these.
const REDIS: &str = "redis";
const DOCKER: &str = "docker";
const PODMAN: &str = "podman";

/// What is true of a situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum GroundTruth {
    /// Its processes are orphans and must be ended.
    #[serde(rename = "orphan")]
    Orphan,
    /// Nothing may be ended.
    #[serde(rename = "in use")]
    InUse,
    /// Both of these.
    #[serde(rename = "mixed")]
    Mixed,
}

impl GroundTruth {
    /// Its name in the table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Orphan => "orphan",
            Self::InUse => "in use",
            Self::Mixed => "mixed",
        }
    }
}

/// When a situation is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// While the daemon runs.
    Watched,
    /// Before the daemon starts.
    Before,
}

/// What a script prints for `--describe`.
#[derive(Clone, Debug, Deserialize)]
pub struct Stated {
    /// `group/name`.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// What is true.
    pub truth: GroundTruth,
    /// When it is built.
    pub when: When,
    /// The published software that it needs, `redis` for the registry of sessions, and `docker` or `podman` for containers.
    pub needs: Vec<String>,
    /// The situation that differs from it only in the cause.
    pub twin: Option<String>,
    /// Whether the daemon is restarted again and again while it is built, and once more afterwards.
    #[serde(default)]
    pub restart: bool,
    /// What a proof would cost if a true orphan cannot be proven to be one. Then it stays, and that is right.
    #[serde(default)]
    pub cost: Option<String>,
}

impl Stated {
    /// Whether it needs the registry of sessions.
    pub fn needs_redis(&self) -> bool {
        self.needs.iter().any(|need| need == REDIS)
    }

    /// Whether it needs containers.
    pub fn needs_docker(&self) -> bool {
        self.needs.iter().any(|need| need == DOCKER)
    }

    /// Whether it needs podman.
    pub fn needs_podman(&self) -> bool {
        self.needs.iter().any(|need| need == PODMAN)
    }

    /// Whether it needs published software.
    pub fn needs_fixtures(&self) -> bool {
        self.needs.iter().any(|need| ![REDIS, DOCKER, PODMAN].contains(&need.as_str()))
    }

    /// The folder of its script.
    pub fn group(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }
}

/// The processes of a situation: the first line that a script prints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cast {
    /// Processes that must be ended.
    pub orphans: Vec<Identity>,
    /// Processes that must live.
    pub in_use: Vec<Identity>,
    /// Processes that may live or end.
    pub may_end: Vec<Identity>,
}

impl Cast {
    pub fn parse(line: &str) -> Result<Self> {
        let told: BTreeMap<String, Value> =
            serde_json::from_str(line).with_context(|| format!("not JSON: {line:?}"))?;
        let list = |key: &str| {
            let all =
                told.get(key).and_then(Value::as_array).with_context(|| format!("no {key} in {line}"))?;
            all.iter()
                .map(|one| identity(one).with_context(|| format!("no process: {one}")))
                .collect::<Result<Vec<_>>>()
        };
        Ok(Self { orphans: list("orphans")?, in_use: list("in_use")?, may_end: list("may_end")? })
    }

    /// All processes.
    pub fn all(&self) -> impl Iterator<Item = Identity> + '_ {
        self.orphans.iter().chain(&self.in_use).chain(&self.may_end).copied()
    }
}

fn identity(value: &Value) -> Option<Identity> {
    let number = |key: &str| value.get(key).and_then(Value::as_u64);
    Some(Identity { pid: number("pid")?.try_into().ok()?, start: number("start")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_read() {
        let line = r#"{"name":"let_go/job","description":"d","truth":"in use","when":"before","needs":["npm"],"twin":null}"#;
        let stated: Stated = serde_json::from_str(line).unwrap();
        assert_eq!((stated.group(), stated.truth, stated.when), ("let_go", GroundTruth::InUse, When::Before));
        assert!(serde_json::from_str::<Stated>(&line.replace("in use", "unsure")).is_err());
    }

    #[test]
    fn a_cast_is_read_whole_or_not_at_all() {
        let line = r#"{"orphans":[{"pid":7,"start":9}],"in_use":[],"may_end":[],"note":"x"}"#;
        let cast = Cast::parse(line).unwrap();
        assert_eq!(cast.orphans, [Identity { pid: 7, start: 9 }]);
        assert_eq!(cast.all().count(), 1);
        assert!(Cast::parse(&line.replace("\"start\":9", "\"start\":null")).is_err());
        assert!(Cast::parse(r#"{"orphans":[]}"#).is_err());
    }
}
