//! Orphans and their negative twins: the same set-up is played twice, and the cause is applied to one.

use anyhow::{Context, Result};

use crate::{
    cast::Actor,
    daemon::Daemon,
    host::Identity,
    scene::{Scene, scene},
};

/// The processes of a set-up.
pub struct Play {
    /// The agent whose end makes orphans.
    pub agent: Actor,
    /// The processes of each server. They must be ended, or left alone if the agent lives.
    pub servers: Vec<Vec<Identity>>,
    /// Processes that must live and not be accused, whatever happens to the agent.
    pub bystanders: Vec<Identity>,
}

impl Play {
    /// One agent, one server of one or several processes.
    pub fn of(agent: Actor, server: impl IntoIterator<Item = Identity>) -> Self {
        Self { agent, servers: vec![server.into_iter().collect()], bystanders: Vec::new() }
    }

    /// Adds a process that must not be touched.
    pub fn beside(mut self, bystander: Identity) -> Self {
        self.bystanders.push(bystander);
        self
    }

    fn check_reaped(&self, daemon: &Daemon) -> Result<()> {
        for server in &self.servers {
            daemon.reaped(server)?;
        }
        Ok(())
    }
}

/// Plays `set_up` twice under one daemon (its text argument makes names unique), then ends the first agent by
/// `cause`. The servers of the first must be ended; those of the second must be left alone.
pub fn twins(
    set_up: impl Fn(&Scene, &str) -> Result<Play>,
    cause: impl Fn(&Actor) -> Result<()>,
) -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let orphaned = set_up(s, "a").context("set up the orphans")?;
        let living = set_up(s, "b").context("set up the twin")?;
        cause(&orphaned.agent).context("the cause")?;
        orphaned.check_reaped(&daemon)?;
        s.barrier(&daemon)?;
        daemon.silent(&orphaned.bystanders)?;
        daemon.silent(&living.bystanders)?;
        for server in &living.servers {
            daemon.silent(server).context("the twin whose agent lives")?;
        }
        Ok(())
    })
}
