//! Tests of what one daemon stores for the next daemon of the same boot.

use super::{
    proof::{HOST, PLAIN},
    story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id, seen},
    units::{NOTHING, facts},
};
use crate::model::{
    Evidence, ExitStatus, Fact, Fate, Input, Knowledge, Notice, Policy, RememberedOrphan, RememberedRun,
    RememberedServer, Signal, SnapshotProcess,
};

/// The knowledge that the store builds from a daemon's facts.
pub(super) fn knowledge(facts: &[Fact]) -> Knowledge {
    let mut known = Knowledge { restarted: true, ..Knowledge::default() };
    for fact in facts {
        match fact {
            Fact::Run { run } => {
                known.runs.retain(|r| r.run.generation != run.generation);
                known.runs.push(RememberedRun { run: run.clone(), this_boot: true });
            }
            Fact::Server { server } => {
                known.servers.retain(|s| s.server.id != server.id);
                known.servers.push(RememberedServer { server: server.clone(), orphan: None });
            }
            Fact::Reaping { server, asked_by } => {
                let asked_by = asked_by.clone();
                let announced = true;
                let orphan =
                    RememberedOrphan { announced, reaping: true, asked_by, rss_bytes: 7, pss_bytes: Some(5) };
                let of = known.servers.iter_mut().find(|s| s.server.id == *server).unwrap();
                of.orphan = Some(orphan);
            }
            Fact::Orphan { server, .. } => {
                let of = known.servers.iter_mut().find(|s| s.server.id == *server).unwrap();
                of.orphan = Some(RememberedOrphan { announced: true, ..RememberedOrphan::default() });
            }
            Fact::Ended { server, .. } => known.servers.retain(|s| s.server.id != *server),
            _ => {}
        }
    }
    known
}

fn ready() -> Input {
    Input::Ready { kernel: String::new(), hooks: Vec::new() }
}

/// The first daemon of a boot, which finds these processes in /proc.
fn first_of_all(found: Vec<SnapshotProcess>) -> Story {
    let mut first = Story::new(Policy::default());
    first.hand_in(Input::Remembered { knowledge: Knowledge::default() });
    first.snapshot(found);
    first.hand_in(ready());
    first
}

/// The next daemon, which finds these processes in /proc.
fn next(first: &Story, found: Vec<SnapshotProcess>) -> Story {
    let mut next = Story::new(Policy::default());
    next.hand_in(Input::Remembered { knowledge: knowledge(&first.facts_persisted) });
    next.snapshot(found);
    next.hand_in(ready());
    next
}

fn ends(story: &Story) -> Vec<(u32, Fate)> {
    let ended = story.facts_persisted.iter().filter_map(|fact| match fact {
        Fact::Ended { server, end } => Some((server.pid, end.clone())),
        _ => None,
    });
    ended.collect()
}

#[test]
fn an_owner_that_ended_while_nobody_watched_was_the_owner() {
    let first = Story::agent_with_server(Policy::default());
    let mut next = next(&first, vec![seen(30, 1, SERVER, WIRE)]);
    assert_eq!(next.told(), ["server_started", "orphan_suspected", "ready"]);
    // The wire is held by a sibling that the earlier daemon followed, too.
    next.pass_secs(10);
    let Some(Notice::OrphanDetected { recovered, owner, evidence, server, .. }) = next.notices.first() else {
        panic!("{:?}", next.notices)
    };
    assert!(recovered);
    assert_eq!(owner.as_ref().map(|o| (o.name.as_str(), o.pid, o.generation)), Some(("claude", 20, Some(1))));
    assert!(evidence.contains(&Evidence::OwnerExited));
    assert_eq!(server.run.as_ref().and_then(|r| r.generation), Some(1));
    assert_eq!(next.sent(), [(30, Signal::Term)]);
}

#[test]
fn a_run_has_one_name_though_its_agent_ended_before_a_restart() {
    for (unit, expected) in [(Some(facts("a", "a")), "gateway.service #1"), (None, "claude #1")] {
        let mut first = Story::new(Policy::default());
        first.units.extend(unit.map(|unit| (20, unit)));
        first.exec(20, 10, CLAUDE, NOTHING);
        first.exec(30, 20, SERVER, WIRE);
        let next = next(&first, vec![seen(30, 1, SERVER, WIRE)]);
        let Some(Notice::ServerStarted { owner: Some(owner), server, .. }) = next.notices.first() else {
            panic!("{:?}", next.notices)
        };
        let run = server.run.as_ref().unwrap();
        assert_eq!((owner.title().as_str(), run.title().as_str()), (expected, expected));
        assert_eq!(owner.invocation_id, run.invocation_id);
    }
}

#[test]
fn an_owner_that_lives_is_the_owner_still() {
    let first = Story::agent_with_server(Policy::default());
    let mut next = next(&first, vec![seen(20, 10, CLAUDE, TERMINAL), seen(30, 1, SERVER, WIRE)]);
    next.pass_secs(100);
    assert_eq!(next.told(), ["agent_started", "server_started", "ready"]);
    assert_eq!(next.sent(), []);
    next.end(20);
    next.pass_secs(10);
    assert_eq!(next.told(), ["agent_exited", "orphan_suspected", "orphan_detected"]);
}

#[test]
fn a_server_without_an_owner_has_none_after_a_restart() {
    let mut first = Story::new(Policy::default());
    first.exec(20, 10, CLAUDE, TERMINAL);
    first.start(20, 25, &["bash", "-c", "x | y > z"], PLAIN);
    first.start(25, 30, SERVER, WIRE);
    first.end(25);
    first.end(20);
    let left = || vec![seen(10, 1, &["/sbin/init"], PLAIN), seen(30, 1, SERVER, WIRE)];
    // Nor is it judged where the earlier daemon had not stored it: it may have had a reason.
    let unknown = Story::new(Policy::default());
    for earlier in [first, unknown] {
        let mut next = next(&earlier, left());
        next.pass_secs(1000);
        assert_eq!(next.sent(), []);
        let mut third = self::next(&next, left());
        third.pass_secs(1000);
        assert_eq!(third.sent(), []);
    }
    let mut twin = first_of_all(left());
    assert_eq!(twin.sent(), []);
    twin.pass_secs(100);
    assert!(twin.sent().contains(&(30, Signal::Term)), "nobody ever knew whose it was");
}

#[test]
fn what_the_first_daemon_found_adopted_was_so_for_the_next() {
    let found = |parent| vec![seen(10, 1, &["bash"], TERMINAL), seen(30, parent, SERVER, WIRE)];
    for (parent, adopted) in [(1, true), (10, false)] {
        let first = first_of_all(found(parent));
        let mut next = next(&first, found(1));
        next.pass_secs(100);
        assert_eq!(next.sent().contains(&(30, Signal::Term)), adopted, "{:?}", next.told());
    }
}

#[test]
fn a_host_that_no_rule_knows_is_the_owner_still() {
    let mut first = Story::new(Policy::default());
    let host = || seen(20, 10, HOST, PLAIN);
    first.creator = Some(host());
    first.exec(20, 10, HOST, PLAIN);
    first.start(20, 30, SERVER, WIRE);
    assert_eq!(first.told(), ["agent_started", "server_started"]);
    // It was started by a double fork, and its owner has let go of its wires.
    let mut next = Story::new(Policy::default());
    next.creator = Some(host());
    next.hand_in(Input::Remembered { knowledge: knowledge(&first.facts_persisted) });
    next.snapshot(vec![host(), seen(30, 1, SERVER, WIRE)]);
    next.hand_in(ready());
    assert_eq!(next.told(), ["agent_started", "server_started", "ready"]);
    next.pass_secs(1000);
    assert_eq!(next.sent(), []);
    next.end(20);
    next.pass_secs(100);
    assert!(next.sent().contains(&(30, Signal::Term)));
}

#[test]
fn the_copy_that_took_over_is_stored_as_the_owner() {
    let mut first = Story::agent_with_server(Policy::default());
    first.fork(20, 21);
    first.setsid(21);
    first.end_with(20, ExitStatus::Code(0));
    let known = knowledge(&first.facts_persisted);
    let owner = known.servers.iter().find_map(|known| known.server.owner.as_ref());
    assert_eq!(owner.map(|owner| owner.main), Some(id(21)), "{:?}", first.told());
}

#[test]
fn a_number_that_belongs_to_another_process_now_is_not_the_server() {
    let first = Story::agent_with_server(Policy::default());
    let mut other = seen(30, 10, SERVER, WIRE);
    other.id.start += 1;
    let mut next = next(&first, vec![seen(10, 1, &["bash"], TERMINAL), other]);
    next.pass_secs(100);
    assert_eq!(next.sent(), [], "nobody knows whose it is");
    assert_eq!(ends(&next), [(30, Fate::Unseen)]);
}

#[test]
fn what_was_signalled_and_is_gone_was_reaped() {
    let mut first = Story::agent_with_server(Policy::default());
    first.end(20);
    first.pass_secs(10);
    assert_eq!(first.sent(), [(30, Signal::Term)]);
    let mut next = next(&first, Vec::new());
    assert_eq!(next.told(), ["orphan_reaped", "ready"]);
    let reaped = Fate::Reaped { signal: None, took_ms: None, freed_bytes: 7, freed_pss_bytes: Some(5) };
    assert_eq!(ends(&next), [(30, reaped)]);
    // The number of the run that ended meanwhile is not given again.
    next.exec(50, 10, CLAUDE, TERMINAL);
    let Some(Notice::AgentStarted { agent, .. }) = next.notices.first() else { panic!() };
    assert_eq!(agent.generation, Some(2));
}

#[test]
fn what_was_signalled_and_lives_is_ended_by_the_next() {
    let mut first = Story::agent_with_server(Policy::default());
    first.end(20);
    first.pass_secs(10);
    let mut next = next(&first, vec![seen(30, 1, SERVER, WIRE)]);
    next.polite.insert(30);
    next.pass_secs(20);
    let told = ["server_started", "orphan_suspected", "ready", "orphan_detected", "orphan_reaped TERM"];
    assert_eq!(next.told(), told);
    assert_eq!(ends(&next).len(), 1);
    assert_eq!(ends(&next)[0].0, 30);
}

#[test]
fn a_fact_comes_before_what_follows_from_it() {
    use crate::model::Effect;
    let mut story = Story::agent_with_server(Policy::default());
    story.pass_secs(1);
    story.engine.handle(
        story.now,
        Input::Process {
            event: crate::model::ProcessEvent::Exit {
                at: story.now,
                process: id(20),
                status: crate::model::ExitStatus::Code(0),
            },
        },
    );
    let mut order = Vec::new();
    while let Some(effect) = story.engine.poll_effect() {
        match effect {
            Effect::Persist { fact, .. } => order.push(serde_json::to_value(&*fact).unwrap()["fact"].clone()),
            Effect::Emit { notice, .. } => {
                order.push(serde_json::to_value(&*notice).unwrap()["event"].clone());
            }
            Effect::Ask { token, .. } => {
                let answer = crate::model::Answer::Memory { processes: Vec::new() };
                story.engine.handle(story.now, Input::Answered { token, answer });
            }
            _ => {}
        }
    }
    assert_eq!(order, ["run", "server", "agent_exited", "orphan_suspected"]);
}
