//! The history as text and as JSON.

use super::*;
use orphand_core::model::Losses;
use orphand_core::model::{DaemonLife, Doubt, Ending, Evidence, Guard, PastLoss, ServerCounts, Signal};

pub(super) fn time(text: &str) -> Timestamp {
    format!("2026-11-21T{text}Z").parse().unwrap()
}

fn claude(generation: u64) -> RunView {
    RunView {
        agent: "claude".to_owned(),
        generation: Some(generation),
        uid: Some(1000),
        unit: None,
        manager: None,
        invocation_id: None,
    }
}

fn orphan(name: &str, judged: &str, outcome: Fate) -> PastOrphan {
    PastOrphan {
        id: "1234@229468".to_owned(),
        name: name.to_owned(),
        rule: "npm-mcp".to_owned(),
        hints: orphand_core::model::ServerHints::default(),
        run: Some(claude(2)),
        owner: Some("claude".to_owned()),
        owner_id: None,
        judged: time(judged),
        evidence: vec![Evidence::OwnerExited, Evidence::StdinHangup],
        doubts: Vec::new(),
        guards: Vec::new(),
        rss_bytes: 197_132_288,
        pss_bytes: Some(80_000_000),
        asked_by: None,
        failure: None,
        outcome,
        ended: None,
    }
}

const REAPED: Fate = Fate::Reaped {
    signal: Some(Signal::Term),
    took_ms: Some(42),
    freed_bytes: 197_132_288,
    freed_pss_bytes: Some(80_000_000),
};

pub(super) fn past() -> History {
    let unit = RunView {
        uid: None,
        unit: Some("bot.service".to_owned()),
        invocation_id: Some("0".repeat(32)),
        ..claude(64)
    };
    let account = |servers, orphans, reaped, left| ServerCounts {
        servers,
        orphans,
        reaped,
        freed_bytes: reaped * 197_132_288,
        freed_pss_bytes: reaped * 80_000_000,
        left,
        unproven: left,
        unproven_left: left / 2,
    };
    let run = |run, started, ended: Option<&str>, account| PastRun {
        id: String::new(),
        run,
        started: time(started),
        ended: ended.map(time),
        leftovers: 2,
        leftover_bytes: 45_000_000,
        hints: orphand_core::model::AgentHints::default(),
        account,
    };
    let mut orphans: Vec<_> = (0..12).map(|_| orphan("server-filesystem", "08:12:44", REAPED)).collect();
    let guards = vec![Guard::Multiplexer, Guard::OwnUnit];
    orphans.insert(0, PastOrphan { guards, ..orphan("\u{1b}[2Jevil", "08:12:43", Fate::Stays) });
    let failure = Some("pid 7: not permitted".to_owned());
    orphans.push(PastOrphan { failure, run: None, ..orphan("time", "08:20:00", Fate::Ending) });
    let doubted = |outcome| PastOrphan {
        doubts: vec![Doubt::WireHeld, Doubt::Clients],
        pss_bytes: None,
        ..orphan("fetch", "08:12:50", outcome)
    };
    let unproven =
        vec![doubted(Fate::Stays), doubted(Fate::Exited { ending: Ending::code(0) }), doubted(REAPED)];
    let daemon = |started, stopped: Option<&str>| DaemonLife {
        started: time(started),
        stopped: stopped.map(time),
        version: "0.1.0".to_owned(),
        boot_id: "b".to_owned(),
    };
    History {
        since: Some(time("00:00:00")),
        until: None,
        begins: Some(time("04:00:00")),
        signals: Vec::new(),
        runs: vec![
            run(claude(1), "05:00:00", Some("05:00:07.5"), ServerCounts::default()),
            run(claude(2), "06:00:00", Some("08:12:33"), account(14, 13, 12, 1)),
            run(unit, "08:12:34", None, account(14, 0, 0, 0)),
        ],
        unaccounted: account(1, 1, 0, 1),
        orphans,
        unproven,
        never_judged: Vec::new(),
        daemons: vec![
            daemon("04:00:00", None),
            daemon("05:00:00", Some("06:00:00")),
            daemon("06:00:01", None),
        ],
        losses: vec![PastLoss { at: time("07:00:00"), records: Losses { exec: 3, ..Losses::default() } }],
        store_error: Some("cannot write the store /s: no space left".to_owned()),
    }
}

fn now() -> Watched {
    Watched::Now(time("09:00:00"))
}

#[test]
fn tables() {
    let shown = render(&past(), now(), &TimeZone::UTC, Paint::new(false));
    insta::assert_snapshot!(shown);
    // Nobody watches: what has not ended is not said to live.
    let mut past = past();
    past.daemons[2].stopped = Some(time("08:30:00"));
    let watched = Watched::without_daemon(&past);
    let shown = render(&past, watched, &TimeZone::UTC, Paint::new(false));
    for words in ["17 min 26 s, then unseen", "not known", "2 not seen to end", "may have ended since"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains("alive") && !shown.contains("still there"), "{shown}");
    past.daemons[2].stopped = None;
    assert_eq!(Watched::without_daemon(&past), Watched::Unknown);
}

#[test]
fn the_user_is_named_where_there_are_several() {
    assert!(!render(&past(), now(), &TimeZone::UTC, Paint::new(false)).contains("UID"));
    let mut past = past();
    past.runs[0].run.uid = Some(1001);
    let shown = render(&past, now(), &TimeZone::UTC, Paint::new(false));
    assert_eq!(shown.matches("UID").count(), 3, "{shown}");
    assert!(shown.contains("claude #1        1001") && shown.contains("claude #2        1000"), "{shown}");
    assert!(leaks::render(&past, &TimeZone::UTC, Paint::new(false)).contains("claude #2  1000"));
}

/// A person may have ended what was no orphan.
#[test]
fn what_was_ended_is_in_the_sum_without_orphans() {
    let unaccounted =
        ServerCounts { servers: 1, reaped: 1, freed_bytes: 10_000_000, ..ServerCounts::default() };
    let told =
        render(&History { unaccounted, ..History::default() }, now(), &TimeZone::UTC, Paint::new(false));
    assert!(told.contains("no orphans, 1 reaped, 10 MB freed"), "{told}");
}

#[test]
fn nothing() {
    let shown = render(&History::default(), now(), &TimeZone::UTC, Paint::new(true));
    assert_eq!(shown, "no runs, no MCP servers, no orphans.\n");
}

/// Times are RFC 3339, names are those of the events, and no character acts on a terminal.
#[test]
fn as_json() {
    let text = json(&past(), now()).unwrap();
    assert!(!text.contains(|c: char| c != '\n' && text::is_hostile(c)));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["runs"][1]["ended"], "2026-11-21T08:12:33Z");
    assert_eq!(
        (&value["runs"][1]["reaped"], &value["runs"][1]["run"]["generation"]),
        (&12.into(), &2.into())
    );
    assert_eq!(value["unproven"][0]["doubts"], serde_json::json!(["wire_held", "clients"]));
    assert_eq!(value["orphans"][1]["outcome"], "reaped");
    assert_eq!(value["source"], "daemon");
    assert_eq!(serde_json::from_value::<History>(value).unwrap(), past());
}

mod signals {
    use super::super::*;
    use orphand_core::model::{Doubt, Evidence, Signal};

    fn time(text: &str) -> Timestamp {
        format!("2026-11-21T{text}Z").parse().unwrap()
    }

    fn shown(past: &History) -> String {
        signals(past, users(past), past.until.unwrap(), &TimeZone::UTC, Paint::new(false))
    }

    fn around() -> History {
        History {
            since: Some(time("13:58:00")),
            until: Some(time("14:08:00")),
            begins: Some(time("08:00:00")),
            ..History::default()
        }
    }

    fn sent(at: &str, asked: bool, doubts: &[Doubt]) -> PastSignal {
        PastSignal {
            at: time(at),
            signal: Signal::Term,
            pid: 4711,
            start: 1,
            program: "node\u{1b}".to_owned(),
            server: "4711@1".to_owned(),
            name: "files".to_owned(),
            run: None,
            owner: Some("claude".to_owned()),
            asked,
            asked_by: asked.then(|| "alice".to_owned()),
            evidence: vec![Evidence::OwnerExited],
            doubts: doubts.to_vec(),
        }
    }

    #[test]
    fn nothing_is_an_answer() {
        let none = "No server was signalled by the daemon between 2026-11-21 13:58:00 and 2026-11-21 14:08:00. What a person ended as a leftover is not kept.\n";
        assert_eq!(shown(&around()), format!("{none}\n"));
        let later = History { begins: Some(time("14:00:00")), ..around() };
        let unknown = "Not known before 2026-11-21 14:00:00: the store begins then.\n";
        assert_eq!(shown(&later), format!("{unknown}{none}\n"));
        // Of a time before the store nothing is said.
        for (begins, says) in [
            (Some(time("14:08:00")), "Not known before 2026-11-21 14:08:00: the store begins then.\n\n"),
            (None, "No daemon has used this store yet.\n\n"),
        ] {
            assert_eq!(shown(&History { begins, ..around() }), says);
        }
    }

    #[test]
    fn to_whom_and_on_which_verdict() {
        let signals = vec![
            sent("14:03:00", false, &[]),
            sent("14:04:00", true, &[]),
            sent("14:05:00", true, &[Doubt::Clients]),
        ];
        let shown = shown(&History { signals, ..around() });
        let lines: Vec<_> = shown.lines().collect();
        assert!(lines[0].starts_with("TIME "), "{shown}");
        assert!(lines[1].starts_with("2026-11-21 14:03:00  SIGTERM  4711 node"), "{shown}");
        assert!(lines[1].ends_with("claude  orphan: owner exited"), "{shown}");
        assert!(lines[2].ends_with("alice asked; owner exited"), "{shown}");
        assert!(lines[3].contains("alice asked, though unproven: "), "{shown}");
        assert!(!shown.contains('\u{1b}') && !shown.contains("Nothing"), "{shown}");
    }
}

#[test]
fn runs_of_one_unit_of_two_users_are_told_apart() {
    let of = |uid: u32| {
        let mut run = past().runs.into_iter().find(|one| one.run.unit.is_some()).unwrap();
        run.run.manager = Some(format!("/user.slice/user-{uid}.slice/user@{uid}.service"));
        run
    };
    let past = History { runs: vec![of(1000), of(1001)], ..History::default() };
    let text = render(&past, Watched::Unknown, &TimeZone::UTC, Paint::new(false));
    let row = |uid: &str| {
        text.lines().filter(|line| line.contains("bot.service #64") && line.contains(uid)).count()
    };
    assert!(text.contains("UID") && row(" 1000 ") == 1 && row(" 1001 ") == 1, "{text}");
}
