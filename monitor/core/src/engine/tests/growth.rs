//! What has ended leaves nothing behind: whoever starts and ends processes for days does not make the daemon grow.

use std::time::Duration;

use super::story::{CLAUDE, SERVER, Story, TERMINAL, WIRE};
use crate::model::{Policy, Stdio};

const TOOL: &[&str] = &["git", "status"];
/// As many rounds as fill whatever is bounded.
const ROUNDS: u32 = 300;
/// What the digits of numbers may add, and what is kept for some time after an end.
const SLACK: usize = 4_000;

/// Something that is done in the round of this number, with processes whose numbers are this one and the nine behind it. The
/// agent is 20, its server 30.
type Doing = fn(&mut Story, u32);

fn size(story: &Story) -> usize {
    format!("{:?}", story.engine).len()
}

/// How much larger the engine is after further rounds, in characters of its debug form.
fn growth(doing: Doing) -> usize {
    let mut story = Story::agent_with_server(Policy::default());
    let mut play = |from: u32| {
        for round in from..from + ROUNDS {
            doing(&mut story, 1000 + 10 * round);
            story.pass(Duration::from_secs(1));
        }
        size(&story)
    };
    let before = play(0);
    play(ROUNDS).saturating_sub(before)
}

fn stays_small(doing: Doing) {
    let growth = growth(doing);
    assert!(growth < SLACK, "it grew by {growth} characters in {ROUNDS} rounds");
}

#[test]
fn copies_of_a_server_that_end() {
    stays_small(|story, pid| {
        story.fork(30, pid);
        story.end(pid);
    });
}

#[test]
fn tools_that_inherit_the_input_and_end() {
    stays_small(|story, pid| {
        story.start(30, pid, TOOL, [WIRE[0], Stdio::Pipe(u64::from(pid)), Stdio::Null]);
        story.end(pid);
    });
}

#[test]
fn a_line_of_copies_each_of_which_ends_before_the_next() {
    stays_small(|story, pid| {
        let before = if pid == 1000 { 30 } else { pid - 10 };
        story.fork(before, pid);
        if before != 30 {
            story.end(before);
        }
    });
}

#[test]
fn servers_that_an_agent_starts_and_ends() {
    stays_small(|story, pid| {
        let wire = [Stdio::Pipe(u64::from(pid)), Stdio::Pipe(u64::from(pid) + 1), Stdio::Null];
        story.start(20, pid, SERVER, wire);
        story.end(pid);
    });
}

#[test]
fn shells_of_an_agent_with_jobs_in_sessions_of_their_own() {
    stays_small(|story, pid| {
        story.start(20, pid, &["bash", "-c", "x"], TERMINAL);
        story.start(pid, pid + 1, TOOL, TERMINAL);
        story.setsid(pid + 1);
        story.end(pid);
        story.end(pid + 1);
    });
}

#[test]
fn servers_of_threads_that_end() {
    stays_small(|story, pid| {
        let wire = [Stdio::Pipe(u64::from(pid)), Stdio::Pipe(u64::from(pid) + 1), Stdio::Null];
        story.fork_by(pid + 5, 20, pid);
        story.exec(pid, 20, SERVER, wire);
        story.end_thread(20, pid + 5);
        story.end(pid);
    });
}

#[test]
fn agents_that_leave_servers_and_shells_which_end_later() {
    stays_small(|story, pid| {
        let wire = [Stdio::Pipe(u64::from(pid)), Stdio::Pipe(u64::from(pid) + 1), Stdio::Null];
        story.exec(pid, 10, CLAUDE, TERMINAL);
        story.start(pid, pid + 1, SERVER, wire);
        story.start(pid, pid + 2, &["bash", "-c", "x"], TERMINAL);
        story.fork(pid + 1, pid + 3);
        story.end(pid);
        story.pass(Duration::from_secs(20));
        for left in [pid + 3, pid + 2, pid + 1] {
            story.end(left);
        }
    });
}

#[test]
fn programs_on_wires_that_are_no_servers() {
    stays_small(|story, pid| {
        let wire = [Stdio::Pipe(u64::from(pid)), Stdio::Pipe(u64::from(pid) + 1), Stdio::Null];
        story.start(20, pid, &["python3", "relay.py"], wire);
        story.start(pid, pid + 1, TOOL, wire);
        story.end(pid + 1);
        story.end(pid);
    });
}

#[test]
fn managers_multiplexers_and_what_they_start() {
    stays_small(|story, pid| {
        story.exec(pid, 10, &["/usr/lib/systemd/systemd", "--user"], TERMINAL);
        story.start(pid, pid + 1, &["tmux", "new"], TERMINAL);
        story.start(pid + 1, pid + 2, CLAUDE, TERMINAL);
        for one in [pid, pid + 1, pid + 2] {
            story.end(one);
        }
    });
}
