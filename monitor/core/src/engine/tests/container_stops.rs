//! Tests of the second look at a container between its inspection and its stop.

use super::{
    containers::{RUN, found, found_with, with_client},
    proof::judged,
    story::{id, image},
    story_scene::{ProcessFacts, SocketUse, WireState},
};
use crate::model::scene::ProcessRow;
use crate::model::{ContainerFacts, ContainerId, OtherClient};
use crate::verdict::change;

#[test]
fn a_container_that_changed_is_inspected_again() {
    let mut story = with_client(RUN);
    story.facts.container = Some(Box::new(found()));
    story.container_changes = true;
    let mut story = judged(story);
    assert_eq!((story.stops.len(), story.stops_refused.len()), (0, 1));
    assert_eq!(story.told().last().map(String::as_str), Some("orphan_detected"));
    // Somebody is attached to it.
    let visitor = OtherClient { process: id(70), image: image(&["docker", "attach", "box"]) };
    story.facts.container = Some(Box::new(ContainerFacts { others: vec![visitor], ..found() }));
    story.pass_secs(1000);
    assert_eq!((story.stops.len(), story.stops_refused.len(), story.sent()), (0, 1, vec![]));
    assert_eq!(story.told(), ["orphan_unproven clients"]);
    // The visitor has left, and comes back just before the stop, a number of times.
    story.facts.container = Some(Box::new(found()));
    story.pass_secs(600);
    assert!(story.stops.is_empty() && story.stops_refused.len() > 1);
    story.told();
    story.container_changes = false;
    story.pass_secs(2);
    assert_eq!((story.stops.len(), story.sent()), (1, vec![]));
    story.end(30);
    assert_eq!(story.told(), ["orphan_reaped TERM"]);
}

#[test]
fn what_counts_as_a_change() {
    let holder = |pid: u32| ProcessRow { process: id(pid), image: image(&["x"]), ..ProcessRow::default() };
    let held = |pids: &[u32], unseen| {
        let holders = pids.iter().map(|pid| holder(*pid)).collect();
        WireState::Held { holders, unseen }
    };
    let client = |pid| OtherClient { process: id(pid), image: image(&["docker", "ps"]) };
    let one = |pid| ProcessFacts { process: id(pid), ..ProcessFacts::default() };
    let inside_socket = |client| SocketUse { inside: vec![id(client)], ..SocketUse::default() };
    assert_eq!(change(&found(), &found()), None);
    let same = [
        found_with(|facts| facts.processes[0].rss_bytes = 1),
        found_with(|facts| facts.processes.push(one(91))),
        found_with(|facts| facts.stdout = held(&[89, 90], false)),
        found_with(|facts| facts.stdout = WireState::HungUp),
        found_with(|facts| facts.processes[0].sockets = inside_socket(90)),
    ];
    for facts in same {
        assert_eq!(change(&found(), &facts), None, "{facts:?}");
    }
    let changed = [
        ContainerFacts { name: "other".to_owned(), ..found() },
        ContainerFacts { image: "other".to_owned(), ..found() },
        ContainerFacts { container: ContainerId::default(), ..found() },
        ContainerFacts { shared: true, ..found() },
        ContainerFacts { others: vec![client(70)], ..found() },
        found_with(|facts| facts.processes = vec![one(92)]),
        found_with(|facts| facts.processes.clear()),
        found_with(|facts| facts.blind = Some("x".to_owned())),
        found_with(|facts| facts.opted_out = true),
        found_with(|facts| facts.stdin = held(&[89], false)),
        found_with(|facts| facts.stdin = WireState::Unknown),
        found_with(|facts| facts.stdout = held(&[89, 70], false)),
        found_with(|facts| facts.stdout = held(&[89], true)),
        found_with(|facts| facts.stdout = WireState::Unknown),
        found_with(|facts| facts.processes[0].traced = true),
        found_with(|facts| facts.processes[0].sockets.clients = true),
        found_with(|facts| facts.processes[0].sockets = inside_socket(70)),
    ];
    for facts in changed {
        assert!(change(&found(), &facts).is_some(), "{facts:?}");
    }
    // Those who were there before are known.
    let before = ContainerFacts { others: vec![client(70), client(71)], ..found() };
    assert_eq!(change(&before, &ContainerFacts { others: vec![client(71)], ..found() }), None);
    assert!(change(&before, &ContainerFacts { others: vec![client(72)], ..found() }).is_some());
}
