//! How a server ended, and who ended it.

use super::story::{Story, id};
use crate::model::{
    Ending, ExitStatus, Fact, Fate, Input, KilledBy, Killer, Mode, Notice, Policy, ProcessEvent, Signal,
};

const DAEMON: u32 = 99;
const KILLED: ExitStatus = ExitStatus::Signal(9);

/// A server of a living agent, and a daemon that is known.
fn living() -> Story {
    let mut story = Story::agent_with_server(Policy::default());
    story.engine.ourselves = vec![id(DAEMON), id(98)];
    story
}

/// The owner has ended, and the grace goes on.
fn suspect() -> Story {
    let mut story = living();
    story.end(20);
    story
}

/// A proven orphan that is not ended.
fn observed() -> Story {
    let mut story = Story::agent_with_server(Policy { mode: Mode::Observe, ..Policy::default() });
    story.engine.ourselves = vec![id(DAEMON)];
    story.end(20);
    story.pass_secs(10);
    story
}

fn process(pid: u32) -> Killer {
    Killer {
        pid: Some(pid),
        program: Some("pkill".to_owned()),
        user: Some("alice".to_owned()),
        ..Killer::of(KilledBy::Process)
    }
}

fn strike(story: &mut Story, pid: u32, signal: u8, killer: Killer) {
    let (at, process, killer) = (story.now, id(pid), Box::new(killer));
    story.hand_in(Input::Process { event: ProcessEvent::Signal { at, process, signal, killer } });
}

/// What the end of server 30 is told with: the event and how it ended.
fn ended(story: &Story) -> (&'static str, Ending) {
    let all = story.notices.iter().filter_map(|notice| match notice {
        Notice::ServerExited { ending, .. } => Some(("server_exited", ending.clone())),
        Notice::OrphanCleared { ending, .. } => Some(("orphan_cleared", ending.clone())),
        Notice::OrphanExited { ending, .. } => Some(("orphan_exited", ending.clone())),
        _ => None,
    });
    let all: Vec<_> = all.collect();
    assert_eq!(all.len(), 1, "{:?}", story.notices);
    let stored = story.facts_persisted.iter().find_map(|fact| match fact {
        Fact::Ended { end: Fate::Exited { ending }, .. } => Some(ending),
        _ => None,
    });
    assert_eq!(stored, Some(&all[0].1), "the store has what the event says");
    all[0].clone()
}

/// The server has a child that ended before it by an exit code: that is not how the server ended.
fn ends(mut story: Story, status: ExitStatus) -> (&'static str, Ending) {
    story.fork(30, 31);
    story.end_with(31, ExitStatus::Code(3));
    story.end_with(30, status);
    ended(&story)
}

#[test]
fn an_exit_has_its_code_and_no_killer() {
    assert_eq!(ends(living(), ExitStatus::Code(0)), ("server_exited", Ending::code(0)));
    assert_eq!(ends(observed(), ExitStatus::Code(1)), ("orphan_exited", Ending::code(1)));
}

#[test]
fn without_a_record_the_sender_is_unknown() {
    assert_eq!(ends(living(), KILLED), ("server_exited", Ending::signal(9, None)));
    let mut cleared = suspect();
    cleared.pass_secs(3);
    cleared.end_with(30, KILLED);
    assert_eq!(ended(&cleared), ("orphan_cleared", Ending::signal(9, None)));
    let told = cleared.event("orphan_cleared");
    assert_eq!((&told["reason"], &told["after_ms"]), (&"exited".into(), &3000.into()));
    assert_eq!(ends(observed(), KILLED), ("orphan_exited", Ending::signal(9, None)));
}

#[test]
fn who_killed_it_is_told_with_its_end() {
    for (story, event) in
        [(living(), "server_exited"), (suspect(), "orphan_cleared"), (observed(), "orphan_exited")]
    {
        let mut story = story;
        strike(&mut story, 30, 9, process(47));
        assert_eq!(ends(story, KILLED), (event, Ending::signal(9, Some(process(47)))));
    }
}

#[test]
fn a_signal_that_did_not_end_it_is_not_told() {
    // Blocked, and read with sigwait(3); then it exited.
    let mut story = living();
    strike(&mut story, 30, 15, process(47));
    assert_eq!(ends(story, ExitStatus::Code(0)), ("server_exited", Ending::code(0)));
    // Another one ended it.
    let mut story = living();
    strike(&mut story, 30, 15, process(47));
    assert_eq!(ends(story, KILLED), ("server_exited", Ending::signal(9, None)));
    // One after the other: the last one counts.
    let mut story = living();
    strike(&mut story, 30, 15, process(47));
    strike(&mut story, 30, 9, process(48));
    assert_eq!(ends(story, KILLED), ("server_exited", Ending::signal(9, Some(process(48)))));
}

#[test]
fn a_signal_to_another_process_of_it_is_not_told() {
    let mut story = living();
    story.fork(30, 31);
    strike(&mut story, 31, 9, process(47));
    story.end_with(31, KILLED);
    story.end_with(30, KILLED);
    assert_eq!(ended(&story), ("server_exited", Ending::signal(9, None)));
}

#[test]
fn a_later_process_with_its_number_has_not_its_killer() {
    let mut story = living();
    strike(&mut story, 30, 9, process(47));
    let mut other = id(30);
    other.start += 1;
    assert!(story.engine.world.node(other).is_none());
    assert!(story.engine.world.node(id(30)).is_some_and(|node| node.strike.is_some()));
    story.end_with(30, KILLED);
    story.fork(20, 30);
    assert!(story.engine.world.node(id(30)).is_some_and(|node| node.strike.is_none()));
}

#[test]
fn the_daemon_knows_its_own_signals() {
    let mut story = living();
    strike(&mut story, 30, 15, process(DAEMON));
    let by_us = Killer { by: KilledBy::Orphand, ..process(DAEMON) };
    let (_, ending) = ends(story, ExitStatus::Signal(15));
    assert_eq!(ending, Ending::signal(15, Some(by_us)));
    assert_eq!(ending.told(), "was killed by SIGTERM from orphand");
    // An ancestor of the daemon is somebody else.
    let mut story = living();
    strike(&mut story, 30, 15, process(98));
    assert_eq!(ends(story, ExitStatus::Signal(15)).1, Ending::signal(15, Some(process(98))));
}

#[test]
fn what_orphand_ends_is_reaped_as_before() {
    let mut story = suspect();
    story.pass_secs(10);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    strike(&mut story, 30, 15, process(DAEMON));
    story.told();
    story.end_with(30, ExitStatus::Signal(15));
    assert_eq!(story.told(), ["orphan_reaped TERM"]);
}

#[test]
fn an_agent_has_its_killer_too() {
    for (killer, told) in [
        (Some(process(47)), Some(process(47))),
        (Some(Killer::of(KilledBy::OutOfMemory)), Some(Killer::of(KilledBy::OutOfMemory))),
        (None, None),
    ] {
        let mut story = living();
        if let Some(killer) = killer {
            strike(&mut story, 20, 9, killer);
        }
        story.end_with(20, KILLED);
        let ending = story.notices.iter().find_map(|notice| match notice {
            Notice::AgentExited { ending, .. } => Some(ending.clone()),
            _ => None,
        });
        assert_eq!(ending, Some(Ending::signal(9, told)));
    }
}
