//! Programs that a shell runs on its own streams before the server: `sh -c "set-up && server"`.

use std::time::Duration;

use super::{
    first_messages::{OWN, agent, mcp, server, started},
    story::{CLAUDE, Story, TERMINAL, WIRE, seen},
};
use crate::model::{FirstMessage, Policy, Signal};

const SHELL: &[&str] = &["/bin/sh", "-c", "./set-up && ./server"];
const SET_UP: &[&str] = &["/srv/set-up"];

fn is_ended(mut story: Story) -> bool {
    story.end(20);
    story.pass_secs(60);
    !story.sent().is_empty()
}

/// A client gives up and ends the shell, at which the message still waits. The twin reads it: a server that starts slowly.
#[test]
fn the_end_of_the_shell_makes_nobody_the_server() {
    for reads in [false, true] {
        let mut story = agent();
        started(&mut story, 30, SHELL, mcp());
        story.messages.insert(31, mcp());
        story.start(30, 31, SET_UP, WIRE);
        story.pass_secs(3);
        story.end(30);
        // It starts another program in its place.
        story.exec(31, 20, OWN, WIRE);
        story.pass_secs(40);
        assert_eq!(story.told(), Vec::<String>::new(), "the message waits");
        if reads {
            story.messages.remove(&31);
            story.pass_secs(40);
            assert_eq!(story.told(), ["server_started"]);
        }
        assert_eq!(is_ended(story), reads);
    }
}

/// Nobody saw the shell any more when the message came.
#[test]
fn a_message_that_comes_after_the_end_of_the_shell_is_for_who_reads_it() {
    for reads in [false, true] {
        let mut story = agent();
        started(&mut story, 30, SHELL, FirstMessage::Nothing);
        story.start(30, 31, SET_UP, WIRE);
        story.pass_secs(1);
        story.end(30);
        story.messages.insert(31, mcp());
        story.pass_secs(40);
        assert_eq!(story.told(), Vec::<String>::new());
        if reads {
            story.messages.remove(&31);
            story.pass_secs(40);
        }
        assert_eq!(is_ended(story), reads);
    }
}

/// The agent starts all of its servers, which settings declare, and speaks to them then. The twin has read the message before
/// anybody looked.
#[test]
fn what_settings_declare_below_a_shell_is_who_reads_the_message() {
    for comes_late in [true, false] {
        let mut story = agent();
        story.declared.insert(30, "weather".to_owned());
        started(&mut story, 30, SHELL, FirstMessage::Nothing);
        story.start(30, 31, SET_UP, WIRE);
        story.pass_secs(3);
        assert_eq!(story.told(), Vec::<String>::new(), "the message may still come");
        if !comes_late {
            story.pass_secs(40);
            assert_eq!((server(&story).name.as_str(), story.engine.first_messages.len()), ("weather", 0));
            assert!(is_ended(story));
            continue;
        }
        story.messages.extend([30, 31].map(|pid| (pid, mcp())));
        story.pass_secs(40);
        assert_eq!(story.told(), Vec::<String>::new(), "the message waits");
        story.end(31);
        // The next one reads it at once.
        story.messages.clear();
        story.start(30, 32, OWN, WIRE);
        story.pass(Duration::from_millis(10));
        assert_eq!(
            (server(&story).name.as_str(), story.told()),
            ("server.py", vec!["server_started".to_owned()])
        );
        assert!(is_ended(story));
    }
}

/// A new daemon asks the settings, and then what waits.
#[test]
fn what_was_there_before_is_the_server_if_nothing_waits_any_more() {
    for waits in [true, false] {
        let mut story = Story::new(Policy::default());
        story.declared.insert(30, "weather".to_owned());
        if waits {
            story.messages.extend([30, 31].map(|pid| (pid, mcp())));
        }
        let agent = seen(20, 10, CLAUDE, TERMINAL);
        story.snapshot(vec![agent, seen(30, 20, SHELL, WIRE), seen(31, 30, SET_UP, WIRE)]);
        assert_eq!(story.told().contains(&"server_started".to_owned()), !waits);
        story.pass_secs(40);
        assert_eq!(is_ended(story), !waits);
    }
}

/// Where the settings declare a shell that has started nothing on its streams, it is the server when the message is read.
#[test]
fn a_declared_shell_is_the_server_when_the_message_is_read() {
    let mut story = agent();
    story.declared.insert(30, "weather".to_owned());
    started(&mut story, 30, SHELL, FirstMessage::Nothing);
    story.pass_secs(1);
    story.messages.insert(30, mcp());
    story.pass_secs(40);
    assert_eq!(story.told(), Vec::<String>::new());
    story.messages.remove(&30);
    story.pass_secs(40);
    assert_eq!(story.told(), ["server_started"]);
    story.end(20);
    story.pass_secs(11);
    assert_eq!(story.sent().first(), Some(&(30, Signal::Term)));
}
