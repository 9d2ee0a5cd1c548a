//! A report, and its JSON.

use orphand_core::model::{
    AgentReport, AgentView, Doubt, Evidence, Guard, ProcessView, Report, ServerReport, ServerView, State,
};

pub(in crate::sink) fn process(pid: u32, exe: &str, argv: &[&str]) -> ProcessView {
    ProcessView {
        pid,
        start: 229_468,
        uid: 1000,
        exe: exe.to_owned(),
        argv: argv.iter().map(ToString::to_string).collect(),
        argv_truncated: false,
        stale_binary: false,
    }
}

/// The launch chain of `npx -y @modelcontextprotocol/server-filesystem /tmp`.
pub(in crate::sink) fn filesystem() -> ServerView {
    ServerView {
        id: "1234@229468".to_owned(),
        name: "server-filesystem".to_owned(),
        rule: "npm-mcp".to_owned(),
        processes: vec![
            process(1234, "/usr/bin/node", &["npm exec @modelcontextprotocol/server-filesystem /tmp"]),
            process(1240, "/usr/bin/dash", &["sh", "-c", "mcp-server-filesystem /tmp"]),
            process(
                1241,
                "/usr/bin/node",
                &["node", "/home/u/.npm/_npx/ab/node_modules/.bin/mcp-server-filesystem", "/tmp"],
            ),
            process(1250, "/usr/bin/git", &["git", "commit", "-m", "it's done"]),
        ],
        rss_bytes: Some(197_132_288),
        cpu_ms: Some(1_240),
        ..ServerView::default()
    }
}

pub(in crate::sink) fn claude(alive: bool) -> AgentView {
    AgentView {
        name: "claude".to_owned(),
        pid: 1200,
        start: 229_000,
        uid: 0,
        generation: Some(3),
        unit: None,
        invocation_id: None,
        alive,
        implied: false,
        hints: orphand_core::model::AgentHints::default(),
    }
}

pub(in crate::sink) fn server(
    name: &str,
    state: State,
    evidence: &[Evidence],
    doubts: &[Doubt],
    guards: &[Guard],
) -> ServerReport {
    let server = ServerView {
        name: name.to_owned(),
        processes: vec![process(99_300, "/usr/bin/python3.11", &["python", "-m", "mcp_server_time"])],
        rss_bytes: Some(56_000_000),
        ..filesystem()
    };
    let (evidence, doubts, guards) = (evidence.to_vec(), doubts.to_vec(), guards.to_vec());
    ServerReport { server, evidence, doubts, guards, state, ..ServerReport::default() }
}

pub(in crate::sink) fn report() -> Report {
    let filesystem = ServerReport {
        server: filesystem(),
        evidence: vec![Evidence::OwnerExited, Evidence::StdinHangup],
        state: State::Orphan,
        ..ServerReport::default()
    };
    let host = AgentView {
        name: "host.py".to_owned(),
        pid: 77,
        generation: None,
        unit: Some("bot.service".to_owned()),
        implied: true,
        ..claude(true)
    };
    let mut hostile = server("\u{1b}[2Jevil\u{202e}", State::Live, &[], &[], &[]);
    hostile.server.processes =
        vec![ProcessView { argv_truncated: true, ..process(5, "", &["a\nb", "", "c d"]) }];
    hostile.server.rss_bytes = None;
    hostile.duplicate_of = Some("99300@229468".to_owned());
    let mut stale = server("time", State::Live, &[], &[], &[]);
    stale.server.processes[0].stale_binary = true;
    let doubts = [Doubt::WireHeld, Doubt::Clients];
    let held = server("git", State::Unproven, &[Evidence::OwnerExited], &doubts, &[]);
    Report {
        runs: Vec::new(),
        leftovers: Vec::new(),
        agents: vec![
            AgentReport { left_behind: None, run: None, agent: claude(true), servers: vec![stale, hostile] },
            AgentReport {
                run: None,
                left_behind: None,
                agent: AgentView { generation: Some(2), ..claude(false) },
                servers: vec![
                    filesystem,
                    server("fetch", State::Suspect, &[Evidence::OwnerExited], &[], &[]),
                    held,
                ],
            },
            AgentReport { left_behind: None, run: None, agent: host, servers: Vec::new() },
        ],
        unowned: vec![server(
            "everything",
            State::Kept,
            &[Evidence::NoOwner],
            &[],
            &[Guard::OwnUnit, Guard::Observe],
        )],
        blind: Vec::new(),
    }
}

#[test]
fn json() {
    insta::assert_snapshot!(super::json(&report()).unwrap());
    let again: Report = serde_json::from_str(&super::json(&report()).unwrap()).unwrap();
    assert_eq!(again, report());
}

#[test]
fn orphans_are_counted() {
    let sum = report().totals();
    assert_eq!((sum.servers, sum.orphans, sum.kept, sum.unproven, sum.suspects), (6, 2, 1, 1, 1));
    assert_eq!((sum.duplicates, sum.stale_binaries, sum.agents), (1, 1, 2));
    assert_eq!(report().orphans().count(), 2);
    assert_eq!(report().servers().filter(|(_, one)| one.is_unproven()).count(), 1, "it is no orphan");
}
