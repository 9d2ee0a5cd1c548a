use std::{
    io::Write as _,
    process::{Command, Stdio as Std},
};

use super::*;
use crate::{
    os::forks_of_tests::calm,
    probe::tests::{Started, facts, our_session, ourselves, subject},
};
use orphand_core::model::{
    About, Answer, Stdio,
    scene::{Holder, Scene, Side, Wait},
};

#[test]
fn the_facts_about_a_living_server() {
    let server = Started::sleeper(Std::piped());
    let found = facts(&[server.id()], server.wire());
    let row = found.scene.row(server.id()).unwrap();
    assert_eq!(row.uid, rustix::process::getuid().as_raw());
    assert_eq!(row.sid, our_session());
    assert!(row.full && row.rss_bytes > 0 && !row.opted_out);
    assert!(row.pss_bytes.is_some_and(|pss| pss <= row.rss_bytes));
}

#[test]
fn the_dead_and_those_of_another_birth_are_left_out() {
    let mut dead = Started::sleeper(Std::null());
    let was = dead.id();
    dead.end();
    let alive = Started::sleeper(Std::null());
    let other = ProcessId { start: alive.id().start + 1, ..alive.id() };
    let found = facts(&[was, other, alive.id()], Stdio::Null);
    let all = [was, other, alive.id()];
    assert_eq!(found.scene.full(&all).map(|row| row.process).collect::<Vec<_>>(), [alive.id()]);
    assert_eq!(facts(&[was, other], Stdio::Null).scene, Scene::default());
}

#[test]
fn who_opts_out_is_told() {
    let with = |value| Started::new(Command::new("sleep").arg("600").env("ORPHAND_OPT_OUT", value));
    let (out, not) = (with("1"), with("0"));
    let found = facts(&[out.id(), not.id()], Stdio::Null);
    let opted_out = |process| found.scene.row(process).unwrap().opted_out;
    assert!(opted_out(out.id()) && !opted_out(not.id()));
}

#[test]
fn every_question_has_its_answer() {
    let probe = Probe::new().unwrap();
    let us = ourselves();
    match probe.answer(&About::Memory(vec![us])) {
        Answer::Memory { processes } => assert_eq!(processes.len(), 1),
        other => panic!("{other:?}"),
    }
    match probe.answer(&About::Process(us)) {
        Answer::Process { process } => assert_eq!(process.unwrap().id, us),
        other => panic!("{other:?}"),
    }
    match probe.answer(&About::Copies(vec![us])) {
        Answer::Copies { copies } => assert_eq!(copies[0].process, us),
        other => panic!("{other:?}"),
    }
    // Not of ourselves: the other tests come and go here.
    let server = Started::sleeper(Std::null());
    match probe.answer(&About::Server(subject(&[server.id()], Stdio::Null))) {
        Answer::Server { facts } => assert!(facts.scene.row(server.id()).is_some()),
        other => panic!("{other:?}"),
    }
}

/// The processes of a browser share most of their memory: what is resident counts it once for each.
#[test]
fn the_memory_of_processes_that_share_it_is_told_once() {
    let script = "import ctypes, os, time
shared = b'x' * (150 << 20)
others = []
for _ in range(8):
    pid = os.fork()
    if pid == 0: ctypes.CDLL(None).prctl(1, 9); time.sleep(600)
    others.append(pid)
print(*others, flush=True); time.sleep(600)";
    let (server, line) = Started::python(script, Std::null());
    let others = line.split(' ').map(|pid| crate::probe::tests::id(pid.parse().unwrap()));
    let processes: Vec<ProcessId> = std::iter::once(server.id()).chain(others).collect();
    let probe = Probe::new().unwrap();
    let told = || {
        let found = probe.facts(&[&subject(&processes, Stdio::Null)]).remove(0);
        let rows: Vec<_> = found.scene.full(&processes).collect();
        let resident: u64 = rows.iter().map(|row| row.rss_bytes).sum();
        (resident, rows.iter().map(|row| row.pss_bytes).sum::<Option<u64>>())
    };
    let (resident, proportional) = told();
    assert!(resident > 1 << 30, "{resident}");
    assert!(proportional.is_some_and(|pss| (150 << 20..400 << 20).contains(&pss)), "{proportional:?}");
}

/// What a server waits for is told where that matters: one that waits for its next request, and one that sleeps over it.
#[test]
fn what_a_server_waits_for_is_told_where_it_is_asked() {
    let read = |server: &Started, waits: bool| {
        let mut subject = subject(&[server.id()], server.wire());
        subject.question.waits = waits;
        let facts = Probe::new().unwrap().facts(&[&subject]).remove(0);
        (facts.scene.row(server.id()).unwrap().waits, facts.unread_input)
    };
    let reader = Started::new(Command::new("cat").stdin(Std::piped()).stdout(Std::null()));
    while !std::fs::read_to_string(format!("/proc/{}/stat", reader.0.id())).unwrap().contains("(cat) S") {
        std::thread::yield_now();
    }
    assert_eq!(read(&reader, true), (Wait::Ends, Some(FirstMessage::Nothing)));
    assert_eq!(read(&reader, false), (Wait::Anything, Some(FirstMessage::Nothing)));
    let mut sleeper = Started::sleeper(Std::piped());
    sleeper.until_asleep();
    sleeper.0.stdin.as_mut().unwrap().write_all(b"{}\n").unwrap();
    assert_eq!(read(&sleeper, true), (Wait::Anything, Some(FirstMessage::Unknown)));
}

/// What waits is read where that matters, as often as it is asked. The beginning of a message says nothing.
#[test]
fn what_waits_in_the_input_is_told_where_it_is_asked() {
    let mut server = Started::sleeper(Std::piped());
    let mut stdin = server.0.stdin.take().unwrap();
    let read = |input: bool| {
        let subject = Subject { input, ..subject(&[server.id()], server.wire()) };
        Probe::new().unwrap().facts(&[&subject]).remove(0).unread_input
    };
    assert_eq!(read(true), Some(FirstMessage::Nothing));
    let (unknown, call) = (Some(FirstMessage::Unknown), r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    stdin.write_all(call.as_bytes()).unwrap();
    assert_eq!([read(true), read(false)], [unknown.clone(), unknown.clone()]);
    stdin.write_all(b"\n").unwrap();
    let told = Some(FirstMessage::Mcp { client: None });
    assert_eq!([read(true), read(true), read(false)], [told.clone(), told, unknown]);
}

/// A manager, an engine or a helper may take seconds: who comes, or goes, meanwhile is in the scene.
#[test]
fn who_uses_a_server_is_read_after_what_others_answer() {
    let mut server = Started::bare(Std::piped(), Std::null(), Std::null());
    let (id, wire) = (server.id(), server.wire());
    let subject = subject(&[id], wire);
    let mut found = calm(|| {
        let answers = |_: &Subject| {
            server.0.stdin.take();
            ServerFacts { stopping: true, unread_input: Some(FirstMessage::Over), ..ServerFacts::default() }
        };
        Probe::new().unwrap().facts_after(&[&subject], answers)
    });
    let found = found.remove(0);
    let holders: Vec<_> = found.scene.ends.iter().map(|end| (end.side, end.holder)).collect();
    assert_eq!(holders, [(Side::Reads, Holder::Process(id))]);
    // What waited before has been read by now.
    assert!(found.stopping && found.unread_input == Some(FirstMessage::Nothing));
}
