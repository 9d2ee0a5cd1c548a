//! Tests of duplicates: further servers of one identity under a living owner.

use super::story_scene::WireState;
use std::time::Duration;

use super::story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id, image, seen};
use crate::model::{Ignored, Image, Input, Notice, ProcessEvent, ReapRequest, Signal, Whereabouts};

const HERE: Whereabouts = Whereabouts { directory: 1, command: Some(10), environment: Some(5) };
const THERE: Whereabouts = Whereabouts { directory: 2, ..HERE };
const OTHER: &[&str] = &["node", "/srv/node_modules/.bin/mcp-server-filesystem", "/home"];

/// Agent 20, without a server.
fn agent() -> Story {
    let mut story = Story::with_agent();
    story.facts.stdin = WireState::held_as(&[20], &["claude"]);
    story.told();
    story
}

/// Agent 20 starts a server that works in `place`.
fn start(story: &mut Story, pid: u32, argv: &[&str], place: Option<Whereabouts>) {
    story.places.extend(place.map(|place| (pid, place)));
    story.start(20, pid, argv, WIRE);
}

/// What was told of duplicates since the last call: the server and the count.
fn duplicated(story: &mut Story) -> Vec<(String, u64)> {
    let told = story.notices.drain(..).filter_map(|notice| match notice {
        Notice::ServerDuplicated { server, owner, count } => {
            assert!(owner.is_some_and(|owner| owner.alive));
            Some((server.id, count))
        }
        _ => None,
    });
    told.collect()
}

/// The duplicates in the report, each with the server that stays.
fn listed(story: &Story) -> Vec<(String, String)> {
    let report = story.engine.report();
    let listed = report
        .servers()
        .filter_map(|(_, server)| Some((server.server.id.clone(), server.duplicate_of.clone()?)));
    listed.collect()
}

fn pair(older: u32, newer: u32) -> (String, String) {
    (id(older).to_string(), id(newer).to_string())
}

#[test]
fn a_further_server_of_one_identity_is_told_once_and_counted() {
    let mut story = agent();
    start(&mut story, 30, SERVER, Some(HERE));
    start(&mut story, 31, SERVER, Some(HERE));
    assert_eq!(duplicated(&mut story), [], "a client may be about to close the old one");
    story.pass_secs(11);
    assert_eq!(duplicated(&mut story), [("31@31".to_owned(), 2)]);
    start(&mut story, 32, SERVER, Some(HERE));
    story.pass_secs(100);
    assert_eq!(duplicated(&mut story), [("32@32".to_owned(), 3)]);
    assert_eq!(listed(&story), [pair(30, 32), pair(31, 32)]);
    // The newest ends: the one before it is the newest now.
    story.end(32);
    assert_eq!((listed(&story), duplicated(&mut story)), (vec![pair(30, 31)], vec![]));
    story.end(30);
    story.pass_secs(100);
    assert_eq!((listed(&story), duplicated(&mut story)), (vec![], vec![]));
    assert_eq!(story.places_asked, [30, 31, 32]);
}

#[test]
fn a_server_that_is_replaced_in_time_is_no_duplicate() {
    let mut story = agent();
    start(&mut story, 30, SERVER, Some(HERE));
    start(&mut story, 31, SERVER, Some(HERE));
    story.pass_secs(9);
    story.end(30);
    story.pass_secs(100);
    assert_eq!(duplicated(&mut story), []);
}

#[test]
fn other_arguments_or_another_directory_are_another_identity() {
    let mut story = agent();
    start(&mut story, 30, SERVER, Some(HERE));
    start(&mut story, 31, OTHER, Some(HERE));
    story.pass_secs(100);
    assert_eq!(story.places_asked.len(), 0, "nothing is asked where no two look alike");
    start(&mut story, 32, SERVER, Some(THERE));
    story.pass_secs(100);
    assert_eq!(story.places_asked, [30, 32]);
    assert_eq!((duplicated(&mut story), listed(&story)), (vec![], vec![]));
}

/// The older one is compared later: its launcher became a server only after the newer one was there.
#[test]
fn the_newer_one_is_told_though_the_older_one_is_recognised_later() {
    let mut story = agent();
    start(&mut story, 30, &["bash", "-c", "exec x"], Some(HERE));
    start(&mut story, 31, SERVER, Some(HERE));
    story.pass_secs(9);
    story.exec(30, 20, SERVER, WIRE);
    story.pass_secs(5);
    assert_eq!(duplicated(&mut story), []);
    story.pass_secs(6);
    assert_eq!((duplicated(&mut story), listed(&story)), (vec![("31@31".to_owned(), 2)], vec![pair(30, 31)]));
}

#[test]
fn what_cannot_be_read_is_no_duplicate() {
    let mut story = agent();
    start(&mut story, 30, SERVER, None);
    start(&mut story, 31, SERVER, None);
    start(&mut story, 32, SERVER, Some(HERE));
    story.pass_secs(100);
    assert_eq!((duplicated(&mut story), listed(&story)), (vec![], vec![]));
    assert_eq!(story.places_asked, [30, 31, 32], "each is asked about once");
}

#[test]
fn cut_arguments_are_no_identity() {
    let mut story = agent();
    for pid in [30, 31] {
        story.places.insert(pid, HERE);
        story.fork(20, pid);
        let cut = Image { argv_truncated: true, ..image(SERVER) };
        let event = ProcessEvent::Exec {
            at: story.now,
            process: id(pid),
            parent: id(20),
            uid: 0,
            sid: 0,
            image: cut,
            stdio: WIRE,
            ignored: Ignored::default(),
        };
        story.hand_in(Input::Process { event });
    }
    story.pass_secs(100);
    assert_eq!((duplicated(&mut story), story.places_asked.len()), (vec![], 0));
}

#[test]
fn masked_secrets_are_compared_by_the_whole_command_line() {
    let masked = [SERVER, &["--token", "***"]].concat();
    let mut story = agent();
    for (pid, command) in [(30, Some(1)), (31, Some(2)), (32, None), (33, Some(2))] {
        start(&mut story, pid, &masked, Some(Whereabouts { command, ..HERE }));
    }
    story.pass_secs(100);
    assert_eq!(duplicated(&mut story), [("33@33".to_owned(), 2)]);
    assert_eq!(listed(&story), [pair(31, 33)]);
}

#[test]
fn a_title_that_was_found_is_no_identity_and_arguments_that_were_found_are() {
    let (host, titled) = (20, Whereabouts { command: None, ..HERE });
    for (place, expected) in [(titled, vec![]), (HERE, vec![pair(30, 31)])] {
        let mut story = agent();
        story.places.extend([(30, place), (31, place)]);
        story.snapshot(vec![
            seen(host, 10, CLAUDE, TERMINAL),
            seen(30, host, SERVER, WIRE),
            seen(31, host, SERVER, WIRE),
        ]);
        story.pass_secs(100);
        assert_eq!(listed(&story), expected);
    }
}

#[test]
fn the_same_server_of_another_agent_is_no_duplicate() {
    let mut story = agent();
    start(&mut story, 30, SERVER, Some(HERE));
    story.exec(21, 10, CLAUDE, TERMINAL);
    story.places.insert(31, HERE);
    story.start(21, 31, SERVER, WIRE);
    story.pass_secs(100);
    assert_eq!((duplicated(&mut story), story.places_asked.len()), (vec![], 0));
}

#[test]
fn a_server_whose_owner_is_gone_is_an_orphan_and_no_duplicate() {
    let mut story = agent();
    start(&mut story, 30, SERVER, Some(HERE));
    start(&mut story, 31, SERVER, Some(HERE));
    story.pass_secs(10);
    assert_eq!(listed(&story), [pair(30, 31)]);
    story.facts.stdin = WireState::HungUp;
    story.end(20);
    assert_eq!(listed(&story), []);
}

/// `npm exec`, then the server itself in the same launch chain: the identity of the chain changes on its way, and
/// the newcomer is told once.
#[test]
fn a_launch_chain_is_one_server() {
    let npm: &[&str] = &["npm", "exec", "@modelcontextprotocol/server-filesystem", "/srv"];
    let mut story = agent();
    for head in [30, 40] {
        start(&mut story, head, npm, Some(HERE));
        story.places.insert(head + 1, HERE);
        story.fork(head, head + 1);
        story.exec(head + 1, head, SERVER, WIRE);
        story.pass_secs(20);
    }
    assert_eq!(duplicated(&mut story), [("40@40".to_owned(), 2)]);
    assert_eq!(story.places_asked, [31, 41]);
}

fn ask(story: &mut Story) -> Vec<String> {
    let request = ReapRequest { duplicates: true, ..ReapRequest::default() };
    let planned = story.engine.plan(&request).into_iter().map(|planned| planned.server.id).collect();
    story.hand_in(Input::Reap { request, by: "alice".to_owned() });
    planned
}

#[test]
fn a_person_ends_all_but_the_newest() {
    let mut story = agent();
    story.polite.extend([30, 31, 32]);
    assert_eq!(ask(&mut story), Vec::<String>::new());
    start(&mut story, 30, SERVER, Some(HERE));
    start(&mut story, 31, SERVER, Some(HERE));
    start(&mut story, 32, OTHER, Some(HERE));
    story.pass_secs(100);
    assert_eq!(ask(&mut story), ["30@30"]);
    story.pass_secs(1);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    assert_eq!(ask(&mut story), Vec::<String>::new(), "nothing is left to end");
    story.pass_secs(100);
    assert_eq!(story.sent(), []);
}

/// What was shown is compared again when the request comes.
#[test]
fn a_request_is_for_what_is_a_duplicate_now() {
    let mut story = agent();
    start(&mut story, 30, SERVER, Some(HERE));
    start(&mut story, 31, SERVER, Some(HERE));
    story.pass_secs(100);
    let shown = Some(vec!["30@30".to_owned()]);
    story.end(31);
    let request = ReapRequest { duplicates: true, servers: shown, ..ReapRequest::default() };
    story.hand_in(Input::Reap { request, by: "alice".to_owned() });
    story.pass_secs(100);
    assert_eq!(story.sent(), []);
}

#[test]
fn guards_hold_for_duplicates() {
    let mut story = agent();
    start(&mut story, 30, SERVER, Some(HERE));
    start(&mut story, 31, SERVER, Some(HERE));
    story.pass_secs(100);
    story.facts.opted_out = true;
    ask(&mut story);
    story.pass_secs(100);
    assert_eq!(story.sent(), []);
    assert_eq!(listed(&story), [pair(30, 31)], "it is what it was");
    assert_eq!(duplicated(&mut story), [("31@31".to_owned(), 2)], "and is not told again");
}

/// Many servers of one identity: one question and one event for each.
#[test]
fn a_fleet_costs_one_question_for_each() {
    let mut story = agent();
    let fleet = 100..300;
    for pid in fleet.clone() {
        start(&mut story, pid, SERVER, Some(HERE));
    }
    story.pass(Duration::from_secs(60));
    assert_eq!(story.places_asked.len(), fleet.len());
    assert_eq!(duplicated(&mut story).len(), fleet.len() - 1);
    assert_eq!(listed(&story).len(), fleet.len() - 1);
}

/// A fleet of one agent costs a pass over all of it now and then, not one for each of its servers.
#[test]
fn all_of_a_fleet_are_told_in_order_and_none_twice() {
    let mut story = agent();
    for pid in 100..140 {
        start(&mut story, pid, SERVER, Some(HERE));
    }
    story.pass_secs(20);
    let told: Vec<_> = (101..140).map(|pid| (id(pid).to_string(), u64::from(pid) - 99)).collect();
    assert_eq!(duplicated(&mut story), told);
}
