//! The container that a server works in, as events and reports show it.

use serde::{Deserialize, Serialize};

use super::{
    Image, ProcessId,
    scene::{ProcessRow, Scene},
};

/// The container that a server works in: its client is part of the server, or its own processes are. The command line of
/// the client tells what is known of it, or the control group of the processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// The container engine: `docker`, `podman`, `nerdctl` or `finch`.
    pub engine: String,
    /// Its id, where the engine told it.
    pub id: Option<String>,
    /// Its name or id, where the client's arguments have one.
    pub name: Option<String>,
    /// Its image, where the client's arguments have one.
    pub image: Option<String>,
    /// The name of the server in it, where docker's MCP gateway started it (its label `docker-mcp-name`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server: Option<String>,
    /// The command that a person can run: it stops the container, or finds it if its name is not known.
    pub command: String,
    /// Its memory in bytes when it was last inspected, without page cache that is not in use; that of its client is
    /// not included.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory_bytes: Option<u64>,
    /// The line of the configuration that lets its engine stop it, where that is missing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub setting: Option<String>,
}

impl Container {
    /// A container that is known by its id, by the word of this user: an engine of his, or whoever made its control
    /// group. A user's word must not become a command of root's. The id has digits and letters only.
    pub fn by_id(ContainerId { engine, id }: &ContainerId, word_of: Option<u32>) -> Self {
        let command = match word_of {
            Some(uid) => as_user(uid, format!("{engine} stop {}", id.get(..12).unwrap_or(id))),
            None => format!("{engine} ps --filter id={id}"),
        };
        Self { engine: engine.clone(), id: Some(id.clone()), command, ..Self::default() }
    }

    /// The same for a client of this user: he may have an engine of his own, and he chose the name.
    #[must_use]
    pub fn of_user(self, uid: u32) -> Self {
        Self { command: as_user(uid, self.command), ..self }
    }

    pub fn queued_bytes(&self) -> usize {
        let texts = [&self.id, &self.name, &self.image, &self.server, &self.setting].into_iter().flatten();
        self.engine.len() + self.command.len() + texts.map(String::len).sum::<usize>()
    }
}

/// What is known of a container that a client started: the question to its engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerQuery {
    pub client: ProcessId,
    /// By its whole id, if it was there before the client; by the name that the client gave to it; by its image.
    pub started: Container,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerId {
    pub engine: String,
    /// The id, 64 hexadecimal digits.
    pub id: String,
}

/// The command for a person who is root: it is run as this user, in that user's home.
fn as_user(uid: u32, command: String) -> String {
    if uid == 0 { command } else { format!("sudo -iu '#{uid}' {command}") }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherClient {
    pub process: ProcessId,
    pub image: Image,
}

/// A running container with a standard input: of one image, there may be several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeContainer {
    pub id: String,
    pub name: String,
    /// When its engine made it, in clock ticks since the host started.
    pub created: u64,
}

/// The one running container that fits a query. Its engine told what it is, and the host what it does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerFacts {
    pub container: ContainerId,
    #[serde(default)]
    pub client: ProcessId,
    pub name: String,
    pub image: String,
    /// The process that holds its standard streams, where the host shows that the client is connected to exactly that
    /// process: podman's conmon.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub monitor: Option<ProcessId>,
    /// Whether others may use it: it has ports, somebody runs a further program in it, or somebody else is connected
    /// to its monitor.
    pub shared: bool,
    /// The memory of its control group in bytes, without inactive page cache; absent if it could not be read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory_bytes: Option<u64>,
    /// Its first process, and what descends from that.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub processes: Vec<ProcessId>,
    /// All other processes of the host that may be clients of its engine, and can reach that.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub others: Vec<OtherClient>,
    /// All running containers of its image, if its client has not named it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub made: Vec<MadeContainer>,
    /// Its processes, and who is joined with them. Empty if it was not inspected.
    #[serde(default)]
    pub inside: Box<Scene>,
}

impl ContainerFacts {
    pub fn view(&self) -> Container {
        Container {
            name: Some(self.name.clone()),
            image: Some(self.image.clone()),
            memory_bytes: Some(self.bytes()),
            ..Container::by_id(&self.container, Some(0))
        }
    }

    /// Its processes that live and were read, the first one first.
    pub fn rows(&self) -> impl Iterator<Item = &ProcessRow> {
        self.inside.full(&self.processes)
    }

    /// Its first process; `None` if it has ended or was not read.
    pub fn first(&self) -> Option<&ProcessRow> {
        let first = self.processes.first()?;
        self.rows().find(|row| row.process == *first)
    }

    /// Its memory in bytes: that of its control group, or else of its processes.
    pub fn bytes(&self) -> u64 {
        let processes = || self.rows().map(|one| one.rss_bytes).sum();
        self.memory_bytes.unwrap_or_else(processes)
    }
}
