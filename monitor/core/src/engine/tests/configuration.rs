//! Tests of a change of configuration while servers start and exit.

use std::time::Duration;

use super::{
    story::{SERVER, Story, TERMINAL, WIRE, id, seen},
    story_scene::WireState,
};
use crate::model::{Fact, Guard, Input, Mode, Policy, ReapRequest, Signal, Unit, UnitFacts, UnitState};

const SCRIPT: &str = "/srv/node_modules/.bin/mcp-server-filesystem";

fn policy(rules: &str) -> Policy {
    Policy {
        grace: Duration::from_secs(10),
        term_timeout: Duration::from_secs(5),
        rules: rules.to_owned(),
        ..Policy::default()
    }
}

fn configure(story: &mut Story, policy: Policy) {
    story.hand_in(Input::Configured { policy });
}

fn exempt(program: &str) -> String {
    format!("[[exempt]]\nname = 'mine'\n{program}")
}

#[test]
fn a_daemon_that_looks_begins_to_act_and_the_other_way_round() {
    let mut story = Story::agent_with_server(Policy { mode: Mode::Observe, ..Policy::default() });
    story.polite.insert(30);
    story.end(20);
    story.pass_secs(100);
    story.told();
    assert_eq!(story.sent(), []);
    configure(&mut story, policy(""));
    story.pass_secs(1);
    assert_eq!(story.told(), ["reconfigured", "orphan_reaped TERM"]);

    let mut story = Story::agent_with_server(Policy::default());
    story.end(20);
    story.pass_secs(10);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
    configure(&mut story, Policy { mode: Mode::Observe, ..policy("") });
    story.pass_secs(100);
    assert_eq!(story.sent(), [], "not even SIGKILL to what was asked to end already");
    assert_eq!(story.told().last().map(String::as_str), Some("orphan_spared observe"));
    let stored = Fact::Spared { server: id(30), guards: vec![Guard::Observe] };
    assert_eq!(story.facts_persisted.iter().filter(|fact| **fact == stored).count(), 1);
}

/// What runs in a unit, or as a user, is exempt whatever it is; its twin elsewhere is ended.
#[test]
fn a_place_may_be_exempt() {
    let service = |name: &str| UnitFacts {
        unit: Unit { manager: String::new(), name: name.to_owned() },
        invocation_id: None,
        state: UnitState::Active("x".to_owned()),
    };
    for (keys, spared) in [
        ("user = '7'", true),
        ("user = '8'", false),
        ("unit = 'bot*.service'", true),
        ("unit = 'other.service'", false),
        ("user = '7'\nunit = 'bot.service'", true),
        ("user = '8'\nunit = 'bot.service'", false),
    ] {
        let rules = format!("[[exempt]]\nname = 'mine'\n{keys}");
        let settings = Policy { rules, other_uids: true, ..Policy::default() };
        let mut story = Story::agent_with_server(settings);
        story.uid = 7;
        story.facts.unit = Some(service("bot.service"));
        story.end(20);
        story.pass_secs(10);
        assert_eq!(story.sent().is_empty(), spared, "{keys}");
        assert_eq!(story.told().contains(&"orphan_spared exempt_rule".to_owned()), spared, "{keys}");
    }
}

/// Between two inspections of a server that stays there may be ten minutes.
#[test]
fn what_a_rule_says_of_an_unproven_server_is_shown_at_once() {
    let guards = |story: &Story| -> Vec<Guard> {
        story.engine.report().servers().flat_map(|(_, server)| server.guards.clone()).collect()
    };
    let mut story = Story::agent_with_server(policy(""));
    story.facts.stdin = WireState::held_as(&[99], &["cat"]);
    story.end(20);
    story.pass_secs(1000);
    for (rules, shown) in [(exempt("user = '0'"), vec![Guard::ExemptRule]), (String::new(), vec![])] {
        configure(&mut story, policy(&rules));
        story.pass_secs(1);
        assert_eq!(guards(&story), shown, "{rules}");
    }
    assert_eq!(story.sent(), [], "the doubt is still there");
}

#[test]
fn observation_stops_rounds_of_sigkill() {
    let mut story = Story::agent_with_server(Policy::default());
    story.end(20);
    story.pass(Duration::from_millis(15_010));
    assert_eq!(story.sent(), [(30, Signal::Term), (30, Signal::Kill)]);
    configure(&mut story, Policy { mode: Mode::Observe, ..policy("") });
    story.fork(30, 31);
    story.pass_secs(100);
    assert_eq!(story.sent(), []);
    // Without the change, SIGKILL continues, also for what was forked meanwhile.
    let mut story = Story::agent_with_server(Policy::default());
    story.end(20);
    story.pass(Duration::from_millis(15_010));
    story.sent();
    configure(&mut story, policy(""));
    story.fork(30, 31);
    story.pass_secs(1);
    assert!(story.sent().contains(&(31, Signal::Kill)));
}

#[test]
fn what_is_exempt_from_now_on_is_spared_at_any_point() {
    let rules = exempt(&format!("program = '{SCRIPT}'"));
    for seconds in [0, 5, 10, 11] {
        let mut story = Story::agent_with_server(Policy::default());
        if seconds > 0 {
            story.end(20);
            story.pass_secs(seconds);
        }
        story.sent();
        configure(&mut story, policy(&rules));
        story.end(20);
        story.pass_secs(200);
        let kills = story.sent().into_iter().filter(|(_, signal)| *signal == Signal::Kill).count();
        assert_eq!(kills, 0, "{seconds}");
        assert_eq!(story.told().last().map(String::as_str), Some("orphan_spared exempt_rule"), "{seconds}");
        // The protection is removed: the server is judged as usual.
        configure(&mut story, policy(""));
        story.pass_secs(1);
        assert_eq!(story.sent(), [(30, Signal::Term)], "{seconds}");
    }
}

#[test]
fn what_an_exempt_agent_leaves_is_left() {
    let mut story = Story::agent_with_server(Policy::default());
    configure(&mut story, policy(&exempt("program = 'claude'")));
    story.start(20, 40, SERVER, WIRE);
    // Before a case is opened, too, nothing is promised that the guard forbids.
    let planned = story.engine.plan(&ReapRequest { include_active: true, ..ReapRequest::default() });
    assert!(planned.len() == 2 && planned.iter().all(|one| one.guards == [Guard::ExemptRule]), "{planned:?}");
    story.end(20);
    story.pass_secs(100);
    assert_eq!(story.sent(), []);
    assert!(story.engine.report().orphans().all(|orphan| orphan.guards == [Guard::ExemptRule]));
    // A person's request does not overrule it.
    story.hand_in(Input::Reap { request: ReapRequest::default(), by: "alice".to_owned() });
    story.pass_secs(100);
    assert_eq!(story.sent(), []);
}

/// The rules of now are asked about who has ended, too: one that is gone keeps nothing, and a later one keeps.
#[test]
fn what_an_agent_left_is_exempt_as_long_as_a_rule_says_so() {
    let rules = exempt("program = 'claude'");
    for before in [true, false] {
        let mut story = Story::agent_with_server(Policy::default());
        if before {
            configure(&mut story, policy(&rules));
        }
        story.end(20);
        story.pass_secs(1);
        configure(&mut story, policy(&rules));
        story.pass_secs(100);
        assert_eq!(story.sent(), [], "{before}");
        assert_eq!(story.told().last().map(String::as_str), Some("orphan_spared exempt_rule"));
        // Another program's exemption keeps nothing.
        configure(&mut story, policy(&exempt("program = 'codex'")));
        story.pass_secs(1);
        assert_eq!(story.sent(), [(30, Signal::Term)], "{before}");
    }
}

#[test]
fn what_no_rule_takes_for_a_server_any_more_is_left() {
    let tools = "[[program]]\nkind = 'server'\nname = 'tools'\nprogram = '/srv/tools.py'";
    let settings = Policy { rules: tools.to_owned(), ..Policy::default() };
    let leaked = |then: &str| {
        let mut story = Story::new(settings.clone());
        story.exec(20, 10, super::story::CLAUDE, TERMINAL);
        story.start(20, 30, &["python3", "/srv/tools.py"], WIRE);
        assert_eq!(story.told(), ["agent_started", "server_started"]);
        configure(&mut story, policy(then));
        story.end(20);
        story.pass_secs(100);
        story.sent().len()
    };
    assert_eq!(leaked(""), 0, "the rule is gone");
    assert!(leaked(tools) > 0);
    assert!(leaked(&format!("{tools}\n[[program]]\nkind = 'server'\nname = 'x'\nprogram = 'x'")) > 0);
}

#[test]
fn what_is_there_already_is_recognised_by_new_rules() {
    let mut story = Story::new(Policy::default());
    story.exec(20, 10, super::story::CLAUDE, TERMINAL);
    story.start(20, 30, &["python3", "/srv/tools.py"], WIRE);
    story.start(20, 40, &["python3", "/srv/bot.py"], TERMINAL);
    assert_eq!(story.told(), ["agent_started"]);
    let rules = "[[program]]\nkind = 'server'\nname = 'tools'\nprogram = '/srv/tools.py'\n\
                 [[agent]]\nname = 'bot'\nprogram = '/srv/bot.py'";
    configure(&mut story, policy(rules));
    let mut told = story.told();
    told.sort_unstable();
    assert_eq!(told, ["agent_started", "reconfigured", "server_started"]);
    story.end(20);
    story.pass_secs(10);
    assert_eq!(story.sent(), [(30, Signal::Term)], "the bot is no server, and the server was claude's");
}

/// What a supervisor starts outlives it, also where it was taken for an agent before.
#[test]
fn an_agent_that_a_rule_calls_a_supervisor_leaves_its_servers() {
    let mut story = Story::agent_with_server(Policy::default());
    configure(&mut story, policy("[[program]]\nkind = 'supervisor'\nname = 'claude'\nprogram = 'claude'"));
    story.end(20);
    story.pass_secs(100);
    assert_eq!(story.sent(), []);
}

#[test]
fn what_nobody_followed_is_found_in_proc() {
    let mut story = Story::new(Policy::default());
    configure(&mut story, policy("[[agent]]\nname = 'bot'\nprogram = '/srv/bot.py'"));
    story.snapshot(vec![seen(40, 1, &["python3", "/srv/bot.py"], TERMINAL)]);
    assert_eq!(story.told(), ["reconfigured", "agent_started"]);
}

#[test]
fn rules_that_cannot_be_read_change_nothing() {
    let mut story = Story::agent_with_server(Policy::default());
    configure(&mut story, Policy { mode: Mode::Observe, ..policy("[[") });
    assert_eq!(story.told(), [""; 0]);
    story.end(20);
    story.pass_secs(10);
    assert_eq!(story.sent(), [(30, Signal::Term)]);
}

/// /proc names the file behind a link: that is no other program.
#[test]
fn a_look_at_proc_does_not_take_a_server_apart() {
    const PYTHON: &[&str] = &["/usr/bin/python3", "/srv/precious_mcp_server.py"];
    let mut story = Story::new(Policy::default());
    story.exec(20, 10, super::story::CLAUDE, TERMINAL);
    story.start(20, 30, PYTHON, WIRE);
    story.told();
    configure(&mut story, policy(&exempt("program = '/srv/precious_mcp_server.py'")));
    let mut server = seen(30, 20, PYTHON, [crate::model::Stdio::Closed; 3]);
    server.image.exe = "/usr/bin/python3.11".to_owned();
    story.snapshot(vec![seen(20, 10, super::story::CLAUDE, TERMINAL), server]);
    story.end(20);
    story.pass_secs(100);
    assert_eq!(story.told().last().map(String::as_str), Some("orphan_spared exempt_rule"));
    assert_eq!(story.sent(), []);
}

#[test]
fn an_agent_may_have_a_grace_of_its_own() {
    let rule = "[[agent]]\nname = 'bot'\nprogram = 'bot'\n";
    for (rules, detected) in [(rule.to_owned(), true), (format!("{rule}grace = '60s'\n"), false)] {
        let mut story = Story::new(Policy { rules, ..Policy::default() });
        story.exec(20, 10, &["bot"], TERMINAL);
        story.start(20, 30, SERVER, WIRE);
        story.end(20);
        story.pass_secs(11);
        assert_eq!(story.told().iter().any(|told| told == "orphan_detected"), detected);
        story.pass_secs(50);
        assert_eq!(story.told().iter().any(|told| told == "orphan_detected"), !detected);
    }
}
