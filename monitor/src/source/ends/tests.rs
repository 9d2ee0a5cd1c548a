//! Records made up.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const PIPE: Stdio = Stdio::Pipe(7);

/// Descriptor `number` of process `tgid`, on the write end of pipe 7 with this description.
fn one(tgid: u32, table: u64, number: u32, references: u64) -> EndRecord {
    EndRecord {
        start: 1_000_000_000,
        ino: 7,
        file: 0xffff_8880_0000_1000,
        table,
        references,
        tgid,
        number,
        mode: 0o010_600,
        device: 13,
        access: WRITE,
        readers: 1,
        writers: 1,
        ..EndRecord::default()
    }
}

fn told(records: &[EndRecord]) -> Vec<(u32, u32, u64, u64)> {
    let ends = settle(records, &[PIPE], &BTreeSet::new()).unwrap();
    ends.iter().map(|end| (end.process.pid, end.number, end.file, end.references)).collect()
}

#[test]
fn all_fields_arrive() {
    let socket = EndRecord {
        ino: 8,
        peer: 9,
        mode: 0o140_777,
        access: READ | WRITE,
        flags: end_flags::PEER | end_flags::CHOSEN_PORT,
        file: 1,
        ..one(3, 2, 4, 1)
    };
    let ends = settle(&[one(3, 2, 1, 5), socket], &[PIPE, Stdio::Socket(8)], &BTreeSet::new()).unwrap();
    let pipe = OpenEnd {
        process: id(3, 1_000_000_000),
        number: 1,
        of: PIPE,
        device: 13,
        inode: 7,
        peer: None,
        line: 0,
        is_master: false,
        has_chosen_port: false,
        table: 2,
        access: Access { read: false, write: true },
        file: 0,
        references: 5,
        readers: 1,
        writers: 1,
    };
    let socket = OpenEnd {
        number: 4,
        of: Stdio::Socket(8),
        inode: 8,
        peer: Some(9),
        has_chosen_port: true,
        access: Access { read: true, write: true },
        file: 1,
        references: 1,
        ..pipe.clone()
    };
    assert_eq!(ends, [pipe, socket]);
}

#[test]
fn a_table_of_threads_is_told_once_and_one_of_processes_for_each() {
    // Two threads whose leader has ended.
    assert_eq!(told(&[one(3, 2, 1, 1), one(3, 2, 1, 1)]), [(3, 1, 0, 1)]);
    // A thread with a table of its own: a copy.
    assert_eq!(told(&[one(3, 2, 1, 2), one(3, 4, 1, 2)]), [(3, 1, 0, 2), (3, 1, 0, 2)]);
    // Two processes with one table; one reference is in none.
    assert_eq!(told(&[one(3, 2, 1, 2), one(5, 2, 1, 2)]), [(3, 1, 0, 3), (5, 1, 0, 3)]);
    // Two that are giving theirs up.
    assert_eq!(told(&[one(3, 0, 1, 2), one(5, 0, 1, 2)]), [(3, 1, 0, 2), (5, 1, 0, 2)]);
}

#[test]
fn an_address_that_is_used_again_is_another_file() {
    let other = EndRecord { ino: 8, ..one(4, 3, 1, 1) };
    let ends = settle(&[one(3, 2, 1, 1), other], &[PIPE, Stdio::Pipe(8)], &BTreeSet::new()).unwrap();
    assert_ne!(ends[0].file, ends[1].file);
    let named = EndRecord { device: 14, file: 1, ..one(3, 2, 1, 1) };
    assert_eq!(settle(&[named], &[PIPE], &BTreeSet::new()).unwrap()[0].device, 14);
}

#[test]
fn what_was_not_asked_for_is_not_told() {
    let socket = EndRecord { mode: 0o140_777, ..one(3, 2, 1, 1) };
    assert_eq!(
        settle(&[socket], &[PIPE], &BTreeSet::new()),
        Ok(Vec::new()),
        "another kind with the same number"
    );
    let peer = EndRecord { ino: 8, peer: 7, flags: end_flags::PEER, ..socket };
    assert_eq!(settle(&[peer], &[PIPE], &BTreeSet::new()), Ok(Vec::new()));
    assert_eq!(settle(&[peer], &[Stdio::Socket(7)], &BTreeSet::new()).unwrap().len(), 1);
}

#[test]
fn what_could_not_be_read_makes_the_pass_an_error() {
    let lost = EndRecord { flags: end_flags::UNREADABLE, ..EndRecord::default() };
    assert!(
        settle(&[one(3, 2, 1, 1), lost], &[PIPE], &BTreeSet::new()).unwrap_err().contains("could not read")
    );
}

proptest! {
    #[test]
    fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let whole = records(&bytes);
        prop_assert_eq!(whole.len(), bytes.len() / size_of::<EndRecord>());
        let _ = settle(&whole, &[PIPE], &BTreeSet::new());
    }
}

#[test]
fn only_open_files_that_others_may_have_are_shared() {
    let other = |tgid, number, file, references| EndRecord {
        mode: 0o600,
        file,
        ..one(tgid, u64::from(tgid), number, references)
    };
    // One that two processes have, one that is twice in one process, one that nobody asked about.
    let records = [other(1, 4, 10, 2), other(1, 5, 11, 2), other(1, 6, 11, 2), other(1, 7, 12, 3)];
    assert_eq!(shared(&records, &[(1, 4), (1, 5), (2, 7)]), BTreeSet::from([10]));
    let found =
        settle(&[other(1, 4, 10, 2), other(2, 9, 10, 2), other(1, 7, 12, 3)], &[PIPE], &BTreeSet::from([10]))
            .unwrap();
    let found: Vec<_> = found.iter().map(|end| (end.process.pid, end.number, end.of)).collect();
    assert_eq!(found, [(1, 4, Stdio::Other), (2, 9, Stdio::Other)]);
    let mapped = EndRecord { flags: end_flags::MAPPED, ..other(3, 8, 13, 2) };
    let found = settle(&[mapped, other(3, 9, 14, 2)], &[], &BTreeSet::new()).unwrap();
    assert_eq!(found.iter().map(|end| (end.number, end.of)).collect::<Vec<_>>(), [(8, Stdio::File)]);
}
