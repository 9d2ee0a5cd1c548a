use super::*;
use crate::sink::report::tests::filesystem;
use orphand_core::model::{Doubt, Guard, Holdings, RunView, ServerView};

fn planned(name: &str, state: State, generation: Option<u64>, guards: &[Guard]) -> PlanItem {
    let run = RunView {
        agent: "claude".to_owned(),
        generation,
        uid: Some(0),
        unit: None,
        manager: None,
        invocation_id: None,
    };
    let server = ServerView { name: name.to_owned(), run: Some(run), ..filesystem() };
    let planned = ServerReport { server, state, guards: guards.to_vec(), ..ServerReport::default() };
    PlanItem { planned, age_ms: None }
}

#[test]
fn what_is_meant_and_what_became_of_it() {
    let orphan = planned("server-filesystem", State::Orphan, Some(3), &[]);
    let hostile = planned("\u{1b}[2Jevil", State::Live, None, &[]);
    let stays = planned("time", State::Kept, Some(3), &[Guard::Multiplexer, Guard::OptedOut]);
    let doubts = vec![Doubt::WireHeld, Doubt::Clients];
    let mut held = planned("fetch", State::Unproven, Some(2), &[]);
    let mut kept = planned("git", State::Unproven, Some(2), &[Guard::LiveAgentBelow]);
    (held.planned.doubts, kept.planned.doubts) = (doubts.clone(), doubts);
    let mut double = PlanItem { age_ms: Some(7_200_000), ..planned("files", State::Live, Some(3), &[]) };
    double.planned.duplicate_of = Some("4242@99".to_owned());
    let mut leftover = PlanItem { age_ms: Some(90_000), ..planned("bash", State::Leftover, Some(3), &[]) };
    leftover.planned.server.rule = "shell".to_owned();
    leftover.planned.holdings = Holdings {
        listens: vec!["127.0.0.1:3000".to_owned(), "[::]:80".to_owned()],
        locks: vec!["/srv/\u{1b}x.lock".to_owned()],
    };
    let paint = Paint::default();
    let shown = [
        render(&[orphan.clone(), hostile.clone(), stays.clone()], paint),
        render(&[orphan.clone(), held.clone(), kept.clone()], paint),
        render(std::slice::from_ref(&double), paint),
        render(std::slice::from_ref(&leftover), paint),
        outcome(&[&orphan], &[], paint),
        outcome(&[&leftover], &[], paint),
        outcome(&[], &[&hostile, &stays], paint),
        outcome(&[], &[&held, &kept], paint),
    ];
    assert!(!shown.concat().contains('\u{1b}'));
    insta::assert_snapshot!(shown.join("----\n"));
}

#[test]
fn memory_that_is_not_known_is_not_told_as_none() {
    let (paint, known) = (Paint::default(), planned("known", State::Live, Some(3), &[]));
    let mut unknown = known.clone();
    unknown.planned.server.rss_bytes = None;
    assert_eq!(outcome(&[&known, &unknown], &[], paint), "2 servers ended.\n");
    assert!(render(&[unknown], paint).ends_with("\n1 server to end.\n"));
    assert!(outcome(&[&known], &[], paint).contains(", at most "));
}

/// The doubts are in the same object as the server.
#[test]
fn as_json_it_is_one_object() {
    let mut held = planned("fetch", State::Unproven, Some(2), &[]);
    held.planned.doubts = vec![Doubt::WireHeld];
    let value = serde_json::to_value(&held).unwrap();
    assert_eq!((&value["state"], &value["doubts"]), (&"unproven".into(), &serde_json::json!(["wire_held"])));
    assert_eq!((&value["server"]["name"], &value["guards"]), (&"fetch".into(), &serde_json::json!([])));
}

mod nothing {
    use super::super::*;
    use crate::sink::report::tests::{claude, report, server};
    use orphand_core::model::{Doubt, LeftoverReport};

    fn told(request: &ReapRequest, report: &Report) -> String {
        nothing(request, &[], report).join("\n")
    }

    #[test]
    fn it_says_what_is_there_instead_and_how_to_select_it() {
        let report = report();
        let told = |request: &ReapRequest| told(request, &report);
        let targets = vec![Asked::Pid(6), Asked::Pid(77)];
        let both = ReapRequest { targets, ..ReapRequest::default() };
        assert_eq!(
            told(&both),
            "pid 6 is no part of an MCP server that orphand knows\n\
             pid 77 is the agent host.py, and only servers are ended"
        );
        let agent = |name: &str| ReapRequest { agent: Some(name.to_owned()), ..ReapRequest::default() };
        let unknown = "no agent or unit called \"nobody\" is there; `orphand ps` shows all";
        assert_eq!(told(&agent("nobody")), unknown);
        assert_eq!(told(&agent("bot.service")), "bot.service has no orphans");
        let numbered = ReapRequest { generation: Some(9), duplicates: true, ..agent("claude") };
        assert_eq!(told(&numbered), "claude #9 has no duplicates");
        let all = "no orphans; 1 unproven (--include-unproven selects them)";
        assert_eq!(told(&ReapRequest::default()), all);
    }

    #[test]
    fn a_leftover_is_told_from_a_server() {
        let mut report = report();
        let mut head = super::planned("bash", State::Leftover, None, &[]).planned;
        head.server.processes[0].pid = 41;
        let run = head.server.run.clone().unwrap();
        let agent = claude(false);
        report.leftovers = vec![LeftoverReport { agent, count: 1, heads: vec![head], run }];
        let asked = |pid, leftovers| {
            let targets = vec![Asked::Pid(pid)];
            told(&ReapRequest { targets, leftovers, ..ReapRequest::default() }, &report)
        };
        assert_eq!(asked(41, false), "pid 41 is a leftover, not an orphan: --leftovers ends it");
        let of_name = ReapRequest { targets: vec![Asked::Name("bash".to_owned())], ..ReapRequest::default() };
        assert_eq!(told(&of_name, &report), "\"bash\" is a leftover, not an orphan: --leftovers ends it");
        assert_eq!(asked(77_777, true), "pid 77777 is no leftover that orphand knows");
        let (own, name) =
            report.servers().map(|(_, one)| (one.server.processes[0].pid, &one.server.name)).next().unwrap();
        let told_of_server = asked(own, true);
        assert!(told_of_server.starts_with(&format!("{name} (pid {own}) is a server, ")), "{told_of_server}");
        assert!(told(&ReapRequest::default(), &report).ends_with("; 1 leftover (--leftovers)"));
    }

    #[test]
    fn a_server_that_stays_is_told_with_the_flag_that_ends_it() {
        let one = |state: State, duplicates| {
            let mut report = report();
            report.agents.truncate(1);
            report.agents[0].agent = claude(state == State::Live);
            report.agents[0].servers = vec![server("time", state, &[], &[Doubt::WireHeld], &[])];
            let targets = vec![Asked::Pid(99_300)];
            told(&ReapRequest { targets, duplicates, ..ReapRequest::default() }, &report)
        };
        let name = "time (pid 99300) is";
        assert_eq!(
            one(State::Live, false),
            format!("{name} live: its owner claude #3 is alive; --include-active ends it all the same")
        );
        assert_eq!(one(State::Live, true), format!("{name} live, and the other flags exclude it"));
        assert!(one(State::Suspect, false).starts_with(&format!("{name} suspect: its grace is not over")));
        assert_eq!(
            one(State::Unproven, false),
            format!(
                "{name} unproven: {}; --include-unproven ends it all the same",
                human::list_doubts(&[Doubt::WireHeld], &[])
            )
        );
    }
}
