//! From the kernel side to the engine: records of the ring, what was lost of them, and the readings of /proc that make up for
//! that.

use super::environment::Environment;
use crate::{
    driver::{Driver, read_proc},
    os::clock,
};
use orphand_core::model::{Input, Losses, ProcessEvent};

impl Environment {
    /// Hands in what the kernel side reported. Returns whether there was anything.
    pub(super) fn drain(&mut self, driver: &mut Driver) -> anyhow::Result<bool> {
        self.seen_until = clock::now();
        // Effects on the kernel side follow each record, so the ring is emptied first: both need it. What signals add to these records
        // is for the next time: a storm of records cannot keep this busy.
        let pending = self.pending.drain(&mut self.kernel);
        let mut any = pending > 0;
        for _ in 0..pending {
            let Some(event) = self.next_record() else { break };
            driver.handle(self, Input::Process { event })?;
        }
        let mut losses = self.kernel.losses()?;
        let refused = std::mem::take(&mut losses.member);
        if refused > 0 {
            any = true;
            let users = self.kernel.members.refused()?;
            self.note_refused(driver, &users, refused);
            driver.perform(self)?;
        }
        if losses != Losses::default() {
            any = true;
            self.doubtful = true;
            self.status.lost += losses;
            driver.handle(self, Input::Lost { losses })?;
        }
        Ok(any)
    }

    /// The repair after a loss: the records that are there, then a reading of /proc.
    pub(super) fn repair(&mut self, driver: &mut Driver) -> anyhow::Result<()> {
        self.pending.drain(&mut self.kernel);
        while let Some(event) = self.next_record() {
            driver.feed(Input::Process { event });
        }
        if self.feed_proc(driver)? {
            self.status.resyncs += 1;
            self.doubtful = false;
        }
        Ok(())
    }

    /// Reads /proc where no loss asks for it.
    pub(super) fn reconcile(&mut self, driver: &mut Driver) -> anyhow::Result<()> {
        self.drain(driver)?;
        self.feed_proc(driver)?;
        driver.perform(self)
    }

    /// Feeds one reading of /proc. Returns whether it could be made: if not it will be tried again.
    fn feed_proc(&mut self, driver: &mut Driver) -> anyhow::Result<bool> {
        match read_proc(&self.procfs, &self.probe, &self.rules) {
            Ok(snapshot) => {
                self.stuck.set_unread(clock::now(), &snapshot.unread);
                driver.feed(Input::Snapshot { snapshot });
                Ok(true)
            }
            Err(error) => self.proc_failed(error).map(|()| false),
        }
    }

    /// The oldest record that was taken from the ring, counted and with its whole command line.
    fn next_record(&mut self) -> Option<ProcessEvent> {
        let event = self.pending.pop()?;
        count(&mut self.status.records, &event);
        Some(self.completer.complete(&self.procfs, &self.rules, event))
    }
}

fn count(records: &mut Losses, event: &ProcessEvent) {
    match event {
        ProcessEvent::Fork { .. } => records.fork += 1,
        ProcessEvent::Exec { .. } => records.exec += 1,
        ProcessEvent::Exit { .. } | ProcessEvent::ThreadExit { .. } => records.exit += 1,
        ProcessEvent::Setsid { .. } => records.setsid += 1,
        // Nothing depends on these: they are no part of what may be lost.
        ProcessEvent::Signal { .. } => {}
    }
}
