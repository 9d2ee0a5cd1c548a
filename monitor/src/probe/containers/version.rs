//! What an engine says of itself, for `orphand doctor`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Engines, child};

/// How long an engine may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// The versions of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineVersion {
    /// Of its interface.
    #[serde(rename = "ApiVersion")]
    pub api: String,
    /// Of the engine itself.
    #[serde(rename = "Version")]
    pub engine: String,
}

impl Engines {
    /// Asks the engine of this name.
    pub fn version(&self, engine: &str) -> Result<EngineVersion, String> {
        match self.ask(engine, &child::Question::Version, PATIENCE)? {
            child::Told::Version(version) => Ok(version),
            _ => Err("it says something else".to_owned()),
        }
    }
}
