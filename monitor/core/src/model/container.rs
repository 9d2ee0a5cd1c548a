//! The container that a server works in, as events and reports show it.

use serde::{Deserialize, Serialize};

/// A container whose client is part of a server. The client's command line tells what is known of it.
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
    /// The command that a person can run: it stops the container, or finds it if its name is not known.
    pub command: String,
}

impl Container {
    /// Its texts, which count in bounded queues.
    pub fn queued_bytes(&self) -> usize {
        let texts = [&self.id, &self.name, &self.image].into_iter().flatten();
        self.engine.len() + self.command.len() + texts.map(String::len).sum::<usize>()
    }
}
