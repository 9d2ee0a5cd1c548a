//! Reports as text and as JSON.

use crate::sink::{paint::Paint, scan, tree};
use orphand_core::model::{
    AgentReport, AgentView, Doubt, Evidence, Guard, ProcessView, Report, ServerReport, ServerView,
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
        processes_total: 0,
        session: None,
        run: None,
        container: None,
        id: "1234@229468".to_owned(),
        name: "server-filesystem".to_owned(),
        rule: "npm-mcp".to_owned(),
        client: None,
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
        session_leader: false,
    }
}

pub(in crate::sink) fn claude(alive: bool) -> AgentView {
    AgentView {
        name: "claude".to_owned(),
        pid: 1200,
        start: 229_000,
        generation: Some(3),
        unit: None,
        invocation_id: None,
        alive,
        implied: false,
    }
}

pub(in crate::sink) fn server(
    name: &str,
    state: &str,
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
    ServerReport {
        duplicate_of: None,
        members: Vec::new(),
        session: None,
        server,
        evidence: evidence.to_vec(),
        doubts: doubts.to_vec(),
        guards: guards.to_vec(),
        pss_bytes: None,
        state: state.to_owned(),
    }
}

pub(in crate::sink) fn report() -> Report {
    let filesystem = ServerReport {
        duplicate_of: None,
        members: Vec::new(),
        session: None,
        pss_bytes: None,
        server: filesystem(),
        evidence: vec![Evidence::OwnerExited, Evidence::StdinHangup],
        doubts: Vec::new(),
        guards: Vec::new(),
        state: "orphan".to_owned(),
    };
    let host = AgentView {
        name: "host.py".to_owned(),
        pid: 77,
        generation: None,
        unit: Some("bot.service".to_owned()),
        implied: true,
        ..claude(true)
    };
    let mut hostile = server("\u{1b}[2Jevil\u{202e}", "live", &[], &[], &[]);
    hostile.server.processes =
        vec![ProcessView { argv_truncated: true, ..process(5, "", &["a\nb", "", "c d"]) }];
    hostile.server.rss_bytes = None;
    hostile.duplicate_of = Some("99300@229468".to_owned());
    let mut stale = server("time", "live", &[], &[], &[]);
    stale.server.processes[0].stale_binary = true;
    let doubts = [Doubt::WireHeld, Doubt::Clients];
    let held = server("git", "unproven", &[Evidence::OwnerExited], &doubts, &[]);
    Report {
        runs: Vec::new(),
        agents: vec![
            AgentReport { left_behind: None, agent: claude(true), servers: vec![stale, hostile] },
            AgentReport {
                left_behind: None,
                agent: AgentView { generation: Some(2), ..claude(false) },
                servers: vec![
                    filesystem,
                    server("fetch", "suspect", &[Evidence::OwnerExited], &[], &[]),
                    held,
                ],
            },
            AgentReport { left_behind: None, agent: host, servers: Vec::new() },
        ],
        unowned: vec![server(
            "everything",
            "spared",
            &[Evidence::NoOwner],
            &[],
            &[Guard::OwnUnit, Guard::Observe],
        )],
        blind: Vec::new(),
    }
}

#[test]
fn table() {
    insta::assert_snapshot!(scan::render(&report(), Paint::new(false)));
}

#[test]
fn table_in_colour() {
    insta::assert_snapshot!(
        scan::render(&report(), Paint::new(true)).escape_debug().to_string().replace("\\n", "\n")
    );
}

#[test]
fn tree_of_agents() {
    insta::assert_snapshot!(tree::render(&report(), Paint::new(false), None));
}

#[test]
fn tree_is_cut_to_the_terminal() {
    let shown = tree::render(&report(), Paint::new(false), Some(40));
    let processes = shown.lines().filter(|line| line.starts_with("│  ") || line.starts_with("   "));
    assert!(processes.clone().count() > 4);
    for line in processes {
        assert!(line.chars().count() <= 40, "{line}");
    }
}

#[test]
fn json() {
    insta::assert_snapshot!(super::json(&report()).unwrap());
    let again: Report = serde_json::from_str(&super::json(&report()).unwrap()).unwrap();
    assert_eq!(again, report());
}

#[test]
fn nothing_found_is_said_and_blindness_too() {
    let nothing = Report::default();
    assert_eq!(scan::render(&nothing, Paint::new(false)), "no agents, no MCP servers.\n");
    assert_eq!(tree::render(&nothing, Paint::new(false), None), "no agents, no MCP servers.\n");
    let blind = Report { blind: vec!["/proc/1/fd: Permission denied".to_owned()], ..nothing };
    assert_eq!(
        scan::render(&blind, Paint::new(false)),
        "no agents, no MCP servers seen.\nNot seen: /proc/1/fd: Permission denied\n"
    );
}

#[test]
fn orphans_are_counted() {
    assert_eq!(report().orphans().count(), 2);
    assert_eq!(report().servers().count(), 6);
    let unproven: Vec<_> = report().servers().map(|(_, one)| (one.is_unproven(), one.is_orphan())).collect();
    assert_eq!(
        unproven.iter().filter(|one| **one == (true, false)).count(),
        1,
        "one is unproven, and no orphan"
    );
}
