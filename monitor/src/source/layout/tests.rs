//! Against the BTF of real kernels, cut to size, and against garbage.

mod cut;

use std::{fs, time::Instant};

use monitor_common::Offsets;
use proptest::prelude::*;

use self::cut::cut;
use super::read;
use crate::source::{
    btf::{Btf, pack},
    kernel_error::KernelError,
};

const V5_10: &[u8] = include_bytes!("../../../tests/btf/5.10.btf");
const V6_1: &[u8] = include_bytes!("../../../tests/btf/6.1.btf");
const V6_12: &[u8] = include_bytes!("../../../tests/btf/6.12.btf");
const V6_18: &[u8] = include_bytes!("../../../tests/btf/6.18.btf");
const V7_3: &[u8] = include_bytes!("../../../tests/btf/7.3.btf");
const ALL: [&[u8]; 5] = [V5_10, V6_1, V6_12, V6_18, V7_3];

fn offsets(btf: &[u8]) -> Result<Offsets, KernelError> {
    read(btf).map(|layout| layout.events)
}

#[test]
fn every_kernel_has_what_is_read() {
    for blob in ALL {
        let found = offsets(blob).unwrap();
        assert_ne!(found.task_tgid, 0);
        assert_ne!(found.signal_sid, 0);
    }
}

#[test]
fn the_offsets_are_those_that_another_reader_finds() {
    let some = |o: Offsets| {
        [
            o.task_tgid,
            o.task_group_leader,
            o.task_signal,
            o.signal_sid,
            o.pid_nr,
            o.mm_arg_start,
            o.bprm_interp,
            o.inode_rdev,
        ]
    };
    assert_eq!(some(offsets(V5_10).unwrap()), EXPECTED[0]);
    assert_eq!(some(offsets(V6_1).unwrap()), EXPECTED[1]);
    assert_eq!(some(offsets(V6_12).unwrap()), EXPECTED[2]);
    assert_eq!(some(offsets(V6_18).unwrap()), EXPECTED[3]);
    assert_eq!(some(offsets(V7_3).unwrap()), EXPECTED[4]);
}

/// From the uncut BTF by a reader that has nothing in common with this one.
const EXPECTED: [[u32; 8]; 5] = [
    [2236, 2296, 2832, 376, 96, 312, 104, 76],
    [2420, 2480, 3072, 384, 96, 312, 104, 76],
    [2436, 2496, 3072, 376, 112, 376, 104, 76],
    [1268, 1328, 1848, 384, 144, 480, 104, 76],
    [2876, 2936, 3520, 400, 128, 728, 128, 76],
];

#[test]
fn group_dead_is_found_where_the_tracepoint_has_it() {
    let has = ALL.map(|blob| read(blob).unwrap().exit_has_group_dead);
    assert_eq!(has, [false, false, false, true, true]);
}

/// Likewise.
const EXPECTED_FOR_ENDS: [[[u32; 4]; 2]; 5] = [
    [[68, 56, 552, 16], [104, 640, 848, 128]],
    [[68, 56, 584, 16], [104, 624, 864, 128]],
    [[12, 0, 576, 16], [104, 288, 864, 128]],
    [[4, 176, 584, 16], [104, 288, 872, 128]],
    [[4, 168, 528, 16], [96, 288, 872, 128]],
];

/// The blob with one word of its strings changed.
fn without(blob: &[u8], word: &str) -> Vec<u8> {
    let needle = [b"\0", word.as_bytes(), b"\0"].concat();
    let at = blob.windows(needle.len()).position(|w| w == needle).unwrap();
    let mut blob = blob.to_vec();
    blob[at + 1] = b'_';
    blob
}

#[test]
fn what_is_missing_is_named() {
    for word in ["task_struct", "pid_type", "btf_trace_sched_process_exec"] {
        let error = offsets(&without(V6_1, word)).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
    for word in ["start_boottime", "f_inode", "group_exit_code", "interp"] {
        let error = offsets(&without(V6_1, word)).unwrap_err();
        assert!(error.to_string().contains(&format!("no field `{word}`")), "{error}");
    }
    let error = offsets(&without(V6_1, "PIDTYPE_SID")).unwrap_err();
    assert!(error.to_string().contains("this kernel has no `PIDTYPE_SID`"), "{error}");
}

#[test]
fn a_pass_over_descriptors_needs_more() {
    // `file::f_ref` is of 6.13.
    let from_zero = ALL.map(|blob| read(blob).unwrap().counts_files_from_zero);
    assert_eq!(from_zero, [false, false, false, true, true]);
    let ends = ALL.map(|blob| read(blob).unwrap().ends.unwrap());
    for found in ends {
        assert!(found.pipe_readers < found.pipe_writers, "{found:?}");
    }
    let some = ends.map(|found| {
        let file = [found.file_mode, found.file_count, found.inode_pipe, found.super_device];
        let socket =
            [found.pipe_writers, found.sock_socket, found.unix_peer, found.alloc_inode - found.alloc_socket];
        [file, socket]
    });
    assert_eq!(some, EXPECTED_FOR_ENDS);
    // Without it the events are read all the same.
    for (word, missing) in [("unix_sock", "unix_sock"), ("i_pipe", "i_pipe"), ("f_count", "f_count")] {
        let ends = read(&without(V6_1, word)).unwrap().ends;
        assert!(ends.unwrap_err().to_string().contains(missing));
    }
}

#[test]
fn what_is_no_btf_says_so() {
    for (bytes, why) in
        [(&b""[..], "is no BTF"), (b"\x7fELF and so on", "is no BTF"), (&V6_1[..1000], "ends in the middle")]
    {
        let error = offsets(bytes).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_type_that_is_its_own_typedef_ends() {
    let blob = pack(&[0, 8 << 24, 1].map(u32::to_ne_bytes).concat(), b"\0");
    assert!(Btf::parse(&blob).unwrap().resolve(1).is_none());
    assert!(Btf::parse(&blob).unwrap().size(1).is_none());
}

#[test]
fn functions_keep_their_numbers() {
    // An integer, and two functions of it.
    let types = [[0, 1 << 24, 4].as_slice(), &[32], &[1, 12 << 24, 1], &[3, 12 << 24, 1]].concat();
    let types: Vec<u8> = types.into_iter().flat_map(u32::to_ne_bytes).collect();
    let small = Btf::parse(&pack(&types, b"\0f\0gg\0")).unwrap().only_functions(&["gg"]);
    assert!(aya::Btf::parse(&small, aya::Endianness::default()).is_ok());
    let small = Btf::parse(&small).unwrap();
    let names: Vec<_> = small.types().map(|(number, ty)| (number, small.name(&ty))).collect();
    assert_eq!(names, [(1, &b""[..]), (2, b""), (3, b"gg")]);
}

proptest! {
    #[test]
    fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let mut with_magic = vec![0x9f, 0xeb, 1, 0, 24, 0, 0, 0];
        with_magic.extend(&bytes);
        let _ = offsets(&bytes);
        let _ = offsets(&with_magic);
    }

    #[test]
    fn any_damage_gives_an_answer(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20), keep in any::<prop::sample::Index>()) {
        let mut blob = V6_18.to_vec();
        for (at, byte) in changes {
            let at = at.index(blob.len());
            blob[at] = byte;
        }
        let _ = offsets(&blob);
        blob.truncate(keep.index(blob.len()));
        let _ = offsets(&blob);
    }
}

#[test]
#[ignore = "needs a kernel with BTF: cargo xtask test runs it"]
fn the_running_kernel_and_its_cut_say_the_same() {
    let full = fs::read("/sys/kernel/btf/vmlinux").unwrap();
    let begin = Instant::now();
    let found = offsets(&full).unwrap();
    println!("{:?} for {} bytes", begin.elapsed(), full.len());
    let small = cut(&full);
    assert_eq!(offsets(&small).unwrap(), found);
    assert!(small.len() < 16384, "{}", small.len());
}

/// Makes a blob: `ORPHAND_BTF=vmlinux.btf ORPHAND_BLOB=monitor/tests/btf/X.btf cargo test -p orphand cut_a_blob -- --ignored`.
#[test]
#[ignore = "writes a file"]
fn cut_a_blob() {
    let (Some(from), Some(to)) = (std::env::var_os("ORPHAND_BTF"), std::env::var_os("ORPHAND_BLOB")) else {
        return;
    };
    fs::write(to, cut(&fs::read(from).unwrap())).unwrap();
}
