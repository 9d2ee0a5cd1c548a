use std::process::{Command, Stdio as Std};

use super::*;
use crate::probe::tests::{Started, facts, our_session, ourselves};
use orphand_core::model::{About, Answer, Subject, WireState};

#[test]
fn the_facts_about_a_living_server() {
    let server = Started::sleeper(Std::piped());
    let found = facts(&[server.id()], server.wire());
    let [process] = &found.processes[..] else { panic!("{found:?}") };
    assert_eq!(process.process, server.id());
    assert_eq!(process.uid, rustix::process::getuid().as_raw());
    assert_eq!(process.sid, our_session());
    assert!(process.rss_bytes > 0);
    assert!(process.pss_bytes.is_some_and(|pss| pss <= process.rss_bytes));
    assert!(matches!(found.stdin, WireState::Held { .. }));
    assert!(!found.opted_out && !process.sockets.clients && !process.sockets.listens);
}

#[test]
fn the_dead_and_those_of_another_birth_are_left_out() {
    let mut dead = Started::sleeper(Std::null());
    let was = dead.id();
    dead.end();
    let alive = Started::sleeper(Std::null());
    let other = ProcessId { start: alive.id().start + 1, ..alive.id() };
    let found = facts(&[was, other, alive.id()], Stdio::Null);
    assert_eq!(found.processes.iter().map(|p| p.process).collect::<Vec<_>>(), [alive.id()]);
    assert_eq!(facts(&[was, other], Stdio::Pipe(1)), ServerFacts::default());
}

#[test]
fn one_process_opts_out_for_all() {
    let plain = Started::sleeper(Std::null());
    let with = |value| Started::new(Command::new("sleep").arg("600").env("ORPHAND_OPT_OUT", value));
    let (out, not) = (with("1"), with("0"));
    assert!(facts(&[plain.id(), out.id()], Stdio::Null).opted_out);
    assert!(!facts(&[plain.id(), not.id()], Stdio::Null).opted_out);
}

#[test]
fn every_question_has_its_answer() {
    let probe = Probe::new().unwrap();
    let us = ourselves();
    match probe.answer(&About::Memory(vec![us]), &Vec::new) {
        Answer::Memory { processes } => assert_eq!(processes.len(), 1),
        other => panic!("{other:?}"),
    }
    match probe.answer(&About::Process(us), &Vec::new) {
        Answer::Process { process } => assert_eq!(process.unwrap().id, us),
        other => panic!("{other:?}"),
    }
    match probe.answer(&About::Copies { copies: vec![us], among: Vec::new() }, &Vec::new) {
        Answer::Copies { copies } => assert_eq!(copies[0].process, us),
        other => panic!("{other:?}"),
    }
    let subject = Subject { processes: vec![us], ..Subject::default() };
    match probe.answer(&About::Server(subject), &Vec::new) {
        Answer::Server { facts } => assert_eq!(facts.processes.len(), 1),
        other => panic!("{other:?}"),
    }
}
