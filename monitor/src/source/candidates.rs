//! The map of names whose execs are reported, and what all maps need: where they are, and what a change may answer.

use std::{collections::BTreeSet, io};

use aya::{
    Ebpf,
    maps::{HashMap, Map, MapData, MapError},
};
use monitor_common::{COMM_LEN, Candidate as Rule};

use super::kernel_error::KernelError;
use orphand_core::model::Candidate;

/// A map of the loaded programs.
pub(super) fn take(programs: &mut Ebpf, name: &'static str) -> Result<Map, KernelError> {
    programs.take_map(name).ok_or_else(|| KernelError::no_object(name))
}

/// Writes these names, and no others, into the map.
pub(super) fn set(
    map: &mut HashMap<MapData, [u8; COMM_LEN], u32>,
    wanted: &[Candidate],
) -> Result<(), KernelError> {
    for candidate in wanted {
        map.insert(comm(&candidate.comm), when(candidate), 0)?;
    }
    let wanted: BTreeSet<_> = wanted.iter().map(|candidate| comm(&candidate.comm)).collect();
    let known: Vec<_> = map.keys().collect::<Result<_, _>>()?;
    for comm in known.into_iter().filter(|comm| !wanted.contains(comm)) {
        absent_is_fine(map.remove(&comm))?;
    }
    Ok(())
}

/// When a candidate's exec is worth a report.
fn when(candidate: &Candidate) -> u32 {
    let rule = if candidate.needs_wire { Rule::NeedsWire } else { Rule::Always };
    rule as u32
}

/// As `task_struct::comm` keeps it: at most 15 bytes, padded with NULs.
fn comm(name: &str) -> [u8; COMM_LEN] {
    let mut comm = [0; COMM_LEN];
    for (to, from) in comm.iter_mut().zip(name.bytes().take(COMM_LEN - 1)) {
        *to = from;
    }
    comm
}

/// Whether a change of a map found its key.
pub(super) fn absent_is_fine(change: Result<(), MapError>) -> Result<bool, MapError> {
    match change {
        Ok(()) => Ok(true),
        Err(MapError::KeyNotFound | MapError::ElementNotFound) => Ok(false),
        Err(MapError::SyscallError(e)) if e.io_error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// Whether an insertion found its key free.
pub(super) fn present_is_fine(change: Result<(), MapError>) -> Result<bool, MapError> {
    match change {
        Ok(()) => Ok(true),
        Err(MapError::SyscallError(e)) if e.io_error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(e) => Err(e),
    }
}
