//! Tests of how many processes are asked about what is said to them, and of those that wait for that.

use std::time::Duration;

use super::{
    first_messages::{OWN, agent, mcp, started},
    story::WIRE,
};
use crate::model::{FirstMessage, Stdio};

fn wires(pid: u32) -> [Stdio; 3] {
    let inode = u64::from(pid) * 10;
    [Stdio::Pipe(inode), Stdio::Pipe(inode + 1), Stdio::Null]
}

#[test]
fn a_user_with_many_takes_no_room_from_another() {
    let mut story = agent();
    for pid in 100..400 {
        story.fork(20, pid);
        // All are numbers of his.
        story.exec_as(100_000 + pid, pid, 20, OWN, wires(pid));
    }
    assert_eq!(story.engine.first_messages.len(), 128);
    started(&mut story, 30, OWN, mcp());
    assert_eq!(story.told(), ["server_started"]);
    story.end(100);
    assert_eq!(story.engine.first_messages.len(), 127);
    story.pass(Duration::from_millis(50));
    assert_eq!(story.engine.first_messages.len(), 128, "the next one has its place");
    story.pass_secs(60);
    assert_eq!((story.engine.first_messages.len(), story.engine.not_asked()), (0, 0));
}

/// `sh -c "server; exit"`, 140 times at once: the shell keeps its place until its server is known.
#[test]
fn whoever_finds_no_room_is_asked_about_later() {
    let mut story = agent();
    for pid in (100..380).step_by(2) {
        story.messages.extend([(pid, mcp()), (pid + 1, mcp())]);
        story.start(20, pid, &["/bin/sh", "-c", "server; exit"], wires(pid));
    }
    for pid in (100..380).step_by(2) {
        story.start(pid, pid + 1, OWN, wires(pid));
    }
    // They read it one after the other.
    for pid in (100..380).step_by(2) {
        story.messages.extend([(pid, FirstMessage::Nothing), (pid + 1, FirstMessage::Nothing)]);
        story.pass(Duration::from_millis(200));
    }
    story.pass_secs(60);
    let started = story.told().iter().filter(|line| line.as_str() == "server_started").count();
    assert_eq!((started, story.engine.not_asked(), story.engine.first_messages.len()), (140, 0, 0));
}

/// `sh -c "set-up && server"` behind 128 others: the shell has ended when there is room.
#[test]
fn who_began_below_a_shell_did_so_also_when_there_is_room_later() {
    for reads in [false, true] {
        let mut story = agent();
        for pid in 100..228 {
            story.start(20, pid, OWN, wires(pid));
        }
        story.messages.extend([(30, mcp()), (31, mcp())]);
        story.start(20, 30, &["/bin/sh", "-c", "set-up && server"], WIRE);
        story.start(30, 31, OWN, WIRE);
        story.end(30);
        story.pass_secs(60);
        assert_eq!(story.told(), Vec::<String>::new(), "the message waits");
        if reads {
            story.messages.clear();
            story.pass_secs(60);
        }
        assert_eq!(story.told(), if reads { vec!["server_started"] } else { vec![] });
    }
}

/// One wire has room for a launch chain, and the queue has an end.
#[test]
fn what_waits_for_room_is_bounded_and_who_is_not_asked_about_is_counted() {
    let mut story = agent();
    for pid in 1000..2030 {
        story.fork(20, pid);
        story.exec_as(1000, pid, 20, OWN, WIRE);
    }
    assert_eq!((story.engine.first_messages.len(), story.engine.not_asked()), (4, 2));
}
