//! What must outlive the daemon: facts are written to the store before anything is announced or signalled because of them.

use std::path::Path;

use crate::{
    host::boot_id,
    os::clock,
    store::{Limits, StoreError, StoreWriter},
};
use orphand_core::model::Knowledge;

/// Opens the store in `dir`; returns what earlier daemons knew, too. `offset_ns` leads from the boot clock to the wall clock.
/// The only failures are a store that a newer orphand wrote and a kernel that does not name this boot. Where the store cannot be
/// opened, there is one that keeps nothing.
pub fn open(dir: &Path, offset_ns: i64) -> anyhow::Result<(StoreWriter, Knowledge)> {
    // Without it processes of an earlier boot would pass for those of this one.
    let boot = boot_id()?;
    match StoreWriter::open(dir, &boot, offset_ns, Limits::default()) {
        Ok((store, set_aside, knowledge)) => {
            if let Some(aside) = set_aside {
                tracing::warn!("{aside}");
            }
            Ok((store, knowledge))
        }
        Err(error @ StoreError::Newer { .. }) => Err(error.into()),
        Err(error) => {
            tracing::warn!("{error}; numbers and history are lost when this daemon ends");
            // Nobody knows whether there was an earlier daemon: what was there before is left to a person.
            let knowledge = Knowledge { first_start: Some(clock::now()), ..Knowledge::default() };
            Ok((StoreWriter::absent(Some(error.to_string())), knowledge))
        }
    }
}
