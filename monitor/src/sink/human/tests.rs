//! Every notice as text.

use std::collections::BTreeMap;

use super::*;
use crate::sink::report::tests::{claude, filesystem, process};
use orphand_core::model::{
    AgentView, Class, Doubt, Ending, Guard, KilledBy, Killer, Leftover, LeftoverClass, ProcessId, Signal,
    Watched,
};

const WALL: WallClock = WallClock { offset_ns: 1_785_153_600_000_000_000 };

fn at(seconds: u64) -> BootTime {
    BootTime(seconds * 1_000_000_000)
}

fn text(colours: bool) -> Text {
    Text::new(WALL, TimeZone::UTC, Paint::new(colours))
}

/// Who ended a server.
fn pkill() -> Killer {
    Killer {
        pid: Some(4711),
        start: Some(99),
        program: Some("pkill".to_owned()),
        user: Some("alice".to_owned()),
        uid: Some(1001),
        ..Killer::of(KilledBy::Process)
    }
}

/// Its run has the name of its unit, as in `history`; the agent is named once.
#[test]
fn the_agent_of_a_unit() {
    let agent = AgentView { unit: Some("bot.service".to_owned()), ..claude(true) };
    let started = Notice::AgentStarted { agent, continues: None, found: false };
    let told = render(text(false), &[started]);
    assert!(told.contains("bot.service #3 started: claude, pid 1200\n"), "{told}");
}

/// One of each notice, and one of each form if a notice has several.
#[expect(clippy::too_many_lines, reason = "one of each kind")]
pub(in crate::sink) fn all() -> Vec<Notice> {
    let gone = || Some(claude(false));
    let host = AgentView {
        name: "host.py".to_owned(),
        generation: None,
        unit: Some("bot.service".to_owned()),
        implied: true,
        ..claude(true)
    };
    let mut young = filesystem();
    young.processes.truncate(1);
    let mut browser = filesystem();
    browser.name = "puppeteer".to_owned();
    for pid in 2000..2012 {
        browser.processes.push(process(pid, "/opt/chrome", &["/opt/chrome --type=renderer"]));
    }
    let exited = |ending, servers_left| Notice::AgentExited {
        agent: claude(false),
        ending,
        servers_left,
        rss_bytes: servers_left * 197_000_000,
        cpu_ms: servers_left * 40,
    };
    let cleared = |reason: &str, owner, ending| Notice::OrphanCleared {
        server: filesystem(),
        after_ms: 240,
        reason: reason.to_owned(),
        owner,
        ending,
        let_go: Vec::new(),
    };
    let leftover = |n: u32| Leftover {
        class: if n == 1 { LeftoverClass::Listener } else { LeftoverClass::Shell },
        process: process(4000 + n, "/usr/bin/bash", &["/usr/bin/ba\u{1b}sh", "-c", "npm run dev"]),
        processes_total: 2,
        rss_bytes: 9_000_000,
        cpu_ms: 9,
        age_ms: 9,
        listens: if n == 1 { vec!["127.0.0.1:3000".to_owned()] } else { Vec::new() },
    };
    let let_go = |number: u32| -> Vec<_> {
        (0..number).map(|n| process(3000 + n, "/usr/bin/sleep", &["sleep", "1d"])).collect()
    };
    let unproven = |evidence: &[Evidence], doubts: &[Doubt]| Notice::OrphanUnproven {
        server: filesystem(),
        owner: gone(),
        evidence: evidence.to_vec(),
        doubts: doubts.to_vec(),
        reached_by: Vec::new(),
        rss_bytes: 197_132_288,
        cpu_ms: None,
        after_ms: 10_000,
        deadline: None,
    };
    let detected = |server, evidence: &[Evidence], guards: &[Guard]| Notice::OrphanDetected {
        class: Class::Server,
        recovered: false,
        again: false,
        server,
        owner: gone(),
        evidence: evidence.to_vec(),
        guards: guards.to_vec(),
        rss_bytes: 197_132_288,
        cpu_ms: None,
        pss_bytes: None,
        after_ms: 10_000,
        latency_ms: 0.42,
    };
    let failed = |errno| Notice::ReapFailed {
        failed: 1,
        server: filesystem(),
        pid: 1241,
        error: "pidfd_send_signal: Operation not permitted".to_owned(),
        errno,
    };
    let alert = |on, value, limit| Notice::Alert {
        rule: "too many".to_owned(),
        on,
        agent: (on == Watched::Orphans).then(|| "claude".to_owned()),
        value,
        limit,
    };
    vec![
        Notice::Ready {
            version: "0.1.0".to_owned(),
            mode: Mode::Enforce,
            kernel: "6.18.5".to_owned(),
            hooks: vec![
                "fork".to_owned(),
                "exec".to_owned(),
                "exit".to_owned(),
                "setsid by tracepoint".to_owned(),
            ],
            processes: 214,
            agents: 2,
            servers: 5,
            found: 0,
        },
        Notice::Ready {
            version: "0.1.0".to_owned(),
            mode: Mode::Observe,
            kernel: "6.1.0".to_owned(),
            hooks: Vec::new(),
            processes: 1,
            agents: 0,
            servers: 1,
            found: 1,
        },
        Notice::AgentStarted { agent: claude(true), continues: None, found: false },
        Notice::AgentStarted { agent: host, continues: None, found: true },
        Notice::AgentStarted { agent: claude(true), continues: Some(ProcessId::new(1100, 5)), found: false },
        exited(Ending::code(0), 0),
        exited(Ending::code(1), 1),
        exited(Ending::signal(9, Some(Killer::of(KilledBy::OutOfMemory))), 3),
        exited(Ending::signal(40, None), 0),
        Notice::AgentsFolded {
            uid: 1000,
            count: 8420,
            names: [("claude".to_owned(), 8400), ("codex".to_owned(), 20)].into(),
        },
        Notice::ServerStarted { server: young.clone(), owner: Some(claude(true)), found: false },
        Notice::ServerStarted { server: filesystem(), owner: None, found: true },
        Notice::ServerExited {
            server: filesystem(),
            owner: Some(claude(true)),
            ending: Ending::default(),
            let_go: Vec::new(),
        },
        Notice::ServerExited {
            server: filesystem(),
            owner: Some(claude(true)),
            ending: Ending::signal(11, Some(Killer::of(KilledBy::Kernel))),
            let_go: let_go(2),
        },
        Notice::ServerDetached { server: filesystem(), pid: 1241, sid: 1241 },
        Notice::LeftoversFound {
            agent: claude(false),
            count: 7,
            rss_bytes: 45_000_000,
            cpu_ms: 9,
            processes: (0..5).map(leftover).collect(),
        },
        Notice::ServerDuplicated { server: filesystem(), owner: Some(claude(true)), count: 3 },
        Notice::OrphanSuspected { recovered: false, server: filesystem(), owner: gone(), deadline: at(116) },
        cleared("exited", None, Ending::code(0)),
        cleared("exited", None, Ending::signal(15, None)),
        cleared("owner_found", Some(claude(true)), Ending::default()),
        detected(filesystem(), &[Evidence::OwnerExited, Evidence::StdinHangup], &[]),
        detected(browser, &[Evidence::OwnerExited], &[Guard::Observe]),
        detected(young, &[Evidence::NoOwner], &[Guard::Multiplexer, Guard::OptedOut]),
        unproven(&[Evidence::OwnerExited], &[Doubt::WireHeld]),
        unproven(&[], &[Doubt::StdoutRead, Doubt::Clients]),
        unproven(&[Evidence::NoOwner], &[Doubt::OwnerUnknown, Doubt::WireUnknown, Doubt::Traced]),
        Notice::OrphanSpared {
            class: Class::Server,
            server: filesystem(),
            owner: gone(),
            guards: vec![Guard::LiveAgentBelow],
            deadline: None,
        },
        Notice::OrphanReaped {
            class: Class::Server,
            recovered: false,
            freed_pss_bytes: None,
            cpu_ms: None,
            server: filesystem(),
            owner: gone(),
            asked: true,
            asked_by: Some("alice".to_owned()),
            signal: Some(Signal::Term),
            took_ms: Some(153),
            freed_bytes: 197_132_288,
            let_go: let_go(1),
        },
        failed(Some(1)),
        failed(None),
        Notice::OrphanExited {
            class: Class::Server,
            server: filesystem(),
            owner: gone(),
            ending: Ending::signal(9, Some(pkill())),
            let_go: Vec::new(),
        },
        Notice::Lost { records: Losses { fork: 2, exec: 1, ..Losses::default() }, sink: BTreeMap::new() },
        Notice::Lost { records: Losses::default(), sink: BTreeMap::from([("stream".to_owned(), 12)]) },
        Notice::Resynced { added: 2, removed: 1 },
        alert(Watched::Orphans, 12, 10),
        alert(Watched::Rss, 11_000_000_000, 4 << 30),
        alert(Watched::Rate, 30, 5),
        alert(Watched::ReapFailures, 1, 0),
        alert(Watched::Blind, 1, 0),
        Notice::AlertResolved {
            rule: "too many".to_owned(),
            on: Watched::Orphans,
            agent: Some("claude".to_owned()),
            value: 1,
            limit: 10,
            after_ms: 93_000,
        },
        Notice::Reconfigured { mode: Mode::Enforce, by: None },
        Notice::Reconfigured { mode: Mode::Observe, by: None },
        Notice::Reconfigured { mode: Mode::Observe, by: Some("alice".to_owned()) },
        Notice::Stopping { agents: 2, servers: 5, orphans: 0 },
    ]
}

fn render(mut text: Text, notices: &[Notice]) -> String {
    let mut out = String::new();
    for (n, notice) in notices.iter().enumerate() {
        text.write(at(u64::try_from(n).unwrap() + 93), notice, &mut out);
    }
    out
}

#[test]
fn every_notice() {
    insta::assert_snapshot!(render(text(false), &all()));
}

#[test]
fn every_notice_in_colour() {
    let shown = render(text(true), &all());
    insta::assert_snapshot!(shown.escape_debug().to_string().replace("\\n", "\n").replace("\\'", "'"));
}

#[test]
fn who_decided_is_a_person_in_public() {
    let public = |by: Option<&str>| {
        let by = by.map(str::to_owned);
        Text::public(WallClock::default(), at(0), &Notice::Reconfigured { mode: Mode::Observe, by })
    };
    assert_eq!(
        public(Some("alice")),
        "ends nothing from now on (a pause, or observe mode), decided by a person"
    );
    assert_eq!(public(None), "a new configuration is in effect: observing, ends nothing");
}

#[test]
fn a_new_day_is_told() {
    let mut out = String::new();
    let mut text = text(false);
    for hours in [0, 11, 12] {
        text.write(at(hours * 3600), &Notice::Resynced { added: 0, removed: 0 }, &mut out);
    }
    insta::assert_snapshot!(out);
}

#[test]
fn local_time_is_shown() {
    let zone = TimeZone::fixed(jiff::tz::offset(2));
    let shown = render(Text { zone, ..text(false) }, &[Notice::Resynced { added: 0, removed: 0 }]);
    assert!(shown.contains("14:01:33  repaired"), "{shown}");
}

/// A name that a process chose cannot move the cursor or begin a line.
#[test]
fn hostile_names_stay_on_their_line() {
    let evil = "\u{1b}[2J\nx\r\u{202e}\u{9b}";
    let json = serde_json::to_string(&all()).unwrap();
    let names =
        ["claude", "server-filesystem", "npm exec", "bot.service", "6.18.5", "setsid by", "Operation"];
    let json = names.iter().fold(json, |json, name| json.replace(name, &evil.escape_default_json()));
    let notices: Vec<Notice> = serde_json::from_str(&json).unwrap();
    let (plain, hostile) = (render(text(false), &all()), render(text(false), &notices));
    assert!(hostile.contains(r"\x1b[2J\nx"));
    assert_eq!(hostile.lines().count(), plain.lines().count());
    for line in hostile.lines() {
        assert!(!line.contains(orphand_core::model::text::is_hostile), "{line:?}");
    }
}

trait EscapeJson {
    fn escape_default_json(&self) -> String;
}

impl EscapeJson for str {
    /// The content of a JSON string.
    fn escape_default_json(&self) -> String {
        serde_json::to_string(self).unwrap().trim_matches('"').to_owned()
    }
}
