use std::{
    cell::Cell,
    collections::VecDeque,
    process::Stdio as Std,
    sync::{Arc, Mutex},
};

use super::*;
use crate::{
    host::Access,
    probe::{
        Probe,
        tests::{Started, held_by, ourselves},
    },
};
use orphand_core::model::{Subject, WireState};

const WIRE: Stdio = Stdio::Pipe(7);
const READ: Access = Access { read: true, write: false };
const WRITE: Access = Access { read: false, write: true };

fn id(pid: u32) -> ProcessId {
    ProcessId::new(pid, 1)
}

/// A descriptor of process `pid` on the pipe, which has one reader and one writer.
fn end(pid: u32, access: Access, file: u64) -> OpenEnd {
    OpenEnd {
        process: id(pid),
        number: 3,
        of: WIRE,
        device: 1,
        peer: None,
        access,
        file,
        references: 1,
        readers: 1,
        writers: 1,
    }
}

fn held(by: &[u32], unseen: bool) -> Told {
    Told::Held { by: by.iter().map(|pid| id(*pid)).collect(), unseen }
}

fn stdin(ends: &[OpenEnd]) -> Told {
    judge_pipe(ends, WIRE, Side::Reads, &[id(30)])
}

#[test]
fn who_writes_and_who_reads() {
    let ends = [end(30, READ, 1), end(20, WRITE, 2)];
    assert_eq!(stdin(&ends), held(&[20], false));
    let stdout = judge_pipe(&ends, WIRE, Side::Writes, &[id(20)]);
    assert_eq!(stdout, held(&[30], false));
}

#[test]
fn a_count_that_nobody_accounts_for_is_somebody() {
    let two = |pid, access, file| OpenEnd { writers: 2, ..end(pid, access, file) };
    assert_eq!(stdin(&[two(30, READ, 1), two(20, WRITE, 2)]), held(&[20], true));
    // The file was inherited, not opened twice: one file.
    let twice = |pid| OpenEnd { references: 2, ..end(pid, WRITE, 2) };
    assert_eq!(stdin(&[end(30, READ, 1), twice(20), twice(21)]), held(&[20, 21], false));
    assert_eq!(stdin(&[end(30, READ, 1), twice(20)]), held(&[20], true), "in flight");
    // The only descriptor of the other end is in flight.
    assert_eq!(stdin(&[end(30, READ, 1)]), held(&[], true));
    let none = OpenEnd { writers: 0, ..end(30, READ, 1) };
    assert_eq!(stdin(&[none]), Told::HungUp);
}

#[test]
fn a_server_without_an_end_of_its_own() {
    assert_eq!(stdin(&[]), Told::Lost(vec![]));
    assert_eq!(stdin(&[end(20, READ, 1), end(20, WRITE, 2)]), Told::Lost(vec![id(20)]));
    // The server's own end may be in flight to it.
    let read_twice = |pid, access, file| OpenEnd { readers: 2, ..end(pid, access, file) };
    let ends = [read_twice(20, READ, 1), read_twice(20, WRITE, 2)];
    assert_eq!(stdin(&ends), held(&[20], true));
}

#[test]
fn the_same_number_elsewhere_is_another_file() {
    let elsewhere = OpenEnd { device: 2, ..end(20, WRITE, 3) };
    let none = OpenEnd { writers: 0, ..end(30, READ, 1) };
    assert_eq!(stdin(&[none, elsewhere]), Told::HungUp);
}

#[test]
fn peers_of_sockets() {
    let both = Access { read: true, write: true };
    let socket = |pid, of, peer, file| OpenEnd {
        of: Stdio::Socket(of),
        peer,
        readers: 0,
        writers: 0,
        ..end(pid, both, file)
    };
    let judge = |ends: &[OpenEnd]| judge_socket(ends, Stdio::Socket(7), &[id(30)]);
    let own = || socket(30, 7, Some(8), 1);
    assert_eq!(judge(&[own(), socket(20, 8, Some(7), 2)]), held(&[20], false));
    assert_eq!(judge(&[own()]), held(&[], true));
    let shared = OpenEnd { references: 2, ..socket(20, 8, Some(7), 2) };
    assert_eq!(judge(&[own(), shared]), held(&[20], true));
    assert_eq!(judge(&[socket(30, 7, Some(0), 1)]), Told::Unknown);
    assert_eq!(judge(&[socket(30, 7, None, 1)]), Told::Unknown);
    assert_eq!(judge(&[socket(20, 7, Some(8), 1)]), Told::Lost(vec![id(20)]));
    let in_flight = OpenEnd { references: 2, ..socket(20, 7, Some(8), 1) };
    assert_eq!(judge(&[in_flight]), held(&[], true));
}

#[test]
fn a_reader_that_waits_in_a_thread_hides_nobody() {
    let judge = |ends: &[OpenEnd]| judge_output(ends, WIRE, &[id(30)]);
    let waits = OpenEnd { references: 2, ..end(20, READ, 1) };
    assert_eq!(judge(&[waits.clone(), end(30, WRITE, 2)]), held(&[20], false));
    let two = |pid, access, file| OpenEnd { readers: 2, ..end(pid, access, file) };
    assert_eq!(judge(&[two(20, READ, 1), two(30, WRITE, 2)]), held(&[20], true));
    assert_eq!(judge(&[OpenEnd { readers: 0, ..end(30, WRITE, 2) }]), Told::HungUp);
}

#[test]
fn a_fifo_has_a_client_if_somebody_can_write_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let script =
        "import os, sys, time; os.mkfifo(sys.argv[1]); f = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
print(os.fstat(f).st_ino, flush=True); time.sleep(600)";
    let mut command = std::process::Command::new("python3");
    let command = command.args(["-c", script]).arg(dir.path().join("commands")).stdin(Std::null());
    let (server, inode) = Started::line_of(command);
    let of = Stdio::Pipe(inode.parse().unwrap());
    let is_commanded = |ends: Vec<OpenEnd>| {
        let probe = Probe::new().unwrap().with_passes(Box::new(Script::of([Ok(ends)])));
        let found = probe.facts(&subject(&server, Stdio::Null), &Vec::new);
        assert_eq!(found.blind, None);
        found.processes[0].sockets.clients
    };
    let own = OpenEnd { process: server.id(), of, ..end(0, READ, 1) };
    let person = OpenEnd { process: ourselves(), of, ..end(0, WRITE, 2) };
    assert!(!is_commanded(vec![OpenEnd { writers: 0, ..own.clone() }]), "opened for ever, by nobody else");
    assert!(is_commanded(vec![own.clone(), person]));
    assert!(is_commanded(vec![own.clone()]), "a writer that nobody has seen");
    let itself = OpenEnd { access: Access { read: true, write: true }, ..own };
    assert!(!is_commanded(vec![itself]), "its own writer");
}

#[test]
fn one_pass_tells_of_the_pipes_of_all_copies() {
    let copies = [0, 1].map(|_| Started::bare(Std::piped(), Std::null(), Std::null()));
    let (ids, wires) = (copies.each_ref().map(Started::id), copies.each_ref().map(Started::wire));
    let at = |n: usize, process, access, file| OpenEnd {
        process,
        number: 0,
        of: wires[n],
        ..end(0, access, file)
    };
    let told = |ends: Vec<OpenEnd>, among: &[ProcessId]| {
        let script = Script::of([Ok(ends)]);
        let probe = Probe::new().unwrap().with_passes(Box::new(script.clone()));
        let found = probe.copies(&ids, among);
        (found.iter().map(|copy| copy.connected).collect::<Vec<_>>(), script.asked().len())
    };
    let us = ourselves();
    let both = |writer| {
        vec![at(0, ids[0], READ, 1), at(0, us, WRITE, 2), at(1, ids[1], READ, 3), at(1, writer, WRITE, 4)]
    };
    assert_eq!(told(both(us), &[]), (vec![true, true], 1));
    assert_eq!(told(both(us), &[us]), (vec![false, false], 1));
    assert_eq!(told(both(ids[0]), &[]), (vec![true, false], 1));
    // One end more than is listed: it is in flight.
    let hidden = both(us).into_iter().map(|end| OpenEnd { writers: 2, ..end }).collect();
    assert_eq!(told(hidden, &[us]).0, [true, true]);
    // The ends that are gone now were there a moment ago.
    assert_eq!(told(Vec::new(), &[us]).0, [true, true]);
}

/// Gives these answers in turn, the last one forever. It counts the passes, and records what was asked for.
#[derive(Clone, Debug, Default)]
struct Script(Arc<Mutex<Acts>>);

/// The answers of the further passes, and the wires that were asked for so far.
type Acts = (VecDeque<Result<Vec<OpenEnd>, String>>, Vec<Vec<Stdio>>);

impl Script {
    fn of(answers: impl IntoIterator<Item = Result<Vec<OpenEnd>, String>>) -> Self {
        Self(Arc::new(Mutex::new((answers.into_iter().collect(), Vec::new()))))
    }

    fn asked(&self) -> Vec<Vec<Stdio>> {
        self.0.lock().unwrap().1.clone()
    }
}

impl Passes for Script {
    fn pass(&mut self, wanted: &[Stdio]) -> Result<Vec<OpenEnd>, String> {
        let mut script = self.0.lock().unwrap();
        script.1.push(wanted.to_vec());
        if script.0.len() > 1 { script.0.pop_front().unwrap() } else { script.0.front().unwrap().clone() }
    }
}

/// A real server, and the ends of its standard input as a pass reports them.
fn server() -> (Started, Stdio, Vec<OpenEnd>) {
    let server = Started::sleeper(Std::piped());
    let wire = server.wire();
    let own = OpenEnd { process: server.id(), number: 0, of: wire, ..end(0, READ, 1) };
    let ours = OpenEnd { process: ourselves(), of: wire, ..end(0, WRITE, 2) };
    (server, wire, vec![own, ours])
}

fn subject(server: &Started, wire: Stdio) -> Subject {
    Subject { processes: vec![server.id()], stdin: wire, ..Subject::default() }
}

#[test]
fn a_pass_misses_nobody_and_serves_many() {
    let (server, wire, ends) = server();
    let script = Script::of([Ok(ends)]);
    let probe = Probe::new().unwrap().with_passes(Box::new(script.clone()));
    let calls = Cell::new(0);
    let others = || {
        calls.set(calls.get() + 1);
        vec![Stdio::Pipe(u64::MAX), Stdio::Null]
    };
    let found = probe.facts(&subject(&server, wire), &others);
    let WireState::Held { holders, unseen: false } = found.stdin else { panic!("{:?}", found.stdin) };
    assert_eq!(holders.iter().map(|h| h.process).collect::<Vec<_>>(), [ourselves()]);
    assert_eq!(holders[0].image.argv, std::env::args().collect::<Vec<_>>());
    let mut all = vec![wire, Stdio::Pipe(u64::MAX)];
    all.sort_unstable();
    assert_eq!(script.asked(), [all]);
    assert_eq!(calls.get(), 1);
}

#[test]
fn a_doubt_is_looked_at_twice() {
    let (server, wire, ends) = server();
    let more =
        |ends: &[OpenEnd]| ends.iter().map(|e| OpenEnd { references: 2, ..e.clone() }).collect::<Vec<_>>();
    // A read(2) that has ended by the second pass, and one that has not.
    for (second, still) in [(ends.clone(), false), (more(&ends), true)] {
        let script = Script::of([Ok(more(&ends)), Ok(second)]);
        let probe = Probe::new().unwrap().with_passes(Box::new(script.clone()));
        let found = probe.facts(&subject(&server, wire), &Vec::new);
        assert!(matches!(found.stdin, WireState::Held { unseen, .. } if unseen == still));
        assert_eq!(script.asked().len(), 2);
    }
}

#[test]
fn what_a_pass_says_too_late_is_not_believed() {
    let (server, wire, _) = server();
    // The server has its end, as a poll showed a moment ago: the pass is out of date.
    let probe = Probe::new().unwrap().with_passes(Box::new(Script::of([Ok(Vec::new())])));
    assert_eq!(probe.facts(&subject(&server, wire), &Vec::new).stdin, WireState::Unknown);
}

#[test]
fn who_has_ended_holds_nothing() {
    let (server, wire, mut ends) = server();
    let mut other = Started::sleeper(Std::null());
    ends.push(OpenEnd { process: other.id(), of: wire, references: 2, ..end(0, WRITE, 2) });
    ends[1].references = 2;
    let probe = Probe::new().unwrap().with_passes(Box::new(Script::of([Ok(ends)])));
    let holders = || held_by(&probe.facts(&subject(&server, wire), &Vec::new).stdin).unwrap();
    assert_eq!(holders().len(), 2);
    other.end();
    assert_eq!(holders(), [ourselves()]);
}

#[test]
fn a_server_that_closed_its_wire_has_no_writer() {
    let (reader, _writer) = std::io::pipe().unwrap();
    let wire = Stdio::Pipe(rustix::fs::fstat(&reader).unwrap().st_ino);
    let server = Started::sleeper(Std::null());
    let ours = |access, file| OpenEnd { process: ourselves(), of: wire, ..end(0, access, file) };
    let ends = vec![ours(READ, 1), ours(WRITE, 2)];
    let probe = Probe::new().unwrap().with_passes(Box::new(Script::of([Ok(ends)])));
    assert_eq!(probe.facts(&subject(&server, wire), &Vec::new).stdin, WireState::HungUp);
    // A reader that the pass does not list may be the server's own.
    let ends = vec![OpenEnd { readers: 2, ..ours(READ, 1) }, OpenEnd { readers: 2, ..ours(WRITE, 2) }];
    let probe = Probe::new().unwrap().with_passes(Box::new(Script::of([Ok(ends)])));
    let found = probe.facts(&subject(&server, wire), &Vec::new);
    assert!(matches!(found.stdin, WireState::Held { unseen: true, .. }));
}

#[test]
fn without_a_pass_proc_is_asked() {
    let (server, wire, _) = server();
    let probe = Probe::new().unwrap().with_passes(Box::new(Script::of([Err("no".to_owned())])));
    let found = probe.facts(&subject(&server, wire), &Vec::new);
    let WireState::Held { holders, unseen: true } = found.stdin else { panic!("{:?}", found.stdin) };
    assert_eq!(holders[0].process, ourselves());
}
