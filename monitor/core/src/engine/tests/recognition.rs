//! What makes a program a server or an agent: names that prove little, programs on trial, agents that no rule knows.

use std::time::Duration;

use super::story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, seen};
use crate::model::{
    Asked, Doubt, Fact, FirstMessage, Guard, Input, Knowledge, Notice, Policy, RememberedServer, Signal,
    Stdio,
};

const HOST: &[&str] = &["/opt/acme/scheduler"];
const BACKUP: &[&str] = &["/opt/acme/mcp-backup", "--all"];
const OWN: &[&str] = &["/usr/bin/python3", "server.py"];
const SHELL: &[&str] = &["/bin/bash", "-c", "exec ./inventory"];
const INNER: [Stdio; 3] = [Stdio::Pipe(5), Stdio::Pipe(6), Stdio::Null];
const NOWHERE: [Stdio; 3] = [Stdio::Null; 3];

fn mcp() -> FirstMessage {
    FirstMessage::Mcp { client: Some("acme".to_owned()) }
}

fn doubts(story: &Story) -> Vec<Doubt> {
    let of = |notice: &Notice| match notice {
        Notice::OrphanUnproven { doubts, .. } => Some(doubts.clone()),
        _ => None,
    };
    story.notices.iter().rev().find_map(of).unwrap_or_default()
}

fn hung_up(mut story: Story) -> Story {
    story.hang_up();
    story
}

/// A program of this host starts another one; what is said to that one.
fn started(settings: Policy, host: &[&str], argv: &[&str], said: FirstMessage) -> Story {
    let mut story = hung_up(Story::new(settings));
    story.creator = Some(seen(20, 10, host, TERMINAL));
    if host == CLAUDE {
        story.exec(20, 10, host, TERMINAL);
        story.fork(20, 30);
    }
    story.messages.insert(30, said);
    story.exec(30, 20, argv, WIRE);
    story
}

fn is_ended(mut story: Story) -> bool {
    story.pass_secs(30);
    story.end(20);
    story.pass_secs(11);
    let ended = story.sent() == [(30, Signal::Term)];
    assert!(ended || (story.sent().is_empty() && doubts(&story) == [Doubt::OnlyNamed]));
    ended
}

#[test]
fn below_a_host_that_no_rule_knows_a_name_alone_proves_nothing() {
    let silent = FirstMessage::Nothing;
    for said in [silent.clone(), FirstMessage::Other, FirstMessage::Unknown] {
        assert!(!is_ended(started(Policy::default(), HOST, BACKUP, said.clone())), "{said:?}");
        let is_known = said != FirstMessage::Unknown;
        assert_eq!(is_ended(started(Policy::default(), CLAUDE, BACKUP, said)), is_known);
    }
    assert!(is_ended(started(Policy::default(), HOST, BACKUP, mcp())));
    assert!(is_ended(started(Policy::default(), HOST, SERVER, silent.clone())));
    let rules = "[[program]]\nkind = 'server'\nname = \"backup\"\nprogram = \"mcp-backup\"\n".to_owned();
    let policy = Policy { rules, ..Policy::default() };
    assert!(is_ended(started(policy, HOST, BACKUP, silent.clone())));
    let mut story = started(Policy::default(), HOST, BACKUP, silent);
    story.declared.insert(30, "backup".to_owned());
    assert!(is_ended(story));
}

/// It may outlive the agent, as agents need not wait for their hooks.
#[test]
fn a_hook_is_no_server_whatever_its_name() {
    for host in [HOST, CLAUDE] {
        let mut story = started(Policy::default(), host, BACKUP, FirstMessage::Hook);
        story.pass_secs(30);
        story.end(20);
        story.pass_secs(60);
        assert_eq!((story.sent(), doubts(&story)), (Vec::new(), Vec::new()));
    }
}

/// Who reads it at once has read it before anybody looks.
#[test]
fn what_a_living_agent_gave_all_of_its_input_at_once_is_no_server_by_its_name_alone() {
    let ended = |argv, over_after, agent_ends_after| {
        let mut story = started(Policy::default(), CLAUDE, argv, FirstMessage::Nothing);
        let (over_after, lives) =
            (Duration::from_millis(over_after), Duration::from_millis(agent_ends_after));
        story.pass(over_after.min(lives));
        if lives <= over_after {
            story.end(20);
        }
        story.messages.insert(30, FirstMessage::Over);
        if lives > over_after {
            story.pass(lives.saturating_sub(over_after));
            story.end(20);
        }
        story.pass_secs(11);
        story.sent() == [(30, Signal::Term)]
    };
    assert!(!ended(BACKUP, 0, 2_000) && !ended(BACKUP, 100, 2_000));
    assert!(!ended(BACKUP, 200, 2_000) && !ended(BACKUP, 600, 5_000), "its agent may be late");
    assert!(ended(BACKUP, 600, 700), "it was given up just before its agent ended");
    assert!(ended(BACKUP, 5, 5) && ended(BACKUP, 200, 200), "its agent has ended");
    assert!(ended(SERVER, 0, 2_000), "only servers are called so");
}

/// Nobody looked while its agent lived: it may have been told all, and its input closed, as a hook's.
#[test]
fn who_is_looked_at_too_late_may_be_a_hook_whatever_its_name() {
    let ended = |argv, is_late: bool, said: FirstMessage| {
        let mut story = hung_up(Story::with_agent());
        story.late = Some(Vec::new());
        story.messages.insert(30, said);
        story.start(20, 30, argv, WIRE);
        if is_late {
            story.end(20);
        }
        for _ in 0..3 {
            story.answer_late();
        }
        story.late = None;
        if !is_late {
            story.end(20);
        }
        story.pass_secs(11);
        let is_ended = story.sent() == [(30, Signal::Term)];
        assert!(is_ended || doubts(&story) == [Doubt::OnlyNamed]);
        is_ended
    };
    for said in [FirstMessage::Nothing, FirstMessage::Over, FirstMessage::Other] {
        assert!(!ended(BACKUP, true, said.clone()) && ended(SERVER, true, said));
    }
    assert!(ended(BACKUP, false, FirstMessage::Nothing) && ended(BACKUP, true, mcp()));
}

#[test]
fn what_confirmed_a_name_is_known_after_a_restart() {
    for said in [mcp(), FirstMessage::Other] {
        let story = started(Policy::default(), HOST, BACKUP, said.clone());
        let stored = story.facts_persisted.iter().rev().find_map(|fact| match fact {
            Fact::Server { server } => Some(server.clone()),
            _ => None,
        });
        let known = RememberedServer { server: stored.unwrap(), orphan: None };
        let mut story = hung_up(Story::new(Policy::default()));
        let knowledge = Knowledge { servers: vec![known], ..Knowledge::default() };
        story.hand_in(Input::Remembered { knowledge });
        story.snapshot(vec![seen(30, 1, BACKUP, WIRE)]);
        story.pass_secs(11);
        assert_eq!(!story.sent().is_empty(), said == mcp());
        assert_eq!(doubts(&story).contains(&Doubt::OnlyNamed), said != mcp());
    }
}

/// `bash -c` reads `~/.bashrc`, whose commands have the wires of the shell.
#[test]
fn a_program_that_leaves_the_message_and_ends_is_no_server() {
    let mut story = started(Policy::default(), CLAUDE, SHELL, mcp());
    for phantom in [31, 32, 33] {
        story.messages.insert(phantom, mcp());
        story.start(30, phantom, &["/usr/bin/mkdir", "-p", "x"], WIRE);
        story.pass(Duration::from_millis(80));
        story.end(phantom);
    }
    assert_eq!(story.told(), ["agent_started"]);
    story.messages.remove(&34);
    story.start(30, 34, OWN, WIRE);
    assert_eq!(story.told(), ["server_started"]);
    assert_eq!(story.engine.report().agents[0].servers[0].server.name, "server.py");
    assert_eq!(story.engine.first_messages.len(), 0);
}

/// `while :; do server; sleep 1; done`: each server ends with its input, and the loop starts the next one.
#[test]
fn a_loop_around_a_server_is_one_server_that_was_left() {
    let looped = |host, server| {
        let mut story = started(Policy::default(), host, SHELL, FirstMessage::Nothing);
        story.start(30, 31, server, WIRE);
        story.pass_secs(2);
        story.end(20);
        for pid in 32..45 {
            story.end(pid - 1);
            story.pass_secs(1);
            story.start(30, pid, server, WIRE);
        }
        story
    };
    let mut story = looped(CLAUDE, SERVER);
    assert!(story.sent().contains(&(30, Signal::Term)));
    let told = story.told();
    let count = |name: &str| told.iter().filter(|event| event.starts_with(name)).count();
    let counts = ["server_started", "orphan_suspected", "orphan_detected"].map(count);
    assert_eq!(counts, [2, 2, 1], "{told:?}");
    assert_eq!(looped(HOST, BACKUP).sent(), [], "only its name says that it is a server");
}

/// `server; backup`: what the shell runs after its server is no server.
#[test]
fn what_a_shell_does_after_its_server_has_ended_goes_on() {
    let mut story = started(Policy::default(), CLAUDE, SHELL, FirstMessage::Nothing);
    story.start(30, 31, SERVER, WIRE);
    story.pass_secs(2);
    story.end(20);
    story.end(31);
    story.start(30, 32, &["/usr/bin/rsync", "-a", "x", "y"], WIRE);
    story.pass_secs(3600);
    assert_eq!(story.sent(), []);
}

/// `npm ci && server`: the message waits for the second one. The first one works on when nobody is left to write more.
#[test]
fn a_program_is_no_server_while_the_message_waits() {
    for reads in [false, true] {
        let mut story = started(Policy::default(), CLAUDE, SHELL, mcp());
        story.messages.insert(31, mcp());
        story.start(30, 31, &["/usr/bin/npm", "ci"], WIRE);
        story.pass_secs(100);
        story.end(20);
        story.pass_secs(100);
        assert!(!story.told().contains(&"server_started".to_owned()));
        assert_eq!(story.sent(), []);
        let server = if reads {
            story.messages.clear();
            31
        } else {
            story.end(31);
            story.start(30, 32, OWN, WIRE);
            32
        };
        story.pass_secs(60);
        let sent = story.sent();
        assert!(sent.contains(&(server, Signal::Term)), "{reads} {sent:?} {:?}", story.told());
    }
}

/// It has put its standard input away, or its first thread has ended: the shell above has the same pipe. Where nobody can be asked,
/// nobody knows that the message was read. The twin has read it.
#[test]
fn who_cannot_be_asked_is_asked_through_the_shell_above() {
    for (waits, is_server) in [(mcp(), false), (FirstMessage::Unknown, false), (FirstMessage::Nothing, true)]
    {
        let mut story = started(Policy::default(), CLAUDE, SHELL, mcp());
        story.messages.insert(31, FirstMessage::Unknown);
        story.start(30, 31, &["/srv/set-up"], WIRE);
        story.messages.insert(30, waits.clone());
        story.pass_secs(100);
        story.end(20);
        story.pass_secs(100);
        assert_eq!(story.told().contains(&"server_started".to_owned()), is_server, "{waits:?}");
        assert_eq!(story.sent().contains(&(31, Signal::Term)), is_server, "{waits:?}");
    }
}

/// Nobody is left who would start another one: a server that hangs before it reads its first message.
#[test]
fn what_a_shell_has_become_is_the_server_although_the_message_waits() {
    let mut story = started(Policy::default(), CLAUDE, SHELL, mcp());
    story.exec(30, 20, OWN, WIRE);
    story.pass(Duration::from_millis(240));
    assert_eq!(story.told(), ["agent_started"]);
    story.pass(Duration::from_millis(20));
    assert_eq!(story.told(), ["server_started"]);
}

/// The message is seen on the program before anybody has looked at the shell.
#[test]
fn a_program_below_a_shell_is_on_trial_also_where_it_is_seen_first() {
    let mut story = started(Policy::default(), CLAUDE, SHELL, FirstMessage::Nothing);
    story.messages.insert(31, mcp());
    story.start(30, 31, &["/usr/bin/rm", "x"], WIRE);
    story.end(31);
    assert_eq!(story.told(), ["agent_started"]);
    story.start(30, 34, OWN, WIRE);
    assert_eq!(story.told(), ["server_started"]);
}

#[test]
fn what_a_shell_runs_in_its_place_is_known_by_what_the_shell_was() {
    let mut story = started(Policy::default(), CLAUDE, SHELL, FirstMessage::Nothing);
    story.exec(30, 20, &["./inventory"], WIRE);
    story.pass(Duration::from_millis(200));
    let lines =
        [SHELL, &["./inventory"]].map(|line| line.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(story.lines_asked, [lines]);
    // On wires that it made itself it is nobody's server.
    let mut story = started(Policy::default(), CLAUDE, SHELL, FirstMessage::Nothing);
    story.exec(30, 20, &["./inventory"], INNER);
    story.pass(Duration::from_millis(200));
    assert_eq!(story.lines_asked, Vec::<Vec<Vec<String>>>::new());
    // The message that the shell was sent.
    let mut story = started(Policy::default(), CLAUDE, SHELL, mcp());
    story.messages.remove(&30);
    story.exec(30, 20, &["./inventory"], WIRE);
    assert_eq!(story.told(), ["agent_started", "server_started"]);
}

/// Server 30 of claude starts tool 31 on streams of its own, which starts server 32.
fn agent_below(tool: &[&str]) -> Story {
    let mut story = started(Policy::default(), CLAUDE, SERVER, FirstMessage::Nothing);
    story.start(30, 31, tool, NOWHERE);
    story.start(31, 32, SERVER, INNER);
    story
}

#[test]
fn what_starts_servers_below_a_server_is_an_agent() {
    for tool in [&["/opt/acme/assistant"][..], &["/x/node_modules/@anthropic-ai/claude-code/bin/claude.exe"]]
    {
        let mut story = agent_below(tool);
        assert_eq!(story.engine.report().agents.len(), 2);
        story.end(20);
        story.pass_secs(60);
        assert_eq!(story.sent(), [], "{tool:?}");
        let spared = |notice: &Notice| matches!(notice, Notice::OrphanSpared { guards, .. } if guards == &[Guard::LiveAgentBelow]);
        assert!(story.notices.iter().any(spared));
        let report = story.engine.report();
        let whom: Vec<_> = report.servers().flat_map(|(_, server)| &server.guarded_by).collect();
        assert!(
            matches!(whom[..], [step] if step.pid == Some(31) && step.by == "live_agent_below"),
            "{whom:?}"
        );
        // The run that has ended is known by what it left.
        let found =
            ["claude #1", "claude #2"].map(|name| story.engine.explain(&Asked::Name(name.to_owned())));
        let [left, other] = found.map(|all| all.iter().filter(|one| one.process.pid == 30).count());
        assert_eq!((left, other), (1, 0), "{tool:?}");
        // When it ends, nothing protects the server any more.
        story.end(32);
        story.end(31);
        story.pass_secs(60);
        assert_eq!(story.sent().first(), Some(&(30, Signal::Term)));
    }
}

/// A bridge hands its client's requests on: both are one server.
#[test]
fn a_link_of_the_launch_chain_that_starts_servers_is_a_bridge() {
    let mut story = started(Policy::default(), CLAUDE, SERVER, FirstMessage::Nothing);
    story.start(30, 31, &["/usr/bin/node", "deeper.js"], WIRE);
    story.start(31, 32, SERVER, INNER);
    assert_eq!(story.engine.report().agents.len(), 1);
    story.end(20);
    story.pass_secs(11);
    assert!(!story.sent().is_empty());
}
