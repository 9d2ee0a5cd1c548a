//! One line of the daemon's event stream.

use std::{ops::Deref, sync::Arc};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{host::Identity, schema};

/// An event as printed. The judgement asks each of thousands again and again about whom it is: that is read once.
#[derive(Clone, Debug)]
pub struct Event {
    /// The line without its line feed.
    pub line: String,
    value: Arc<Value>,
    /// The processes of its server.
    processes: Arc<[Identity]>,
}

impl Event {
    /// Parses a line, which is as the schema says.
    pub fn parse(line: String) -> Result<Self> {
        let event = Self::in_part(line)?;
        schema::check("event", &event.value)?;
        Ok(event)
    }

    /// Parses a line that may lack fields, for tests of what reads events.
    pub(crate) fn in_part(line: String) -> Result<Self> {
        let value: Value = serde_json::from_str(&line).with_context(|| format!("not JSON: {line:?}"))?;
        let processes = value.pointer("/server/processes").and_then(Value::as_array).into_iter().flatten();
        let processes = processes.filter_map(Identity::told).collect();
        Ok(Self { line, value: Arc::new(value), processes })
    }

    /// Its `event`.
    pub fn kind(&self) -> &str {
        self["event"].as_str().unwrap_or_default()
    }

    /// Whether it is a `kind` about the server that `process` belongs to.
    pub fn is(&self, kind: &str, process: Identity) -> bool {
        self.kind() == kind && self.has(process)
    }

    /// Whether `process` belongs to its server.
    pub fn has(&self, process: Identity) -> bool {
        self.processes.contains(&process)
    }

    /// Whether one of `processes` belongs to its server.
    pub fn has_any(&self, processes: &[Identity]) -> bool {
        processes.iter().any(|&one| self.has(one))
    }

    /// Whether it is about `agent` as an agent.
    pub fn is_agent(&self, kind: &str, agent: Identity) -> bool {
        self.kind() == kind && agent == self["agent"]
    }

    /// The id of its server.
    pub fn server(&self) -> &str {
        self.get("server").and_then(|server| server.get("id")?.as_str()).unwrap_or_default()
    }

    /// The number of its server's run.
    pub fn generation(&self) -> Option<u64> {
        self.pointer("/server/run/generation").and_then(Value::as_u64)
    }

    /// Whether it calls a server an orphan or a suspect.
    pub fn accuses(&self) -> bool {
        self.kind().starts_with("orphan_") || self.kind() == "reap_failed"
    }

    /// The strings of the list `key`.
    pub fn list(&self, key: &str) -> Vec<&str> {
        self[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

impl Deref for Event {
    type Target = Value;
    fn deref(&self) -> &Value {
        &self.value
    }
}
