//! Tests of a launcher that no rule knows, between a host and its server.

use super::story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, seen};
use crate::model::{FirstMessage, Policy, Signal, Stdio};

const HOST: &[&str] = &["/opt/desk/deskhost"];
const LAUNCHER: &[&str] = &["/opt/company/company-run", "--", "node"];
const TINI: &[&str] = &["tini", "--", "node"];

/// Host 20 starts launcher 30, which runs server 40 on its own streams. `said` is what the first look at the launcher's
/// standard input finds.
fn launched(host: &[&str], launcher: &[&str], said: FirstMessage) -> Story {
    let mut story = Story::new(Policy::default());
    story.creator = Some(seen(20, 10, host, TERMINAL));
    if host == CLAUDE {
        story.exec(20, 10, host, TERMINAL);
        story.fork(20, 30);
    }
    // It waits for the server.
    story.messages.extend([(30, said.clone()), (40, said)]);
    story.exec(30, 20, launcher, WIRE);
    story.start(30, 40, SERVER, WIRE);
    story
}

#[test]
fn it_hides_neither_owner_nor_server_and_ends_with_it() {
    let mcp = FirstMessage::Mcp { client: Some("claude-code".to_owned()) };
    for (host, launchers) in [(CLAUDE, &[LAUNCHER, TINI][..]), (HOST, &[LAUNCHER])] {
        for launcher in launchers.iter().copied() {
            for said in [FirstMessage::Nothing, mcp.clone()] {
                let case = format!("{host:?} {launcher:?} {said:?}");
                let mut story = launched(host, launcher, said);
                assert_eq!(story.event("server_started")["owner"]["pid"], 20, "{case}");
                story.pass_secs(60);
                story.polite.extend([30, 40]);
                story.end(20);
                story.pass_secs(11);
                let ended = [30, 40];
                let shown = &story.event("orphan_detected")["server"]["processes"];
                let shown: Vec<_> = shown.as_array().unwrap().iter().map(|one| one["pid"].clone()).collect();
                assert_eq!(shown, ended, "{case}");
                story.pass_secs(60);
                let sent = story.sent();
                assert!(sent.contains(&(40, Signal::Term)), "{case}: {sent:?}");
                assert!(sent.iter().all(|(pid, _)| ended.contains(pid)), "{case}: {sent:?}");
                assert_eq!(story.told().last().map(String::as_str), Some("orphan_reaped TERM"), "{case}");
            }
        }
    }
}

#[test]
fn it_may_end_before_the_host() {
    for said in [FirstMessage::Nothing, FirstMessage::Mcp { client: Some("claude-code".to_owned()) }] {
        let mut story = launched(HOST, LAUNCHER, said);
        story.end(30);
        story.pass_secs(60);
        assert_eq!(story.sent(), []);
        story.told();
        story.polite.insert(40);
        story.end(20);
        story.pass_secs(11);
        let reaped = ["agent_exited", "orphan_suspected", "orphan_detected", "orphan_reaped TERM"];
        assert_eq!(story.told(), reaped);
        assert_eq!(story.sent(), [(40, Signal::Term)]);
    }
}

/// One that makes a wire of its own is no launcher: it talks to the server, and owns it.
#[test]
fn what_makes_a_wire_of_its_own_is_the_owner() {
    for server in
        [[Stdio::Pipe(1), Stdio::Pipe(9), Stdio::Null], [Stdio::Pipe(8), Stdio::Pipe(9), Stdio::Null]]
    {
        let mut story = Story::with_agent();
        story.start(20, 30, LAUNCHER, WIRE);
        story.start(30, 40, SERVER, server);
        story.polite.extend([30, 40]);
        story.end(20);
        story.pass_secs(100);
        let sent = story.sent();
        assert!(!sent.iter().any(|(pid, _)| *pid == 30), "{server:?} {sent:?}");
    }
}
