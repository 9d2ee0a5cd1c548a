//! Where a process works and how it was started, as far as two servers are compared by it.

use serde::{Deserialize, Serialize};

/// What tells apart two processes with the same arguments. The values are hashes with a key that no other daemon
/// has: they can be compared, and they say nothing about paths and secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Whereabouts {
    /// The working directory, with the mount namespace in which it has that path.
    pub directory: u64,
    /// The command line with its secrets. Absent if it is not what the process was started with: a title was
    /// written over it.
    pub command: Option<u64>,
    /// The environment that the process was started with, its user and its network namespace. Absent if it could not be
    /// read to its end, or a title was written over the command line, and perhaps over what follows it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub environment: Option<u64>,
}
