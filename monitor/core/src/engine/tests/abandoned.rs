//! Servers that a living owner abandoned, and those that only look like it.

use std::time::Duration;

use serde_json::json;

use super::story::*;
use super::story_scene::{SocketUse, WireState};
use crate::model::{ExitStatus, Input, Policy, ProcessEvent, Signal, Stdio, Work};

const NPX: &[&str] = &["node", "/usr/bin/npx", "-y", "@modelcontextprotocol/server-everything"];

type Change<'c> = &'c dyn Fn(&mut Story);

/// Agent 20 has a server, 30, and let go of both of its wires.
fn let_go() -> Story {
    let mut story = Story::agent_with_server(Policy::default());
    story.hung_up.insert(30);
    story.facts.own_ends = [true, true];
    story
}

/// Agent 20 has a server: 30 launched 31. The owner closed its input, and could read its output.
fn launched() -> Story {
    let mut story = Story::with_agent();
    story.start(20, 30, NPX, WIRE);
    story.start(30, 31, SERVER, WIRE);
    story.told();
    story.facts.own_ends = [true, true];
    story.facts.stdout = WireState::held_by(&[20]);
    story.work.insert(31, Work::default());
    story.hung_up.insert(31);
    story
}

/// It is unproven because of this doubt, whatever time passes.
fn unproven(story: &mut Story, doubt: &str) {
    story.pass_secs(3600);
    assert_eq!(story.told(), ["orphan_suspected".to_owned(), format!("orphan_unproven {doubt}")]);
    assert_eq!(story.sent(), []);
}

#[test]
fn one_whose_wires_were_let_go_of_is_an_orphan_after_the_grace() {
    let mut story = let_go();
    story.pass_secs(15);
    assert_eq!(story.told(), ["orphan_suspected"]);
    story.pass(Duration::from_millis(29_900));
    assert_eq!((story.told(), story.sent()), (vec![], vec![]));
    story.pass_secs(1);
    let detected = story.event("orphan_detected");
    assert_eq!(detected["evidence"], json!(["abandoned", "stdin_hangup"]));
    assert_eq!(detected["owner"]["alive"], true);
    assert_eq!((story.told(), story.sent()), (vec!["orphan_detected".to_owned()], vec![(30, Signal::Term)]));
    story.end(30);
    assert_eq!(story.told(), ["orphan_reaped TERM"]);
}

#[test]
fn one_that_somebody_may_use_is_unproven() {
    let listens = SocketUse { listens: true, ..SocketUse::default() };
    let clients = SocketUse { clients: true, ..SocketUse::default() };
    let cases: [(Change<'_>, &str); 7] = [
        (&|story| story.facts.stdout = WireState::held_by(&[20]), "stdout_read"),
        (&|story| story.facts.stdin = WireState::held_by(&[40]), "wire_held"),
        (&|story| story.facts.own_ends = [false, true], "wire_unknown"),
        (&|story| story.facts.own_ends = [true, false], "wire_unknown"),
        (&|story| story.facts.own_ends = [false, false], "wire_unknown"),
        (&|story| story.sockets = listens.clone(), "clients"),
        (&|story| story.sockets = clients.clone(), "clients"),
    ];
    for (change, doubt) in cases {
        let mut story = let_go();
        // Another server of the living owner.
        story.start(20, 40, SERVER, [3, 4, 5].map(Stdio::Pipe));
        story.told();
        change(&mut story);
        unproven(&mut story, doubt);
        // The doubt goes.
        (story.facts.own_ends, story.sockets) = ([true, true], SocketUse::default());
        story.hang_up();
        story.pass_secs(3600);
        assert_eq!((story.told()[0].as_str(), story.sent()[0]), ("orphan_detected", (30, Signal::Term)));
    }
}

#[test]
fn one_whose_head_was_ended_is_an_orphan_though_its_owner_could_read() {
    for status in [ExitStatus::Signal(15), ExitStatus::Code(143)] {
        let mut story = launched();
        story.end_with(30, status);
        assert_eq!(story.told(), ["orphan_suspected"]);
        story.pass_secs(31);
        assert_eq!(story.told(), ["orphan_detected"]);
        assert_eq!(story.sent(), [(31, Signal::Term)]);
    }
}

#[test]
fn one_whose_head_was_ended_and_that_goes_on_writing_may_be_read() {
    let wrote =
        |bytes: u64| Work { cpu_ns: bytes, written_bytes: bytes, writes: bytes / 100, ..Work::default() };
    // The owner closed the input, as one does after the last request, and somebody else killed the launcher.
    let mut story = launched();
    story.end_with(30, ExitStatus::Signal(9));
    story.work.insert(31, wrote(100));
    story.pass_secs(20);
    story.work.insert(31, wrote(300));
    unproven(&mut story, "stdout_read");
    // The owner has its results.
    story.hang_up();
    story.pass_secs(3600);
    assert_eq!(story.told()[0], "orphan_detected");
}

#[test]
fn one_whose_timer_goes_on_and_that_writes_last_words_is_an_orphan() {
    let mut story = launched();
    story.end_with(30, ExitStatus::Signal(15));
    let said = Work { cpu_ns: 1, written_bytes: 100, writes: 1, ..Work::default() };
    story.work.insert(31, said);
    story.pass_secs(15);
    story.work.insert(31, Work { cpu_ns: 1_000_000, read_bytes: 50, ..said });
    story.pass_secs(16);
    assert_eq!(story.told(), ["orphan_suspected", "orphan_detected"]);
}

#[test]
fn one_whose_head_is_ended_later_must_be_silent_from_then_on() {
    let mut story = launched();
    unproven(&mut story, "stdout_read");
    // It has brought results until now.
    story.work.insert(31, Work { cpu_ns: 9, written_bytes: 5000, writes: 9, ..Work::default() });
    story.end_with(30, ExitStatus::Signal(15));
    story.pass_secs(29);
    assert_eq!((story.told(), story.sent()), (vec![], vec![]));
    story.pass_secs(3600);
    assert_eq!(story.told()[0], "orphan_detected");
}

/// The launcher is killed first; the owner closes the input then, and reads to the end. The twins write nothing after it was killed.
#[test]
fn what_is_written_between_the_end_of_its_head_and_its_input_counts() {
    for (writes, ended) in [(true, false), (false, true)] {
        let mut story = launched();
        story.hung_up.clear();
        story.end_with(30, ExitStatus::Signal(15));
        story.pass_secs(2);
        if writes {
            story.work.insert(31, Work { cpu_ns: 9, written_bytes: 100, writes: 1, ..Work::default() });
        }
        story.hung_up.insert(31);
        story.pass_secs(3600);
        assert_eq!(!story.sent().is_empty(), ended, "{:?}", story.told());
    }
}

/// The daemon has no processor for some seconds, in which progress may be written. The twin's is late by less than two.
#[test]
fn what_nobody_saw_since_the_end_of_its_head_may_be_a_result() {
    for (late, ended) in [(2100, false), (1900, true)] {
        let mut story = launched();
        let (at, status) = (story.now, ExitStatus::Signal(15));
        story.pass(Duration::from_millis(late));
        story.hand_in(Input::Process { event: ProcessEvent::Exit { at, process: id(30), status } });
        story.pass_secs(3600);
        assert_eq!(!story.sent().is_empty(), ended, "{late}: {:?}", story.told());
    }
}

#[test]
fn one_whose_head_exited_by_itself_or_that_somebody_else_reads_is_none() {
    for status in [ExitStatus::Code(1), ExitStatus::Code(255), ExitStatus::Signal(11)] {
        let mut story = launched();
        story.end_with(30, status);
        unproven(&mut story, "stdout_read");
    }
    for readers in [&[20, 50][..], &[50]] {
        let mut story = launched();
        story.facts.stdout = WireState::held_by(readers);
        story.end_with(30, ExitStatus::Signal(15));
        unproven(&mut story, "stdout_read");
    }
    // Its input is open.
    let mut story = launched();
    story.hung_up.clear();
    story.facts.stdin = WireState::held_by(&[20]);
    story.end_with(30, ExitStatus::Signal(9));
    story.pass_secs(3600);
    assert_eq!((story.told(), story.sent()), (vec![], vec![]));
}

#[test]
fn the_end_of_its_owner_is_another_reason() {
    let mut story = let_go();
    story.pass_secs(20);
    assert_eq!(story.told(), ["orphan_suspected"]);
    story.end(20);
    assert_eq!(story.told(), ["agent_exited", "orphan_suspected"]);
    story.pass_secs(11);
    assert_eq!(story.event("orphan_detected")["evidence"], json!(["owner_exited", "stdin_hangup"]));
}

#[test]
fn what_its_main_process_leaves_is_ended_too() {
    let mut story = let_go();
    story.fork(30, 31);
    story.polite.insert(30);
    story.pass_secs(46);
    story.facts.own_ends = [false, false];
    story.pass_secs(10);
    assert_eq!(story.sent()[..2], [(30, Signal::Term), (31, Signal::Term)]);
}

#[test]
fn wires_are_asked_about_four_times_a_minute_while_there_are_servers() {
    let mut story = Story::agent_with_server(Policy::default());
    story.pass_secs(60);
    assert_eq!(story.wire_looks.len(), 4);
    story.end_with(30, ExitStatus::Code(0));
    story.wire_looks.clear();
    story.pass_secs(3600);
    assert_eq!((story.wire_looks.len(), story.engine.poll_timeout()), (0, None));
}

#[test]
fn a_question_covers_a_bounded_number_of_servers_and_all_have_their_turn() {
    let mut story = Story::agent_with_server(Policy::default());
    for pid in 0..1099 {
        story.start(20, 1000 + pid, SERVER, [1, 2, 3].map(|n| Stdio::Pipe(u64::from(pid) * 3 + n)));
    }
    story.hung_up.insert(2098);
    story.told();
    story.pass_secs(60);
    let sizes: Vec<usize> = story.wire_looks.iter().map(|(_, size)| *size).collect();
    assert_eq!(sizes, [1024; 4]);
    assert!(story.told().contains(&"orphan_suspected".to_owned()));
}

/// How long the answer takes he decides: what his processes have open is looked through.
#[test]
fn a_user_whose_servers_take_long_to_ask_delays_nobody_else() {
    let mut story = let_go();
    story.exec_as(1001, 40, 1, &["claude"], [Stdio::Null; 3]);
    story.exec_as(1001, 41, 40, SERVER, [4, 5, 6].map(Stdio::Pipe));
    story.told();
    story.late = Some(Vec::new());
    story.pass_secs(15);
    assert_eq!(story.wire_looks.iter().map(|(_, size)| *size).collect::<Vec<_>>(), [1, 1]);
    // The first question is about root's.
    let others = story.late.as_mut().unwrap().split_off(1);
    story.answer_late();
    assert_eq!(story.told(), ["orphan_suspected"]);
    // As long as it is not answered, no other one is asked about his.
    story.wire_looks.clear();
    story.pass_secs(60);
    assert_eq!(story.wire_looks, []);
    story.late = Some(others);
    story.answer_late();
    story.pass_secs(15);
    assert_eq!(story.wire_looks.len(), 1);
}
