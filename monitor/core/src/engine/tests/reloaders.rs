//! Reloaders, which feed their server by a pipe of their own.

use super::{
    first_messages::{OWN, agent, mcp, server, started},
    restarts::next,
    story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, seen},
};
use crate::model::{FirstMessage, SnapshotProcess, Stdio};

const RELOADER: &[&str] = &["/usr/bin/nodemon", "-q", "x.js"];
const FED: [Stdio; 3] = [Stdio::Pipe(9), WIRE[1], WIRE[2]];
const FED_LATER: [Stdio; 3] = [Stdio::Pipe(11), WIRE[1], WIRE[2]];

/// `nodemon -q server.js` feeds the server by a pipe of its own and hands its standard output on.
#[test]
fn a_reloader_that_feeds_its_server_is_the_server() {
    let mut story = agent();
    started(&mut story, 30, RELOADER, mcp());
    story.start(30, 31, OWN, FED);
    assert_eq!(story.told(), Vec::<String>::new());
    story.messages.remove(&30);
    story.pass_secs(3);
    let view = server(&story);
    assert_eq!((view.name.as_str(), view.processes.len()), ("nodemon", 2));
    assert_eq!(story.told(), ["server_started"]);
}

/// The same with a server that a rule knows: it belongs to the reloader's host.
#[test]
fn what_a_reloader_feeds_belongs_to_its_host() {
    let mut story = agent();
    started(&mut story, 30, RELOADER, FirstMessage::Nothing);
    story.start(30, 31, SERVER, FED);
    assert_eq!(server(&story).processes.len(), 1);
    assert_eq!(story.told(), ["server_started"]);
}

/// The same where the first message to the reloader was seen: it is a link of the one server, also if it starts that anew.
#[test]
fn a_reloader_that_was_told_and_a_server_that_a_rule_knows_are_one() {
    for told in [true, false] {
        let mut story = agent();
        started(&mut story, 30, RELOADER, if told { mcp() } else { FirstMessage::Other });
        story.start(30, 31, &["sh", "-c", "x"], FED);
        story.start(31, 32, SERVER, FED);
        let view = server(&story);
        let shown = (view.name.as_str(), view.processes.len());
        assert_eq!(shown, ("mcp-server-filesystem", if told { 3 } else { 2 }));
        story.messages.remove(&30);
        story.pass_secs(3);
        assert_eq!(story.told(), ["server_started"]);
        story.end(32);
        story.end(31);
        story.start(30, 33, SERVER, FED_LATER);
        let restarted: &[&str] = if told { &[] } else { &["server_exited", "server_started"] };
        assert_eq!(story.told(), restarted);
        // At a port that nobody called: it is no gateway either.
        story.sockets.listens = told;
        story.end(20);
        story.pass_secs(11);
        let mut sent: Vec<u32> = story.sent().iter().map(|(pid, _)| *pid).collect();
        sent.sort_unstable();
        sent.dedup();
        assert_eq!(sent, if told { vec![30, 33] } else { vec![33] });
    }
}

/// Below a host that no rule knows, who is asked about first.
#[test]
fn they_are_one_below_an_implied_agent() {
    let mut story = Story::new(crate::model::Policy::default());
    story.exec(20, 10, &["/usr/bin/python3", "host.py"], TERMINAL);
    story.told();
    story.late = Some(Vec::new());
    started(&mut story, 30, RELOADER, mcp());
    story.answer_late();
    story.late = Some(Vec::new());
    story.start(30, 31, SERVER, FED);
    story.answer_late();
    let view = server(&story);
    assert_eq!((view.name.as_str(), view.processes.len()), ("mcp-server-filesystem", 2));
}

fn found(parent: u32, server: &[&str], fed: [Stdio; 3]) -> Vec<SnapshotProcess> {
    let agent = (parent == 20).then(|| seen(20, 10, CLAUDE, TERMINAL));
    let processes = [seen(30, parent, RELOADER, WIRE), seen(31, 30, server, fed)];
    agent.into_iter().chain(processes).collect()
}

/// Also a second time, and if the server was started anew or the agent ended meanwhile.
#[test]
fn a_reloader_is_known_after_a_restart() {
    for (argv, name) in [(OWN, "nodemon"), (SERVER, "mcp-server-filesystem")] {
        for parent in [20, 1] {
            let mut story = agent();
            started(&mut story, 30, RELOADER, mcp());
            story.start(30, 31, argv, FED);
            story.messages.remove(&30);
            story.pass_secs(3);
            let story = next(&story, "", found(20, argv, FED));
            let mut story = next(&story, "", found(parent, argv, FED_LATER));
            let started = |told: &[String]| told.iter().filter(|event| *event == "server_started").count();
            let view = server(&story);
            let told = story.told();
            assert_eq!((started(&told), view.name.as_str()), (1, name), "{told:?}");
            let report = story.engine.report();
            let shown = report.servers();
            assert_eq!(shown.map(|(_, shown)| shown.server.processes.len()).collect::<Vec<_>>(), [2]);
            assert_eq!(story.sent(), []);
            if parent == 20 {
                story.pass_secs(60);
                assert_eq!(story.sent(), []);
                story.end(20);
            }
            story.pass_secs(400);
            assert!(!story.sent().is_empty(), "{:?}", story.told());
        }
    }
}
