//! An orphan and its negative twin side by side: the same set-up played twice, the cause applied to one.

use anyhow::{Context, Result};

use crate::{
    cast::Actor,
    daemon::Daemon,
    host::Identity,
    scene::{Scene, scene},
};

/// What a set-up has put on the stage.
pub struct Play {
    /// The one whose end makes orphans.
    pub agent: Actor,
    /// The processes of each server that must be reaped, or left alone if the agent lives.
    pub servers: Vec<Vec<Identity>>,
    /// Others: they must be alive and unaccused in the end, whatever happens to the agent.
    pub bystanders: Vec<Identity>,
}

impl Play {
    /// One agent, one server of one or several processes.
    pub fn of(agent: Actor, server: impl IntoIterator<Item = Identity>) -> Self {
        Self { agent, servers: vec![server.into_iter().collect()], bystanders: Vec::new() }
    }

    /// With one more process that must not be touched.
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

/// Play `set_up` twice under one daemon (the text makes names unique), then `cause` the end of the first
/// agent: its servers must be reaped, those of the second must be left in silence.
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
