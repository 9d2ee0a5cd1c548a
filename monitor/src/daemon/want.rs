//! Want of descriptors: what cannot be looked at for it is told, and looked at when it is over.

use std::time::Duration;

use super::Daemon;
use crate::{
    host::ProcfsError,
    os::{clock, descriptors},
};
use orphand_core::model::BootTime;

/// Between two looks whether it is over.
const AGAIN: Duration = Duration::from_secs(1);

/// Whether descriptors have run out.
#[derive(Debug, Default)]
pub struct Want {
    /// Why, as long as they have.
    why: Option<String>,
    /// When to see whether it is over.
    due: Option<BootTime>,
    /// /proc could not be read for it: that is to be done again.
    unread: bool,
}

impl Want {
    /// When to see whether it is over.
    pub const fn due(&self) -> Option<BootTime> {
        self.due
    }

    /// Why the daemon cannot vouch for all that it says.
    pub fn blind(&self) -> Option<String> {
        self.why.clone()
    }
}

impl Daemon {
    /// Something could not be looked at. Whether that was for want of descriptors, which is told once.
    pub(super) fn in_want(&mut self) -> bool {
        let Some(errno) = descriptors::shortage() else { return self.want.why.is_some() };
        if self.want.why.is_none() {
            let why = format!("descriptors have run out ({errno}): not everything can be looked at");
            tracing::error!("{why}; raise the hard limit of descriptors (LimitNOFILE=)");
            self.want.why = Some(why);
        }
        self.want.due = Some(clock::now() + AGAIN);
        true
    }

    /// /proc could not be read. It is tried again where that was for want of descriptors; everything else ends the daemon.
    pub(super) fn not_read(&mut self, error: ProcfsError) -> anyhow::Result<()> {
        if !error.is_want() && descriptors::shortage().is_none() {
            return Err(anyhow::Error::new(error).context("cannot reconcile with /proc"));
        }
        self.in_want();
        self.want.why.get_or_insert_with(|| error.to_string());
        self.want.due = Some(clock::now() + AGAIN);
        self.want.unread = true;
        self.doubtful = true;
        Ok(())
    }

    /// Sees whether it is over.
    pub(super) fn want_over(&mut self) -> anyhow::Result<()> {
        if self.want.due.is_none_or(|due| due > self.seen_until) {
            return Ok(());
        }
        self.want.due = None;
        if descriptors::shortage().is_some() {
            self.want.due = Some(clock::now() + AGAIN);
            return Ok(());
        }
        self.want.why = None;
        tracing::info!("there are descriptors again");
        if std::mem::take(&mut self.want.unread) {
            self.resync()?;
            self.carry_out()?;
        }
        Ok(())
    }
}
