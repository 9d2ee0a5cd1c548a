//! Servers that no rule knows: recognised by the first message on their standard input.

use std::time::Duration;

use super::{
    story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id, seen},
    tools::work,
};
use crate::model::{FirstMessage, Input, Knowledge, Notice, Policy, ServerView, Signal, Stdio, Work};

pub const OWN: &[&str] = &["/usr/bin/python3", "/home/me/weather/server.py"];
const PIPED: [Stdio; 3] = [Stdio::Pipe(1), Stdio::Pipe(3), Stdio::Null];

pub fn mcp() -> FirstMessage {
    FirstMessage::Mcp { client: Some("home-made".to_owned()) }
}

/// Agent 20 lives.
pub fn agent() -> Story {
    let mut story = Story::with_agent();
    story.told();
    story
}

/// Its child runs a program.
pub fn started(story: &mut Story, pid: u32, argv: &[&str], message: FirstMessage) {
    story.messages.insert(pid, message);
    story.start(20, pid, argv, WIRE);
}

pub fn server(story: &Story) -> ServerView {
    let of = |notice: &Notice| match notice {
        Notice::ServerStarted { server, .. } => Some(server.clone()),
        _ => None,
    };
    story.notices.iter().rev().find_map(of).unwrap()
}

#[test]
fn it_is_recognised_owned_judged_and_ended() {
    let mut story = agent();
    started(&mut story, 30, OWN, mcp());
    let view = server(&story);
    assert_eq!((view.name.as_str(), view.rule.as_str()), ("server.py", "protocol"));
    assert_eq!(view.client.as_deref(), Some("home-made"));
    assert_eq!(story.told(), ["server_started"]);
    assert_eq!((story.message_looks.len(), story.engine.first_messages.len()), (1, 0));
    story.polite.insert(30);
    story.end(20);
    story.pass_secs(11);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    assert_eq!(story.told(), ["agent_exited", "orphan_suspected", "orphan_detected", "orphan_reaped TERM"]);
}

/// What runs it is on another host: here its client is the server.
#[test]
fn the_client_of_a_server_elsewhere_is_one() {
    for argv in
        [&["ssh", "host", "mcp-server-x"] as &[_], &["kubectl", "exec", "-i", "pod", "--", "mcp-server-x"]]
    {
        let mut story = agent();
        started(&mut story, 30, argv, mcp());
        assert_eq!(server(&story).rule, "protocol");
        story.end(20);
        story.pass_secs(11);
        assert_eq!(story.sent(), [(30, Signal::Term)]);
    }
}

#[test]
fn it_is_asked_again_with_growing_pauses_and_then_no_more() {
    let mut story = agent();
    started(&mut story, 30, OWN, FirstMessage::Nothing);
    story.pass_secs(60);
    let looks: Vec<Duration> =
        story.message_looks.windows(2).map(|pair| pair[1].0.since(pair[0].0)).collect();
    assert_eq!(looks, (0..14).map(|n| Duration::from_millis(1 << n)).collect::<Vec<_>>());
    assert_eq!((story.told(), story.engine.first_messages.len()), (Vec::new(), 0));
}

#[test]
fn the_message_may_come_later() {
    let mut story = agent();
    started(&mut story, 30, OWN, FirstMessage::Nothing);
    story.pass(Duration::from_millis(100));
    story.messages.insert(30, mcp());
    story.pass(Duration::from_millis(100));
    assert_eq!(story.told(), ["server_started"]);
    assert_eq!(story.engine.first_messages.len(), 0);
}

#[test]
fn the_answer_may_come_late() {
    for host_lives in [true, false] {
        let mut story = agent();
        story.late = Some(Vec::new());
        started(&mut story, 30, OWN, mcp());
        started(&mut story, 40, OWN, mcp());
        story.end(40);
        if !host_lives {
            story.end(20);
        }
        story.told();
        story.answer_late();
        let expected: &[&str] =
            if host_lives { &["server_started"] } else { &["server_started", "orphan_suspected"] };
        assert_eq!(story.told(), expected);
    }
}

#[test]
fn what_says_something_else_is_asked_once() {
    for other in [FirstMessage::Other, FirstMessage::Unknown] {
        let mut story = agent();
        started(&mut story, 30, OWN, other);
        story.messages.insert(30, mcp());
        story.pass_secs(60);
        assert_eq!((story.told(), story.message_looks.len()), (Vec::new(), 1));
    }
}

#[test]
fn nobody_is_asked_who_cannot_be_one() {
    let cases: [(&[&str], [Stdio; 3]); 4] = [
        (OWN, [Stdio::Pipe(1), Stdio::File, Stdio::Null]),
        (OWN, [Stdio::Null, Stdio::Pipe(2), Stdio::Null]),
        (SERVER, WIRE),
        (&["/usr/bin/tmux"], WIRE),
    ];
    for (argv, streams) in cases {
        let mut story = agent();
        story.messages.insert(30, mcp());
        story.start(20, 30, argv, streams);
        story.pass_secs(60);
        assert_eq!(story.message_looks, [], "{argv:?}");
    }
}

#[test]
fn it_is_turned_off_by_the_configuration() {
    let mut story = Story::new(Policy { recognise_protocol: false, ..Policy::default() });
    story.exec(20, 10, CLAUDE, TERMINAL);
    started(&mut story, 30, OWN, mcp());
    assert_eq!(story.message_looks, []);
}

#[test]
fn once_turned_off_nobody_is_asked_any_more() {
    let mut story = agent();
    started(&mut story, 30, OWN, FirstMessage::Nothing);
    let looks = story.message_looks.len();
    let policy = Policy { recognise_protocol: false, ..Policy::default() };
    story.hand_in(Input::Configured { policy });
    story.messages.insert(30, mcp());
    story.pass_secs(60);
    assert_eq!((story.message_looks.len(), story.engine.first_messages.len()), (looks, 0));
}

#[test]
fn once_turned_off_what_was_recognised_is_not_ended() {
    let mut story = agent();
    started(&mut story, 30, OWN, mcp());
    let policy = |recognise_protocol| Policy { recognise_protocol, ..Policy::default() };
    story.hand_in(Input::Configured { policy: policy(false) });
    story.end(20);
    story.pass_secs(60);
    assert_eq!(story.sent(), []);
    story.hand_in(Input::Configured { policy: policy(true) });
    story.pass_secs(60);
    assert_eq!(story.sent().first(), Some(&(30, Signal::Term)));
}

/// `sh -c "cat log | sort | uniq"`: the shell made the streams of the one in the middle.
#[test]
fn the_middle_of_a_pipeline_is_nobodys_server() {
    let mut story = agent();
    story.start(20, 30, &["/bin/sh", "-c", "sort | uniq | tail"], TERMINAL);
    story.messages.insert(31, mcp());
    story.start(30, 31, &["/usr/bin/uniq"], WIRE);
    assert_eq!((story.told(), story.message_looks.len()), (Vec::new(), 0));
}

#[test]
fn a_launcher_hands_the_message_on_to_what_it_starts() {
    let mut story = agent();
    started(&mut story, 30, &["uv", "run", "main.py"], mcp());
    story.pass_secs(60);
    assert_eq!(story.told(), Vec::<String>::new());
    // The program reads at once: nothing is there when it is asked.
    story.start(30, 31, &["/usr/bin/python3", "main.py"], WIRE);
    let view = server(&story);
    assert_eq!((view.id, view.name.as_str()), (id(30).to_string(), "main.py"));
    assert_eq!(view.client.as_deref(), Some("home-made"));
    assert_eq!((story.told(), story.engine.first_messages.len()), (vec!["server_started".to_owned()], 0));
}

/// `pixi mcp`. The twin has started who reads it.
#[test]
fn a_launcher_that_reads_the_message_itself_is_the_server() {
    for (reads, name) in [(true, "pixi"), (false, "main.py")] {
        let mut story = agent();
        started(&mut story, 30, &["pixi", "run"], mcp());
        story.pass(Duration::from_secs(1));
        assert_eq!(story.told(), Vec::<String>::new());
        story.messages.remove(&30);
        if !reads {
            story.start(30, 31, &["/usr/bin/python3", "main.py"], WIRE);
        }
        story.pass_secs(3);
        assert_eq!((server(&story).name.as_str(), story.told().len()), (name, 1));
        assert_eq!(story.engine.first_messages.len(), 0);
        story.end(20);
        story.pass_secs(11);
        assert_eq!(story.sent().first().map(|(pid, _)| *pid), Some(30));
    }
}

#[test]
fn an_init_stub_hands_the_message_on() {
    let mut story = Story::new(Policy::default());
    story.creator = Some(seen(20, 10, &["/opt/acme/host"], TERMINAL));
    story.messages.insert(30, mcp());
    story.exec(30, 20, &["/usr/bin/tini", "--", "/opt/acme/own"], WIRE);
    assert_eq!(story.told(), Vec::<String>::new());
    story.start(30, 31, &["/opt/acme/own"], WIRE);
    assert_eq!(server(&story).name, "own");
    assert_eq!(story.told(), ["agent_started", "server_started"]);
}

/// `sh -c "tee in | server | tee out"`
#[test]
fn a_shell_that_starts_nothing_on_both_of_its_streams_is_the_server() {
    let mut story = agent();
    started(&mut story, 30, &["/bin/sh", "/srv/wrapper"], mcp());
    story.messages.insert(31, mcp());
    story.start(30, 31, &["/usr/bin/tee", "in"], PIPED);
    story.messages.insert(32, mcp());
    story.start(30, 32, OWN, [Stdio::Pipe(3), Stdio::Pipe(4), Stdio::Null]);
    assert_eq!(story.message_looks.len(), 1);
    story.pass_secs(60);
    assert_eq!(story.told(), Vec::<String>::new(), "the message is still there");
    story.messages.remove(&30);
    story.pass_secs(40);
    let view = server(&story);
    assert_eq!((view.name.as_str(), view.processes.len()), ("wrapper", 3));
    assert_eq!(story.told(), ["server_started"]);
}

/// A script that reads the message itself answers its calls itself: what it runs on its streams is a tool, soon after its start
/// too. Where its program reads it, that is the server.
#[test]
fn what_a_script_runs_that_reads_the_message_itself_is_a_tool() {
    for reads in [true, false] {
        let mut story = agent();
        started(&mut story, 30, &["/bin/bash", "/srv/acme.sh"], mcp());
        story.pass(Duration::from_millis(200));
        assert_eq!(story.told(), Vec::<String>::new());
        if reads {
            story.messages.remove(&30);
            story.pass(Duration::from_millis(500));
        }
        story.start(30, 31, &["/srv/migrate"], WIRE);
        story.messages.remove(&30);
        story.pass_secs(3);
        assert_eq!(server(&story).name, if reads { "acme.sh" } else { "migrate" });
        story.work.insert(31, Work { process: id(31), cpu_ns: 7, ..Work::default() });
        story.end(20);
        work(&mut story, 31, 40);
        let told = story.told();
        assert_eq!(told.iter().any(|event| event == "orphan_detected"), !reads, "{told:?}");
        if reads {
            story.end(31);
            story.pass_secs(40);
            assert!(story.told().iter().any(|event| event == "orphan_detected"));
        }
    }
}

/// A launcher that no rule knows is taken for the server, and what runs below it may be the server or a tool, until a rule knows it.
#[test]
fn an_unknown_launcher_is_part_of_the_server() {
    let mut story = agent();
    started(&mut story, 30, &["/opt/acme/with-secrets"], mcp());
    story.messages.insert(31, mcp());
    story.start(30, 31, OWN, WIRE);
    let report = story.engine.report();
    let shown = &report.agents[0].servers[0].server;
    assert_eq!((shown.name.as_str(), shown.processes.len()), ("with-secrets", 2));
    assert_eq!(story.told(), ["server_started"]);
    // A rule knows better, and the message waits for it.
    story.messages.insert(32, mcp());
    story.start(31, 32, SERVER, WIRE);
    let report = story.engine.report();
    assert_eq!(report.agents[0].servers[0].server.rule, "script-mcp");
}

#[test]
fn one_that_started_a_server_meanwhile_is_an_agent() {
    let mut story = agent();
    started(&mut story, 30, &["/usr/bin/python3", "gateway.py"], FirstMessage::Nothing);
    story.start(30, 31, SERVER, [Stdio::Pipe(3), Stdio::Pipe(4), Stdio::Null]);
    story.messages.insert(30, mcp());
    story.pass_secs(60);
    assert_eq!(story.told(), ["agent_started", "server_started"]);
}

#[test]
fn after_a_restart_it_is_known_by_what_was_stored() {
    let mut story = agent();
    started(&mut story, 30, OWN, mcp());
    let stored = story.facts_persisted.iter().rev().find_map(|fact| match fact {
        crate::model::Fact::Server { server } => Some(server.clone()),
        _ => None,
    });
    let known = crate::model::RememberedServer { server: stored.unwrap(), orphan: None };
    let agent = seen(20, 10, CLAUDE, TERMINAL);
    let processes = vec![seen(30, 20, OWN, WIRE), seen(33, 20, OWN, PIPED)];
    for owner in [Some(agent), None] {
        let mut story = Story::new(Policy::default());
        let knowledge = Knowledge { servers: vec![known.clone()], ..Knowledge::default() };
        story.hand_in(Input::Remembered { knowledge });
        story.snapshot(owner.clone().into_iter().chain(processes.clone()).collect());
        let told = story.told();
        assert_eq!(told.iter().filter(|event| *event == "server_started").count(), 1, "{told:?}");
        assert_eq!(told.contains(&"orphan_suspected".to_owned()), owner.is_none());
        assert_eq!(story.message_looks, []);
    }
}

/// Its first message was read long ago.
#[test]
fn what_was_there_before_is_known_by_the_settings() {
    for declared in [true, false] {
        let mut story = Story::new(Policy::default());
        story.declared.extend(declared.then(|| (30, "weather".to_owned())));
        let agent = seen(20, 10, CLAUDE, TERMINAL);
        story.snapshot(vec![agent, seen(30, 20, OWN, WIRE), seen(33, 20, OWN, PIPED)]);
        let mut expected = vec!["agent_started".to_owned()];
        expected.extend(declared.then(|| "server_started".to_owned()));
        assert_eq!((story.told(), story.engine.first_messages.len()), (expected, 0));
        assert_eq!(story.message_looks, []);
    }
}

/// The launcher is declared, and what it started does the work.
#[test]
fn a_launcher_that_was_there_before_hands_it_on() {
    let mut story = Story::new(Policy::default());
    story.declared.insert(30, "weather".to_owned());
    let agent = seen(20, 10, CLAUDE, TERMINAL);
    let chain = [seen(30, 20, &["uv", "run", "main.py"], WIRE), seen(31, 30, OWN, WIRE)];
    story.late = Some(Vec::new());
    story.snapshot([vec![agent], chain.to_vec()].concat());
    // The settings, and then what waits.
    story.answer_late();
    story.answer_late();
    let view = server(&story);
    assert_eq!((view.name.as_str(), view.id), ("weather", id(30).to_string()));
}

/// Nothing is awaited where nothing starts.
#[test]
fn at_rest_nothing_is_due() {
    assert_eq!(agent().engine.poll_timeout(), None);
}

#[test]
fn one_that_reads_at_once_is_known_by_the_settings_of_its_agent() {
    for declared in [true, false] {
        let mut story = agent();
        story.declared.extend(declared.then(|| (30, "weather".to_owned())));
        started(&mut story, 30, OWN, FirstMessage::Nothing);
        story.pass(Duration::from_millis(100));
        assert_eq!(story.told(), Vec::<String>::new(), "its message may still be there");
        story.pass(Duration::from_millis(100));
        if declared {
            let view = server(&story);
            assert_eq!((view.name.as_str(), view.rule.as_str(), view.client), ("weather", "protocol", None));
            assert_eq!(
                (story.told(), story.engine.first_messages.len()),
                (vec!["server_started".to_owned()], 0)
            );
        } else {
            assert_eq!(story.engine.first_messages.len(), 1, "it is looked at further");
            story.pass_secs(60);
            assert_eq!((story.told(), story.engine.first_messages.len()), (Vec::new(), 0));
        }
    }
}
