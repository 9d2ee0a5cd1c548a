//! Tests of what an inspection of the host means, and of what delays a verdict.

use super::story_scene::{ProcessFacts, SocketUse, WireState};
use std::time::Duration;

use super::first_messages::{OWN, mcp, started};
use super::let_go::JOB;
use super::proof::{HOST, OTHER, PLAIN, apart, ended, judged, unproven};
use super::story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id, seen};
use super::units::facts;
use crate::model::{FirstMessage, Input, Losses, Policy, Signal, SnapshotProcess, Stdio};

const JUDGED: [&str; 3] = ["agent_exited", "orphan_suspected", "orphan_detected"];

/// The owner exits and the grace period passes. Asserts the report that the orphan stays because of `guard`.
fn spared(mut story: Story, guard: &str) -> Story {
    story.end(20);
    story.pass_secs(10);
    let [exited, suspected, detected] = JUDGED;
    let told = [exited, suspected, &format!("{detected} {guard}"), &format!("orphan_spared {guard}")];
    assert_eq!(story.told(), told);
    story
}

#[test]
fn a_wire_that_could_not_be_seen_is_a_doubt() {
    let mut story = Story::agent_with_server(Policy::default());
    story.facts.stdin = WireState::Unknown;
    story.end(20);
    story.pass_secs(10);
    assert_eq!(story.told(), ["agent_exited", "orphan_suspected", "orphan_unproven wire_unknown"]);
    // It is inspected again at growing intervals, without a report.
    story.looks.clear();
    story.pass_secs(3600);
    let gaps: Vec<u64> = story.looks.windows(2).map(|w| w[1].since(w[0]).as_secs()).collect();
    assert!(gaps.is_sorted() && gaps.last() == Some(&600), "{gaps:?}");
    assert_eq!((story.told().len(), story.sent().len()), (0, 0));
    // Once everything can be seen, it is ended.
    story.facts.stdin = WireState::HungUp;
    story.pass_secs(600);
    assert_eq!(story.sent().first(), Some(&(30, Signal::Term)));
}

#[test]
fn the_more_servers_stay_the_more_seldom_the_end_of_an_agent_has_all_inspected_again() {
    for (servers, looks) in [(1, 9..=11), (100, 500..=600)] {
        let mut story = Story::with_agent();
        for pid in 100..100 + servers {
            story.start(20, pid, SERVER, WIRE);
        }
        story.facts.stdin = WireState::Unknown;
        story.end(20);
        story.pass_secs(60);
        story.looks.clear();
        // Agents that come and go, one a second.
        for pid in 1000..1010 {
            story.start(10, pid, CLAUDE, TERMINAL);
            story.end(pid);
            story.pass_secs(1);
        }
        assert!(looks.contains(&story.looks.len()), "{servers}: {}", story.looks.len());
    }
}

/// While whoever reaches it lives, others may come and go: nothing changes. When it ends, nobody waits for a deadline.
#[test]
fn only_the_end_of_who_reaches_a_server_has_it_inspected_again() {
    let mut story = Story::agent_with_server(Policy::default());
    story.start(20, 50, &["relay"], TERMINAL);
    story.facts.stdin = WireState::held_by(&[50]);
    story.end(20);
    story.pass_secs(600);
    story.looks.clear();
    for pid in 1000..1010 {
        story.start(10, pid, CLAUDE, TERMINAL);
        story.end(pid);
        story.pass_secs(1);
    }
    assert!(story.looks.is_empty(), "{:?}", story.looks);
    story.told();
    story.facts.stdin = WireState::HungUp;
    story.end(50);
    story.pass_secs(1);
    assert_eq!(story.told(), [JUDGED[2]]);
}

#[test]
fn no_verdict_rests_on_a_look_that_failed() {
    let mut story = Story::agent_with_server(Policy::default());
    story.facts.blind = Some("no /proc".to_owned());
    story.end(20);
    story.pass_secs(60);
    // It is inspected every second at first, then at longer intervals.
    assert_eq!(story.told(), [JUDGED[0], JUDGED[1], "orphan_unproven wire_unknown"]);
    assert!((5..=9).contains(&story.looks.len()), "{}", story.looks.len());
    assert_eq!(story.sent(), []);
    story.facts.blind = None;
    story.pass_secs(30);
    assert_eq!(story.told().first().map(String::as_str), Some(JUDGED[2]));
    assert_eq!(story.sent().first(), Some(&(30, Signal::Term)));
}

/// /dev/null for its input, and a log, or nothing, for its output. The twins have their wires elsewhere (SDK 2), or another input.
#[test]
fn what_goes_on_in_the_background_may_be_a_service() {
    for (input, output, own_ends, stays) in [
        (Stdio::Null, Stdio::Null, false, true),
        (Stdio::Null, Stdio::File, false, true),
        (Stdio::Null, Stdio::File, true, false),
        (Stdio::File, Stdio::File, false, false),
    ] {
        let mut story = Story::agent_with_server(Policy::default());
        story.apart.insert(30, apart(0, [input, output, output]));
        story.facts.own_ends = [own_ends; 2];
        let mut story = judged(story);
        if stays {
            unproven(&mut story, "wire_unknown");
        } else {
            ended(&mut story, 30);
        }
    }
}

/// It is connected to the server, another one of the same dead agent. The twin has not gone into the background, and nobody reaches it.
#[test]
fn who_may_be_a_service_now_uses_its_siblings() {
    for (streams, stays) in [([Stdio::Null; 3], true), ([Stdio::Other; 3], false)] {
        let mut story = Story::agent_with_server(Policy::default());
        story.start(20, 40, SERVER, OTHER);
        story.apart.insert(40, apart(0, streams));
        story.sockets.inside = vec![id(40)];
        let sent = judged(story).sent();
        assert_eq!(!sent.iter().any(|(pid, _)| *pid == 30), stays, "{streams:?}");
    }
}

/// It is connected to the server, another one of the same dead agent, and would be told of its end: it is ended first, if it has let
/// something go that it may end then. Of two that have, nobody waits for the other.
#[test]
fn who_let_something_go_is_ended_before_its_siblings() {
    for (lets_go, expected) in [(&[40][..], [40, 30]), (&[], [30, 40]), (&[30, 40], [30, 40])] {
        let mut story = Story::agent_with_server(Policy::default());
        story.start(20, 40, SERVER, OTHER);
        for server in lets_go {
            story.start(*server, server + 1, JOB, PLAIN);
            story.apart.insert(server + 1, apart(server + 1, PLAIN));
        }
        let sockets = SocketUse { inside: vec![id(40)], ..SocketUse::default() };
        story.apart.insert(30, ProcessFacts { sockets, ..apart(10, WIRE) });
        story.apart.insert(40, apart(10, [Stdio::Other; 3]));
        story.polite = [30, 40].into();
        let mut story = judged(story);
        story.pass_secs(60);
        let ended = expected.map(|server| (server, Signal::Term));
        assert_eq!(story.sent(), ended, "{lets_go:?}");
    }
}

#[test]
fn an_exempt_server_is_judged_and_spared() {
    let rules = "[[exempt]]\nname = 'mine'\nprogram = '/srv/node_modules/.bin/mcp-server-filesystem'";
    let rules = rules.to_owned();
    let story = Story::agent_with_server(Policy { rules, ..Policy::default() });
    let mut story = spared(story, "exempt_rule");
    story.pass_secs(3600);
    assert_eq!((story.told().len(), story.sent().len()), (0, 0));
}

#[test]
fn another_users_server_is_spared_unless_that_is_allowed() {
    for allowed in [false, true] {
        let mut story = Story::agent_with_server(Policy { other_uids: allowed, ..Policy::default() });
        story.uid = 1000;
        if allowed {
            story.end(20);
            story.pass_secs(10);
            assert_eq!(story.told(), JUDGED);
            assert_eq!(story.sent(), [(30, Signal::Term)]);
        } else {
            assert_eq!(spared(story, "other_uid").sent(), []);
        }
    }
}

/// `sudo -u other make`, below a server that nobody owns: whoever started the server could not signal it. The twin is his own.
#[test]
fn what_belongs_to_nobodys_server_and_is_of_another_user_is_spared() {
    for (uid, is_spared) in [(1000, true), (0, false)] {
        let mut story = Story::new(Policy::default());
        story.facts.unit = Some(facts("a", "b"));
        story.apart.insert(31, ProcessFacts { uid, stdio: WIRE, ..ProcessFacts::default() });
        let tool = seen(31, 30, &["/usr/bin/make"], WIRE);
        story.snapshot(vec![seen(1, 0, &["systemd"], TERMINAL), seen(30, 1, SERVER, WIRE), tool]);
        story.pass_secs(600);
        let told = story.told();
        assert_eq!(told.contains(&"orphan_spared other_uid".to_owned()), is_spared, "{told:?}");
        assert_eq!(story.sent().is_empty(), is_spared);
    }
}

#[test]
fn after_a_loss_verdicts_wait_for_one_repair() {
    let mut story = Story::agent_with_server(Policy::default());
    story.end(20);
    story.told();
    story.pass_secs(9);
    let losses = Losses { fork: 3, ..Losses::default() };
    story.hand_in(Input::Lost { losses });
    story.hand_in(Input::Lost { losses });
    story.hand_in(Input::Lost { losses: Losses::default() });
    assert_eq!(story.resyncs, 1, "repairs are a second apart");
    story.pass(Duration::from_millis(999));
    assert_eq!((story.resyncs, story.told()), (1, vec!["lost".to_owned(), "lost".to_owned()]));
    story.pass_secs(5);
    assert_eq!(story.resyncs, 2, "the second loss came after the first repair was asked for");
    assert_eq!((story.told().len(), story.looks.len()), (0, 0), "nothing is judged");
    story.snapshot(vec![seen(30, 1, SERVER, WIRE)]);
    story.pass_secs(1);
    assert_eq!(story.told(), ["resynced", "orphan_detected"]);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
}

#[test]
fn what_a_repair_finds_gone_is_told_in_order() {
    let mut story = Story::agent_with_server(Policy::default());
    story.hand_in(Input::Lost { losses: Losses { exit: 2, ..Losses::default() } });
    story.snapshot(Vec::new());
    let told = ["lost", "agent_exited", "orphan_suspected", "orphan_cleared exited", "resynced"];
    assert_eq!(story.told(), told);
}

#[test]
fn an_agent_that_a_repair_finds_gone_leaves_suspects() {
    let mut story = Story::agent_with_server(Policy::default());
    story.hand_in(Input::Lost { losses: Losses { exit: 1, ..Losses::default() } });
    story.snapshot(vec![seen(30, 1, SERVER, WIRE)]);
    assert_eq!(story.told(), ["lost", "agent_exited", "orphan_suspected", "resynced"]);
    // Its twin is alive: nothing is suspected.
    let mut story = Story::agent_with_server(Policy::default());
    story.hand_in(Input::Lost { losses: Losses { exit: 1, ..Losses::default() } });
    story.snapshot(vec![seen(20, 1, CLAUDE, TERMINAL), seen(30, 20, SERVER, WIRE)]);
    assert_eq!(story.told(), ["lost", "resynced"]);
}

#[test]
fn a_repair_finds_a_server_that_an_agents_own_interpreter_runs() {
    const AGENT: &[&str] = &["python3", "-m", "hermes_cli", "gateway", "run"];
    for argv in [&["python3", "/srv/venv/bin/mcp-server-git"][..], AGENT] {
        let mut story = Story::new(Policy::default());
        story.exec(20, 10, AGENT, TERMINAL);
        story.fork(20, 30);
        story.told();
        story.hand_in(Input::Lost { losses: Losses { exec: 1, ..Losses::default() } });
        story.snapshot(vec![seen(20, 10, AGENT, TERMINAL), seen(30, 20, argv, WIRE)]);
        let found = story.told().contains(&"server_started".to_owned());
        assert_eq!(found, argv != AGENT, "a copy of the agent is none");
    }
}

#[test]
fn of_a_user_who_is_not_wholly_followed_nothing_is_judged_until_that_is_over() {
    // Whoever has a range of numbers is one user.
    for (of, users, judged) in [
        (0, vec![64_001], true),
        (0, vec![0, 64_001], false),
        (100_007, vec![100_000], false),
        (100_007, vec![165_536], true),
    ] {
        let mut story = Story::new(Policy::default());
        story.exec_as(of, 20, 10, CLAUDE, TERMINAL);
        story.fork(20, 30);
        story.apart.insert(30, ProcessFacts { uid: of, stdio: WIRE, ..ProcessFacts::default() });
        story.exec_as(of, 30, 20, SERVER, WIRE);
        story.told();
        story.hand_in(Input::Crowded { users });
        story.hand_in(Input::Lost { losses: Losses { member: 7, ..Losses::default() } });
        story.end(20);
        story.told();
        story.pass_secs(20);
        assert_eq!(story.resyncs, 0, "the shell knows when there is room again");
        assert_eq!(story.told().contains(&"orphan_detected".to_owned()), judged);
        if !judged {
            story.snapshot(vec![SnapshotProcess { uid: of, ..seen(30, 1, SERVER, WIRE) }]);
            story.hand_in(Input::Crowded { users: Vec::new() });
            story.pass_secs(2);
            assert_eq!(story.told(), ["resynced", "orphan_detected"]);
        }
    }
}

/// All records about it were lost: nobody knows whose it was, or whether it was ever a server of an agent.
#[test]
fn what_a_repair_finds_adopted_is_left() {
    let mut story = Story::new(Policy::default());
    story.hand_in(Input::Ready { kernel: String::new(), hooks: Vec::new() });
    story.hand_in(Input::Lost { losses: Losses { fork: 1, exec: 1, exit: 1, ..Losses::default() } });
    story.snapshot(vec![seen(30, 1, SERVER, WIRE)]);
    story.pass_secs(100);
    assert_eq!(story.sent(), []);
}

/// That the first message waits says nothing about who shall read it, where no rule knows the host: whoever calls a relay may
/// write one to a job. The twins have read it (what waits then is a later one, without the client's name: a server that hangs), are
/// an agent's, or are called like a server.
#[test]
fn what_has_not_read_its_first_message_is_no_server_by_it() {
    const NAMED: &[&str] = &["node", "/srv/node_modules/.bin/mcp-remote", "http://127.0.0.1:9"];
    let later = || FirstMessage::Mcp { client: None };
    for (host, program, first, unread, is_ended) in [
        (HOST, OWN, mcp(), Some(mcp()), false),
        (HOST, OWN, mcp(), Some(FirstMessage::Unknown), false),
        (HOST, OWN, mcp(), Some(later()), true),
        (HOST, OWN, mcp(), Some(FirstMessage::Other), true),
        (HOST, OWN, later(), Some(later()), false),
        (HOST, OWN, later(), Some(FirstMessage::Other), false),
        (HOST, OWN, mcp(), Some(FirstMessage::Nothing), true),
        (HOST, OWN, mcp(), None, true),
        (HOST, NAMED, mcp(), Some(mcp()), true),
        (CLAUDE, OWN, mcp(), Some(mcp()), true),
    ] {
        let mut story = Story::new(Policy::default());
        story.exec(20, 10, host, TERMINAL);
        started(&mut story, 30, program, first);
        story.facts.unread_input = unread;
        story = judged(story);
        if !is_ended {
            unproven(&mut story, "only_named");
            story.facts.unread_input = Some(FirstMessage::Nothing);
            story.pass_secs(700);
        }
        ended(&mut story, 30);
    }
}
