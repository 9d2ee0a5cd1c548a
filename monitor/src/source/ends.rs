//! What a pass over all descriptors wrote becomes [`OpenEnd`]s. Pure and total.

use std::collections::{BTreeSet, HashMap, HashSet};

use monitor_common::{EndRecord, end_flags};
use rustix::fs::FileType;

use super::{decode::id, iterator::whole, kernel_side::OpenEnd};
use crate::host::Access;
use orphand_core::model::Stdio;

/// `FMODE_READ` and `FMODE_WRITE`, include/linux/fs.h.
const READ: u32 = 1;
const WRITE: u32 = 2;

/// The whole records at the beginning of these bytes.
pub fn records(bytes: &[u8]) -> Vec<EndRecord> {
    whole(bytes).collect()
}

/// A descriptor in a table. While a process gives its table up, the process stands for it.
type Slot = (u64, u32, u32);

const fn slot(record: &EndRecord) -> Slot {
    let process = if record.table == 0 { record.tgid } else { 0 };
    (record.table, process, record.number)
}

/// The open ends of what is wanted, and of the peers of wanted sockets.
///
/// A table that threads share is told once: the kernel shows it once a thread where the first thread has ended, and before 5.10
/// always. One that processes share is told for each of them, and counts as if each had a copy of it: a description then has as
/// many references as it has descriptors, and what is more is elsewhere.
///
/// # Errors
///
/// A line that says why what was written is not all.
pub fn settle(
    records: &[EndRecord],
    wanted: &[Stdio],
    shared: &BTreeSet<u64>,
) -> Result<Vec<OpenEnd>, String> {
    if records.iter().any(|record| record.flags & end_flags::UNREADABLE != 0) {
        return Err("the kernel side could not read a descriptor".to_owned());
    }
    let wanted: HashSet<Stdio> = wanted.iter().copied().collect();
    let mut seen = HashSet::new();
    let mut is_new =
        |record: &EndRecord| seen.insert((record.tgid, record.start, slot(record), record.file, record.ino));
    let wanted = records.iter().filter(|record| is_wanted(record, &wanted, shared));
    let records: Vec<&EndRecord> = wanted.filter(|record| is_new(record)).collect();

    let mut files: HashMap<(u64, u64, u32), File> = HashMap::new();
    for record in &records {
        let fresh = files.len() as u64;
        let file = files.entry(key(record)).or_default();
        if file.ends == 0 {
            file.number = fresh;
        }
        file.ends += 1;
        file.slots.insert(slot(record));
    }
    let ends = records.into_iter().filter_map(|record| Some(end(record, files.get(&key(record))?)));
    Ok(ends.collect())
}

#[derive(Default)]
struct File {
    /// In the order of their appearance.
    number: u64,
    /// Descriptors, one for each process that shares a table.
    ends: u64,
    /// Descriptors in tables.
    slots: HashSet<Slot>,
}

/// An address alone would do if one pass told all: it may be used again between two.
const fn key(record: &EndRecord) -> (u64, u64, u32) {
    (record.file, record.ino, record.device)
}

fn is_wanted(record: &EndRecord, wanted: &HashSet<Stdio>, shared: &BTreeSet<u64>) -> bool {
    if of(record) == Stdio::Other {
        return shared.contains(&record.file);
    }
    matches!(of(record), Stdio::Terminal | Stdio::File)
        || wanted.contains(&of(record))
        || peer(record).is_some_and(|peer| wanted.contains(&Stdio::Socket(peer)))
}

fn of(record: &EndRecord) -> Stdio {
    match FileType::from_raw_mode(record.mode) {
        _ if record.flags & (end_flags::LINE | end_flags::MASTER) != 0 => Stdio::Terminal,
        _ if record.flags & end_flags::MAPPED != 0 => Stdio::File,
        FileType::Fifo => Stdio::Pipe(record.ino),
        FileType::Socket => Stdio::Socket(record.ino),
        _ => Stdio::Other,
    }
}

/// Whether it is of a file that is told because of its process, and neither of a pipe, a socket or a terminal nor mapped.
pub fn is_other(record: &EndRecord) -> bool {
    of(record) == Stdio::Other
}

/// The addresses of those of these open files, each given by a process and a number, that have more references than that
/// process has descriptors of them.
pub fn shared(records: &[EndRecord], files: &[(u32, u32)]) -> BTreeSet<u64> {
    let files: HashSet<(u32, u32)> = files.iter().copied().collect();
    let mut own: HashMap<(u64, u32), HashSet<Slot>> = HashMap::new();
    for record in records.iter().filter(|record| is_other(record)) {
        own.entry((record.file, record.tgid)).or_default().insert(slot(record));
    }
    let meant = records.iter().filter(|one| is_other(one) && files.contains(&(one.tgid, one.number)));
    let has_more = |one: &&EndRecord| {
        own.get(&(one.file, one.tgid)).is_none_or(|slots| one.references > slots.len() as u64)
    };
    meant.filter(has_more).map(|one| one.file).collect()
}

const fn peer(record: &EndRecord) -> Option<u64> {
    if record.flags & end_flags::PEER == 0 { None } else { Some(record.peer) }
}

fn end(record: &EndRecord, file: &File) -> OpenEnd {
    let shared = file.ends - file.slots.len() as u64;
    OpenEnd {
        process: id(record.tgid, record.start),
        number: record.number,
        of: of(record),
        device: record.device,
        inode: record.ino,
        peer: peer(record),
        line: if of(record) == Stdio::Terminal { record.peer } else { 0 },
        is_master: record.flags & end_flags::MASTER != 0,
        has_chosen_port: record.flags & end_flags::CHOSEN_PORT != 0,
        table: record.table,
        access: Access { read: record.access & READ != 0, write: record.access & WRITE != 0 },
        file: file.number,
        references: record.references.saturating_add(shared),
        readers: record.readers,
        writers: record.writers,
    }
}

#[cfg(test)]
mod tests;
