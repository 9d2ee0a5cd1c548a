//! What comes in records: from the kernel, over the control socket, from a recording.

use std::{collections::BTreeSet, io::Cursor, path::Path};

use orphand::{
    control::protocol::{self, Request},
    driver::replay,
    source::{decode, ends, layout, trace::TraceReader},
};
use orphand_core::{
    engine::Engine,
    model::{Input, Stdio},
};

/// A record of the ring.
pub fn ring(bytes: &[u8]) {
    let _ = decode::decode(bytes);
}

/// What the iterator over descriptors wrote.
pub fn ends(bytes: &[u8]) {
    let records = ends::records(bytes);
    assert_eq!(records.len(), bytes.len() / size_of::<monitor_common::EndRecord>());
    // Every pipe and socket is asked about.
    let wanted: Vec<Stdio> =
        records.iter().flat_map(|record| [Stdio::Pipe(record.ino), Stdio::Socket(record.ino)]).collect();
    if let Ok(found) = ends::settle(&records, &wanted, &BTreeSet::new()) {
        assert!(found.len() <= records.len());
    }
}

/// The kernel's description of its types.
pub fn btf(bytes: &[u8]) {
    let _ = layout::read(bytes);
}

/// A line from either side of the control socket. What is understood is written as it is read again.
pub fn control(line: &[u8]) {
    if let Ok(ask) = protocol::read::<Request>(line) {
        let again = protocol::write(&ask).ok().and_then(|line| protocol::read::<Request>(&line).ok());
        assert_eq!(again.as_ref(), Some(&ask));
    }
    if let Err(why) = protocol::read_answer::<u32>(line) {
        assert!(!why.error.contains('\n'), "{why:?}");
    }
}

/// A recording, through the engine.
pub fn trace(bytes: &[u8]) {
    let Ok(reader) = TraceReader::new(Path::new("fuzzed"), Cursor::new(bytes.to_vec())) else { return };
    let header = reader.header().clone();
    let Ok(engine) = Engine::new(header.policy, header.ourselves) else { return };
    let entries =
        reader.filter(|entry| entry.as_ref().map_or(true, |entry| !matches!(entry.input, Input::Stop)));
    let _ = replay(entries, engine, |_, _| Ok(()));
}
