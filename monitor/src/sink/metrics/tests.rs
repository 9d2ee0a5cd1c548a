//! Metrics as a scraper reads them.

use std::collections::BTreeMap;

use super::*;
use crate::sink::report::tests::{claude, filesystem};
use orphand_core::model::{
    AgentReport, BootTime, Doubt, Evidence, Guard, LeftoverReport, Losses, Report, RunReport, RunView,
    ServerReport, SessionState, SessionsStatus, State,
};
use orphand_core::model::{Class, ServerView, text};

fn run(agent: &str, generation: Option<u64>) -> RunView {
    RunView {
        agent: agent.to_owned(),
        generation,
        uid: Some(0),
        unit: None,
        manager: None,
        invocation_id: None,
    }
}

fn server(run: Option<RunView>, state: State, guards: &[Guard]) -> ServerReport {
    ServerReport {
        server: ServerView { run, ..filesystem() },
        evidence: vec![Evidence::OwnerExited],
        guards: guards.to_vec(),
        state,
        ..ServerReport::default()
    }
}

fn status() -> Status {
    let unit = RunView { unit: Some("bot.service".to_owned()), uid: None, ..run("bot", Some(2)) };
    let of_user = RunView { uid: Some(1000), ..run("claude", Some(1)) };
    let in_user = RunView { manager: Some("/user.slice".to_owned()), ..unit.clone() };
    let unproven =
        |run, doubts: &[Doubt]| ServerReport { doubts: doubts.to_vec(), ..server(run, State::Unproven, &[]) };
    let agent = |servers| AgentReport { left_behind: None, run: None, agent: claude(true), servers };
    let report = Report {
        agents: vec![
            agent(vec![
                server(Some(run("claude", Some(30))), State::Live, &[]),
                server(Some(run("claude", Some(3))), State::Orphan, &[]),
                server(Some(run("claude", Some(3))), State::Kept, &[Guard::Observe, Guard::Multiplexer]),
                server(Some(run("claude", None)), State::Kept, &[Guard::OwnUnit]),
                server(Some(of_user.clone()), State::Live, &[]),
                unproven(Some(run("claude", Some(30))), &[Doubt::WireHeld, Doubt::Clients]),
                unproven(Some(run("claude", Some(29))), &[Doubt::WireHeld]),
                unproven(Some(of_user), &[Doubt::WireHeld]),
            ]),
            AgentReport {
                run: None,
                left_behind: Some(Box::new(server(Some(unit.clone()), State::Orphan, &[]))),
                ..agent(vec![server(Some(unit), State::Live, &[]), server(Some(in_user), State::Live, &[])])
            },
            agent(vec![server(None, State::Suspect, &[])]),
        ],
        unowned: vec![server(None, State::Live, &[]), unproven(None, &[Doubt::OwnerUnknown])],
        leftovers: vec![LeftoverReport {
            agent: claude(false),
            run: run("claude", Some(29)),
            count: 2,
            heads: vec![server(Some(run("claude", Some(29))), State::Leftover, &[])],
        }],
        runs: (1..=30)
            .map(|number| RunReport {
                run: run("claude", Some(number)),
                user: 0,
                started: BootTime(number * 1_000_000_000),
                alive: number == 30,
            })
            .collect(),
        blind: Vec::new(),
    };
    Status {
        report,
        processes: 77,
        records: Losses { fork: 5, exec: 4, exit: 3, setsid: 2, member: 0 },
        lost: Losses { fork: 1, ..Losses::default() },
        resyncs: 1,
        sink_dropped: BTreeMap::from([("hook".to_owned(), 2), ("stream".to_owned(), 9)]),
        kernel_errors: BTreeMap::from([("argv_fault".to_owned(), 3), ("members_full".to_owned(), 0)]),
        hook_runs: BTreeMap::from([("ok".to_owned(), 5), ("timed_out".to_owned(), 1)]),
        sessions: Some(SessionsStatus {
            states: BTreeMap::from([(SessionState::Active, 4), (SessionState::Expired, 1)]),
            errors: BTreeMap::from([("timeout".to_owned(), 2)]),
        }),
        ..Status::default()
    }
}

fn metrics() -> Metrics {
    let metrics = Metrics::new(WallClock { offset_ns: 1_785_153_600_000_000_000 });
    let detected = |evidence: &[Evidence], name: &str| Notice::OrphanDetected {
        class: Class::Server,
        recovered: false,
        again: false,
        server: ServerView { run: Some(run(name, Some(3))), ..filesystem() },
        owner: Some(claude(false)),
        evidence: evidence.to_vec(),
        guards: Vec::new(),
        rss_bytes: 1000,
        cpu_ms: Some(500),
        pss_bytes: None,
        after_ms: 10_003,
        latency_ms: 3.0,
    };
    metrics.observe(&detected(&[Evidence::OwnerExited, Evidence::StdinHangup], "claude"));
    metrics.observe(&detected(&[Evidence::OwnerExited], "claude"));
    let mut once_more = detected(&[Evidence::OwnerExited], "claude");
    if let Notice::OrphanDetected { again, .. } = &mut once_more {
        *again = true;
    }
    metrics.observe(&once_more);
    metrics.observe(&detected(&[Evidence::OwnerExited], "evil\"name\nof\\it"));
    metrics.observe(&Notice::OrphanReaped {
        class: Class::Agent,
        recovered: false,
        cpu_ms: Some(2500),
        server: ServerView { cpu_ms: Some(2500), ..filesystem() },
        owner: Some(claude(false)),
        signal: Some(Signal::Kill),
        took_ms: Some(5),
        asked: false,
        asked_by: None,
        freed_bytes: 1000,
        freed_pss_bytes: None,
        let_go: Vec::new(),
    });
    for rule in ["npm-mcp", "protocol", "protocol"] {
        let server = ServerView { rule: rule.to_owned(), ..filesystem() };
        metrics.observe(&Notice::ServerStarted { server, owner: None, found: false });
    }
    let error = "x".to_owned();
    metrics.observe(&Notice::ReapFailed { failed: 1, server: filesystem(), pid: 1, error, errno: Some(1) });
    metrics
}

/// The families in order; the series of a counter have no order.
fn sorted(text: &str) -> String {
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    for line in text.lines() {
        match blocks.last_mut() {
            Some(block) if !line.starts_with("# HELP") && !line.starts_with("# EOF") => block.push(line),
            _ => blocks.push(vec![line]),
        }
    }
    for block in &mut blocks {
        let buckets = block.iter().any(|line| line.ends_with(" histogram"));
        if let Some(series) = block.get_mut(2..).filter(|_| !buckets) {
            series.sort_unstable();
        }
    }
    blocks.concat().join("\n").replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

#[test]
fn what_a_scraper_reads() {
    let text = metrics().render(Some(&status()), Exposition::OpenMetrics);
    assert!(text.ends_with("# EOF\n"));
    insta::assert_snapshot!(sorted(&text));
}

/// The value of a label may contain anything but an unescaped quote.
fn label_names(series: &str) -> Vec<String> {
    let Some((_, labels)) = series.split_once('{') else { return Vec::new() };
    let unescaped = labels.replace("\\\\", "").replace("\\\"", "");
    let outside = unescaped.split('"').step_by(2);
    let names = outside.map(|text| text.trim_start_matches(',').trim_end_matches('='));
    names.filter(|name| !name.starts_with('}')).map(str::to_owned).collect()
}

#[test]
fn the_table_of_families_is_true_and_complete() {
    let text = metrics().render(Some(&status()), Exposition::OpenMetrics);
    let mut seen = Vec::new();
    for line in text.lines() {
        if let Some(typed) = line.strip_prefix("# TYPE ") {
            let family = families::ALL
                .iter()
                .find(|family| typed == format!("{} {}", family.name, text::word(family.kind)));
            seen.push(family.unwrap_or_else(|| panic!("not in the table: {typed}")));
        } else if !line.starts_with('#') {
            let family = seen.last().unwrap();
            let declared = |name: &String| name == "le" || family.labels.contains(&name.as_str());
            let labels = label_names(line);
            assert!(line.starts_with(family.name) && labels.iter().all(declared), "{line}");
        }
    }
    for family in families::ALL {
        assert!(text.contains(&format!("# HELP {} {}\n", family.name, family.help)), "{family:?}");
        assert!(family.help.ends_with('.'), "{family:?}");
    }
    assert_eq!(seen.len(), families::ALL.len());
}

#[test]
fn the_older_format() {
    let text = metrics().render(Some(&status()), Exposition::Text);
    insta::assert_snapshot!(sorted(&text));
}

#[test]
fn a_blind_daemon_claims_nothing() {
    let blind = Status { blind: vec!["lost".to_owned()], ..status() };
    for status in [None, Some(&blind)] {
        let text = metrics().render(status, Exposition::Text);
        assert!(text.contains("\norphand_watching 0"), "{text}");
        for name in [
            "orphand_orphans{",
            "orphand_servers{",
            "orphand_spared",
            "orphand_unproven",
            "orphand_lineage_processes",
        ] {
            assert!(!text.contains(name), "{name} in {text}");
        }
        // Counters keep their values.
        assert!(text.contains("orphand_reclaimed_bytes_total{"), "{text}");
    }
    assert!(metrics().render(Some(&status()), Exposition::Text).contains("\norphand_watching 1"));
}

#[test]
fn generations_are_bounded_and_live_ones_kept() {
    let text = metrics().render(Some(&status()), Exposition::Text);
    let of = |generation: &str| {
        let series = format!("orphand_orphans{{agent=\"claude\",generation=\"{generation}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&series).map(str::to_owned))
    };
    // An old generation with servers, the latest 16, and the sum of the rest.
    assert_eq!(of("3").as_deref(), Some("2.0"));
    assert_eq!(of("15").as_deref(), Some("0.0"));
    assert_eq!(of("older").as_deref(), Some("0.0"));
    assert_eq!((of("14"), of("1")), (None, None));
}

/// A server with two doubts counts for both, and one of an earlier run counts too; none of them is an orphan.
#[test]
fn what_is_unproven_is_a_gauge_of_its_own() {
    let text = metrics().render(Some(&status()), Exposition::Text);
    let of = |series: &str| {
        text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ').map(str::to_owned))
    };
    let unproven = |labels: &str| of(&format!("orphand_unproven{{{labels}}}"));
    assert_eq!(unproven("agent=\"claude\",doubt=\"wire_held\"").as_deref(), Some("2.0"));
    assert_eq!(unproven("agent=\"claude\",doubt=\"clients\"").as_deref(), Some("1.0"));
    assert_eq!(unproven("agent=\"claude\",uid=\"1000\",doubt=\"wire_held\"").as_deref(), Some("1.0"));
    assert_eq!(unproven("agent=\"none\",doubt=\"owner_unknown\"").as_deref(), Some("1.0"));
    for generation in ["30", "29"] {
        let orphans = of(&format!("orphand_orphans{{agent=\"claude\",generation=\"{generation}\"}}"));
        assert_eq!(orphans.as_deref(), Some("0.0"), "{generation}");
    }
    let none = Status { report: Report::default(), ..status() };
    let text = metrics().render(Some(&none), Exposition::Text);
    assert!(!text.contains("orphand_unproven{"), "{text}");
}

/// A server of this user, with its agent's name and number.
fn of_user(uid: u32, name: &str) -> ServerReport {
    let run = RunView { uid: Some(uid), ..run(name, Some(1)) };
    let mut report = server(Some(run), State::Orphan, &[]);
    for process in &mut report.server.processes {
        process.uid = uid;
    }
    report
}

/// 600 live programs of one user, and 600 finished ones of as many users; the other user's series stay.
#[test]
fn series_are_bounded_by_user() {
    let hostile = (0..600).map(|n| of_user(64_001, &format!("a{n}")));
    let runs = (0..600).map(|n| RunReport {
        run: RunView { uid: Some(100_000 + n), ..run("b", Some(1)) },
        user: 100_000 + n,
        started: BootTime(0),
        alive: false,
    });
    let report = Report {
        unowned: hostile.chain([of_user(64_002, "claude")]).collect(),
        runs: runs.collect(),
        ..Report::default()
    };
    let metrics = metrics();
    let text = metrics.render(Some(&Status { report, ..Status::default() }), Exposition::Text);
    let families = ["orphand_servers{", "orphand_orphans{", "orphand_generation_start_time_seconds{"];
    for family in families {
        let series = text.lines().filter(|line| line.starts_with(family)).count();
        assert!((16..=OWNERS_OF_ALL + 1).contains(&series), "{series} of {family}");
    }
    let of = |labels: &str| {
        let series = format!("orphand_servers{{{labels}}} ");
        text.lines().find_map(|line| line.strip_prefix(&series).map(str::to_owned))
    };
    assert_eq!(of("agent=\"claude\",uid=\"64002\",generation=\"1\"").as_deref(), Some("1.0"));
    assert_eq!(of("agent=\"other\"").as_deref(), Some("584.0"));
    assert!(text.lines().count() < 2000, "{}", text.lines().count());
}

/// Control characters of a name, and marks of the format, stay within the label.
#[test]
fn names_are_harmless() {
    let name = "a\u{1b}[2J\u{202e}\n\"b\\";
    let report = Report { unowned: vec![of_user(1, name)], ..Report::default() };
    let metrics = metrics();
    let text = metrics.render(Some(&Status { report, ..Status::default() }), Exposition::Text);
    assert!(!text.contains(|c| c != '\n' && orphand_core::model::text::is_hostile(c)), "{text:?}");
    assert!(text.contains(r#"{agent="a\\x1b[2J\\u{202e}\\n\"b\\",uid="1""#), "{text}");
}

#[test]
fn who_accepts_what() {
    let prometheus =
        "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    assert_eq!(Exposition::of_accept(prometheus), Exposition::OpenMetrics);
    for accept in ["", "*/*", "text/plain", "text/html, text/plain;q=0.5"] {
        assert_eq!(Exposition::of_accept(accept), Exposition::Text);
    }
}

mod counters {
    use proptest::prelude::*;

    use super::super::*;

    fn sum(counters: &Counters, family: &families::Family) -> u64 {
        let owners = counters.owners.values().map(|owner| &owner.counts).chain([&counters.other]);
        let all = owners.flat_map(|counts| &counts.0).filter(|((name, _), _)| *name == family.name);
        all.map(|(_, value)| value).sum()
    }

    #[test]
    fn what_an_orphan_uses_counts_once() {
        let owner = vec![("agent", "claude".to_owned())];
        let mut all = Counters::default();
        all.begin("1@2", owner.clone(), 7, 500);
        for (id, cpu_ms, counted) in [
            ("3@4", Some(900), 0), // It is no orphan.
            ("1@2", Some(900), 400),
            ("1@2", Some(900), 400),
            ("1@2", None, 400),
            ("1@2", Some(100), 400), // A child of it ended: less is no use.
        ] {
            all.read(id, cpu_ms);
            assert_eq!(sum(&all, &ORPHAN_CPU), counted);
        }
        // Told again, after it was unproven for a while: what it used counts on.
        all.begin("1@2", owner, 7, 950);
        all.end("1@2", Some(1000));
        all.read("1@2", Some(2000));
        assert_eq!(sum(&all, &ORPHAN_CPU), 500);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// In whatever order owners are counted, sums are exact, owners are bounded, and a user with few
        /// owners keeps them.
        #[test]
        fn sums_are_exact_and_series_bounded(
            counted in prop::collection::vec((0_u32..60, 0_u32..40, any::<bool>()), 0..600),
            honest in 0_usize..600,
        ) {
            let mut all = Counters::default();
            let mut expected = [0, 0];
            let of_honest = |n: u32| vec![("agent", format!("claude{n}")), ("uid", "1000".to_owned())];
            let mut count = |all: &mut Counters, owner, user, reaped: bool| {
                let family = if reaped { REAPED } else { ORPHANS_DETECTED };
                all.of(owner, user).add(family.name, Labels::new(), 3);
                expected[usize::from(reaped)] += 3;
                expected
            };
            (0..4).for_each(|n| { count(&mut all, of_honest(n), 1000, true); });
            for (at, (user, name, reaped)) in counted.into_iter().enumerate() {
                // Separate users, and one user with a range of user ids.
                let user = if at % 2 == 0 { 100_000 + user * 40 + name } else { 1001 + user % 3 };
                let owner = vec![("agent", format!("a{name}")), ("uid", user.to_string())];
                let mut expected = count(&mut all, owner, user, reaped);
                if at == honest {
                    expected = count(&mut all, of_honest(9), 1000, true);
                }
                prop_assert_eq!([sum(&all, &ORPHANS_DETECTED), sum(&all, &REAPED)], expected);
                prop_assert!(all.owners.len() <= OWNERS_OF_ALL);
                let of_user = all.owners.values().filter(|owner| owner.user == user).count();
                prop_assert!(of_user <= OWNERS_OF_USER, "{of_user}");
            }
            for n in 0..4 {
                prop_assert!(all.owners.contains_key(&of_honest(n)), "{n} of the honest user lost its series");
            }
        }
    }
}
