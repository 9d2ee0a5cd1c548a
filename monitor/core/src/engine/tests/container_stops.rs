//! Tests of the second look at a container between its inspection and its stop.

use super::{
    containers::{RUN, found, with_client},
    proof::judged,
    story::{id, image},
};
use crate::model::{
    ContainerFacts, ContainerId, Holder, OtherClient, ProcessFacts, ServerFacts, SocketUse, WireState,
};

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
    let inside = |change: &dyn Fn(&mut ServerFacts)| {
        let mut facts = found();
        change(&mut facts.inside);
        facts
    };
    let holder = |pid: u32| Holder { process: id(pid), image: image(&["x"]), ..Holder::default() };
    let held = |pids: &[u32], unseen| {
        let holders = pids.iter().map(|pid| holder(*pid)).collect();
        WireState::Held { holders, unseen }
    };
    let client = |pid| OtherClient { process: id(pid), image: image(&["docker", "ps"]) };
    let one = |pid| ProcessFacts { process: id(pid), ..ProcessFacts::default() };
    let inside_socket = |client| SocketUse { inside: vec![id(client)], ..SocketUse::default() };
    assert_eq!(found().change(&found()), None);
    let same = [
        inside(&|facts| facts.processes[0].rss_bytes = 1),
        inside(&|facts| facts.processes.push(one(91))),
        inside(&|facts| facts.stdout = held(&[89, 90], false)),
        inside(&|facts| facts.stdout = WireState::HungUp),
        inside(&|facts| facts.processes[0].sockets = inside_socket(90)),
    ];
    for facts in same {
        assert_eq!(found().change(&facts), None, "{facts:?}");
    }
    let changed = [
        ContainerFacts { name: "other".to_owned(), ..found() },
        ContainerFacts { image: "other".to_owned(), ..found() },
        ContainerFacts { container: ContainerId::default(), ..found() },
        ContainerFacts { shared: true, ..found() },
        ContainerFacts { others: vec![client(70)], ..found() },
        inside(&|facts| facts.processes = vec![one(92)]),
        inside(&|facts| facts.processes.clear()),
        inside(&|facts| facts.blind = Some("x".to_owned())),
        inside(&|facts| facts.opted_out = true),
        inside(&|facts| facts.stdin = held(&[89], false)),
        inside(&|facts| facts.stdin = WireState::Unknown),
        inside(&|facts| facts.stdout = held(&[89, 70], false)),
        inside(&|facts| facts.stdout = held(&[89], true)),
        inside(&|facts| facts.stdout = WireState::Unknown),
        inside(&|facts| facts.processes[0].traced = true),
        inside(&|facts| facts.processes[0].sockets.clients = true),
        inside(&|facts| facts.processes[0].sockets = inside_socket(70)),
    ];
    for facts in changed {
        assert!(found().change(&facts).is_some(), "{facts:?}");
    }
    // Those who were there before are known.
    let before = ContainerFacts { others: vec![client(70), client(71)], ..found() };
    assert_eq!(before.change(&ContainerFacts { others: vec![client(71)], ..found() }), None);
    assert!(before.change(&ContainerFacts { others: vec![client(72)], ..found() }).is_some());
}
