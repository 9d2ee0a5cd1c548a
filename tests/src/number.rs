//! Checks what the daemon says about a run.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{daemon::Daemon, event::Event, service::Service, systemd::Manager, truth::Told};

/// A run of a service.
#[derive(Clone, Debug)]
pub struct Number {
    unit: String,
    manager: String,
    generation: u64,
}

impl Number {
    /// The run `generation` of `service`.
    pub fn of(service: &Service, manager: &Manager, generation: u64) -> Self {
        Self { unit: service.unit.clone(), manager: manager.root(), generation }
    }

    /// Checks that the daemon reported the agent's start with this number.
    pub fn agent(&self, daemon: &Daemon, agent: &Told) -> Result<Event> {
        let what = format!("agent_started for {} of {}", agent.id, self.unit);
        let started = daemon.wait(&what, |e| e.is_agent("agent_started", agent.id))?;
        let said = started.get("agent").context("no agent")?;
        self.compare(said, &agent.invocation).with_context(|| started.line.clone())?;
        Ok(started)
    }

    /// Checks that the daemon reported `kind` for each of `servers`, with this run.
    pub fn servers(&self, daemon: &Daemon, kind: &str, servers: &[Told]) -> Result<()> {
        ensure!(!servers.is_empty(), "no servers");
        for one in servers {
            let event = daemon.wait_for(kind, one.id)?;
            let run = event.pointer("/server/run").context("no run").with_context(|| event.line.clone())?;
            self.compare(run, &one.invocation).with_context(|| event.line.clone())?;
            let manager = run.get("manager").and_then(Value::as_str).unwrap_or_default();
            ensure!(manager == self.manager, "the manager {manager}, not {}: {}", self.manager, event.line);
        }
        Ok(())
    }

    fn compare(&self, said: &Value, invocation: &str) -> Result<()> {
        let number = said.get("generation").and_then(Value::as_u64);
        ensure!(number == Some(self.generation), "generation {number:?}, not {}", self.generation);
        for (key, wanted) in [("unit", self.unit.as_str()), ("invocation_id", invocation)] {
            let word = said.get(key).and_then(Value::as_str);
            ensure!(word == Some(wanted), "{key} {word:?}, not {wanted:?}");
        }
        Ok(())
    }
}
