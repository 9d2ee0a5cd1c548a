use super::*;
use crate::sink::{
    list::{Arrangement, entries, leftover_entries, rows},
    report::tests::report,
};
use orphand_core::model::BootTime;
use orphand_core::model::{AgentReport, AgentView, LeftoverReport, Mode, RunKey, RunView, State, Unit};

/// A minute after the processes of the report began.
fn sample(mode: Option<Mode>) -> Sample {
    let now = BootTime(2_294_680_000_000 + 60_000_000_000);
    let mut report = report();
    for one in report.servers_mut().filter(|one| one.state == State::Suspect) {
        one.deadline = Some(now + std::time::Duration::from_secs(6));
    }
    Sample { report, mode, now, ..Sample::default() }
}

fn shown(sample: &Sample, how: &Arrangement, layout: Layout) -> String {
    let mut entries = entries(sample);
    let rows = rows(&mut entries, &sample.report.agents, how);
    render(sample, &entries, &rows, layout)
}

fn tree() -> Arrangement {
    Arrangement { tree: true, unfolded: true, ..Arrangement::default() }
}

#[test]
fn the_list() {
    let sample = sample(Some(Mode::Enforce));
    let flat = |layout| shown(&sample, &Arrangement::default(), layout);
    let narrow = flat(Layout { width: Some(80), ..Layout::default() });
    let wide = flat(Layout { wide: true, width: Some(80), ..Layout::default() });
    let coloured = flat(Layout { paint: Paint::new(true), ..Layout::default() });
    assert!(coloured.contains("\u{1b}[1m\u{1b}[31morphan  \u{1b}[0m"), "{}", coloured.escape_debug());
    let tree = shown(&sample, &tree(), Layout { width: Some(80), ..Layout::default() });
    assert!(![&narrow, &wide, &tree].iter().any(|text| text.contains(['\u{1b}', '\u{202e}'])));
    insta::assert_snapshot!([narrow, wide, tree].join("----\n"));
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    let sample = sample(None);
    for how in [Arrangement::default(), tree()] {
        for width in [1, 20, 40, 60, 80, 100] {
            let text = shown(&sample, &how, Layout { width: Some(width), ..Layout::default() });
            let list = text.split("\n\n").next().unwrap();
            // The word for the state is always whole.
            let room = width.max("unproven".len());
            assert!(list.lines().all(|line| line.chars().count() <= room), "{width}: {text}");
        }
    }
}

#[test]
fn what_comes_first_is_what_was_asked_for() {
    let sample = sample(Some(Mode::Enforce));
    let first = |sort| {
        let how = Arrangement { sort, ..Arrangement::default() };
        let text = shown(&sample, &how, Layout::default());
        text.lines().nth(1).unwrap().split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(first(Column::State), "orphan");
    assert_eq!(first(Column::Memory), "orphan");
    let mut sample = sample.clone();
    for (n, one) in sample.report.servers_mut().enumerate() {
        one.server.cpu_ms = Some(if one.state == State::Unproven { 9_000_000 } else { n as u64 });
    }
    let mut entries = entries(&sample);
    rows(&mut entries, &[], &Arrangement { sort: Column::Cpu, ..Arrangement::default() });
    assert_eq!((entries[0].report.state, entries[0].value(Column::Cpu).as_str()), (State::Unproven, "2h30"));
}

#[test]
fn runs_of_two_users_are_two_though_they_have_one_name_and_number() {
    let user = |uid| Some(RunView::unknown("claude", uid));
    let unit = |manager: &str| {
        let unit = Unit { manager: manager.to_owned(), name: "agent.service".to_owned() };
        Some(RunView::new(RunKey::Unit(unit), Some(1), "claude".to_owned(), None))
    };
    let users = |uid| unit(&format!("/user.slice/user-{uid}.slice/user@{uid}.service"));
    for (one, other, told) in [
        (user(1000), user(1001), ["#1 of uid 1000", "#1 of uid 1001"]),
        (users(1000), users(1001), ["#1 of uid 1000", "#1 of uid 1001"]),
        (unit(""), unit("/docker/0a1b"), ["#1  pid", "#1 of /docker/0a1b"]),
    ] {
        let mut sample = sample(Some(Mode::Enforce));
        let server = sample.report.servers().find(|(owner, _)| owner.is_some()).unwrap().1.clone();
        let agent = sample.report.agents[0].agent.clone();
        let of = |run: &Option<RunView>, pid, servers: bool| {
            let run = run.clone().map(|run| RunView { generation: Some(1), ..run });
            let mut server = server.clone();
            server.server.run.clone_from(&run);
            let unit = run.as_ref().and_then(|run| run.unit.clone());
            let agent =
                AgentView { name: "claude".to_owned(), pid, generation: Some(1), unit, ..agent.clone() };
            let servers = if servers { vec![server] } else { Vec::new() };
            AgentReport { left_behind: None, run, agent, servers }
        };
        let agents = vec![of(&one, 1, true), of(&other, 2, true), of(&other, 3, false)];
        sample.report = Report { agents, ..Report::default() };
        let text = shown(&sample, &tree(), Layout::default());
        let runs: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with('#')).collect();
        assert!(runs.len() == 2 && told.iter().all(|told| text.contains(told)), "{text}");
        assert!(runs.iter().all(|line| line.contains("1 server,")), "{text}");
        let second = runs.iter().find(|line| line.contains(told[1])).unwrap();
        assert!(second.contains("pid 2") && second.contains("pid 3"), "{text}");
    }
}

/// It is in the list and in the sum, and is no server. The twin is an agent that nobody left.
#[test]
fn an_agent_that_was_left_behind_is_told() {
    for is_left in [true, false] {
        let mut sample = sample(Some(Mode::Enforce));
        let agent = sample.report.agents[0].agent.clone();
        let mut left = sample.report.servers().next().unwrap().1.clone();
        (left.state, left.guards) = (State::Kept, vec![orphand_core::model::Guard::LiveAgentBelow]);
        let left_behind = is_left.then(|| Box::new(left));
        let agents = vec![AgentReport { left_behind, run: None, agent, servers: Vec::new() }];
        sample.report = Report { agents, ..Report::default() };
        let text = shown(&sample, &tree(), Layout::default());
        assert_eq!(text.contains("1 agent (1 left behind), no servers."), is_left, "{text}");
        assert_eq!(text.contains("ends it"), is_left, "{text}");
        assert!(!text.contains("1 server"), "{text}");
        assert_eq!(super::super::narrow(&mut sample.report, &[State::Kept], None), is_left);
    }
}

/// Nothing comes next of a leftover: it stays, whatever it is.
#[test]
fn a_leftover_stays() {
    for (class, listens, next) in [
        ("shell", &[][..], "stays: shell"),
        ("other", &[], "stays"),
        ("listener", &["127.0.0.1:3000", "[::1]:80"], "stays: listener 127.0.0.1:3000 [::1]:80"),
    ] {
        let mut sample = sample(Some(Mode::Enforce));
        let agent = sample.report.agents[0].agent.clone();
        let mut head = sample.report.servers().next().unwrap().1.clone();
        (head.state, head.guards) = (State::Leftover, Vec::new());
        head.server.rule = class.to_owned();
        head.holdings.listens = listens.iter().copied().map(str::to_owned).collect();
        let run = RunView::unknown("claude", 0);
        sample.report.leftovers = vec![LeftoverReport { agent, run, count: 1, heads: vec![head] }];
        let entries = leftover_entries(&sample);
        assert_eq!(entries[0].value(Column::Next), next);
    }
}

#[test]
fn without_a_daemon_the_list_says_what_it_cannot_know() {
    let none_of = Some("1 agent, 3 servers (8 MB), no orphans.".to_owned());
    let narrowed = Sample { mode: Some(Mode::Enforce), none_of, ..Sample::default() };
    assert_eq!(
        shown(&narrowed, &tree(), Layout::default()),
        "none of 1 agent, 3 servers (8 MB), no orphans.\n"
    );
    let nothing = Sample { mode: Some(Mode::Enforce), ..Sample::default() };
    assert_eq!(shown(&nothing, &tree(), Layout::default()), "no agents, no servers.\n");
    let report = Report { blind: vec!["/proc/1/fd: Permission denied".to_owned()], ..Report::default() };
    let blind = shown(&Sample { report, ..Sample::default() }, &tree(), Layout::default());
    let [sum, alone, unseen] = blind.lines().collect::<Vec<_>>()[..] else { panic!("{blind}") };
    assert_eq!((sum, alone), ("no agents, no servers seen.", PROC_ALONE));
    assert_eq!(unseen, "Not seen: /proc/1/fd: Permission denied");
}

#[test]
fn json_has_totals_and_times() {
    let wall = WallClock { offset_ns: 1_785_153_600_000_000_000 };
    let value =
        |mode| -> serde_json::Value { serde_json::from_str(&json(&sample(mode), wall).unwrap()).unwrap() };
    let found = value(Some(Mode::Observe));
    assert_eq!((&found["source"], &value(None)["source"]), (&json!("daemon"), &json!("proc")));
    assert_eq!((&found["totals"]["servers"], &found["totals"]["orphans"]), (&json!(6), &json!(2)));
    let suspect = &found["agents"][1]["servers"][1];
    assert_eq!(
        (&suspect["state"], &suspect["deadline"]),
        (&json!("suspect"), &json!("2026-07-27T12:39:20.680000Z"))
    );
    assert_eq!(serde_json::from_value::<Report>(found).unwrap(), sample(None).report);
}
