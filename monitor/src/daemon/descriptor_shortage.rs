//! File descriptors may run out: the log and `status` say so, and what could not be inspected is when there are some again.

use std::time::Duration;

use super::environment::Environment;
use crate::{
    driver::Driver,
    host::HostError,
    os::{clock, descriptors},
};
use orphand_core::model::BootTime;

/// Between two checks whether it is over.
const AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub struct DescriptorShortage {
    /// Why not everything is judged, as long as they have: what `status` says.
    pub(super) why: Option<String>,
    pub(super) due: Option<BootTime>,
    /// /proc could not be read because of it, and must be read again.
    unread: bool,
}

impl Environment {
    /// Something could not be inspected: notes it if descriptors have run out. The log has one line for it.
    pub(super) fn note_shortage(&mut self) {
        let Some(errno) = descriptors::shortage() else { return };
        if self.descriptors.why.is_none() {
            let why = format!("descriptors have run out ({errno}): not everything can be inspected");
            tracing::error!("{why}; raise the hard limit of descriptors (LimitNOFILE=)");
            self.descriptors.why = Some(why);
        }
        self.descriptors.due = Some(clock::now() + AGAIN);
    }

    /// /proc could not be read. If descriptors had run out, it is tried again; every other error ends the daemon.
    pub(super) fn proc_failed(&mut self, error: HostError) -> anyhow::Result<()> {
        if !error.is_want() && descriptors::shortage().is_none() {
            return Err(anyhow::Error::new(error).context("cannot reconcile with /proc"));
        }
        self.note_shortage();
        self.descriptors.why.get_or_insert_with(|| error.to_string());
        self.descriptors.due = Some(clock::now() + AGAIN);
        self.descriptors.unread = true;
        self.doubtful = true;
        Ok(())
    }

    /// If it is time: checks whether it is over, and does what is left to do.
    pub(super) fn retry_descriptors(&mut self, driver: &mut Driver) -> anyhow::Result<()> {
        if self.descriptors.due.is_none_or(|due| due > self.seen_until) {
            return Ok(());
        }
        self.descriptors.due = descriptors::shortage().map(|_| clock::now() + AGAIN);
        if self.descriptors.due.is_some() {
            return Ok(());
        }
        self.descriptors.why = None;
        tracing::info!("there are descriptors again");
        if std::mem::take(&mut self.descriptors.unread) {
            self.repair(driver)?;
            driver.perform(self)?;
        }
        Ok(())
    }
}
