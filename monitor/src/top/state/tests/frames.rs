//! What is drawn.

use super::*;

#[test]
fn the_worst_comes_first_and_the_whole_fits_80_columns() {
    let lines = frame(&mut state(), 80, 24);
    assert_eq!(lines[0], "orphand 1  ends orphans  24 h: 1.2 GB (PSS 479 MB) freed");
    assert!(lines[1].contains("3 orphans (114 MB, 1 kept), 1 unproven (64 MB)."), "{}", lines[1]);
    let shown: Vec<&str> = lines.iter().map(String::as_str).skip(2).take(6).collect();
    assert_eq!(
        shown,
        [
            "STATE    SERVER  AGENT     PID P    MEM  CPU AGE NEXT",
            "orphan   git     claude #3  20 2  97 MB 0.9s 42s TERM now",
            "orphan   small   codex #3   40 2  12 MB 0.1s 42s TERM now",
            "kept     own     -          50 2   5 MB 0.0s 42s stays: systemd manages it as a…",
            "unproven weather codex #3   30 2  64 MB 0.6s 42s held by 1365",
            "live     files   claude #3  10 2 300 MB 3.0s 42s -",
        ]
    );
}

/// The agent is above.
#[test]
fn in_the_tree_names_have_the_room_of_the_agent() {
    let mut state = state();
    press(&mut state, "t");
    let lines = frame(&mut state, 80, 24);
    assert!(!lines[2].contains("AGENT"), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("▸ weather  30 ")), "{lines:#?}");
}

#[test]
fn any_size_is_drawn() {
    for (width, height) in [(1, 1), (3, 2), (10, 4), (20, 10), (79, 23), (119, 5), (300, 100)] {
        for keys in ["", "t*", "?", "\n", "w", "/x"] {
            let mut state = state();
            press(&mut state, keys);
            frame(&mut state, width, height);
            state.dialog = Some(Dialog::reap(vec![planned(model::State::Orphan, Vec::new())]));
            frame(&mut state, width, height);
        }
    }
    frame(&mut State::new(Look::default()), 80, 24);
}

#[test]
fn wide_terminals_say_why() {
    let lines = frame(&mut state(), 140, 10);
    assert!(lines[2].ends_with("WHY") && lines[3].ends_with("owner exited"), "{lines:#?}");
    let mut listening = sample();
    let listens = ["127.0.0.1:9229", "[::1]:9229", "0.0.0.0:80"].map(str::to_owned).to_vec();
    for server in listening.report.servers_mut() {
        server.holdings.listens.clone_from(&listens);
    }
    let mut state = state();
    state.update(listening);
    let line = frame(&mut state, 140, 10).remove(3);
    assert!(line.ends_with("80 9229 owner exited"), "{line}");
    assert!(!frame(&mut state, 139, 10)[2].contains("PORTS"));
}

#[test]
fn the_widest_say_where_it_belongs() {
    let mut known = sample();
    for agent in &mut known.report.agents {
        agent.agent.hints.cwd = Some("/home/ada/shop/".to_owned());
        agent.agent.hints.terminal = Some("pts/3, tmux %5".to_owned());
    }
    let mut state = state();
    state.update(known);
    let lines = frame(&mut state, 176, 10);
    assert!(lines[2].contains("FOLDER TERMINAL       WHY"), "{lines:#?}");
    assert!(lines[3].contains("shop   pts/3, tmux %5 owner exited"), "{lines:#?}");
    assert!(!frame(&mut state, 175, 10)[2].contains("TERMINAL"));
    assert!(!frame(&mut state, 159, 10)[2].contains("FOLDER"));
}

#[test]
fn narrow_terminals_lose_what_says_least() {
    let lines = frame(&mut state(), 40, 10);
    assert_eq!(lines[2], "STATE    SERVER  PID P    MEM AGE");
    assert_eq!(lines[3], "orphan   git      20 2  97 MB 42s");
}

#[test]
fn ascii_is_ascii_and_names_cannot_act() {
    let mut state = State::new(Look { ascii: true, ..Look::default() });
    let mut hostile = sample();
    hostile.report.unowned[0].server.name = "a\u{1b}[2Jb".to_owned();
    state.update(hostile);
    press(&mut state, "t*");
    let text = frame(&mut state, 100, 30).join("\n");
    assert!(text.is_ascii(), "{text}");
    assert!(text.contains("a\\x1b[2Jb"), "{text}");
    press(&mut state, "?");
    assert!(frame(&mut state, 80, 30).join("\n").is_ascii());
}

#[test]
fn the_head_shows_the_last_minutes() {
    let mut state = state();
    let mut now = sample().now;
    for seconds in [2, 3, 4] {
        now = BootTime(now.0 + seconds * SECOND);
        state.update(Sample { now, ..sample() });
    }
    now = BootTime(now.0 + 2 * SECOND);
    state.update(Sample { now, report: Report::default(), ..sample() });
    assert_eq!(&state.past.bytes, &[178_000_000, 178_000_000, 178_000_000, 178_000_000, 0]);
    let head = &frame(&mut state, 140, 10)[1];
    assert!(head.ends_with("memory without owner, 10 s ████"), "{head}");
    state.look.ascii = true;
    assert!(frame(&mut state, 140, 10)[1].ends_with("10 s ####"));
}

#[test]
fn columns_are_as_wide_as_what_they_say() {
    let mut state = state();
    let mut named = server(10, "mcp-server-sequential-thinking", model::State::Kept, 3);
    named.guards = vec![Guard::ExemptRule];
    let other = server(20, "mcp-server-everything", model::State::Live, 3);
    let report = Report { unowned: vec![named, other], ..Report::default() };
    state.update(Sample { report, ..sample() });
    let line = |state: &mut State, width, name: &str| {
        let shown = frame(state, width, 24);
        shown.iter().find(|line| line.contains(name)).cloned().unwrap_or_else(|| panic!("{shown:?}"))
    };
    assert!(line(&mut state, 80, "everything").contains("mcp-server-everything "));
    assert!(line(&mut state, 120, "sequential").contains("mcp-server-sequential-thinking "));
    let why = format!("stays: {}", Guard::ExemptRule.reason().short);
    assert!(line(&mut state, 140, "sequential").ends_with(&why));
    let headings = line(&mut state, 200, "SERVER");
    assert!(!headings.contains("FOLDER") && !headings.contains("TERMINAL"), "{headings}");
    // What has no room is marked, and leaves room for names.
    assert!(
        line(&mut state, 40, "SERVER").split_whitespace().eq(["STATE", "SERVER", "PID", "P", "MEM", "AGE"])
    );
    assert!(line(&mut state, 40, "mcp-server-s").contains('…'));
}

#[test]
fn what_is_read_is_folded_once_and_all_of_it_can_be_reached() {
    let mut state = state();
    let words = format!(
        "{}\n\nWhat it is\n  {}\n      sudo orphand reap 4711\n",
        "a ".repeat(30),
        "word ".repeat(30)
    );
    state.read(Dialog::text("30@100", &words));
    let shown = frame(&mut state, 40, 24);
    let words: Vec<&str> = shown.iter().map(String::as_str).filter(|line| line.contains("word")).collect();
    // Each line but the last is as full as it can be, and those that follow are further in.
    assert_eq!(words[0], format!("  {}", "word ".repeat(7).trim_end()));
    for line in &words[1..words.len() - 1] {
        assert_eq!(*line, format!("    {}", "word ".repeat(7).trim_end()));
    }
    assert_eq!(words.len(), 5);
    // On a small screen it says that there is more; the end can be reached, nothing beyond it, and the page there is full.
    let shown = frame(&mut state, 40, 8).concat();
    assert!(shown.contains("more: Down, PgDn  Esc closes"), "{shown}");
    state.key(KeyCode::End.into());
    let shown = frame(&mut state, 40, 8);
    assert!(shown[6].contains("sudo orphand reap 4711") && shown[1].contains("word"), "{shown:?}");
    assert!(shown[7].contains("Esc closes") && !shown[7].contains("more"), "{shown:?}");
}
