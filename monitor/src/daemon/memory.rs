//! The daemon's memory: facts go to the store before anything follows from them.

use std::{path::Path, time::Duration};

use crate::{
    host::boot_id,
    os::clock,
    store::{Store, StoreError, StoreWriter},
};
use orphand_core::model::{BootTime, Fact, Knowledge};

/// Between two tries while nothing happens.
const AGAIN: Duration = Duration::from_secs(1);

/// The store, or nothing where there is none. A store that cannot be written is no reason not to watch: it is told once, and tried
/// again by the store itself.
#[derive(Debug)]
pub struct Memory {
    store: Option<StoreWriter>,
    failing: bool,
    /// When it is tried again if nothing happens before.
    due: Option<BootTime>,
}

impl Memory {
    /// Opens the store in `dir`, and what earlier daemons knew. Only a store that a newer orphand wrote is a failure.
    pub fn open(dir: &Path, offset_ns: i64) -> anyhow::Result<(Self, Knowledge)> {
        // Without it an earlier boot's processes would pass for this one's.
        let boot = boot_id()?;
        match StoreWriter::open(dir, &boot, offset_ns) {
            Ok((store, opening, knowledge)) => {
                if let Some(aside) = opening.damaged {
                    tracing::warn!("{aside}");
                }
                Ok((Self { store: Some(store), failing: false, due: None }, knowledge))
            }
            Err(error @ StoreError::Newer { .. }) => Err(error.into()),
            Err(error) => {
                tracing::warn!("{error}; numbers and history are lost when this daemon ends");
                Ok((Self { store: None, failing: true, due: None }, Knowledge::default()))
            }
        }
    }

    /// Makes the directory, for a daemon that may not do so later. What is wrong with it is told when it is opened.
    pub fn prepare(dir: &Path) {
        if let Err(error) = Store::prepare(dir) {
            tracing::debug!("{error}");
        }
    }

    /// To be remembered.
    pub fn note(&mut self, at: BootTime, fact: &Fact) {
        if let Some(store) = &mut self.store {
            store.remember(at, fact);
        }
    }

    /// From here on it is safe from our own death: unless the store fails, or does not answer in time. Both are told, and
    /// nothing waits for it.
    pub fn settle(&mut self) {
        let Some(store) = &mut self.store else { return };
        match store.commit() {
            Ok(()) if self.failing && store.pending() == 0 => {
                tracing::info!(
                    "the store is written again, nothing is missing in it that there was room for"
                );
                (self.failing, self.due) = (false, None);
            }
            Ok(()) => {}
            Err(error) => {
                if !self.failing {
                    tracing::warn!("{error}; orphand goes on and tries again");
                }
                self.failing = true;
                self.due = Some(clock::now() + AGAIN);
            }
        }
    }

    /// When it is to be tried again though nothing happens.
    pub const fn due(&self) -> Option<BootTime> {
        self.due
    }

    /// Why the daemon cannot vouch for all that it says: numbers that it tells are not safe.
    pub fn blind(&self) -> Option<String> {
        let silent = self.store.as_ref().is_some_and(StoreWriter::is_silent);
        silent.then(|| {
            "the store does not answer: numbers and judgements are lost if orphand ends now".to_owned()
        })
    }

    /// The daemon stops.
    pub fn close(&mut self) {
        if let Some(store) = &mut self.store
            && let Err(error) = store.record_stop(clock::now())
        {
            tracing::warn!("{error}");
        }
    }
}
