//! Keys, looks and frames, without a terminal.

mod frames;

use ratatui::{
    Terminal,
    backend::TestBackend,
    crossterm::event::{KeyCode, MouseButton, MouseEvent, MouseEventKind},
};

use super::*;
use crate::top::draw;
use orphand_core::model::{
    self, AgentReport, AgentView, Asked, BootTime, Doubt, Evidence, Guard, Mode, ProcessId, ProcessView,
    ReachedBy, Report, ServerReport, ServerView,
};

const SECOND: u64 = 1_000_000_000;

fn process(pid: u32) -> ProcessView {
    let argv = vec!["node".to_owned(), format!("/srv/{pid}.js")];
    ProcessView {
        pid,
        start: 100,
        uid: 0,
        exe: "node".to_owned(),
        argv,
        argv_truncated: false,
        stale_binary: false,
    }
}

fn server(pid: u32, name: &str, state: model::State, megabytes: u64) -> ServerReport {
    let server = ServerView {
        id: format!("{pid}@100"),
        name: name.to_owned(),
        rule: "r".to_owned(),
        processes: vec![process(pid), process(pid + 1)],
        processes_total: 2,
        rss_bytes: Some(megabytes * 1_000_000),
        cpu_ms: Some(megabytes * 10),
        ..ServerView::default()
    };
    ServerReport { server, evidence: vec![Evidence::OwnerExited], state, ..ServerReport::default() }
}

fn agent(name: &str, pid: u32, servers: Vec<ServerReport>) -> AgentReport {
    let agent = AgentView {
        name: name.to_owned(),
        pid,
        start: 1,
        uid: 0,
        generation: Some(3),
        unit: None,
        invocation_id: None,
        alive: true,
        implied: false,
        hints: orphand_core::model::AgentHints::default(),
    };
    AgentReport { left_behind: None, run: None, agent, servers }
}

fn sample() -> Sample {
    let mut held = server(30, "weather", model::State::Unproven, 64);
    held.doubts = vec![Doubt::WireHeld];
    let step = ReachedBy {
        pid: Some(1365),
        by: "stdin".to_owned(),
        via: "can write to it".to_owned(),
        ..ReachedBy::default()
    };
    held.reached_by = vec![step];
    let mut kept = server(50, "own", model::State::Kept, 5);
    kept.guards = vec![Guard::OwnUnit];
    let agents = vec![
        agent(
            "claude",
            5,
            vec![server(10, "files", model::State::Live, 300), server(20, "git", model::State::Orphan, 97)],
        ),
        agent("codex", 6, vec![held, server(40, "small", model::State::Orphan, 12)]),
    ];
    let report = Report { agents, unowned: vec![kept], ..Report::default() };
    let source = "orphand 1  ends orphans".to_owned();
    let (mode, now) = (Some(Mode::Enforce), BootTime(43 * SECOND));
    Sample {
        report,
        mode,
        decided: None,
        source,
        now,
        freed: Some("1.2 GB (PSS 479 MB)".to_owned()),
        none_of: None,
    }
}

fn state() -> State {
    let mut state = State::new(Look::default());
    state.update(sample());
    state
}

fn press(state: &mut State, keys: &str) -> Option<Effect> {
    let mut last = None;
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\u{1b}' => KeyCode::Esc,
            key => KeyCode::Char(key),
        };
        last = state.key(code.into());
    }
    last
}

fn frame(state: &mut State, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw::draw(state, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}

fn names(state: &State) -> Vec<&str> {
    let server = |row: &Row| match row.kind {
        Kind::Server(at) => Some(state.entries[at].report.server.name.as_str()),
        _ => None,
    };
    state.rows.iter().filter_map(server).collect()
}

fn planned(state: model::State, guards: Vec<Guard>) -> model::ServerReport {
    model::ServerReport { guards, ..server(20, "git", state, 97) }
}

#[test]
fn sorting_and_turning_round() {
    let mut state = state();
    press(&mut state, "M");
    assert_eq!(names(&state), ["files", "git", "weather", "small", "own"]);
    press(&mut state, "I");
    assert_eq!(names(&state), ["own", "small", "weather", "git", "files"]);
    press(&mut state, ">");
    assert_eq!((state.how.sort, state.how.inverted), (Column::Cpu, false));
    press(&mut state, "<<<<<<");
    assert_eq!(state.how.sort, Column::State);
    press(&mut state, "<");
    assert_eq!(state.how.sort, Column::Next);
}

#[test]
fn the_filter_narrows_and_escape_clears_it() {
    let mut state = state();
    press(&mut state, "/CODEX");
    assert_eq!(names(&state), ["small", "weather"]);
    // Letters that are keys elsewhere are text here.
    assert_eq!(press(&mut state, " #3q"), None);
    assert_eq!(names(&state), Vec::<&str>::new());
    assert!(frame(&mut state, 80, 24)[3].starts_with("Nothing matches"));
    press(&mut state, "\u{1b}");
    assert_eq!(names(&state).len(), 5);
    press(&mut state, "/41\n");
    assert_eq!(names(&state), ["small"]);
    assert!(!state.typing);
    press(&mut state, "\u{1b}");
    assert_eq!(names(&state).len(), 5);
}

#[test]
fn the_tree_folds() {
    let mut state = state();
    press(&mut state, "t");
    let kinds = |state: &State| state.rows.iter().map(|row| (row.depth, row.open)).collect::<Vec<_>>();
    assert_eq!(state.rows.len(), 11);
    assert_eq!(kinds(&state)[..3], [(0, Some(true)), (1, Some(true)), (2, Some(false))]);
    // The selection stayed at the server it was at.
    assert_eq!(state.selection().map(|entry| entry.report.server.name.as_str()), Some("git"));
    press(&mut state, "+");
    assert_eq!(state.rows.len(), 13);
    press(&mut state, "- ");
    assert_eq!(state.rows.len(), 13);
    state.key(KeyCode::Home.into());
    press(&mut state, "-");
    assert_eq!(state.rows.len(), 8);
    press(&mut state, "*");
    assert_eq!(state.rows.len(), 3 + 3 + 5 + 10);
    press(&mut state, "*");
    assert_eq!(state.rows.len(), 3);
}

#[test]
fn movement_stays_within_the_list_and_in_sight() {
    let mut state = state();
    let unowned = (0..2000).map(|n| server(10 * n + 10, "s", model::State::Live, u64::from(n))).collect();
    let report = Report { unowned, ..Report::default() };
    state.update(Sample { report, ..sample() });
    frame(&mut state, 80, 24);
    assert_eq!(state.page, 20);
    for (key, selected) in [
        (KeyCode::End, 1999),
        (KeyCode::Down, 1999),
        (KeyCode::PageUp, 1979),
        (KeyCode::Home, 0),
        (KeyCode::Up, 0),
        (KeyCode::PageDown, 20),
        (KeyCode::Char('j'), 21),
        (KeyCode::Char('k'), 20),
    ] {
        state.key(key.into());
        assert_eq!(state.selected, selected, "{key:?}");
        assert!((state.top..state.top + state.page).contains(&selected), "{key:?} {}", state.top);
    }
}

#[test]
fn enter_explains_the_server_or_its_process() {
    let mut state = state();
    let asked = |pid| Some(Effect::Ask(Ask::Explain(Asked::Id(ProcessId::new(pid, 100)))));
    assert_eq!(press(&mut state, "/weather\n\n"), asked(30));
    state.read(Dialog::text("30@100", &"pid 1365 can write to it\n".repeat(50)));
    let text = frame(&mut state, 80, 30).join("\n");
    assert!(text.contains("30@100") && text.contains("pid 1365 can write to it"), "{text}");
    press(&mut state, "\u{1b}");
    assert_eq!(state.dialog, None);
    // In the tree a process below a server is one of its own.
    press(&mut state, "t*jjj");
    assert_eq!(press(&mut state, "\n"), asked(31));
    assert_eq!(press(&mut state, "y"), Some(Effect::Copy("31@100".to_owned())));
}

#[test]
fn the_mouse_moves_and_selects() {
    let mut state = state();
    frame(&mut state, 80, 24);
    let mouse = |kind, row| MouseEvent { kind, column: 5, row, modifiers: KeyModifiers::NONE };
    state.mouse(mouse(MouseEventKind::Down(MouseButton::Left), 6));
    assert_eq!(state.selected, 3);
    // Below the last row and in the head there is nothing to select.
    for row in [0, 2, 12, 23] {
        state.mouse(mouse(MouseEventKind::Down(MouseButton::Left), row));
        assert_eq!(state.selected, 3);
    }
    state.mouse(mouse(MouseEventKind::ScrollUp, 0));
    assert_eq!(state.selected, 0);
}

#[test]
fn the_cursor_follows_its_server_or_stays_in_its_line() {
    let mut state = state();
    press(&mut state, "M");
    assert_eq!(state.selected, 1);
    press(&mut state, "FT");
    press(&mut state, "M");
    assert_eq!(state.selected, 1);
    press(&mut state, "I");
    assert_eq!(state.selected, 1);
}

#[test]
fn ending_a_server_takes_two_decisions_and_ends_what_was_shown() {
    let mut state = state();
    let Some(Effect::Ask(Ask::Plan(request))) = press(&mut state, "r") else { panic!("{:?}", state.dialog) };
    assert_eq!(request.servers, Some(vec!["20@100".to_owned()]));
    assert!(!request.include_unproven && !request.include_active);
    state.planned(&request, vec![planned(model::State::Orphan, Vec::new())]);
    let text = frame(&mut state, 80, 24).join("\n");
    assert!(text.contains("20  node /srv/20.js") && text.contains("[ Cancel ]  [ End ]"), "{text}");
    // "Cancel" is selected at first.
    assert_eq!(press(&mut state, "\n"), None);
    assert_eq!(state.dialog, None);
    press(&mut state, "r");
    state.planned(&request, vec![planned(model::State::Orphan, Vec::new())]);
    assert_eq!(press(&mut state, "yreq"), None);
    let Some(Effect::Ask(Ask::Reap(exact))) = press(&mut state, "\t\n") else { panic!("{:?}", state.dialog) };
    assert_eq!(exact, request);
}

#[test]
fn what_a_guard_protects_cannot_be_ended() {
    let mut state = state();
    let Some(Effect::Ask(Ask::Plan(request))) = press(&mut state, "r") else { panic!() };
    state.planned(&request, vec![planned(model::State::Kept, vec![Guard::OwnUnit])]);
    assert_eq!(press(&mut state, "\tl\n"), None);
    // Nothing is planned for what lives: it says what it is, and what ends it all the same.
    press(&mut state, "r");
    state.planned(&request, Vec::new());
    assert_eq!(state.message, "It is orphan: `orphand reap 20@100 --include-active` ends it.");
}

#[test]
fn an_answer_that_nobody_waits_for_opens_nothing() {
    let mut state = state();
    let Some(Effect::Ask(Ask::Plan(request))) = press(&mut state, "r") else { panic!() };
    press(&mut state, "\u{1b}");
    state.planned(&request, vec![planned(model::State::Orphan, Vec::new())]);
    assert_eq!(state.dialog, None);
    // Nor does that for another server.
    press(&mut state, "jr");
    state.planned(&request, vec![planned(model::State::Orphan, Vec::new())]);
    assert!(matches!(state.dialog, Some(Dialog { asks: Asks::Daemon(_), .. })));
}

#[test]
fn nothing_is_ended_read_only_or_without_a_daemon() {
    let mut state = State::new(Look { readonly: true, ..Look::default() });
    state.update(sample());
    assert_eq!((press(&mut state, "r"), &state.dialog), (None, &None));
    let mut state = self::state();
    state.update(Sample { mode: None, ..sample() });
    assert_eq!((press(&mut state, "r"), &state.dialog), (None, &None));
}

#[test]
fn that_no_daemon_answers_is_said_before_proc_is_looked_through() {
    let mut state = state();
    state.trouble = "it is stopping".to_owned();
    assert!(frame(&mut state, 80, 24)[23].contains("stopping"));
    let rows = state.rows.len();
    state.alone(Sample::of_proc(Report::default(), "no daemon answers", BootTime(0)));
    let shown = frame(&mut state, 80, 24);
    assert!(shown[0].starts_with("no daemon answers") && shown[23].starts_with("? help"), "{shown:?}");
    assert_eq!((state.rows.len(), press(&mut state, "r")), (rows, None));
}

#[test]
fn a_frozen_view_keeps_what_is_shown_and_says_so_on_any_screen() {
    let mut state = state();
    press(&mut state, "Z");
    state.update(Sample { report: Report::default(), ..sample() });
    assert_eq!(state.rows.len(), 5);
    for width in [20, 80] {
        let first = frame(&mut state, width, 24).swap_remove(0);
        assert!(first.starts_with("FROZEN  ") && (width > 20 || first.ends_with('…')), "{first}");
    }
    press(&mut state, "Z");
    state.update(Sample { report: Report::default(), ..sample() });
    assert_eq!(state.rows.len(), 0);
}

#[test]
fn the_view_is_left() {
    assert_eq!(press(&mut state(), "q"), Some(Effect::Quit));
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(state().key(interrupt), Some(Effect::Quit));
    assert_eq!(state().key(KeyEvent { code: KeyCode::Char('z'), ..interrupt }), Some(Effect::Suspend));
}

#[test]
fn events_are_below_the_list() {
    let mut state = state();
    for number in 0..60 {
        state.event(format!("14:03:{number:02}  event {number}"));
    }
    let shown = frame(&mut state, 80, 24);
    assert!(shown[22].contains("event 59") && shown[19].contains("event 56"), "{shown:?}");
    assert!(!shown[18].contains("event") && shown[23].starts_with("? help"), "{shown:?}");
    state.event(format!("14:04:00  {}", "long ".repeat(20)));
    assert!(frame(&mut state, 80, 24)[22].ends_with('…'));
    // A small screen is for the list.
    assert!(!frame(&mut state, 80, 12).concat().contains("event"));
}

#[test]
fn the_views_of_the_numbers() {
    let mut state = state();
    let all = state.rows.len();
    press(&mut state, "1");
    assert!(state.rows.len() < all && state.entries.len() == all, "{:?}", state.rows);
    press(&mut state, "2");
    assert_eq!(state.rows.len(), all);
    press(&mut state, "3");
    assert_eq!(state.rows.len(), 0);
    assert!(frame(&mut state, 80, 24).concat().contains("No leftover"));
    assert_eq!(press(&mut state, "r"), None);
    press(&mut state, "2");
    assert_eq!(state.rows.len(), all);
    assert_eq!(press(&mut state, "4"), Some(Effect::Ask(Ask::History)));
    let far = "-".repeat(70);
    state.read(Dialog::table(
        "The last 24 hours",
        &format!("RUN  STARTED\nclaude #3  today{far} 12 reaped\n"),
    ));
    let shown = frame(&mut state, 80, 24).concat();
    assert!(shown.contains("The last 24 hours") && shown.contains("claude #3  today"), "{shown}");
    // A run has one line: what has no room is a key away.
    assert!(shown.contains("-…") && !shown.contains("reaped"), "{shown}");
    press(&mut state, "llll");
    let shown = frame(&mut state, 80, 24).concat();
    assert!(shown.contains("12 reaped") && !shown.contains("today"), "{shown}");
    // The numbers lead from there to the other views, and `t` to the tree; what asks a person stays.
    press(&mut state, "3");
    assert_eq!((&state.dialog, state.leftovers), (&None, true));
    press(&mut state, "?t");
    assert!(state.dialog.is_none() && state.how.tree);
    press(&mut state, "2");
    state.dialog = Some(Dialog::reap(vec![planned(model::State::Orphan, Vec::new())]));
    press(&mut state, "3");
    assert!(state.dialog.is_some() && !state.leftovers);
}
