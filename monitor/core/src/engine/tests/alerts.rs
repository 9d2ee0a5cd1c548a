//! Tests of alerts: thresholds that are crossed, and values that come back.

use std::time::Duration;

use super::story::{CLAUDE, SERVER, Story, TERMINAL, WIRE, seen};
use super::story_scene::WireState;
use crate::model::{AlertRule, Input, Losses, Mode, Notice, Policy, Watched};

fn rule(on: Watched, above: u64) -> AlertRule {
    AlertRule {
        name: "watch".to_owned(),
        on,
        above,
        agent: None,
        within: if on.has_period() { Duration::from_secs(60) } else { Duration::ZERO },
        hold: Duration::ZERO,
        cooldown: Duration::ZERO,
    }
}

/// A daemon that only observes, and agents 20, 21, .. with one server each: 120, 121, ..
fn leaky(agents: u32, alerts: Vec<AlertRule>) -> Story {
    let mut story = Story::new(Policy { mode: Mode::Observe, alerts, ..Policy::default() });
    for agent in 20..20 + agents {
        story.exec(agent, 10, CLAUDE, TERMINAL);
        story.fork(agent, 100 + agent);
        story.exec(100 + agent, agent, SERVER, WIRE);
    }
    story
}

/// Alerts reported since the last call: `true` where one begins, and the value.
fn alerts(story: &mut Story) -> Vec<(bool, u64)> {
    let told = story.notices.drain(..).filter_map(|notice| match notice {
        Notice::Alert { value, .. } => Some((true, value)),
        Notice::AlertResolved { value, .. } => Some((false, value)),
        _ => None,
    });
    told.collect()
}

#[test]
fn an_orphan_that_runs_away_is_told_within_seconds() {
    // The twin uses as little as before.
    for (runs_away, told) in [(true, vec![(true, 100)]), (false, vec![])] {
        let mut story = leaky(1, vec![rule(Watched::Cpu, 50)]);
        story.end(20);
        story.pass_secs(10);
        for _ in 0..2 {
            story.cpu_ms += if runs_away { 5000 } else { 50 };
            story.pass_secs(5);
        }
        assert_eq!(alerts(&mut story), told);
        // A minute without work.
        story.pass_secs(120);
        let over: Vec<bool> = alerts(&mut story).into_iter().map(|(begins, _)| begins).collect();
        assert_eq!(over, if runs_away { vec![false] } else { vec![] });
    }
    // Nobody asks for it: nothing is measured.
    let mut story = leaky(1, vec![rule(Watched::Orphans, 50)]);
    story.end(20);
    story.pass_secs(11);
    story.cpu_ms = 60_000;
    story.pass_secs(60);
    assert_eq!(alerts(&mut story), []);
}

/// What somebody may still use is no orphan to any of them, until nobody holds it.
#[test]
fn what_is_unproven_counts_for_none() {
    let rules = vec![rule(Watched::Orphans, 0), rule(Watched::Rss, 0), rule(Watched::Rate, 0)];
    let mut story = leaky(1, rules);
    story.rss_bytes = 4_000_000;
    story.facts.stdin = WireState::unseen();
    story.end(20);
    story.pass_secs(600);
    assert!(!story.event("orphan_unproven").is_null());
    assert_eq!(alerts(&mut story), []);
    story.hang_up();
    story.pass_secs(700);
    assert_eq!(alerts(&mut story), [(true, 1), (true, 4_000_000), (true, 1), (false, 0)]);
}

#[test]
fn crossed_is_told_once_and_so_is_the_end() {
    let mut story = leaky(4, vec![rule(Watched::Orphans, 2)]);
    for agent in [20, 21] {
        story.end(agent);
        story.pass_secs(10);
    }
    assert_eq!(alerts(&mut story), [], "two are allowed");
    for agent in [22, 23] {
        story.end(agent);
        story.pass_secs(10);
    }
    assert_eq!(alerts(&mut story), [(true, 3)], "the fourth is no news");
    story.end(120);
    assert_eq!(alerts(&mut story), []);
    story.pass_secs(5);
    story.end(121);
    let resolved = story.notices.iter().find_map(|notice| match notice {
        Notice::AlertResolved { rule, value, limit, after_ms, .. } => {
            Some((rule.as_str(), *value, *limit, *after_ms))
        }
        _ => None,
    });
    assert_eq!(resolved, Some(("watch", 2, 2, 15_000)));
    assert_eq!(alerts(&mut story).len(), 1);
}

#[test]
fn what_ends_soon_is_not_told_if_the_rule_is_patient() {
    let patient = AlertRule { hold: Duration::from_secs(60), ..rule(Watched::Orphans, 0) };
    let mut story = leaky(2, vec![patient]);
    story.end(20);
    story.pass_secs(69);
    story.end(120);
    story.pass_secs(100);
    assert_eq!(alerts(&mut story), []);
    story.end(21);
    story.pass_secs(69);
    assert_eq!(alerts(&mut story), [], "10 s of grace, 59 s an orphan");
    story.pass_secs(1);
    assert_eq!(alerts(&mut story), [(true, 1)], "nothing happened but time");
}

#[test]
fn between_two_alerts_there_is_a_cooldown() {
    let calm = AlertRule { cooldown: Duration::from_secs(300), ..rule(Watched::Orphans, 0) };
    let mut story = leaky(3, vec![calm]);
    story.end(20);
    story.pass_secs(10);
    story.end(120);
    assert_eq!(alerts(&mut story), [(true, 1), (false, 0)]);
    // An alert that comes and goes within the cooldown is never reported, and its end is not reported either.
    story.end(21);
    story.pass_secs(20);
    story.end(121);
    assert_eq!(alerts(&mut story), []);
    // An alert that lasts longer than the cooldown is reported once the cooldown is over.
    story.end(22);
    story.pass_secs(269);
    assert_eq!(alerts(&mut story), []);
    story.pass_secs(20);
    assert_eq!(alerts(&mut story), [(true, 1)]);
}

#[test]
fn a_rate_counts_what_is_new_and_fades() {
    let mut story = leaky(3, vec![rule(Watched::Rate, 1)]);
    for agent in [20, 21, 22] {
        story.end(agent);
        story.pass_secs(25);
    }
    // Each orphan is detected 10 s after the exit of its owner: the third 25 s after the second.
    assert_eq!(alerts(&mut story), [(true, 2)]);
    story.pass_secs(19);
    assert_eq!(alerts(&mut story), []);
    story.pass_secs(2);
    assert_eq!(alerts(&mut story), [(false, 1)], "the orphans are still there, but not new");
    story.pass_secs(1000);
    assert_eq!(alerts(&mut story), []);
    assert_eq!(story.engine.poll_timeout().map(|due| due > story.now), Some(true));
}

#[test]
fn memory_is_that_of_the_last_look() {
    let mut story = leaky(1, vec![rule(Watched::Rss, 1000)]);
    story.rss_bytes = 900;
    story.end(20);
    story.pass_secs(10);
    assert_eq!(alerts(&mut story), []);
    story.rss_bytes = 1900;
    story.pass_secs(600);
    assert_eq!(alerts(&mut story), [(true, 1900)]);
    story.rss_bytes = 1000;
    story.pass_secs(600);
    assert_eq!(alerts(&mut story), [(false, 1000)]);
}

#[test]
fn what_cannot_be_ended_is_counted() {
    let settings = Policy { alerts: vec![rule(Watched::ReapFailures, 0)], ..Policy::default() };
    let mut story = Story::agent_with_server(settings);
    story.errno = Some(1);
    story.end(20);
    story.pass_secs(30);
    assert_eq!(alerts(&mut story), [(true, 1)]);
    story.pass_secs(60);
    assert_eq!(alerts(&mut story), [(false, 0)]);
}

#[test]
fn losses_are_blindness_until_proc_was_read() {
    let mut story = leaky(1, vec![rule(Watched::Blind, 0)]);
    story.told();
    story.hand_in(Input::Lost { losses: Losses { fork: 3, ..Losses::default() } });
    assert_eq!(story.told(), ["lost", "alert"]);
    story.snapshot(vec![seen(20, 1, CLAUDE, TERMINAL), seen(120, 20, SERVER, WIRE)]);
    assert_eq!(story.told(), ["resynced", "alert_resolved"]);
}

#[test]
fn a_rule_may_be_about_one_agent() {
    let about = |name: &str| AlertRule { agent: Some(name.to_owned()), ..rule(Watched::Orphans, 0) };
    for (name, told) in [("claude", 1), ("codex", 0)] {
        let mut story = leaky(1, vec![about(name)]);
        story.end(20);
        story.pass_secs(10);
        assert_eq!(alerts(&mut story).len(), told, "{name}");
    }
}

#[test]
fn a_rule_that_stays_goes_on_as_it_stands() {
    let mut story = leaky(2, vec![rule(Watched::Orphans, 0)]);
    story.end(20);
    story.pass_secs(10);
    assert_eq!(alerts(&mut story), [(true, 1)]);
    let policy =
        |alerts| Policy { mode: Mode::Observe, grace: Duration::from_secs(10), alerts, ..Policy::default() };
    let other = AlertRule { name: "other".to_owned(), ..rule(Watched::Orphans, 0) };
    story.hand_in(Input::Configured { policy: policy(vec![other, rule(Watched::Orphans, 0)]) });
    assert_eq!(alerts(&mut story), [(true, 1)], "the new one alone");
    story.hand_in(Input::Configured { policy: policy(Vec::new()) });
    assert_eq!(alerts(&mut story), [(false, 1), (false, 1)], "nobody else would tell their end");
    story.end(21);
    story.pass_secs(100);
    assert_eq!(alerts(&mut story), []);
}
