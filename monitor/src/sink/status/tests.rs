use std::collections::BTreeMap;

use super::*;
use crate::sink::report::tests::{claude, filesystem};
use orphand_core::model::{AgentReport, Doubt, ServerView, SessionState, SessionsStatus};

fn server(agent: &str, generation: Option<u64>, state: &str, pss_bytes: Option<u64>) -> ServerReport {
    let unit = (agent == "bot").then(|| "bot.service".to_owned());
    let run =
        RunView { agent: agent.to_owned(), generation, uid: None, unit, manager: None, invocation_id: None };
    let server = ServerView { run: Some(run), ..filesystem() };
    ServerReport {
        duplicate_of: None,
        members: Vec::new(),
        session: None,
        server,
        evidence: Vec::new(),
        doubts: Vec::new(),
        guards: Vec::new(),
        pss_bytes,
        state: state.to_owned(),
    }
}

fn status(pss_bytes: Option<u64>) -> Status {
    let agent = |servers| AgentReport { left_behind: None, agent: claude(true), servers };
    let mut unowned = server("", None, "live", pss_bytes);
    unowned.server.run = None;
    let report = Report {
        agents: vec![
            agent(vec![
                server("claude", Some(9), "live", pss_bytes),
                server("claude", Some(10), "live", pss_bytes),
            ]),
            agent(vec![
                server("claude", Some(9), "spared", pss_bytes),
                server("bot", Some(2), "orphan", None),
            ]),
            agent(vec![server("\u{1b}[2Jevil", None, "live", None)]),
            agent(Vec::new()),
        ],
        unowned: vec![unowned],
        ..Report::default()
    };
    Status {
        version: "1.2.3".to_owned(),
        pid: 4711,
        up_ns: 12_000_000_000_000,
        report,
        processes: 77,
        ..Status::default()
    }
}

#[test]
fn one_look_tells() {
    let troubled = Status {
        mode: Mode::Observe,
        blind: vec!["records of the kernel were lost".to_owned()],
        lost: Losses { fork: 3, exit: 1, ..Losses::default() },
        sink_dropped: BTreeMap::from([("stream".to_owned(), 9)]),
        resyncs: 1,
        ..status(Some(1_500_000))
    };
    let mut held = server("claude", Some(10), "unproven", None);
    held.doubts = vec![Doubt::WireHeld, Doubt::Clients];
    let mut doubted = status(None);
    doubted.report.agents[0].servers.push(held.clone());
    doubted.report.unowned = vec![ServerReport { doubts: vec![Doubt::OwnerUnknown], ..held }; UNPROVEN];
    let mut sessions = status(None);
    for (server, state) in
        sessions.report.agents[0].servers.iter_mut().zip([SessionState::Active, SessionState::Expired])
    {
        (server.session, server.server.session) = (Some(state), Some("0b8c8f2e..".to_owned()));
    }
    sessions.sessions = Some(SessionsStatus {
        states: BTreeMap::from([(SessionState::Active, 1), (SessionState::Expired, 1)]),
        errors: BTreeMap::from([("timeout".to_owned(), 2), ("auth".to_owned(), 0)]),
    });
    let empty = Status { report: Report::default(), processes: 0, ..status(None) };
    let mut duplicated = status(None);
    duplicated.report.agents[0].servers[0].duplicate_of = Some("4242@99".to_owned());
    let shown = [status(None), troubled, doubted, duplicated, sessions, empty]
        .map(|status| render(&status, Paint::default()));
    assert!(!shown.concat().contains('\u{1b}'));
    insta::assert_snapshot!(shown.join("----\n"));
}
