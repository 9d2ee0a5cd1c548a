//! Tests of agents that are daemons by design.

use super::{
    story::{CLAUDE, SERVER, Story, WIRE},
    units::{NOTHING, facts, gateway_with_claude, generations},
};
use crate::model::{Input, Notice, Policy, Signal, Stdio};

const SUPERVISOR: &[&str] = &["claude", "daemon", "run", "--origin", "transient"];

/// Claude 21 of a gateway's unit has started what `argv` says, 22, which has a server, 31. The run of that server.
fn started_by_claude(
    config: &str,
    argv: &[&str],
    stdio: [Stdio; 3],
) -> (Story, (Option<String>, Option<u64>)) {
    let mut story = gateway_with_claude(config);
    story.units.insert(22, facts("a", "a"));
    story.start(21, 22, argv, stdio);
    story.start(22, 31, SERVER, [Stdio::Pipe(5), Stdio::Pipe(6), Stdio::Null]);
    let run = story.notices.iter().find_map(|n| match n {
        Notice::ServerStarted { server, .. } => server.run.clone(),
        _ => None,
    });
    let run = run.map(|run| (run.unit, run.generation)).unwrap();
    story.told();
    (story, run)
}

#[test]
fn a_daemon_by_design_is_left_behind_by_nobody() {
    let of_gateway = (Some("gateway.service".to_owned()), Some(1));
    let of_its_own = (None, Some(1));
    let bot = "[[agent]]\nname = \"bot\"\nprogram = \"botd\"\ndaemon = true";
    let app_server: &[&str] = &["codex", "app-server", "--listen", "unix://"];
    for (config, argv, stdio, is_daemon) in [
        ("", SUPERVISOR, NOTHING, true),
        ("", &["claude", "--bg-pty-host", "/tmp/x.sock", "--", "claude"], NOTHING, true),
        ("", app_server, NOTHING, true),
        ("", &["opencode", "serve"], NOTHING, true),
        (bot, &["botd"], NOTHING, true),
        // The same programs without the word, and one that serves whoever holds its wire.
        ("", CLAUDE, NOTHING, false),
        ("", &["codex", "exec", "x"], NOTHING, false),
        ("", app_server, [Stdio::Pipe(7), Stdio::Pipe(8), Stdio::Null], false),
        ("", &["opencode", "run", "serve"], NOTHING, false),
    ] {
        let (mut story, run) = started_by_claude(config, argv, stdio);
        assert_eq!(run, if is_daemon { of_its_own.clone() } else { of_gateway.clone() }, "{argv:?}");
        // The unit is restarted without what claude had started.
        story.facts.unit = Some(facts("a", "b"));
        story.end(30);
        story.end(21);
        story.end(20);
        story.pass_secs(200);
        let told = story.told();
        let accused = told.iter().any(|line| line.starts_with("orphan_detected"));
        assert_eq!(accused, !is_daemon, "{argv:?}: {told:?}");
        // Its own servers are judged by it.
        assert_eq!(story.sent(), []);
        story.end(22);
        story.pass_secs(10);
        assert_eq!(story.sent().first(), Some(&(31, Signal::Term)), "{argv:?}");
    }
}

#[test]
fn a_launcher_of_a_daemon_is_a_part_of_it() {
    let mut story = Story::new(Policy::default());
    story.exec(20, 10, &["node", "/usr/bin/codex", "app-server"], NOTHING);
    story.start(20, 21, &["codex", "app-server"], NOTHING);
    story.start(21, 30, SERVER, WIRE);
    assert_eq!(generations(&story), [Some(1), Some(1)]);
}

#[test]
fn a_new_rule_makes_a_daemon_of_what_is_there() {
    let mut story = gateway_with_claude("");
    let rule = "[[agent]]\nname = \"claude\"\nprogram = \"claude\"\ndaemon = true";
    let policy = Policy { rules: rule.to_owned(), ..Policy::default() };
    story.hand_in(Input::Configured { policy });
    story.facts.unit = Some(facts("a", "b"));
    story.end(20);
    story.pass_secs(200);
    let told = story.told();
    assert!(!told.iter().any(|line| line.starts_with("orphan_")), "{told:?}");
}
