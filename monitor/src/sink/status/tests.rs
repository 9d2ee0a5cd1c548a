use std::collections::BTreeMap;

use super::*;
use crate::sink::report::tests::{claude, filesystem};
use orphand_core::model::Losses;
use orphand_core::model::{
    AgentReport, Decision, Doubt, Guard, Mode, Report, RunView, ServerReport, ServerView, SessionsStatus,
};

fn server(agent: &str, generation: Option<u64>, state: State, pss_bytes: Option<u64>) -> ServerReport {
    let unit = (agent == "bot").then(|| "bot.service".to_owned());
    let run =
        RunView { agent: agent.to_owned(), generation, uid: None, unit, manager: None, invocation_id: None };
    let server = ServerView { run: Some(run), ..filesystem() };
    ServerReport { server, pss_bytes, state, ..ServerReport::default() }
}

fn status(pss_bytes: Option<u64>) -> Status {
    let agent = |servers| AgentReport { left_behind: None, run: None, agent: claude(true), servers };
    let mut unowned = server("", None, State::Live, pss_bytes);
    unowned.server.run = None;
    let report = Report {
        agents: vec![
            agent(vec![
                server("claude", Some(9), State::Live, pss_bytes),
                server("claude", Some(10), State::Live, pss_bytes),
            ]),
            agent(vec![
                server("claude", Some(9), State::Kept, pss_bytes),
                server("bot", Some(2), State::Orphan, None),
            ]),
            agent(vec![server("\u{1b}[2Jevil", None, State::Live, None)]),
            agent(Vec::new()),
        ],
        unowned: vec![unowned],
        ..Report::default()
    };
    Status {
        version: "1.2.3".to_owned(),
        pid: 4711,
        up_ms: 12_000_000,
        report,
        processes: 77,
        ..Status::default()
    }
}

#[test]
fn one_look_tells() {
    let wall = WallClock { offset_ns: 1_785_153_600_000_000_000 };
    let troubled = Status {
        mode: Mode::Observe,
        blind: vec!["records of the kernel were lost".to_owned()],
        lost: Losses { fork: 3, exit: 1, ..Losses::default() },
        sink_dropped: BTreeMap::from([("stream".to_owned(), 9)]),
        resyncs: 1,
        ..status(Some(1_500_000))
    };
    let mut held = server("claude", Some(10), State::Unproven, None);
    held.doubts = vec![Doubt::WireHeld, Doubt::Clients];
    let mut busy = status(None);
    let suspect = ServerReport { deadline: Some(now() + Duration::from_secs(8)), ..held.clone() };
    let kept = ServerReport { state: State::Kept, guards: vec![Guard::OwnUnit], ..held.clone() };
    let all = [(State::Suspect, &suspect), (State::Ending, &held), (State::Kept, &kept)];
    let all = all.map(|(state, one)| ServerReport { state, ..one.clone() });
    busy.report.unowned = all.into_iter().chain([held]).collect();
    let mut sessions = status(None);
    sessions.sessions = Some(SessionsStatus {
        states: BTreeMap::from([(SessionState::Active, 1), (SessionState::Expired, 1)]),
        errors: BTreeMap::from([("timeout".to_owned(), 2), ("auth".to_owned(), 0)]),
    });
    let mut first_hour = status(None);
    let found = ServerReport {
        state: State::Kept,
        guards: vec![Guard::Found],
        found: true,
        ..ServerReport::default()
    };
    let found = ServerReport { server: filesystem(), ..found };
    let exempt = ServerReport { guards: vec![Guard::ExemptRule, Guard::Found], ..found.clone() };
    first_hour.report.unowned = vec![found.clone(), found.clone(), exempt];
    first_hour.standing.decide(&Decision::Pause { for_ms: Some(1_800_000) }, "alice", wall.timestamp(now()));
    let mut first_minute = status(None);
    first_minute.report.unowned = vec![ServerReport { state: State::Suspect, guards: Vec::new(), ..found }];
    let empty = Status { report: Report::default(), processes: 0, ..status(None) };
    let shown = [status(None), troubled, busy, sessions, first_hour, first_minute, empty]
        .map(|status| render(&status, now(), wall, &TimeZone::UTC, Paint::default()));
    assert!(!shown.concat().contains('\u{1b}'));
    insta::assert_snapshot!(shown.join("----\n"));
}

#[test]
fn what_is_not_kept_is_told() {
    let why = Some("cannot open the store /var/lib/orphand/orphand.db: disk I/O error".to_owned());
    let unkept = Status { store_error: why, ..status(None) };
    let told = render(&unkept, now(), WallClock::default(), &TimeZone::UTC, Paint::default());
    assert!(told.contains("\nNot kept: cannot open the store") && !told.contains("Not blind"), "{told}");
}

#[test]
fn what_an_earlier_daemon_knew_is_told_to_be_unknown() {
    let forgotten = vec!["of servers that began before noon, who called them: they stay".to_owned()];
    let told = |forgotten| {
        let status = Status { forgotten, ..status(None) };
        render(&status, now(), WallClock::default(), &TimeZone::UTC, Paint::default())
    };
    assert!(
        told(forgotten)
            .contains("\nNot known: of servers that began before noon, who called them: they stay.\n")
    );
    assert!(!told(Vec::new()).contains("Not known"));
}

/// Zero orphans is never said while it is blind, and that it is not blind any more is said whatever was lost.
#[test]
fn whether_it_is_blind_is_told() {
    let told = |blind: &[&str]| {
        let mut status = status(None);
        status.report.agents.truncate(1);
        status.blind = blind.iter().map(ToString::to_string).collect();
        status.lost = Losses { member: 7, ..Losses::default() };
        render(&status, now(), WallClock::default(), &TimeZone::UTC, Paint::default())
    };
    let (blind, sees) = (told(&["there is no room"]), told(&[]));
    assert!(blind.contains("no orphans seen") && !blind.contains("Not blind"), "{blind}");
    assert!(sees.contains("no orphans.\n") && sees.contains("\nNot blind.\n"), "{sees}");
    assert!(sees.contains("\nLost: 7 without room.\n"), "{sees}");
}

#[test]
fn a_call_that_was_not_written_down_is_lost() {
    let told = |calls| {
        let kernel_errors = BTreeMap::from([("call_dropped".to_owned(), calls)]);
        let status = Status { kernel_errors, ..status(None) };
        render(&status, now(), WallClock::default(), &TimeZone::UTC, Paint::default())
    };
    let (some, none) = (told(7), told(0));
    assert!(some.contains("\nNot blind.\nLost: 7 call.\n"), "{some}");
    assert!(none.contains("\nNot blind, nothing lost.\n"), "{none}");
}

fn now() -> BootTime {
    BootTime(20_000_000_000_000)
}

mod standing {
    use super::super::*;
    use orphand_core::model::Decision;

    #[test]
    fn who_decided_what_and_until_when() {
        let noon: Timestamp = "2026-11-23T12:00:00Z".parse().unwrap();
        let mut standing = Standing::default();
        let told = |standing: &Standing, mode| doing(mode, standing, noon, &TimeZone::UTC);
        assert_eq!(told(&standing, Mode::Enforce), "ends orphans");
        assert_eq!(told(&standing, Mode::Observe), "observes only");
        standing.decide(&Decision::Mode { mode: Some(Mode::Enforce) }, "al\u{1b}ice", noon);
        assert_eq!(told(&standing, Mode::Enforce), "ends orphans, decided by al\\x1bice");
        assert_eq!(told(&standing, Mode::Observe), "observes only");
        let mut paused = standing.clone();
        paused.decide(&Decision::Pause { for_ms: None }, "bob", noon);
        let then = "is paused by bob (mode enforce, decided by al\\x1bice)";
        assert_eq!(told(&paused, Mode::Observe), then);
        standing.decide(&Decision::Mode { mode: None }, "alice", noon);
        let seconds = |seconds: u64| Decision::Pause { for_ms: Some(seconds * 1_000) };
        for (decision, words) in [
            (seconds(3 * 3600), "is paused until 15:00 by bob"),
            (seconds(24 * 3600), "is paused until 2026-11-24 12:00 by bob"),
            (seconds(30), "is paused until 12:00:30 by bob"),
            (Decision::Pause { for_ms: None }, "is paused by bob"),
        ] {
            standing.decide(&decision, "bob", noon);
            assert_eq!(told(&standing, Mode::Observe), words);
        }
    }
}
