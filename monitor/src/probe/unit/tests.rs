use std::{
    fs,
    os::unix::fs::symlink,
    process::{Command, Stdio as Std},
};

use super::*;
use crate::{
    host::Proc,
    probe::tests::{Started, ourselves},
};

const NOW: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn an_invocation_is_32_digits() {
    assert_eq!(invocation(b"0123456789ABCDEF0123456789abcdef").unwrap(), NOW);
    for odd in [
        &b""[..],
        b"0123",
        b"0123456789abcdef0123456789abcdeg",
        b"0123456789abcdef0123456789abcdef\n",
        b"\xff",
    ] {
        assert_eq!(invocation(odd), None);
    }
}

#[test]
fn the_variable_of_exactly_this_name() {
    let proc = Proc::system().unwrap();
    let with = |name, value| {
        Started::new(Command::new("sleep").arg("600").env_clear().env(name, value).stdin(Std::null()))
    };
    let of = |started: &Started| proc.process(started.0.id()).unwrap().environment("INVOCATION_ID").unwrap();
    assert_eq!(of(&with("INVOCATION_ID", NOW)).unwrap(), NOW.as_bytes());
    assert_eq!(of(&with("INVOCATION_ID", "")).unwrap(), b"");
    assert_eq!(of(&with("INVOCATION_ID_", NOW)), None);
    assert_eq!(of(&with("OLD", &format!("INVOCATION_ID={NOW}"))), None);
}

#[test]
fn who_is_gone_or_of_another_birth_has_no_unit() {
    let probe = Probe::new().unwrap();
    let us = ourselves();
    assert_eq!(probe.unit(ProcessId { start: us.start + 1, ..us }), None);
    assert_eq!(probe.unit(ProcessId::new(u32::MAX, 1)), None);
}

#[test]
fn ancestors_lead_up_to_the_first_process() {
    let proc = Proc::system().unwrap();
    let child = Started::sleeper(Std::null());
    let above: Vec<_> = proc.ancestors(&proc.process(child.0.id()).unwrap()).map(|dir| dir.id()).collect();
    assert_eq!(above.first(), Some(&ourselves()));
    assert!(above.iter().all(|id| id.pid != child.0.id()));
}

/// A process with this runtime directory that has the name of a user's manager; it only sleeps.
fn user_manager(runtime: &std::path::Path) -> Started {
    use std::os::unix::process::CommandExt as _;
    // The interpreter is started directly, because a wrapper script would run another program in between.
    let script = "import time; time.sleep(600)";
    let mut command = Command::new("/usr/bin/python3");
    command.arg0("systemd").args(["-c", script, "--user"]).env("XDG_RUNTIME_DIR", runtime).stdin(Std::null());
    let started = Started::new(&mut command);
    // The parent of a vfork(2) continues before the child has released its memory (`exec_mmap()`). Until then
    // the child has our arguments.
    let proc = Proc::system().unwrap();
    while !proc.process(started.0.id()).unwrap().image().argv.iter().any(|arg| arg == "--user") {
        std::thread::yield_now();
    }
    started
}

#[test]
fn what_the_list_of_invocations_says() {
    let runtime = tempfile::tempdir().unwrap();
    let manager = user_manager(runtime.path());
    let proc = Proc::system().unwrap();
    let dir = proc.process(manager.0.id()).unwrap();
    let of = |name: &str| state(&dir, &Unit { manager: String::new(), name: name.to_owned() });

    assert_eq!(of("x.service"), UnitState::Unknown, "no list");
    let units = runtime.path().join("systemd/units");
    fs::create_dir_all(&units).unwrap();
    assert_eq!(of("x.service"), UnitState::Stopped);
    symlink(NOW, units.join("invocation:x.service")).unwrap();
    assert_eq!(of("x.service"), UnitState::Active(NOW.to_owned()));
    assert_eq!(of("y.service"), UnitState::Stopped);
    symlink("something else", units.join("invocation:odd.service")).unwrap();
    fs::write(units.join("invocation:file.service"), NOW).unwrap();
    assert_eq!(of("odd.service"), UnitState::Unknown);
    assert_eq!(of("file.service"), UnitState::Unknown);
}

#[test]
fn a_manager_that_has_ended_says_nothing() {
    let runtime = tempfile::tempdir().unwrap();
    fs::create_dir_all(runtime.path().join("systemd/units")).unwrap();
    let mut manager = user_manager(runtime.path());
    let dir = Proc::system().unwrap().process(manager.0.id()).unwrap();
    let unit = Unit { manager: String::new(), name: "x.service".to_owned() };
    assert_eq!(state(&dir, &unit), UnitState::Stopped);
    manager.end();
    assert_eq!(state(&dir, &unit), UnitState::Unknown);
}

#[test]
fn who_is_neither_first_nor_a_users_has_no_list() {
    let sleeper = Started::sleeper(Std::null());
    let dir = Proc::system().unwrap().process(sleeper.0.id()).unwrap();
    assert!(units(&dir).is_none());
    let first = Proc::system().unwrap().process(1).unwrap();
    assert!(first.leads_namespace().unwrap() && !dir.leads_namespace().unwrap());
}

#[test]
fn only_systemd_is_asked() {
    let manager = Started::sleeper(Std::null());
    assert!(!is_systemd(&Proc::system().unwrap().process(manager.0.id()).unwrap()));
}
