//! What the page is told: never anything private, never more than its bounds, and what it is told is true.

use super::*;
use crate::sink::report::tests::{claude, filesystem};
use orphand_core::model::{
    AgentReport, AgentView, BootTime, Container, Doubt, Ending, Evidence, Guard, Holdings, KilledBy, Killer,
    Leftover, LeftoverClass, LeftoverReport, Notice, ProcessView, ReachedBy, Report, RunReport, RunView,
    SERIES, Series, ServerCounts, ServerReport, ServerView, Signal, Status, Timeline,
};

/// What must be in no byte of an answer: in paths, arguments, settings, users, numbers of processes.
const SECRETS: [&str; 6] = ["SECRET", "/home/", "424242424", "649997777", "manager.slice", "invocation"];

fn run(agent: &str, generation: u64) -> RunView {
    RunView {
        agent: agent.to_owned(),
        generation: Some(generation),
        uid: Some(649_997_777),
        unit: None,
        manager: Some("/user.slice/manager.slice".to_owned()),
        invocation_id: Some("invocation".to_owned()),
    }
}

/// A server whose every private field can be recognised.
fn server(number: u32, generation: u64, state: &str) -> ServerReport {
    let process = ProcessView {
        pid: 424_242_424,
        start: 4_242_420,
        uid: 649_997_777,
        exe: "/home/SECRET/bin/node".to_owned(),
        argv: vec!["node".to_owned(), "/home/SECRET/server-files".to_owned(), "--token=SECRET".to_owned()],
        argv_truncated: false,
        stale_binary: false,
    };
    let view = ServerView {
        id: format!("424242424@{number}"),
        name: "server-files".to_owned(),
        processes: vec![process],
        run: Some(run("claude", generation)),
        client: Some("SECRET".to_owned()),
        session: Some("SECRET".to_owned()),
        container: Some(Container { command: "docker stop SECRET".to_owned(), ..Container::default() }),
        ..filesystem()
    };
    ServerReport {
        server: view,
        evidence: vec![Evidence::OwnerExited],
        doubts: vec![Doubt::WireHeld],
        reached_by: vec![ReachedBy {
            pid: Some(424_242_424),
            program: Some("SECRET".to_owned()),
            user: Some(649_997_777),
            ..ReachedBy::default()
        }],
        guards: vec![Guard::Observe, Guard::Container],
        guarded_by: Vec::new(),
        pss_bytes: None,
        holdings: Holdings { listens: vec!["SECRET".to_owned()], locks: vec!["SECRET".to_owned()] },
        state: state.parse().unwrap(),
        next: None,
        deadline: None,
        session: None,
        found: false,
        duplicate_of: Some("424242424@1".to_owned()),
        members: Vec::new(),
    }
}

fn agent() -> AgentView {
    AgentView { pid: 424_242_424, invocation_id: Some("invocation".to_owned()), ..claude(true) }
}

fn status(servers: Vec<ServerReport>) -> Status {
    let report = Report {
        agents: vec![AgentReport { left_behind: None, run: None, agent: agent(), servers }],
        unowned: vec![server(900, 1, "orphan")],
        leftovers: Vec::new(),
        runs: vec![RunReport {
            run: run("claude", 3),
            user: 649_997_777,
            started: BootTime(1_000_000_000),
            alive: true,
        }],
        blind: Vec::new(),
    };
    let stuck = vec![orphand_core::model::StuckProcess {
        pid: 424_242_424,
        uid: Some(649_997_777),
        unanswered_ms: 1000,
    }];
    Status {
        pid: 424_242_424,
        report,
        stuck,
        config_error: Some("/home/SECRET".to_owned()),
        ..Status::default()
    }
}

fn harmless(json: &str) {
    for secret in SECRETS {
        assert!(!json.contains(secret), "{secret} is in {json}");
    }
}

fn page() -> Page {
    Page::new(WallClock { offset_ns: 1_785_153_600_000_000_000 })
}

const NOW: BootTime = BootTime(100_000_000_000_000);

#[test]
fn a_state_has_nothing_private() {
    let states = ["live", "suspect", "unproven", "orphan", "kept", "ending"];
    let servers = states.iter().zip(1..).map(|(state, number)| server(number, 3, state)).collect();
    let json = serde_json::to_string(&page().snapshot(&status(servers), NOW)).unwrap();
    harmless(&json);
    for told in [
        "server-files",
        "owner exited",
        &crate::sink::human::list_doubts(&[Doubt::WireHeld], &[]),
        "it works in a container",
        "\"number\":3",
    ] {
        assert!(json.contains(told), "{told} is missing in {json}");
    }
    assert!(json.contains(r#""leftovers":{"bytes":0,"count":0}"#), "{json}");
    let mut with_leftovers = status(Vec::new());
    let heads = vec![server(700, 3, "leftover")];
    let bytes = heads[0].rss_bytes();
    with_leftovers.report.leftovers =
        vec![LeftoverReport { agent: agent(), run: run("claude", 3), count: 2, heads }];
    let json = serde_json::to_string(&page().snapshot(&with_leftovers, NOW)).unwrap();
    harmless(&json);
    assert!(bytes > 0 && json.contains(&format!(r#""leftovers":{{"bytes":{bytes},"count":2}}"#)), "{json}");
    let mut blind = status(Vec::new());
    blind.blind.push("/home/SECRET cannot be read".to_owned());
    let json = serde_json::to_string(&page().snapshot(&blind, NOW)).unwrap();
    harmless(&json);
    assert!(json.contains("\"watching\":false"));
}

/// A name that only an agent's settings have may be private, and the path of a script is one.
#[test]
fn names_are_those_of_the_process_list() {
    let named = |name: &str| {
        let mut one = server(1, 1, "live").server;
        one.name = name.to_owned();
        shown_server(&one)
    };
    assert_eq!(named("server-files"), "server-files");
    assert_eq!(named("SECRET of the settings"), "node");
    assert_eq!(named("/home/SECRET/server-files"), "server-files");
    assert_eq!(shown_server(&ServerView { processes: Vec::new(), ..filesystem() }), "server");
    let long = "x".repeat(500);
    let mut one = server(1, 1, "live").server;
    one.processes[0].argv.push(long.clone());
    one.name = long;
    assert_eq!(shown_server(&one).len(), 66);
}

#[test]
fn events_have_nothing_private() {
    let (one, owner) = (server(1, 3, "orphan"), Some(agent()));
    let view = one.server;
    let notices = [
        Notice::AgentStarted { agent: agent(), continues: None, found: false },
        Notice::AgentExited {
            agent: agent(),
            ending: Ending::signal(
                9,
                Some(Killer { pid: Some(424_242_424), ..Killer::of(KilledBy::Process) }),
            ),
            servers_left: 2,
            rss_bytes: 5_000_000,
            cpu_ms: 7,
        },
        Notice::LeftoversFound {
            agent: agent(),
            count: 1,
            rss_bytes: 5_000_000,
            cpu_ms: 7,
            processes: vec![Leftover {
                class: LeftoverClass::Other,
                process: view.processes[0].clone(),
                processes_total: 1,
                rss_bytes: 5_000_000,
                cpu_ms: 7,
                age_ms: 9,
                listens: vec!["SECRET".to_owned()],
            }],
        },
        Notice::ServerStarted { server: view.clone(), owner: owner.clone(), found: false },
        Notice::ServerDuplicated { server: view.clone(), owner: owner.clone(), count: 2 },
        Notice::OrphanSuspected {
            recovered: false,
            server: view.clone(),
            owner: owner.clone(),
            deadline: NOW,
        },
        Notice::OrphanDetected {
            class: orphand_core::model::Class::Server,
            recovered: false,
            again: false,
            server: view.clone(),
            owner: owner.clone(),
            evidence: one.evidence,
            guards: one.guards.clone(),
            rss_bytes: 5_000_000,
            cpu_ms: None,
            pss_bytes: None,
            after_ms: 1,
            latency_ms: 1.0,
        },
        Notice::OrphanUnproven {
            server: view.clone(),
            owner: owner.clone(),
            evidence: Vec::new(),
            doubts: one.doubts,
            reached_by: one.reached_by,
            rss_bytes: 1,
            cpu_ms: None,
            after_ms: 1,
            deadline: None,
        },
        Notice::OrphanReaped {
            class: orphand_core::model::Class::Server,
            recovered: false,
            asked: false,
            asked_by: None,
            server: view.clone(),
            owner,
            cpu_ms: None,
            signal: Some(Signal::Term),
            took_ms: Some(42),
            freed_bytes: 9_000_000,
            freed_pss_bytes: Some(5_000_000),
            let_go: view.processes.clone(),
        },
        Notice::ReapFailed {
            server: view,
            pid: 424_242_424,
            error: "SECRET".to_owned(),
            errno: None,
            failed: 1,
        },
    ];
    let told: Vec<_> = notices.iter().filter_map(|notice| happening(1, page().wall, NOW, notice)).collect();
    assert_eq!(told.len(), notices.len());
    let json = serde_json::to_string(&told).unwrap();
    harmless(&json);
    assert!(
        json.contains("server-files of claude #3 ended by SIGTERM in 42 ms, 9 MB (PSS 5 MB) freed"),
        "{json}"
    );
    assert!(
        json.contains(
            "(5 MB) of claude #3, gone for 1 ms: owner exited; it stays: orphand is paused or only observes"
        ),
        "{json}"
    );
}

/// Of every notice, in each of its forms.
#[test]
fn no_sentence_tells_a_process() {
    for notice in crate::sink::human::tests::all() {
        let Some(told) = happening(1, page().wall, NOW, &notice) else { continue };
        let text = told["text"].as_str().unwrap();
        for private in ["pid", "/usr", "/opt", "alice", "pkill", "uid", "node", "sh >", ", client"] {
            assert!(!text.contains(private), "{private} is in {text}");
        }
    }
}

/// However many servers and runs: the worst are listed, all are counted, and the answer stays small.
#[test]
fn a_state_is_bounded() {
    let mut servers: Vec<_> = (0..5000).map(|n| server(n, u64::from(n % 400), "live")).collect();
    servers.push(server(6000, 1, "orphan"));
    let state = page().snapshot(&status(servers), NOW);
    let json = serde_json::to_value(&state).unwrap();
    let generations: Vec<_> = json["agents"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|a| a["generations"].as_array().unwrap())
        .collect();
    let listed: usize = generations.iter().map(|g| g["servers"].as_array().unwrap().len()).sum();
    let more: u64 = generations.iter().map(|g| g["more"].as_u64().unwrap()).sum();
    assert!(listed <= 512 && listed > 200, "{listed}");
    assert_eq!(listed as u64 + more, 5002);
    assert!(generations.len() < 30, "{}", generations.len());
    assert_eq!(
        (json["sums"]["live"]["count"].as_u64(), json["sums"]["orphan"]["count"].as_u64()),
        (Some(5000), Some(2))
    );
    let older = generations.iter().find(|g| g["older"] == true).unwrap();
    assert!(older["servers"].as_array().unwrap().iter().any(|one| one["state"] == "orphan"), "{older}");
    assert!(json.to_string().len() < 200_000);
}

#[test]
fn the_past_has_nothing_private() {
    let page = page();
    let question = page.question(Range::named("24h").unwrap(), NOW);
    let counts = ServerCounts { servers: 1, freed_bytes: 7_000_000, ..ServerCounts::default() };
    let series = |run| Series {
        run,
        owner: None,
        bytes: vec![u64::MAX / 100; 96],
        orphans: vec![1; 96],
        sums: counts,
    };
    let line = Timeline {
        series: (0..SERIES as u64).map(|n| series(Some(run("claude", n)))).collect(),
        other: Series { sums: ServerCounts { freed_pss_bytes: 2_000_000, ..counts }, ..series(None) },
        freed_bytes: vec![0; 96],
    };
    let past = page.past(&question, line);
    // Those of which only one of both could be read are in the other sum alone.
    assert_eq!(past["sums"]["freed_bytes"], 7_000_000 * (SERIES as u64 + 1));
    assert_eq!(past["sums"]["freed_pss_bytes"], 2_000_000);
    let json = serde_json::to_string(&past).unwrap();
    harmless(&json);
    assert!(json.len() < 100_000, "{}", json.len());
    assert_eq!(question.from.as_millisecond() % 900_000, 0);
    let end = question.from.as_millisecond() + question.step_ms * 96;
    let now = page.wall.timestamp(NOW).as_millisecond();
    assert!(end > now && end - now <= 900_000);
}

#[test]
fn the_document_is_small_and_whole() {
    let (text, policy) = document([0xab; 16]);
    assert!(text.len() < 200_000, "{}", text.len());
    assert!(!text.contains("{nonce}") && !text.contains("{style}") && !text.contains("{script}"));
    assert_eq!(text.matches(&format!("nonce=\"{}\"", "ab".repeat(16))).count(), 2);
    assert!(policy.contains(&"ab".repeat(16)) && !policy.contains("unsafe"));
    // Nothing is asked of another host; the name of a language of SVG is no address that is opened.
    let addresses =
        text.match_indices("http").filter(|(at, _)| !text[*at..].starts_with("http://www.w3.org/2000/svg"));
    assert_eq!(addresses.count(), 0);
    assert!(!text.contains("innerHTML"));
}
