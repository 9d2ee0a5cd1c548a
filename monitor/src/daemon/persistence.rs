//! What must outlive the daemon: facts are written to the store before anything is announced or signalled because of them.

use std::{path::Path, time::Duration};

use crate::{
    host::boot_id,
    os::clock,
    store::{Store, StoreError, StoreWriter},
};
use orphand_core::model::{BootTime, Fact, Knowledge};

/// Between two tries to write while nothing happens.
const AGAIN: Duration = Duration::from_secs(1);

/// The store, or nothing where it cannot be opened. A store that cannot be written does not stop the daemon: the log has one line,
/// and the store itself tries again.
#[derive(Debug)]
pub struct Persistence {
    store: Option<StoreWriter>,
    failing: bool,
    /// When to try again if nothing happens before.
    due: Option<BootTime>,
}

impl Persistence {
    /// Opens the store in `dir`; returns what earlier daemons knew, too. `offset_ns` leads from the boot clock to the wall clock.
    /// The only failures are a store that a newer orphand wrote and a kernel that does not name this boot.
    pub fn open(dir: &Path, offset_ns: i64) -> anyhow::Result<(Self, Knowledge)> {
        // Without it processes of an earlier boot would pass for those of this one.
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

    /// Makes the directory, while the daemon still may. A failure is reported when the store is opened.
    pub fn prepare(dir: &Path) {
        if let Err(error) = Store::prepare(dir) {
            tracing::debug!("{error}");
        }
    }

    /// Keeps a fact; it is written by the next [`Persistence::commit`].
    pub fn remember(&mut self, at: BootTime, fact: &Fact) {
        if let Some(store) = &mut self.store {
            store.remember(at, fact);
        }
    }

    /// Writes what is kept: from here on it survives the death of this process, unless the store fails or does not answer in time.
    /// Both are reported, and nothing waits for them.
    pub fn commit(&mut self) {
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

    /// When to try again though nothing happens.
    pub const fn due(&self) -> Option<BootTime> {
        self.due
    }

    /// Why what the daemon announces may be lost, if it may: numbers are not safe.
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
