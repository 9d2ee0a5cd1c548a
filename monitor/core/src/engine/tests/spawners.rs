//! Tests of servers whose owner lives, and whose thread has ended.

use std::time::Duration;

use serde_json::json;

use super::story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id, seen};
use super::story_scene::WireState;
use crate::model::{BootTime, Input, Losses, Policy, ProcessEvent, ProcessId, Signal, Stdio, Work};

const GATEWAY: &[&str] = &["python3", "/srv/gateway.py"];
const SCOPED: &str = "[[agent]]\nname = 'gateway'\nprogram = 'gateway.py'\nthread_scoped = true";
const PLAIN: &str = "[[agent]]\nname = 'gateway'\nprogram = 'gateway.py'";
const OTHER: [Stdio; 3] = [Stdio::Pipe(3), Stdio::Pipe(4), Stdio::Null];

fn settings(rules: &str) -> Policy {
    Policy { rules: rules.to_owned(), ..Policy::default() }
}

fn held(by: &[u32]) -> WireState {
    WireState::held_as(by, GATEWAY)
}

fn work(cpu_ns: u64, [read_bytes, written_bytes]: [u64; 2], writes: u64) -> Work {
    Work { cpu_ns, read_bytes, written_bytes, writes, ..Work::default() }
}

/// Thread 21 of gateway 20 has started server 30, and thread 22 server 40. The gateway holds all wires.
fn gateway(rules: &str) -> Story {
    let mut story = Story::new(settings(rules));
    story.exec(20, 10, GATEWAY, TERMINAL);
    story.fork_by(21, 20, 30);
    story.exec(30, 20, SERVER, WIRE);
    story.fork_by(22, 20, 40);
    story.exec(40, 20, SERVER, OTHER);
    (story.facts.stdin, story.facts.stdout) = (held(&[20]), held(&[20]));
    story.work.extend([(30, work(5, [100, 100], 1)), (40, work(5, [100, 100], 1))]);
    assert_eq!(story.told(), ["agent_started", "server_started", "server_started"]);
    assert_eq!(story.followed, [(20, 21), (20, 22)]);
    story
}

/// Its thread 21 has ended.
fn left(rules: &str) -> Story {
    let mut story = gateway(rules);
    story.end_thread(20, 21);
    story
}

/// It stays whatever time passes, and this is why.
fn stays(mut story: Story, unproven: &str) {
    story.pass_secs(35);
    assert_eq!(story.told(), ["orphan_suspected", unproven]);
    story.pass_secs(10_000);
    assert_eq!((story.told(), story.sent()), (Vec::new(), Vec::new()));
}

// ---- a rule says that servers end with their threads ----------------------------------------------------------

#[test]
fn the_server_of_an_ended_thread_is_ended_and_its_sibling_is_not() {
    let mut story = left(SCOPED);
    assert_eq!(story.told(), ["orphan_suspected"]);
    story.pass_secs(29);
    assert_eq!((story.told(), story.sent()), (Vec::new(), Vec::new()));
    story.polite.insert(30);
    story.pass_secs(1);
    assert_eq!(story.event("orphan_detected")["evidence"], json!(["spawner_thread_exited"]));
    assert_eq!(story.told(), ["orphan_detected", "orphan_reaped TERM"]);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    story.pass_secs(10_000);
    assert_eq!((story.told(), story.sent()), (Vec::new(), Vec::new()));
    // Its own end is evidence for the sibling, too.
    story.end_thread(20, 22);
    story.pass_secs(30);
    assert_eq!(story.sent(), [(40, Signal::Term)]);
}

#[test]
fn one_that_works_on_its_end_is_ended_all_the_same() {
    let mut story = left(SCOPED);
    story.pass_secs(30);
    story.work.insert(30, work(9, [300, 700], 3));
    story.pass_secs(10);
    assert_eq!(story.sent(), [(30, Signal::Term), (30, Signal::Kill)]);
}

#[test]
fn without_a_rule_the_end_of_a_thread_is_no_reason() {
    let mut story = left(PLAIN);
    story.pass_secs(10_000);
    assert_eq!((story.told(), story.sent(), story.looks.len()), (Vec::new(), Vec::new(), 0));
    // It is evidence when there is a reason.
    story.hang_up();
    story.end(20);
    story.pass_secs(10);
    assert_eq!(story.event("orphan_detected")["evidence"], json!(["owner_exited", "stdin_hangup"]));
    assert_eq!(story.sent(), [(30, Signal::Term), (40, Signal::Term)]);
}

#[test]
fn a_rule_of_the_same_name_for_another_program_does_not_count() {
    let other = "[[agent]]\nname = 'gateway'\nprogram = 'other.py'\nthread_scoped = true\n";
    let mut story = left(&format!("{PLAIN}\n{other}"));
    story.pass_secs(10_000);
    assert_eq!((story.told(), story.sent()), (Vec::new(), Vec::new()));
}

#[test]
fn the_leading_thread_is_not_followed() {
    let mut story = Story::new(settings(SCOPED));
    story.exec(20, 10, GATEWAY, TERMINAL);
    story.start(20, 30, SERVER, WIRE);
    assert_eq!(story.followed, []);
}

// ---- somebody may use it ---------------------------------------------------------------------------------------

#[test]
fn another_thread_uses_it() {
    // A request and an answer, long ago or just now, or a request alone.
    for (after, done) in [
        (0, work(9, [148, 172], 2)),
        (2, work(9, [148, 172], 2)),
        (29, work(9, [148, 172], 2)),
        (2, work(9, [148, 100], 1)),
    ] {
        let mut story = left(SCOPED);
        story.pass_secs(after);
        story.work.insert(30, done);
        story.pass_secs(30 - after);
        assert_eq!(story.told(), ["orphan_suspected", "orphan_unproven wire_held stdout_read"], "{done:?}");
        assert_eq!(story.sent(), [], "{done:?}");
    }
}

#[test]
fn one_that_was_used_is_never_ended_for_its_thread() {
    let mut story = left(SCOPED);
    story.pass_secs(2);
    story.work.insert(30, work(9, [148, 172], 2));
    story.pass_secs(30);
    assert_eq!(story.event("orphan_unproven")["evidence"], json!(["spawner_thread_exited"]));
    story.told();
    story.pass_secs(10_000);
    assert_eq!((story.told(), story.sent()), (Vec::new(), Vec::new()));
    // Its owner exits, and nobody holds the wires.
    story.hang_up();
    story.end(20);
    story.pass_secs(10);
    assert!(story.sent().contains(&(30, Signal::Term)));
}

#[test]
fn the_end_of_the_threads_last_request_is_no_use() {
    let mut story = left(SCOPED);
    story.pass(std::time::Duration::from_millis(500));
    story.work.insert(30, work(9, [100, 250], 3));
    story.pass_secs(30);
    assert_eq!(story.sent(), [], "it has not rested for the grace yet");
    story.pass_secs(1);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    // A further request is one even then.
    let mut story = left(SCOPED);
    story.pass(std::time::Duration::from_millis(500));
    story.work.insert(30, work(9, [148, 250], 3));
    stays(story, "orphan_unproven wire_held stdout_read");
}

#[test]
fn a_runtime_that_tidies_up_does_not_use_it() {
    let mut story = left(SCOPED);
    story.pass_secs(8);
    story.work.insert(30, work(9, [900, 900], 101));
    // The look late in the grace sees that, 24 s after the end of the thread. From then on it must rest.
    story.pass_secs(22 + 23);
    assert_eq!((story.told(), story.sent()), (vec!["orphan_suspected".to_owned()], Vec::new()));
    story.pass_secs(1);
    assert_eq!((story.told(), story.sent()), (vec!["orphan_detected".to_owned()], vec![(30, Signal::Term)]));
}

#[test]
fn one_that_never_rests_is_told_after_a_second_grace() {
    let mut story = left(SCOPED);
    story.told();
    for cpu_ns in 0..59 {
        story.work.insert(30, work(10 + cpu_ns, [100, 100], 1));
        story.pass_secs(1);
        assert_eq!((story.told(), story.sent()), (Vec::new(), Vec::new()), "after {cpu_ns} s");
    }
    story.work.insert(30, work(90, [100, 100], 1));
    story.pass_secs(1);
    assert_eq!(story.told(), ["orphan_unproven wire_held stdout_read"]);
    // Then it rests.
    story.polite.insert(30);
    story.pass_secs(100);
    assert_eq!(story.told(), ["orphan_detected", "orphan_reaped TERM"]);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
}

#[test]
fn what_it_does_cannot_be_read() {
    let mut story = gateway(SCOPED);
    story.work.remove(&30);
    story.end_thread(20, 21);
    story.pass_secs(2);
    // It can be read later, which tells nothing of the time before.
    story.work.insert(30, work(5, [100, 100], 1));
    stays(story, "orphan_unproven wire_held stdout_read");
}

#[test]
fn somebody_else_holds_a_wire() {
    let mut story = left(SCOPED);
    story.facts.stdin = WireState::held_as(&[20, 50], &["cat"]);
    stays(story, "orphan_unproven wire_held");
    let mut story = left(SCOPED);
    story.facts.stdout = WireState::unseen();
    stays(story, "orphan_unproven stdout_read");
    // A copy of the owner.
    let mut story = gateway(SCOPED);
    story.fork(20, 50);
    story.end_thread(20, 21);
    story.facts.stdin = held(&[20, 50]);
    stays(story, "orphan_unproven wire_held");
    // The sibling inherited a descriptor, and the owner may use it through the sibling.
    let mut story = left(SCOPED);
    story.facts.stdout = held(&[20, 40]);
    stays(story, "orphan_unproven stdout_read");
}

#[test]
fn another_agent_has_taken_it_over() {
    let mut story = left(SCOPED);
    story.facts.stdin = WireState::held_as(&[50], CLAUDE);
    story.pass_secs(30);
    assert_eq!(story.told(), ["orphan_suspected", "agent_started", "orphan_cleared owner_found"]);
    story.pass_secs(10_000);
    assert_eq!((story.told(), story.sent()), (Vec::new(), Vec::new()));
}

#[test]
fn it_closed_its_wires_itself() {
    let mut story = left(SCOPED);
    story.hang_up();
    story.facts.own_ends = [false, false];
    stays(story, "orphan_unproven wire_unknown");
    // The twin: the owner closed them.
    let mut story = left(SCOPED);
    story.hang_up();
    story.facts.own_ends = [true, true];
    story.pass_secs(30);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
}

// ---- which thread ended ----------------------------------------------------------------------------------------

#[test]
fn a_number_that_is_used_again() {
    // The thread that has it now started a further server.
    let mut story = gateway(SCOPED);
    story.fork_by(21, 20, 50);
    story.exec(50, 20, SERVER, [Stdio::Pipe(5), Stdio::Pipe(6), Stdio::Null]);
    story.work.insert(50, work(5, [100, 100], 1));
    story.told();
    // It was found to have begun in tick 45, after 30 was started and before 50.
    let thread = std::num::NonZeroU32::new(21).unwrap();
    let event = ProcessEvent::ThreadExit { at: BootTime::of_ticks(44), process: id(20), thread };
    story.hand_in(Input::Process { event });
    story.pass_secs(30);
    // Only one of them, and that may have been used since the thread ended, which nobody knew for long.
    assert_eq!(story.told(), ["orphan_suspected", "orphan_unproven wire_held stdout_read"]);
    story.end_thread(20, 21);
    story.pass_secs(30);
    assert_eq!(story.told(), ["orphan_suspected", "orphan_detected"]);
    assert_eq!(story.sent(), [(50, Signal::Term)]);
}

/// Another thread may have used it before the first look, which came late. The twin's came in time.
#[test]
fn what_nobody_saw_after_the_end_of_the_thread_may_be_a_use() {
    for (late, ended) in [(2100, false), (1900, true)] {
        let mut story = gateway(SCOPED);
        let (at, thread) = (story.now, std::num::NonZeroU32::new(21).unwrap());
        story.pass(Duration::from_millis(late));
        story.hand_in(Input::Process { event: ProcessEvent::ThreadExit { at, process: id(20), thread } });
        story.pass_secs(40);
        assert_eq!(!story.sent().is_empty(), ended, "{late}: {:?}", story.told());
    }
}

#[test]
fn the_process_is_another_one() {
    let mut story = gateway(SCOPED);
    let thread = std::num::NonZeroU32::new(21).unwrap();
    let process = ProcessId::new(20, 19);
    story.hand_in(Input::Process { event: ProcessEvent::ThreadExit { at: story.now, process, thread } });
    story.pass_secs(10_000);
    assert_eq!((story.told(), story.sent()), (Vec::new(), Vec::new()));
}

#[test]
fn a_program_that_runs_itself_again_ends_its_threads_and_keeps_its_servers() {
    let mut story = left(SCOPED);
    story.exec(20, 10, GATEWAY, TERMINAL);
    assert_eq!(story.told(), ["orphan_suspected", "orphan_cleared owner_found"]);
    story.pass_secs(10_000);
    assert_eq!((story.told(), story.sent()), (Vec::new(), Vec::new()));
}

#[test]
fn another_program_of_one_agent_says_nothing_about_the_threads_of_another() {
    let mut story = left(SCOPED);
    story.exec(60, 10, GATEWAY, TERMINAL);
    story.exec(60, 10, GATEWAY, TERMINAL);
    assert_eq!(story.told(), ["orphan_suspected", "agent_started"]);
    story.pass_secs(30);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
}

#[test]
fn after_execs_were_lost_no_thread_is_judged() {
    let losses = Losses { exec: 1, ..Losses::default() };
    for input in [Input::Lost { losses }, Input::Crowded { users: vec![0] }] {
        let mut story = left(SCOPED);
        story.told();
        story.hand_in(input);
        assert!(story.told().contains(&"orphan_cleared owner_found".to_owned()));
        story.snapshot(Vec::new());
        story.hand_in(Input::Crowded { users: Vec::new() });
        story.end_thread(20, 22);
        story.pass_secs(10_000);
        assert_eq!(story.sent(), []);
    }
}

#[test]
fn threads_are_looked_for_after_other_records_were_lost() {
    let mut story = gateway(SCOPED);
    story.followed.clear();
    story.hand_in(Input::Lost { losses: Losses { exit: 1, ..Losses::default() } });
    story.snapshot(vec![
        seen(20, 10, GATEWAY, TERMINAL),
        seen(30, 20, SERVER, WIRE),
        seen(40, 20, SERVER, OTHER),
    ]);
    assert_eq!(story.followed, [(20, 21), (20, 22)]);
}

// ---- other reasons ---------------------------------------------------------------------------------------------

#[test]
fn the_owner_exits_within_the_grace() {
    let mut story = left(SCOPED);
    story.hang_up();
    story.pass_secs(25);
    story.end(20);
    story.pass_secs(9);
    assert_eq!(story.sent(), [], "the grace of an owner that has exited begins then");
    story.pass_secs(1);
    assert_eq!(story.event("orphan_detected")["evidence"], json!(["owner_exited", "stdin_hangup"]));
    assert_eq!(story.sent(), [(30, Signal::Term), (40, Signal::Term)]);
}

#[test]
fn a_rule_that_comes_and_goes() {
    let policy = |rules: &str| Policy {
        grace: std::time::Duration::from_secs(10),
        abandoned_grace: std::time::Duration::from_secs(30),
        term_timeout: std::time::Duration::from_secs(5),
        rules: rules.to_owned(),
        ..Policy::default()
    };
    let mut story = left(PLAIN);
    story.pass_secs(100);
    story.hand_in(Input::Configured { policy: policy(SCOPED) });
    assert_eq!(story.told(), ["orphan_suspected", "reconfigured"]);
    story.hand_in(Input::Configured { policy: policy(PLAIN) });
    assert_eq!(story.told(), ["orphan_cleared owner_found", "reconfigured"]);
    story.pass_secs(1000);
    assert_eq!(story.sent(), []);
    story.hand_in(Input::Configured { policy: policy(SCOPED) });
    story.pass_secs(30);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
}
