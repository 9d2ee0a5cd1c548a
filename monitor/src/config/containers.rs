//! `[containers]`: the sockets of the container engines that are asked.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, de::Error};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Containers {
    /// Docker's; absent: Docker is not asked.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "absolute")]
    pub docker: Option<PathBuf>,
    /// podman's; absent: podman is not asked.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "absolute")]
    pub podman: Option<PathBuf>,
}

impl Containers {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn names(&self) -> Vec<String> {
        let engines = [("docker", &self.docker), ("podman", &self.podman)];
        engines.into_iter().filter(|(_, socket)| socket.is_some()).map(|(name, _)| name.to_owned()).collect()
    }
}

fn absolute<'de, D: Deserializer<'de>>(d: D) -> Result<Option<PathBuf>, D::Error> {
    let path = PathBuf::deserialize(d)?;
    if path.is_absolute() { Ok(Some(path)) } else { Err(D::Error::custom("not an absolute path")) }
}

#[cfg(test)]
mod tests {
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
