//! What all maps need: where they are, and what a change may answer.

use std::{collections::BTreeSet, io, os::fd::AsFd as _};

use aya::{
    Ebpf, Pod,
    maps::{HashMap, Map, MapData, MapError},
};
use monitor_common::{COMM_LEN, Candidate as Rule, SharedCounts};

use super::kernel_error::KernelError;
use orphand_core::model::Candidate;

pub(super) fn take(programs: &mut Ebpf, name: &'static str) -> Result<Map, KernelError> {
    programs.take_map(name).ok_or_else(|| KernelError::no_object(name))
}

pub(super) fn hash_map<K: Pod, V: Pod>(
    programs: &mut Ebpf,
    name: &'static str,
) -> Result<HashMap<MapData, K, V>, KernelError> {
    Ok(HashMap::try_from(take(programs, name)?)?)
}

/// A map whose only value is an array of counts.
pub(super) fn counts<const N: usize>(
    programs: &mut Ebpf,
    name: &'static str,
) -> Result<SharedCounts<N>, KernelError> {
    let Map::Array(map) = take(programs, name)? else { return Err(KernelError::no_object(name)) };
    SharedCounts::new(map.fd().as_fd()).map_err(|error| KernelError::from(MapError::IoError(error)))
}

/// Writes these names, and no others, into the map of names whose execs are reported.
pub(super) fn set_candidates(
    map: &mut HashMap<MapData, [u8; COMM_LEN], u32>,
    wanted: &[Candidate],
) -> Result<(), KernelError> {
    for candidate in wanted {
        let when = if candidate.needs_wire { Rule::NeedsWire } else { Rule::Always };
        map.insert(comm(&candidate.comm), when as u32, 0)?;
    }
    let wanted: BTreeSet<_> = wanted.iter().map(|candidate| comm(&candidate.comm)).collect();
    let known: Vec<_> = map.keys().collect::<Result<_, _>>()?;
    for comm in known.into_iter().filter(|comm| !wanted.contains(comm)) {
        absent_is_fine(map.remove(&comm))?;
    }
    Ok(())
}

/// As `task_struct::comm` keeps it: at most 15 bytes, padded with NULs.
fn comm(name: &str) -> [u8; COMM_LEN] {
    let mut comm = [0; COMM_LEN];
    for (to, from) in comm.iter_mut().zip(name.bytes().take(COMM_LEN - 1)) {
        *to = from;
    }
    comm
}

pub(super) fn value<K: Pod, V: Pod>(map: &HashMap<MapData, K, V>, key: K) -> Result<Option<V>, MapError> {
    match map.get(&key, 0) {
        Ok(value) => Ok(Some(value)),
        Err(error) => absent_is_fine(Err(error)).map(|_| None),
    }
}

/// Whether a change of a map found its key.
pub(super) fn absent_is_fine(change: Result<(), MapError>) -> Result<bool, MapError> {
    match change {
        Err(MapError::KeyNotFound | MapError::ElementNotFound) => Ok(false),
        change => unless(change, io::ErrorKind::NotFound),
    }
}

/// Whether an insertion found its key free.
pub(super) fn present_is_fine(change: Result<(), MapError>) -> Result<bool, MapError> {
    unless(change, io::ErrorKind::AlreadyExists)
}

/// Whether an insertion found room: E2BIG is what a hash map answers that has none.
pub(super) fn full_is_fine(change: Result<(), MapError>) -> Result<bool, MapError> {
    unless(change, io::ErrorKind::ArgumentListTooLong)
}

fn unless(change: Result<(), MapError>, fine: io::ErrorKind) -> Result<bool, MapError> {
    match change {
        Ok(()) => Ok(true),
        Err(MapError::SyscallError(error)) if error.io_error.kind() == fine => Ok(false),
        Err(error) => Err(error),
    }
}
