//! What runs in an exempt place is exempt with all that it starts, wherever that runs.

use super::{
    found::ready,
    restarts::next,
    story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, seen},
};
use crate::model::{Input, Policy, SnapshotProcess, Unit, UnitFacts, UnitState};

const HOST: &[&str] = &["/opt/desk/deskhost"];

fn service(name: &str) -> UnitFacts {
    UnitFacts {
        unit: Unit { manager: String::new(), name: name.to_owned() },
        invocation_id: None,
        state: UnitState::Active("x".to_owned()),
    }
}

fn policy(keys: &str) -> Policy {
    let rules = format!("[[exempt]]\nname = 'mine'\n{keys}");
    Policy { rules: if keys.is_empty() { String::new() } else { rules }, ..Policy::default() }
}

/// A host in `bot.service`, below `team.slice`. What it starts runs in scopes outside of both.
fn in_a_unit(host: &[&str], keys: &str) -> Story {
    let mut story = Story::new(policy(keys));
    story.units.insert(20, service("bot.service"));
    story.slices = vec!["team.slice".to_owned()];
    story.creator = Some(seen(20, 10, host, TERMINAL));
    story.exec(20, 10, host, TERMINAL);
    story
}

const CASES: &[(&str, bool)] = &[
    ("unit = 'bot.service'", true),
    ("unit = 'team.slice'", true),
    ("unit = 'bot.service'\nuser = '0'", true),
    ("unit = 'bot.service'\nuser = '7'", false),
    ("unit = 'other.service'", false),
    ("", false),
];

#[test]
fn what_an_exempt_unit_starts_is_exempt_in_a_scope_too() {
    for (keys, spared) in CASES {
        for host in [CLAUDE, HOST] {
            let mut story = in_a_unit(host, keys);
            story.start(20, 30, SERVER, WIRE);
            story.end(20);
            story.pass_secs(30);
            assert_eq!(story.sent().is_empty(), *spared, "{keys}");
            assert_eq!(story.told().contains(&"orphan_spared exempt_rule".to_owned()), *spared, "{keys}");
        }
    }
}

#[test]
fn what_an_agent_in_an_exempt_unit_starts_in_a_scope_is_no_other() {
    for (keys, spared) in CASES {
        let mut story = in_a_unit(CLAUDE, keys);
        (story.slices, story.place) = (Vec::new(), Some("/run-7.scope".to_owned()));
        story.start(20, 25, CLAUDE, TERMINAL);
        story.start(25, 30, SERVER, WIRE);
        story.end(25);
        story.pass_secs(30);
        assert_eq!(story.sent().is_empty(), *spared, "{keys}: {:?}", story.told());
    }
}

#[test]
fn the_rules_of_now_count() {
    for (before, now, spared) in [("", "unit = 'bot.service'", true), ("unit = 'bot.service'", "", false)] {
        let mut story = in_a_unit(CLAUDE, before);
        story.start(20, 30, SERVER, WIRE);
        story.end(20);
        story.hand_in(Input::Configured { policy: policy(now) });
        story.pass_secs(30);
        assert_eq!(story.sent().is_empty(), spared, "{now}");
    }
}

/// Whether the host ends before the restart or after it.
#[test]
fn the_next_daemon_knows_the_place() {
    for (keys, spared) in CASES {
        for lives in [false, true] {
            let mut story = in_a_unit(CLAUDE, "");
            story.start(20, 30, SERVER, WIRE);
            let parent = if lives { 20 } else { 1 };
            let host = lives
                .then(|| SnapshotProcess { place: Some(String::new()), ..seen(20, 10, CLAUDE, TERMINAL) });
            let found = host.into_iter().chain([seen(30, parent, SERVER, WIRE)]).collect();
            let mut next = next(&story, &policy(keys).rules, found);
            next.end(20);
            next.pass_secs(30);
            assert_eq!(next.sent().is_empty(), *spared, "{keys} {lives}: {:?}", next.told());
        }
    }
}

/// Where a host runs that no rule knows is not read with all of /proc.
#[test]
fn a_host_that_was_found_is_asked_where_it_runs() {
    for (keys, spared) in CASES {
        let mut story = Story::new(policy(keys));
        let agent = SnapshotProcess { place: Some(String::new()), ..seen(20, 10, CLAUDE, TERMINAL) };
        let host = seen(25, 20, HOST, TERMINAL);
        story.creator = Some(host.clone());
        story.snapshot(vec![agent, host]);
        story.hand_in(ready());
        story.units.insert(25, service("bot.service"));
        story.slices = vec!["team.slice".to_owned()];
        story.start(25, 30, SERVER, WIRE);
        assert_eq!(story.told(), ["agent_started", "ready", "agent_started", "server_started"]);
        story.end(25);
        story.pass_secs(30);
        assert_eq!(story.sent().is_empty(), *spared, "{keys}: {:?}", story.told());
    }
}
