//! Opening, the self-test, and what bad surroundings get.

use std::process::Command;

use orphand::source::{
    kernel::{KernelOptions, KernelSource},
    selftest,
};
use orphand_core::model::SetsidHook;

use crate::stage::options;

/// A child that calls setsid(2) and ends.
fn child() -> Command {
    let mut command = Command::new("setsid");
    command.args(["sh", "-c", "exit 42"]);
    command
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn the_self_test_passes() {
    for setsid in [SetsidHook::None, SetsidHook::Auto] {
        let mut source = KernelSource::open(&KernelOptions { setsid, ..options() }).unwrap();
        println!("{:?}", source.hooks());
        selftest::run(&mut source, child()).unwrap();
    }
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn the_self_test_fails_without_a_record() {
    // Hooked, and the child does not call setsid(2).
    let mut source = KernelSource::open(&KernelOptions { setsid: SetsidHook::Auto, ..options() }).unwrap();
    let error = selftest::run(&mut source, Command::new("true")).map(drop).unwrap_err();
    assert!(error.to_string().contains("no setsid record"), "{error}");
    // No room for a membership of its own.
    let mut source = KernelSource::open(&KernelOptions { members: 1, ..options() }).unwrap();
    let error = selftest::run(&mut source, child()).map(drop).unwrap_err();
    assert!(error.to_string().contains("record came about process"), "{error}");
}

#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn the_programs_load_with_their_log_on() {
    let mut source = KernelSource::open(&KernelOptions { log: true, ..options() }).unwrap();
    selftest::run(&mut source, Command::new("true")).unwrap();
}
