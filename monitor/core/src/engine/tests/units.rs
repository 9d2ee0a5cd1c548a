//! Tests of runs, and of what units tell about them.

use super::story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, id, seen};
use super::story_scene::WireState;
use crate::model::scene::ProcessRow;
use crate::model::{
    Asked, Evidence, Fact, Knowledge, Notice, Policy, RememberedRun, Signal, SnapshotProcess, Stdio, Unit,
    UnitFacts, UnitState,
};

const GATEWAY: &[&str] = &["/opt/gateway/bin/gatewayd"];
pub const NOTHING: [Stdio; 3] = [Stdio::Null, Stdio::File, Stdio::File];

const OTHER_WIRE: [Stdio; 3] = [Stdio::Pipe(3), Stdio::Pipe(4), Stdio::Null];

pub fn facts(invocation: &str, now: &str) -> UnitFacts {
    UnitFacts {
        unit: Unit { manager: String::new(), name: "gateway.service".to_owned() },
        invocation_id: Some(invocation.to_owned()),
        state: UnitState::Active(now.to_owned()),
    }
}

fn rules(rules: &str) -> Policy {
    Policy { rules: rules.to_owned(), ..Policy::default() }
}

/// The run numbers of the agents, in the order of the reports.
pub fn generations(story: &Story) -> Vec<Option<u64>> {
    let started = story.notices.iter().filter_map(|n| match n {
        Notice::AgentStarted { agent, .. } => Some(agent.generation),
        _ => None,
    });
    started.collect()
}

fn in_unit(pid: u32, parent: u32, argv: &[&str], stdio: [Stdio; 3], unit: UnitFacts) -> SnapshotProcess {
    SnapshotProcess { unit: Some(unit), ..seen(pid, parent, argv, stdio) }
}

#[test]
fn a_units_runs_are_its_invocations() {
    let mut story = Story::new(Policy::default());
    for (pid, invocation) in [(20, "a"), (21, "a"), (22, "b"), (23, "c")] {
        story.units.insert(pid, facts(invocation, invocation));
        story.exec(pid, 10, CLAUDE, NOTHING);
    }
    // An agent of another user, outside of units.
    story.exec(24, 10, CLAUDE, TERMINAL);
    assert_eq!(generations(&story), [Some(1), Some(1), Some(2), Some(3), Some(1)]);
}

/// A person knows a living agent by its unit, too, and by the name of its run as lists have it.
#[test]
fn an_agent_is_found_by_its_unit_and_its_run() {
    let mut story = Story::new(Policy::default());
    story.units.insert(20, facts("a", "a"));
    story.exec(20, 10, CLAUDE, NOTHING);
    story.exec(24, 10, CLAUDE, TERMINAL);
    let found = |name: &str| {
        let all = story.engine.explain(&Asked::Name(name.to_owned()));
        all.iter().map(|one| one.process.pid).collect::<Vec<_>>()
    };
    let unit = facts("a", "a").unit.name;
    assert_eq!(found("claude"), [20, 24]);
    assert_eq!(found(&unit), [20]);
    assert_eq!(found(&format!("{unit} #1")), [20]);
    assert_eq!(found("claude #1"), [24]);
    assert_eq!(found("claude #2"), [0; 0]);
}

#[test]
fn units_of_the_same_name_under_two_managers_are_two() {
    let mut story = Story::new(Policy::default());
    for (pid, manager) in [(20, ""), (21, "/user.slice/user-1000.slice/user@1000.service"), (22, "")] {
        let mut unit = facts(&format!("of {pid}"), &format!("of {pid}"));
        unit.unit.manager = manager.to_owned();
        story.units.insert(pid, unit);
        story.exec(pid, 10, CLAUDE, NOTHING);
    }
    assert_eq!(generations(&story), [Some(1), Some(1), Some(2)]);
}

#[test]
fn numbers_go_on_where_an_earlier_daemon_stopped() {
    let mut story = Story::new(Policy::default());
    story.units.insert(20, facts("a", "a"));
    story.exec(20, 10, CLAUDE, NOTHING);
    story.exec(21, 10, CLAUDE, TERMINAL);
    let runs = story.facts_persisted.iter().filter_map(|fact| match fact {
        Fact::Run { run } => Some(RememberedRun { run: run.clone(), this_boot: true }),
        _ => None,
    });
    let knowledge = Knowledge { runs: runs.collect(), ..Knowledge::default() };
    let mut next = Story::new(Policy::default());
    next.hand_in(crate::model::Input::Remembered { knowledge });
    next.snapshot(vec![
        in_unit(20, 1, CLAUDE, NOTHING, facts("a", "a")),
        seen(21, 10, CLAUDE, TERMINAL),
        seen(22, 10, CLAUDE, TERMINAL),
    ]);
    next.units.insert(30, facts("b", "b"));
    next.exec(30, 10, CLAUDE, NOTHING);
    assert_eq!(generations(&next), [Some(1), Some(1), Some(2), Some(2)]);
}

#[test]
fn what_an_invocation_left_behind_is_an_orphan_though_nobody_saw_its_owner() {
    for (then, now, state, expected) in [
        ("a", "b", None, Some(Evidence::StaleInvocation)),
        ("a", "", Some(UnitState::Stopped), Some(Evidence::UnitStopped)),
        // The unit goes on: the owner of the server cannot be determined.
        ("a", "a", None, None),
        ("a", "", Some(UnitState::Unknown), None),
    ] {
        let mut unit = facts(then, now);
        unit.state = state.unwrap_or(unit.state);
        let mut story = Story::new(Policy::default());
        story.facts.unit = Some(unit.clone());
        // A sibling, which was left behind as well, holds the wire.
        let unit = Some(unit.clone());
        let sibling = ProcessRow { process: id(40), unit, ..ProcessRow::default() };
        story.facts.stdin = WireState::Held { holders: vec![sibling], unseen: false };
        story.snapshot(vec![seen(30, 1, SERVER, WIRE), seen(40, 1, SERVER, OTHER_WIRE)]);
        story.pass_secs(10);
        let found = story.notices.iter().find_map(|n| match n {
            Notice::OrphanDetected { evidence, server, .. }
            | Notice::OrphanUnproven { evidence, server, .. } => Some((evidence.clone(), server.run.clone())),
            _ => None,
        });
        let (evidence, run) = found.unwrap();
        assert_eq!(evidence.iter().find(|e| **e != Evidence::NoOwner).copied(), expected);
        let run = run.unwrap();
        assert_eq!((run.unit.as_deref(), run.generation), (Some("gateway.service"), None));
        let term = [(30, Signal::Term), (40, Signal::Term)];
        assert_eq!(story.sent(), if expected.is_some() { &term[..] } else { &[] });
    }
}

#[test]
fn whoever_is_of_the_present_may_have_been_handed_what_is_left() {
    for (holder, is_server, dies) in [
        (Some(facts("a", "b")), true, true),
        // For example a worker of the dead gateway. Whether it still uses the server cannot be determined.
        (Some(facts("a", "b")), false, false),
        // A descriptor store, or a custom upgrade: the successor holds the wire of its predecessor's server.
        (Some(facts("b", "b")), true, false),
        (None, true, false),
    ] {
        let mut story = Story::new(Policy::default());
        story.facts.unit = Some(facts("a", "b"));
        let holder = ProcessRow { process: id(40), unit: holder, ..ProcessRow::default() };
        story.facts.stdin = WireState::Held { holders: vec![holder], unseen: false };
        let argv = if is_server { SERVER } else { GATEWAY };
        story.snapshot(vec![seen(30, 1, SERVER, WIRE), seen(40, 1, argv, OTHER_WIRE)]);
        story.pass_secs(10);
        assert_eq!(story.sent().contains(&(30, Signal::Term)), dies);
    }
}

#[test]
fn who_listens_may_serve_somebody_tomorrow() {
    let mut story = Story::new(Policy::default());
    story.sockets.listens = true;
    story.snapshot(vec![seen(1, 0, &["/sbin/init"], NOTHING), seen(30, 1, SERVER, WIRE)]);
    story.pass_secs(60);
    assert_eq!(story.sent(), []);
}

/// A server whose parent is init or a service manager when it becomes what it is.
fn adopted_at_once(
    host: Option<UnitFacts>,
    own: Option<UnitFacts>,
    argv: &[&str],
    stdio: [Stdio; 3],
) -> Story {
    let mut story = Story::new(Policy::default());
    story.facts.unit = own;
    let image = super::story::image(argv);
    let host = ProcessRow { process: id(20), unit: host, image, ..ProcessRow::default() };
    story.facts.stdin = WireState::Held { holders: vec![host], unseen: false };
    story.creator = Some(seen(1, 0, &["/sbin/init"], NOTHING));
    story.exec(30, 1, SERVER, stdio);
    story
}

#[test]
fn the_wire_tells_who_started_what_was_adopted_at_once() {
    let gateway = || Some(facts("a", "a"));
    let story = adopted_at_once(gateway(), gateway(), GATEWAY, WIRE);
    assert_eq!(generations(&story), [Some(1)], "an implied agent of the same unit");
    let story = adopted_at_once(None, None, CLAUDE, WIRE);
    assert_eq!(generations(&story), [Some(1)]);
    // A program that feeds a pipeline, the client of a socket's service, and a process that writes into a file are
    // no agents.
    for (host, own, argv, stdio) in [
        (None, None, &["cat", "x"][..], WIRE),
        (None, gateway(), GATEWAY, WIRE),
        (gateway(), gateway(), GATEWAY, [Stdio::Pipe(1), Stdio::File, Stdio::File]),
    ] {
        let mut story = adopted_at_once(host, own, argv, stdio);
        story.end(20);
        story.pass_secs(100);
        let is_server = stdio[1].is_wire();
        assert_eq!(story.told(), if is_server { &["server_started"][..] } else { &[] });
        assert_eq!(story.sent(), []);
    }
}

#[test]
fn hung_up_and_nobodys_child_is_proof_only_for_what_talks_through_its_wire() {
    for (parent, stdio, dies) in [
        (1, WIRE, true),
        // A person's pipeline: its parent, a shell, is alive.
        (10, WIRE, false),
        // It writes into a file, so it is a service.
        (1, [Stdio::Pipe(1), Stdio::File, Stdio::File], false),
    ] {
        let mut story = Story::new(Policy::default());
        story.snapshot(vec![
            seen(1, 0, &["/sbin/init"], NOTHING),
            seen(10, 1, &["bash"], TERMINAL),
            seen(30, parent, SERVER, stdio),
        ]);
        story.pass_secs(10);
        let term = [(30, Signal::Term)];
        assert_eq!(story.sent(), if dies { &term[..] } else { &[] }, "{parent} {stdio:?}");
    }
}

#[test]
fn a_server_that_the_manager_may_have_started_itself_stays() {
    let mut story = Story::new(Policy::default());
    story.facts.unit = Some(facts("a", "a"));
    story.snapshot(vec![seen(1, 0, &["/sbin/init"], NOTHING), seen(30, 1, SERVER, WIRE)]);
    story.pass_secs(60);
    let told = story.told();
    assert_eq!(told, ["server_started", "orphan_detected own_unit", "orphan_spared own_unit"]);
    assert_eq!(story.sent(), []);
}

#[test]
fn a_rule_names_a_unit_instead_of_a_program() {
    let settings = || rules("[[agent]]\nname = \"gateway\"\nunit = \"gateway.service\"");
    // It starts while the daemon runs. Its parent is a manager.
    let mut story = Story::new(settings());
    story.snapshot(vec![seen(1, 0, &["/usr/lib/systemd/systemd"], NOTHING)]);
    story.units.insert(20, facts("a", "a"));
    story.exec(20, 1, GATEWAY, NOTHING);
    assert_eq!(generations(&story), [Some(1)]);
    // It existed before the daemon, with a younger process that the manager adopted.
    let mut story = Story::new(settings());
    story.snapshot(vec![
        seen(1, 0, &["/usr/lib/systemd/systemd"], NOTHING),
        in_unit(21, 1, &["/opt/gateway/bin/helper"], NOTHING, facts("a", "a")),
        in_unit(20, 1, GATEWAY, NOTHING, facts("a", "a")),
    ]);
    assert_eq!(generations(&story), [Some(1)]);
    let Some(Notice::AgentStarted { agent, .. }) = story.notices.first() else { panic!() };
    assert_eq!((agent.name.as_str(), agent.pid, agent.implied), ("gateway", 20, false));
    assert_eq!(agent.unit.as_deref(), Some("gateway.service"));
    // It has exited before it could be asked for its unit: nobody asks again.
    let mut story = Story::new(settings());
    story.snapshot(vec![seen(1, 0, &["/usr/lib/systemd/systemd"], NOTHING)]);
    story.gone.insert(20);
    story.exec(20, 1, GATEWAY, NOTHING);
    assert_eq!(generations(&story), []);
    // Without the rule it is no agent.
    let mut story = Story::new(Policy::default());
    story.units.insert(20, facts("a", "a"));
    story.exec(20, 1, GATEWAY, NOTHING);
    assert_eq!(generations(&story), []);
}

/// A gateway that a unit rule names, with claude below it, which has a server.
pub fn gateway_with_claude(config: &str) -> Story {
    let rule = format!("[[agent]]\nname = \"gateway\"\nunit = \"gateway.service\"\n{config}");
    let mut story = Story::new(rules(&rule));
    story.snapshot(vec![seen(1, 0, &["/usr/lib/systemd/systemd"], NOTHING)]);
    for pid in [20, 21] {
        story.units.insert(pid, facts("a", "a"));
    }
    story.exec(20, 1, GATEWAY, NOTHING);
    story.start(20, 21, CLAUDE, WIRE);
    story.start(21, 30, SERVER, [Stdio::Pipe(3), Stdio::Pipe(4), Stdio::Null]);
    assert_eq!(generations(&story), [Some(1), Some(1)], "the nested one is of its gateway's run");
    story.told();
    story
}

#[test]
fn an_agent_left_behind_by_its_unit_is_told_and_stays() {
    let mut story = gateway_with_claude("");
    story.facts.unit = Some(facts("a", "b"));
    story.end(20);
    story.pass_secs(200);
    let told = ["agent_exited", "orphan_detected live_agent", "orphan_spared live_agent"];
    assert_eq!(story.told(), told);
    assert_eq!(story.sent(), []);
    // Its servers are in use as long as it is alive, and orphans afterwards.
    story.end(21);
    story.pass_secs(10);
    assert_eq!(story.told(), ["orphan_exited", "agent_exited", "orphan_suspected", "orphan_detected"]);
}

#[test]
fn an_agent_left_behind_by_its_unit_is_ended_if_its_rule_says_so() {
    let reap = "[[agent]]\nname = \"claude\"\nprogram = \"claude\"\nreap = true";
    let mut story = gateway_with_claude(reap);
    story.facts.unit = Some(facts("a", "b"));
    story.end(20);
    story.pass_secs(18);
    assert_eq!(story.told(), ["agent_exited", "orphan_detected"]);
    assert_eq!(story.sent(), [(21, Signal::Term), (21, Signal::Kill)]);
    story.end(21);
    assert_eq!(story.told(), ["orphan_reaped KILL", "agent_exited", "orphan_suspected"]);
}

/// The guard is about the agent itself only where that is why it stays. The twin is ended.
#[test]
fn a_live_agent_below_one_that_may_be_ended_keeps_it() {
    for is_below in [true, false] {
        let reap = "[[agent]]\nname = \"claude\"\nprogram = \"claude\"\nreap = true";
        let mut story = gateway_with_claude(reap);
        story.facts.unit = Some(facts("a", "b"));
        if is_below {
            story.start(21, 22, &["codex"], NOTHING);
        }
        story.end(20);
        story.pass_secs(18);
        let told = story.told();
        assert_eq!(told.contains(&"orphan_spared live_agent_below".to_owned()), is_below, "{told:?}");
        assert_eq!(story.sent().is_empty(), is_below);
    }
}

#[test]
fn an_agent_whose_unit_goes_on_is_not_left_behind() {
    let reap = "[[agent]]\nname = \"claude\"\nprogram = \"claude\"\nreap = true";
    let mut story = gateway_with_claude(reap);
    // The gateway crashed and its unit waits to start it again, or it did not run in a unit.
    for unit in [Some(facts("a", "a")), None] {
        story.facts.unit = unit;
        story.end(20);
        story.pass_secs(500);
    }
    assert_eq!(story.told(), ["agent_exited"]);
    assert_eq!(story.sent(), []);
}

#[test]
fn an_agent_that_ended_before_it_was_asked_counts_where_its_servers_live() {
    let mut story = Story::new(Policy::default());
    // The daemon is behind: each agent has exited when its record is read, and its unit has been restarted since.
    for (agent, server, invocation) in [(20, 30, "a"), (21, 31, "b")] {
        story.gone.insert(agent);
        story.units.insert(server, facts(invocation, "c"));
        story.exec(agent, 10, CLAUDE, NOTHING);
        story.start(agent, server, SERVER, WIRE);
        story.end(agent);
    }
    story.units.insert(22, facts("c", "c"));
    story.exec(22, 10, CLAUDE, NOTHING);
    assert_eq!(generations(&story), [None, None, Some(3)]);
    let runs = story.notices.iter().filter_map(|n| match n {
        Notice::ServerStarted { server, .. } => server.run.clone(),
        _ => None,
    });
    let runs: Vec<_> = runs.map(|r| (r.unit, r.generation)).collect();
    assert_eq!(runs, [1, 2].map(|n| (Some("gateway.service".to_owned()), Some(n))));
    let ended = story.facts_persisted.iter().filter(|f| matches!(f, Fact::Run { run } if !run.alive));
    assert_eq!(ended.count(), 2);
}
