use std::process::{Command, Stdio};

use super::*;
use crate::{host::Proc, probe::tests::Started};

const ENTRY: &str = "ORPHAND_OPT_OUT=1";

#[test]
fn the_place_is_in_fields_50_and_51() {
    let fields: Vec<_> = (3..=52).map(|n| n.to_string()).collect();
    let line = format!("7 (a) b) c) {}\n", fields.join(" "));
    assert_eq!(parse_place(line.as_bytes()), Some((50, 51)));
    assert_eq!(parse_place(b"7 (a) S 1 2"), None);
}

/// A shell that waits, behind a program that sets this up, in Python, and calls exec.
fn after(setup: &str) -> Started {
    let script = format!(
        "import os, resource, sys\nenv = {{'PATH': os.environ['PATH']}}\n{setup}\n\
         os.execve('/bin/sh', ['sh', '-c', 'echo; read line'], env)"
    );
    Started::python(&script, Stdio::piped()).0
}

fn opted_out(of: &Started) -> bool {
    dir(of).has_environment(ENTRY.as_bytes())
}

fn dir(of: &Started) -> ProcessDir {
    Proc::system().unwrap().process(of.0.id()).unwrap()
}

/// Fills the environment with entries of 100 KiB, up to so many bytes, in front of what follows.
fn behind(bytes: usize, what: &str) -> String {
    format!(
        "soft, hard = resource.getrlimit(resource.RLIMIT_STACK)\n\
         resource.setrlimit(resource.RLIMIT_STACK, (min(64 << 20, hard) if hard >= 0 else 64 << 20, hard))\n\
         for n in range({}): env['FILL%d' % n] = 'x' * 102400\n\
         {what}",
        bytes.div_ceil(102_400)
    )
}

#[test]
fn it_is_found_behind_one_and_behind_four_mebibytes() {
    for mebibytes in [0, 1, 4] {
        let bytes = mebibytes << 20;
        assert!(opted_out(&after(&behind(bytes, "env['ORPHAND_OPT_OUT'] = '1'"))), "{mebibytes} MiB");
        let near =
            "env['ORPHAND_OPT_OUT'] = '10'; env['XORPHAND_OPT_OUT'] = '1'; env['A'] = 'ORPHAND_OPT_OUT=1 '";
        assert!(!opted_out(&after(&behind(bytes, near))), "{mebibytes} MiB");
    }
}

#[test]
fn an_environment_that_is_too_long_counts_as_opted_out() {
    let child = after(&behind(1 << 20, "env['ORPHAND_OPT_OUT'] = '0'"));
    assert!(dir(&child).has_within([&mut |one| one == ENTRY.as_bytes()], 1 << 19)[0]);
    assert!(!dir(&child).has_within([&mut |one| one == ENTRY.as_bytes()], 1 << 22)[0]);
}

#[test]
fn an_empty_environment_was_read_to_its_end() {
    let child = after("env = {}");
    assert!(std::fs::read(format!("/proc/{}/environ", child.0.id())).unwrap().is_empty());
    assert!(!opted_out(&child));
}

/// Nobody may read a page in the middle of its environment: the kernel's file ends there, without an error.
#[test]
fn an_environment_with_a_hole_counts_as_opted_out() {
    let script = "import ctypes, os, sys\n\
                  fields = open('/proc/self/stat').read().rsplit(') ', 1)[1].split()\n\
                  begin, end = int(fields[47]), int(fields[48])\n\
                  page = (begin + 200000) & ~4095\n\
                  assert begin < page < page + 4096 < end\n\
                  libc = ctypes.CDLL(None, use_errno=True)\n\
                  assert libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(4096), 0) == 0\n\
                  print(flush=True); sys.stdin.read()";
    let fill = (0..5).map(|n| (format!("FILL{n}"), "x".repeat(100_000)));
    let mut command = Command::new("python3");
    let (child, _) = Started::line_of(command.args(["-c", script]).envs(fill).stdin(Stdio::piped()));
    assert_eq!(dir(&child).whole_environment(MOST), None);
    assert!(opted_out(&child));
}

#[test]
fn what_cannot_be_read_counts_as_opted_out_and_the_dead_do_not() {
    let mut child = after("");
    let stranger = std::fs::metadata("/proc/1/environ").is_ok() && std::fs::read("/proc/1/environ").is_err();
    if stranger {
        // Without privileges: nobody may read this one.
        assert!(Proc::system().unwrap().process(1).unwrap().has_environment(ENTRY.as_bytes()));
    }
    let dir = Proc::system().unwrap().process(child.0.id()).unwrap();
    assert!(!dir.has_environment(ENTRY.as_bytes()));
    child.0.kill().unwrap();
    while dir.still_alive() {
        std::thread::yield_now();
    }
    // A zombie, then nobody.
    assert!(!dir.has_environment(ENTRY.as_bytes()));
    child.0.wait().unwrap();
    assert!(!dir.has_environment(ENTRY.as_bytes()));
}
