//! Every sentence that `explain` can print, in three snapshots: of reasons, of facts, and of whole pages.

use std::fmt::Write as _;

use super::*;
use orphand_core::model::{
    AgentHints, AgentView, Container, Doubt, Ending, Evidence, Fate, Guard, KilledBy, Killer, NextStep,
    NoServer, Nothing, ProcessView, RunView, ServerView, Signal, State, Stdio,
};

const WALL: WallClock = WallClock { offset_ns: 1_785_153_600_000_000_000 };

pub(super) fn moment() -> Moment {
    Moment {
        now: BootTime(100_000_000_000),
        wall: WALL,
        zone: TimeZone::UTC,
        users: BTreeMap::from([(0, "root".to_owned()), (1000, "alice".to_owned())]),
    }
}

pub(super) fn seconds(seconds: u64) -> BootTime {
    BootTime(seconds * 1_000_000_000)
}

fn process(pid: u32, program: &str) -> ProcessView {
    ProcessView {
        pid,
        start: u64::from(pid),
        uid: 1000,
        exe: format!("/usr/bin/{program}"),
        argv: vec![program.to_owned()],
        argv_truncated: false,
        stale_binary: false,
    }
}

fn report(state: State) -> ServerReport {
    ServerReport {
        server: ServerView {
            id: "4700@4700".to_owned(),
            name: "mcp-server-git".to_owned(),
            rule: "program-mcp".to_owned(),
            processes: vec![process(4700, "sh"), process(4711, "mcp-server-git")],
            processes_total: 2,
            rss_bytes: Some(48 << 20),
            ..ServerView::default()
        },
        state,
        ..ServerReport::default()
    }
}

pub(super) fn agent(alive: bool) -> AgentView {
    AgentView {
        name: "claude".to_owned(),
        pid: 4650,
        start: 4650,
        uid: 0,
        generation: Some(3),
        unit: None,
        invocation_id: None,
        alive,
        implied: false,
        hints: AgentHints::default(),
    }
}

/// A server in this state, with an owner that lives.
fn server(state: State) -> Explained {
    let nothing = Nothing { reason: NoServer::Unrelated, rule: None, streams: [Stdio::Null; 2] };
    Explained {
        taken_for: TakenFor::Server,
        nothing: None,
        report: Some(Box::new(report(state))),
        owner: Some(agent(true)),
        next: Some(NextStep::OwnerEnds),
        ..Explained::nothing(process(4711, "mcp-server-git"), nothing)
    }
}

pub(super) fn with(state: State, change: impl FnOnce(&mut ServerReport)) -> Explained {
    let mut one = server(state);
    if let Some(report) = &mut one.report {
        change(report);
    }
    one
}

pub(super) fn stdin_of(pid: u32) -> ReachedBy {
    ReachedBy {
        pid: Some(pid),
        start: Some(1365),
        program: Some("sleep".to_owned()),
        user: Some(0),
        by: "stdin".to_owned(),
        via: "can write to its standard input".to_owned(),
        to: None,
    }
}

fn creator(pid: u32, alive: Option<bool>, exited: Option<BootTime>) -> Creator {
    Creator {
        id: ProcessId::new(pid, u64::from(pid)),
        program: Some("claude".to_owned()),
        uid: Some(1000),
        alive,
        exited,
        witnessed: alive.is_some(),
    }
}

const NOTHING: [NoServer; 15] = [
    NoServer::KernelThread,
    NoServer::NoWire,
    NoServer::NotFollowed,
    NoServer::Shell,
    NoServer::Launcher,
    NoServer::Multiplexer,
    NoServer::Exempt,
    NoServer::ServiceManager,
    NoServer::Protected,
    NoServer::AgentNotFollowed,
    NoServer::NearMiss,
    NoServer::ShellsJob,
    NoServer::Silent,
    NoServer::Unrelated,
    NoServer::Unread,
];

#[test]
fn every_reason_says_what_would_change_it() {
    let all = [reasons(Evidence::ALL), reasons(Doubt::ALL), reasons(Guard::ALL)].concat();
    insta::assert_snapshot!("reasons", all.join("\n"));
}

#[test]
fn every_fact_is_a_sentence() {
    let mut all = String::new();
    for reason in NOTHING {
        for stdin in [Stdio::Terminal, Stdio::File] {
            let rule = Some("program-mcp".to_owned());
            let nothing = Nothing { reason, rule, streams: [stdin, Stdio::Null] };
            let said = what::nothing_sentence(&nothing);
            if stdin == Stdio::Terminal || said.contains("a file") {
                let _ = writeln!(all, "{reason:?}: {said}");
            }
        }
    }
    for stream in [Stdio::Closed, Stdio::Pipe(7), Stdio::Socket(7), Stdio::Other] {
        let nothing = Nothing { reason: NoServer::Unrelated, rule: None, streams: [stream, stream] };
        let _ = writeln!(all, "{}", what::nothing_sentence(&nothing));
    }
    for cause in [
        "owner_exited",
        "no_owner",
        "unit_restarted",
        "abandoned",
        "spawner_thread_exited",
        "asked",
        "session_expired",
        "idle_duplicate",
        "released",
    ] {
        let one =
            Explained { cause: Some(cause.to_owned()), since: Some(seconds(90)), ..server(State::Suspect) };
        let _ = writeln!(all, "{}", what::sentences(&one, &moment()).last().unwrap());
    }
    assert_eq!(what::cause_sentence("another"), None);
    insta::assert_snapshot!("facts", all);
}

/// What a process may be taken for, each once, with what comes next and what can be typed.
/// Once used, a released server is not asked about again by itself: the way out is told.
#[test]
fn who_was_used_since_its_release_is_released_again() {
    let told = |doubt| {
        let one = with(State::Unproven, |report| report.doubts = vec![doubt]);
        let all = Explanation { living: vec![one], asked_daemon: true, ..Explanation::default() };
        render(&all, &moment(), Some(WIDTH), Paint::new(false))
    };
    assert!(told(Doubt::Active).contains("orphand release"), "{}", told(Doubt::Active));
    assert!(!told(Doubt::Clients).contains("orphand release"));
}

#[test]
fn every_state_has_its_next_step_and_its_command() {
    let exited = |one: Explained| Explained {
        owner: Some(agent(false)),
        owner_exited: Some(seconds(90)),
        cause: Some("owner_exited".to_owned()),
        since: Some(seconds(90)),
        ..one
    };
    let next = |step, due: Option<u64>, one: Explained| Explained {
        next: Some(step),
        due: due.map(seconds),
        ..exited(one)
    };
    let held = |report: &mut ServerReport| report.reached_by = vec![stdin_of(1365)];
    let container = |report: &mut ServerReport| {
        report.guards = vec![Guard::Container];
        let command = "docker stop box\u{1b}[2J".to_owned();
        report.server.container = Some(Container { command, ..Container::default() });
    };
    let rule = |rule: &'static str| with(State::Live, move |report| report.server.rule = rule.to_owned());
    let again = NextStep::InspectedAgain;
    let table = vec![
        ("live", server(State::Live)),
        ("by its arguments", rule("mcp-arguments")),
        ("by the protocol", rule("protocol")),
        ("by a rule", rule("weather")),
        ("known by its name", Explained { only_named: true, ..server(State::Live) }),
        ("with a client", with(State::Live, |report| report.server.client = Some("claude-code".to_owned()))),
        ("a duplicate", with(State::Live, |report| report.duplicate_of = Some("5000@5000".to_owned()))),
        ("a wrapper", Explained { taken_for: TakenFor::Wrapper, ..server(State::Live) }),
        ("a part", Explained { taken_for: TakenFor::ServerPart, ..server(State::Live) }),
        ("let go", Explained { taken_for: TakenFor::ServerPart, let_go: true, ..server(State::Unproven) }),
        ("owner sought", Explained { owner: None, ..server(State::Live) }),
        ("a job", Explained { owner: None, next: Some(NextStep::Never), ..server(State::Live) }),
        ("owner gone unseen", Explained { owner: Some(agent(false)), ..server(State::Live) }),
        ("idle", Explained { due: Some(seconds(106)), next: Some(NextStep::Idle), ..server(State::Live) }),
        ("suspect", next(NextStep::Judged, Some(106), server(State::Suspect))),
        (
            "suspect, observed",
            Explained { observes: true, ..next(NextStep::Judged, Some(106), server(State::Suspect)) },
        ),
        ("inspected", next(NextStep::Inspected, None, server(State::Suspect))),
        ("unproven", next(again, Some(280), with(State::Unproven, held))),
        ("unproven, soon", next(again, None, server(State::Unproven))),
        ("kept", next(again, Some(99), with(State::Kept, |report| report.guards = vec![Guard::OptedOut]))),
        ("in a container", next(again, Some(130), with(State::Kept, container))),
        ("ending", next(NextStep::Ended, Some(101), server(State::Ending))),
        ("failed", next(NextStep::GivenUp, None, server(State::Orphan))),
        ("an agent", an_agent(3, false)),
        ("an implied agent", an_agent(1, true)),
        ("an agent of a rule", Explained { rule: Some("claude".to_owned()), ..an_agent(2, false) }),
        ("an agent alone", an_agent(0, false)),
        ("an agent without its wrapper", next(NextStep::Judged, Some(106), an_agent(2, false))),
        ("an agent left behind", Explained { report: server(State::Kept).report, ..an_agent(0, false) }),
    ];
    let mut all = String::new();
    for (name, one) in table {
        let _ = writeln!(all, "{name}: {}", page(&one, true, &moment()).title);
        for sentence in what::sentences(&one, &moment()) {
            let _ = writeln!(all, "  {sentence}");
        }
        for sentence in next::sentences(&one, true, &moment()) {
            let _ = writeln!(all, "  next: {sentence}");
        }
        for (command, what) in next::commands(&one) {
            let _ = writeln!(all, "  type: {command}: {what}");
        }
    }
    let _ = writeln!(all, "alone: {}", next::sentences(&server(State::Live), false, &moment()).join(" "));
    assert!(!all.contains('\u{1b}'));
    insta::assert_snapshot!("states", all);
}

fn an_agent(servers: u64, implied: bool) -> Explained {
    let agent = AgentView { implied, ..agent(true) };
    let (agent, taken_for) = (Some(agent), TakenFor::Agent);
    Explained { taken_for, agent, servers, report: None, owner: None, next: None, ..server(State::Live) }
}

pub(super) fn past(outcome: Fate) -> PastOrphan {
    let at = |second| WALL.timestamp(seconds(second));
    PastOrphan {
        id: "4711@4711".to_owned(),
        name: "mcp-server-git".to_owned(),
        rule: "program-mcp".to_owned(),
        hints: orphand_core::model::ServerHints::default(),
        run: Some(RunView { generation: Some(3), ..RunView::unknown("claude", 1000) }),
        owner: Some("claude".to_owned()),
        owner_id: Some("1200@1200".to_owned()),
        judged: at(50),
        evidence: vec![Evidence::OwnerExited, Evidence::StdinHangup],
        doubts: Vec::new(),
        guards: Vec::new(),
        rss_bytes: 48 << 20,
        pss_bytes: None,
        asked_by: None,
        failure: None,
        outcome,
        ended: Some(at(51)),
    }
}

fn reaped(signal: Option<Signal>, took_ms: Option<u64>) -> Fate {
    Fate::Reaped { signal, took_ms, freed_bytes: 48 << 20, freed_pss_bytes: Some(40 << 20) }
}

#[test]
fn whole_pages_keep_to_80_columns() {
    let mut unproven = with(State::Unproven, |report| {
        report.reached_by = vec![
            ReachedBy { pid: Some(8), via: "reads its standard output".to_owned(), ..ReachedBy::default() },
            ReachedBy { to: Some(9), ..stdin_of(8) },
            ReachedBy { to: Some(1365), ..stdin_of(9) },
            stdin_of(1365),
        ];
        report.evidence = vec![Evidence::OwnerExited];
        report.doubts = vec![Doubt::WireHeld];
        report.guards = vec![Guard::Observe];
    });
    unproven.creators = vec![
        creator(4650, Some(false), Some(seconds(90))),
        creator(4600, Some(false), None),
        creator(4500, None, None),
        Creator { program: None, uid: Some(7), ..creator(1, Some(true), None) },
    ];
    (unproven.next, unproven.due) = (Some(NextStep::InspectedAgain), Some(seconds(280)));
    let nothing = Nothing { reason: NoServer::NearMiss, rule: None, streams: [Stdio::Terminal; 2] };
    let [id, name, via] = ["8@1", "tool", "reads its output"].map(str::to_owned);
    let keeps = vec![Kept { id, name, via, pid: Some(9) }];
    let nothing = Explained { keeps, ..Explained::nothing(process(7, "my\u{202e}mcp"), nothing) };
    let failed = PastOrphan { failure: Some("no permission".to_owned()), ..past(Fate::Stays) };
    let unseen = PastOrphan { doubts: vec![Doubt::Clients], ended: None, run: None, ..past(Fate::Unseen) };
    let killer = Killer {
        pid: Some(4711),
        program: Some("pkill".to_owned()),
        user: Some("alice".to_owned()),
        ..Killer::of(KilledBy::Process)
    };
    let ended = vec![
        past(reaped(Some(Signal::Term), Some(30))),
        PastOrphan { asked_by: Some("alice".to_owned()), ..past(reaped(Some(Signal::Kill), None)) },
        past(reaped(None, None)),
        past(Fate::Exited { ending: Ending::code(0) }),
        past(Fate::Exited { ending: Ending::signal(15, Some(killer)) }),
        PastOrphan { evidence: Vec::new(), ..past(Fate::Exited { ending: Ending::signal(11, None) }) },
        unseen,
        PastOrphan { owner: None, run: None, guards: vec![Guard::OptedOut], ..past(Fate::Ending) },
        failed,
    ];
    let blind =
        vec!["not root: what other users' processes run and hold could be seen in part only".to_owned()];
    let living = vec![unproven];
    let known = Explanation { living, ended, asked_daemon: true, more: true, ..Explanation::default() };
    let alone = Explanation { living: vec![nothing], blind, ..Explanation::default() };
    let shown = [&known, &alone].map(|all| render(all, &moment(), Some(WIDTH), Paint::default()));
    for line in shown.iter().flat_map(|page| page.lines()) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    insta::assert_snapshot!("pages", shown.join("\n=====\n"));
    insta::assert_snapshot!("json", serde_json::to_string_pretty(&json(&known, &moment())).unwrap());
}

mod layout {
    use super::super::*;

    #[test]
    fn lines_break_between_words_and_never_within_one() {
        let text = "word ".repeat(40);
        let lines = wrap(&text, WIDTH, "  ", "    ");
        assert!(lines.len() > 2 && lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:?}");
        let long = "x".repeat(100);
        assert_eq!(
            wrap(&format!("a {long} b"), WIDTH, "", " "),
            ["a".to_owned(), format!(" {long}"), " b".to_owned()]
        );
        assert_eq!(wrap("", WIDTH, "", ""), [""]);
    }

    #[test]
    fn an_empty_section_is_not_shown() {
        let sections = vec![("One", vec!["a\nb".to_owned()]), ("Two", Vec::new())];
        let page = Page { title: "t".to_owned(), sections };
        let shown = lay_out(&[page], &["note".to_owned()], Some(WIDTH), Paint::new(false));
        assert_eq!(shown, "t\n\nOne\n  a\n      b\n\nnote\n");
    }
}

#[test]
fn a_guard_names_whom_it_means() {
    let mut one = server(State::Kept);
    let step = |guard: Guard, via: &str| ReachedBy {
        pid: Some(31),
        program: Some("claude".to_owned()),
        by: guard.reason().name.to_owned(),
        via: via.to_owned(),
        ..ReachedBy::default()
    };
    let report = one.report.as_mut().unwrap();
    report.guards = vec![Guard::ExemptRule, Guard::LiveAgentBelow, Guard::OptedOut];
    report.guarded_by = vec![step(Guard::ExemptRule, "is exempt"), step(Guard::LiveAgentBelow, "lives")];
    let place = "/etc/orphand/conf.d/spared.toml, line 3".to_owned();
    for (spared, way) in [(true, "sudo orphand spare --remove='a b'"), (false, "sudo orphand reload")] {
        one.exempted_by = Some(ExemptedBy { rule: "a b".to_owned(), place: place.clone(), spared });
        let told = guards(&one, one.report.as_ref().unwrap(), &moment());
        assert!(
            told[0].starts_with("pid 31 (claude) is exempt. It is in /etc/") && told[0].ends_with(way),
            "{told:?}"
        );
        assert!(told[1].starts_with("pid 31 (claude) lives. This ends when that agent"), "{told:?}");
        assert!(told[2].starts_with(Guard::OptedOut.reason().says), "{told:?}");
    }
}
