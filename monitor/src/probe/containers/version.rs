//! What an engine says of itself, for `orphand doctor`.

use std::path::Path;

use serde::Deserialize;

use super::{
    http::{Method, call},
    told,
};

/// The versions of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct EngineVersion {
    /// Of its interface.
    #[serde(rename = "ApiVersion")]
    pub api: String,
    /// Of the engine itself.
    #[serde(rename = "Version")]
    pub engine: String,
}

impl EngineVersion {
    /// Asks the engine at this socket. Blocks until it has answered: the caller limits the time.
    pub fn of(socket: &Path) -> Result<Self, String> {
        let (status, body) = call(socket, Method::Get, "/version")?;
        told::parse(status, &body)
    }
}
