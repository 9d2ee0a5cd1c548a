//! One reading of /proc, as the engine wants it.

use std::collections::BTreeMap;

use crate::{
    host::{HostError, Proc},
    os::clock,
    probe::Probe,
};
use orphand_core::{
    model::{Image, ProcessId, Snapshot, SnapshotProcess},
    recognise::{Role, Rules},
};

/// Reads all of /proc, from now on: the standard streams of what is or may be a server or launch one, the units of agents,
/// and those of all processes where rules name units. Those in `known` are not read again ([`Proc::snapshot`]).
pub fn read_proc(
    procfs: &Proc,
    probe: &Probe,
    rules: &Rules,
    known: BTreeMap<ProcessId, SnapshotProcess>,
) -> Result<Snapshot, HostError> {
    let by = rules.clone();
    let wired = move |image: &Image| {
        let is_wired = |role: &Role| {
            // A program that no rule knows may be a server by its first message.
            matches!(role, Role::Server { .. } | Role::Launcher | Role::Shell | Role::Other { .. })
        };
        is_wired(&by.role_but_for_exemption(image)) || matches!(by.role(image), Role::Launcher | Role::Shell)
    };
    let mut snapshot = procfs.snapshot(clock::now(), wired, known)?;
    for process in &mut snapshot.processes {
        if rules.name_units() || matches!(rules.role(&process.image), Role::Agent { .. }) {
            process.unit = probe.unit(process.id);
            process.place = probe.place_of(process.id);
        }
        if matches!(rules.role(&process.image), Role::Agent { .. }) {
            process.hints = probe.agent_hints(process.id).map(Box::new);
        }
    }
    Ok(snapshot)
}
