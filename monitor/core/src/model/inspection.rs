//! What an inspection of the host says about a server and about who can use it.

use serde::{Deserialize, Serialize};

use super::{Container, ContainerFacts, Image, ProcessId, UnitFacts, Work, scene::Scene};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// Its processes, and who is joined with them: the raw rows.
    pub scene: Scene,
    /// What its processes have done so far, if that was asked for: those that could be read.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub work: Vec<Work>,
    /// How many bytes wait in its standard input, where [`SceneQuestion::waits`]; absent if that could not be found out.
    ///
    /// [`SceneQuestion::waits`]: super::scene::SceneQuestion::waits
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unread: Option<u64>,
    /// The container that its client works for; absent if there is none, or if its engine did not tell exactly
    /// one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub container: Option<Box<ContainerFacts>>,
    /// The container that one of its processes is in, by the name of the control group; absent outside of containers, and
    /// in the container of orphand itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub enclosing: Option<Box<Container>>,
}

/// A process that can talk to a server, and may be its owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub process: ProcessId,
    pub uid: u32,
    pub sid: u32,
    pub image: Image,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unit: Option<UnitFacts>,
}

/// What a forked copy of an agent has done when the agent ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyFacts {
    pub process: ProcessId,
    pub sid: u32,
    /// What it has done so far; absent if that could not be read.
    pub work: Option<Work>,
}

/// What one process uses (`/proc/PID/stat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub process: ProcessId,
    pub rss_bytes: u64,
    #[serde(default)]
    pub cpu_ms: u64,
}
