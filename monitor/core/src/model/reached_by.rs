//! How an unproven server is reached: the explanation for a person.

use serde::{Deserialize, Serialize};

/// One step of the path from somebody who acts by himself to an unproven server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachedBy {
    /// Who can reach the next one; absent if nobody can be named.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pid: Option<u32>,
    /// Its start time, in clock ticks since boot.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub start: Option<u64>,
    /// The name of its program.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub program: Option<String>,
    /// Its real user id.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub user: Option<u32>,
    /// What joins the two: `stdin`, `stdout`, `connection`, `call`, `pipe`, `listener`, `memory`, `open_file`, `terminal`,
    /// `pid_namespace`, `parent_death`, `trace`, `device`.
    pub by: String,
    /// What it can do, in words that follow its name.
    pub via: String,
}

impl ReachedBy {
    /// The step in a sentence.
    pub fn sentence(&self) -> String {
        let who = match (self.pid, &self.program, self.user) {
            (Some(pid), Some(program), Some(user)) => format!("pid {pid} ({program}, uid {user})"),
            (Some(pid), ..) => format!("pid {pid}"),
            (None, ..) => "somebody who cannot be seen".to_owned(),
        };
        format!("{who} {}", self.via)
    }
}
