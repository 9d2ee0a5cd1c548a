//! The live view, driven as a person drives it: in a terminal of tmux.

use std::fs::File;

use anyhow::{Context, Result, ensure};
use tests::{Daemon, Launch, Part, Terminal, orphand, scene, within};

fn start(terminal: &Terminal, daemon: &Daemon, binary: &str, more: &str) -> Result<()> {
    let socket = daemon.socket();
    terminal.press(&[&format!("{binary} top {more} --socket {}", socket.display()), "Enter"])
}

/// A line of the list, with what it contains.
fn row(text: &str, words: &[&str]) -> bool {
    text.lines().any(|line| words.iter().all(|word| line.contains(word)))
}

/// A person sees the orphan, resizes, filters, asks why, decides against ending it and then for it, leaves; the terminal is
/// whole, after a signal, too.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_person_finds_an_orphan_and_ends_it() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch { args: vec!["--observe"], ..Launch::default() })?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        daemon.wait_for("server_started", server.id)?;
        let pid = &server.id.pid.to_string();
        let terminal = Terminal::open(s)?;
        let before = terminal.settings("before")?;
        let binary = orphand()?.to_string_lossy().into_owned();

        start(&terminal, &daemon, &binary, "")?;
        let text = terminal.wait("the living server", |text| row(text, &["live", pid]))?;
        ensure!(text.contains("observes only") && text.contains("STATE"), "{text}");
        // What was said before the view was opened, too.
        terminal.wait("the start", |text| row(text, &[":", "  server: fake-mcp-server", "started"]))?;
        agent.kill()?;
        daemon.wait_for("orphan_detected", server.id)?;
        terminal.wait("the orphan", |text| row(text, &["kept", pid]))?;
        // What has happened is told below the list.
        terminal.wait("the event", |text| row(text, &[":", "  orphan: fake-mcp-server"]))?;
        for (width, height) in [("40", "10"), ("150", "50"), ("80", "24")] {
            terminal.resize(width, height)?;
            terminal.wait("the view at its new size", |text| {
                text.lines().last().is_some_and(|line| line.starts_with("? help")) && row(text, &["kept"])
            })?;
        }
        terminal.press(&["/", "nothing has this name", "Enter"])?;
        terminal.wait("an empty list", |text| text.contains("Nothing matches"))?;
        terminal.press(&["Escape"])?;
        terminal.wait("the orphan again", |text| row(text, &["kept", pid]))?;
        terminal.press(&["/", pid, "Enter"])?;
        terminal.wait("the filter", |text| text.contains(&format!("filter: {pid}")))?;
        terminal.press(&["Enter"])?;
        terminal.wait("the explanation", |text| text.contains("What it is") && text.contains(pid))?;
        terminal.press(&["Escape"])?;
        terminal.wait("the list", |text| !text.contains("What it is"))?;
        // "Cancel" is selected at first; the dialog names the process.
        let dialog = |text: &str| row(text, &["[ Cancel ]", "[ End ]"]) && row(text, &[pid, "python"]);
        terminal.press(&["r"])?;
        terminal.wait("the dialog", dialog)?;
        terminal.press(&["Enter"])?;
        terminal.wait("the list", |text| !text.contains("[ End ]"))?;
        ensure!(server.id.alive(), "it was ended without a yes");
        terminal.press(&["r"])?;
        terminal.wait("the dialog again", dialog)?;
        terminal.press(&["Tab", "Enter"])?;
        server.id.wait_gone()?;
        terminal.wait("the list without it", |text| text.contains("Nothing matches"))?;
        terminal.press(&["q"])?;
        terminal.wait("the shell", |text| !text.contains("STATE"))?;
        ensure!(terminal.settings("after")? == before, "the terminal was left changed");

        // The daemon goes: it says so. A signal: the terminal is whole.
        start(&terminal, &daemon, &binary, &format!("--below {}", s.below()))?;
        terminal.wait("the daemon", |text| row(text, &["observes only"]))?;
        daemon.kill()?;
        terminal.wait("that the daemon is gone", |text| row(text, &["no daemon answers"]))?;
        let view = s.members().into_iter().find(|one| one.argv().get(1).is_some_and(|verb| verb == "top"));
        let view = view.context("no view")?;
        view.signal(rustix::process::Signal::TERM)?;
        view.wait_gone()?;
        ensure!(terminal.settings("killed")? == before, "a signal left the terminal changed");

        // The terminal goes, and nobody sends a signal: a session of its own gets no SIGHUP.
        let ended = s.folder().join("ended");
        let wrapper = format!("setsid sh -c '{binary} \"$@\"; echo $? > {}' sh", ended.display());
        start(&terminal, &daemon, &wrapper, &format!("--below {}", s.below()))?;
        terminal.wait("the view", |text| row(text, &["no daemon answers"]))?;
        let view = s.members().into_iter().find(|one| one.argv().get(1).is_some_and(|verb| verb == "top"));
        let view = view.context("no view")?;
        terminal.hang_up()?;
        view.wait_gone()?;
        let code =
            within("its exit code", || std::fs::read_to_string(&ended).ok().filter(|code| !code.is_empty()))?;
        ensure!(code.trim() == "0", "ended with {code}");
        Ok(())
    })
}

/// Each state that a server can be in while the daemon ends orphans, and a long name, on one screen.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn the_view_names_states_holders_and_what_comes_next() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon_with(&Launch { grace: "5s", ..Launch::default() })?;
        let started = |agent: &tests::Actor, names: &[&str]| -> Result<Vec<tests::Actor>> {
            let all = names.iter().map(|name| agent.start(&Part::new(name, *name).wire("pipe")));
            let all = all.collect::<Result<Vec<_>>>()?;
            all.iter().try_for_each(|one| daemon.wait_for("server_started", one.id).map(drop))?;
            Ok(all)
        };
        let first = s.start(&Part::agent("first"))?;
        let left = started(&first, &["github-mcp-server", "postgres-mcp-server", "slack-mcp-server"])?;
        // Somebody else can write to the standard input of one of them.
        let wire = format!("/proc/{}/fd/0", left[0].id.pid);
        let wire = File::options().write(true).open(&wire).with_context(|| wire)?;
        let holder = s.spawn(s.command("/bin/sleep")?.arg("600").stdout(wire))?;
        let other = s.start(&Part::new("codex", "other").wire("null"))?;
        let used = started(&other, &["figma-mcp-server", "jira-mcp-server"])?;
        let second = s.start(&Part::agent("second"))?;
        let late = started(&second, &["sentry-mcp-server", "notion-mcp-server"])?;
        let terminal = Terminal::open(s)?;
        terminal.resize("128", "18")?;
        start(&terminal, &daemon, &orphand()?.to_string_lossy(), "")?;
        terminal.wait("all that is in use", |text| row(text, &["7 servers", "no orphans"]))?;
        first.kill()?;
        for ended in &left[1..] {
            daemon.reaped(&[ended.id])?;
        }
        daemon.wait_for("orphan_unproven", left[0].id)?;

        let pid = |one: &tests::Actor| one.id.pid.to_string();
        let held = format!("held by {}", holder.pid);
        terminal.wait("who holds it", |text| row(text, &["unproven", &pid(&left[0]), &held]))?;
        for one in &used {
            terminal.wait("what is in use", |text| row(text, &["live", &pid(one)]))?;
        }
        second.kill()?;
        let soon = |text: &str| late.iter().all(|one| row(text, &["suspect", &pid(one), "verdict"]));
        terminal.wait("when it is judged", |text| soon(text) && row(text, &["memory without owner", "█"]))?;
        terminal.picture("top")
    })
}

/// A person presses Tab: the shell offers agents and processes of the running daemon, and nothing without one.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn a_shell_offers_what_the_daemon_knows() -> Result<()> {
    scene(|s| {
        let daemon = s.daemon()?;
        let agent = s.start(&Part::agent("agent"))?;
        let server = agent.start(&Part::server("server"))?;
        daemon.wait_for("server_started", server.id)?;
        let terminal = Terminal::open(s)?;
        let folder = orphand()?.parent().context("no folder")?.display().to_string();
        terminal.press(&[&format!("PATH={folder}:$PATH PS1='> ' exec bash --norc --noprofile"), "Enter"])?;
        terminal.press(&["source <(orphand completions bash); clear", "Enter"])?;
        terminal.wait("the shell", |text| text.trim() == ">")?;
        let socket = daemon.socket().display().to_string();
        // At the second Tab bash shows all that it could be.
        terminal.press(&[&format!("orphand explain --socket {socket} "), "Tab", "Tab"])?;
        let pid = server.id.pid.to_string();
        terminal.wait("its process", |text| text.split_whitespace().any(|word| word == pid))?;
        terminal.press(&["C-u", &format!("orphand ps --socket {socket} --agent cl"), "Tab"])?;
        terminal.wait("the agent", |text| text.replace('\n', "").contains("--agent claude"))?;
        terminal.press(&["C-u", "orphand ps --socket none.sock --agent ", "Tab", "Tab", "nobody"])?;
        terminal.wait("nothing without a daemon", |text| text.contains("--agent nobody"))?;
        Ok(())
    })
}
