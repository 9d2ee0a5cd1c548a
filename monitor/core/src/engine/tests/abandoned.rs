//! Servers that a living owner abandoned, and those that only look like it.

use super::story_scene::{SocketUse, WireState};
use std::time::Duration;

use super::story::*;
use crate::{
    engine::Settings,
    model::{ExitStatus, Holder, Signal, Work},
};

const NPX: &[&str] = &["node", "/usr/bin/npx", "-y", "@modelcontextprotocol/server-everything"];

/// Agent 20 has a server, 30, and let go of both of its wires.
fn let_go() -> Story {
    let mut story = Story::agent_with_server(Settings::default());
    story.hung_up.insert(30);
    story.facts.own_ends = [true, true];
    story
}

/// Agent 20 has a server: 30 launched 31.
fn launched() -> Story {
    let mut story = Story::new(Settings::default());
    story.exec(20, 10, CLAUDE, TERMINAL);
    story.fork(20, 30);
    story.exec(30, 20, NPX, WIRE);
    story.fork(30, 31);
    story.exec(31, 30, SERVER, WIRE);
    assert_eq!(story.told(), ["agent_started", "server_started"]);
    story.facts.own_ends = [true, true];
    story.facts.stdout = held_by(&[20]);
    story.work.insert(31, Work::default());
    story
}

fn held_by(pids: &[u32]) -> WireState {
    let holder = |pid: &u32| Holder { process: id(*pid), ..Holder::default() };
    WireState::Held { holders: pids.iter().map(holder).collect(), unseen: false }
}

#[test]
fn one_whose_wires_were_let_go_of_is_an_orphan_after_the_grace() {
    let mut story = let_go();
    story.pass_secs(15);
    assert_eq!(story.told(), ["orphan_suspected"]);
    story.pass(Duration::from_millis(29_900));
    assert_eq!((story.told(), story.sent()), (vec![], vec![]));
    story.pass_secs(1);
    let detected = serde_json::to_value(&story.notices[0]).unwrap();
    assert_eq!(detected["evidence"], serde_json::json!(["abandoned", "stdin_hangup"]));
    assert_eq!(detected["owner"]["alive"], true);
    assert_eq!((story.told(), story.sent()), (vec!["orphan_detected".to_owned()], vec![(30, Signal::Term)]));
    story.end(30);
    assert_eq!(story.told(), ["orphan_reaped TERM"]);
}

#[test]
fn one_whose_input_is_open_is_none() {
    let mut story = let_go();
    story.hung_up.clear();
    story.pass_secs(3600);
    assert_eq!((story.told(), story.sent()), (vec![], vec![]));
}

#[test]
fn one_whose_answers_are_read_is_unproven() {
    let mut story = let_go();
    story.facts.stdout = held_by(&[20]);
    story.pass_secs(3600);
    assert_eq!(story.told(), ["orphan_suspected", "orphan_unproven stdout_read"]);
    assert_eq!(story.sent(), []);
    // The owner has its answer.
    story.facts.stdout = WireState::HungUp;
    story.polite.insert(30);
    story.pass_secs(3600);
    assert_eq!(
        (story.told(), story.sent()[0]),
        (vec!["orphan_detected".to_owned(), "orphan_reaped TERM".to_owned()], (30, Signal::Term))
    );
}

#[test]
fn one_that_closed_its_own_end_is_unproven() {
    for own_ends in [[false, true], [true, false], [false, false]] {
        let mut story = let_go();
        story.facts.own_ends = own_ends;
        story.pass_secs(3600);
        assert_eq!(story.told(), ["orphan_suspected", "orphan_unproven wire_unknown"]);
        assert_eq!(story.sent(), []);
    }
}

#[test]
fn one_that_listens_or_has_clients_is_unproven() {
    for sockets in [
        SocketUse { listens: true, ..SocketUse::default() },
        SocketUse { clients: true, ..SocketUse::default() },
    ] {
        let mut story = let_go();
        story.sockets = sockets;
        story.pass_secs(3600);
        assert_eq!(story.told(), ["orphan_suspected", "orphan_unproven clients"]);
        assert_eq!(story.sent(), []);
    }
}

#[test]
fn another_server_of_a_living_owner_that_has_the_wire_may_use_it() {
    let mut story = let_go();
    story.fork(20, 40);
    story.exec(40, 20, SERVER, [3, 4, 5].map(crate::model::Stdio::Pipe));
    story.told();
    story.facts.stdin = held_by(&[40]);
    story.pass_secs(3600);
    assert_eq!(story.told(), ["orphan_suspected", "orphan_unproven wire_held"]);
    assert_eq!(story.sent(), []);
}

#[test]
fn one_whose_head_was_ended_is_an_orphan_though_its_owner_could_read() {
    for status in [ExitStatus::Signal(15), ExitStatus::Code(143)] {
        let mut story = launched();
        story.hung_up.insert(31);
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
    story.hung_up.insert(31);
    story.end_with(30, ExitStatus::Signal(9));
    story.work.insert(31, wrote(100));
    story.pass_secs(20);
    story.work.insert(31, wrote(300));
    story.pass_secs(3600);
    assert_eq!(story.told(), ["orphan_suspected", "orphan_unproven stdout_read"]);
    assert_eq!(story.sent(), []);
    // The owner has its results.
    story.facts.stdout = WireState::HungUp;
    story.pass_secs(3600);
    assert_eq!(story.told()[0], "orphan_detected");
}

#[test]
fn one_whose_timer_goes_on_and_that_writes_last_words_is_an_orphan() {
    let mut story = launched();
    story.hung_up.insert(31);
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
    story.hung_up.insert(31);
    story.pass_secs(60);
    assert_eq!(story.told(), ["orphan_suspected", "orphan_unproven stdout_read"]);
    // It has brought results until now.
    story.work.insert(31, Work { cpu_ns: 9, written_bytes: 5000, writes: 9, ..Work::default() });
    story.end_with(30, ExitStatus::Signal(15));
    story.pass_secs(29);
    assert_eq!((story.told(), story.sent()), (vec![], vec![]));
    story.pass_secs(3600);
    assert_eq!(story.told()[0], "orphan_detected");
}

#[test]
fn one_whose_head_exited_by_itself_or_whose_input_is_open_is_none() {
    for status in [ExitStatus::Code(1), ExitStatus::Code(255), ExitStatus::Signal(11)] {
        let mut story = launched();
        story.hung_up.insert(31);
        story.end_with(30, status);
        story.pass_secs(3600);
        assert_eq!(story.told(), ["orphan_suspected", "orphan_unproven stdout_read"]);
    }
    let mut story = launched();
    story.facts.stdin = held_by(&[20]);
    story.end_with(30, ExitStatus::Signal(9));
    story.pass_secs(3600);
    assert_eq!((story.told(), story.sent()), (vec![], vec![]));
}

#[test]
fn one_whose_head_was_ended_is_none_while_somebody_else_reads() {
    for readers in [&[20, 50][..], &[50]] {
        let mut story = launched();
        story.hung_up.insert(31);
        story.facts.stdout = held_by(readers);
        story.end_with(30, ExitStatus::Signal(15));
        story.pass_secs(3600);
        assert_eq!(story.told(), ["orphan_suspected", "orphan_unproven stdout_read"]);
    }
}

#[test]
fn the_end_of_its_owner_is_another_reason() {
    let mut story = let_go();
    story.pass_secs(20);
    assert_eq!(story.told(), ["orphan_suspected"]);
    story.end(20);
    assert_eq!(story.told(), ["agent_exited", "orphan_suspected"]);
    story.pass_secs(11);
    let detected = serde_json::to_value(&story.notices[0]).unwrap();
    assert_eq!(detected["evidence"], serde_json::json!(["owner_exited", "stdin_hangup"]));
}

#[test]
fn what_its_main_process_leaves_is_ended_too() {
    let mut story = let_go();
    story.fork(30, 31);
    story.polite.insert(30);
    story.pass_secs(46);
    story.facts.own_ends = [false, false];
    story.pass_secs(10);
    let sent = story.sent();
    assert_eq!(sent[..2], [(30, Signal::Term), (31, Signal::Term)]);
}

#[test]
fn wires_are_asked_about_four_times_a_minute_while_there_are_servers() {
    let mut story = Story::agent_with_server(Settings::default());
    story.pass_secs(60);
    assert_eq!(story.wire_looks.len(), 4);
    story.end_with(30, ExitStatus::Code(0));
    story.wire_looks.clear();
    story.pass_secs(3600);
    assert_eq!((story.wire_looks.len(), story.engine.poll_timeout()), (0, None));
}

#[test]
fn a_question_covers_a_bounded_number_of_servers_and_all_have_their_turn() {
    let mut story = Story::agent_with_server(Settings::default());
    for pid in 0..1999 {
        story.fork(20, 1000 + pid);
        story.exec(
            1000 + pid,
            20,
            SERVER,
            [1, 2, 3].map(|n| crate::model::Stdio::Pipe(u64::from(pid) * 3 + n)),
        );
    }
    story.hung_up.insert(2998);
    story.told();
    story.pass_secs(60);
    let sizes: Vec<usize> = story.wire_looks.iter().map(|(_, size)| *size).collect();
    assert_eq!(sizes, [1024; 4]);
    assert!(story.told().contains(&"orphan_suspected".to_owned()));
}
