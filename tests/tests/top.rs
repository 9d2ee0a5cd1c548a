//! The live view, driven as a person drives it: in a terminal of tmux.

use std::{path::PathBuf, process::Command};

use anyhow::{Context, Result, ensure};
use tests::{Daemon, Launch, Part, Scene, orphand, output, scene, within};

/// A terminal with a shell in it.
struct Terminal {
    socket: PathBuf,
    folder: PathBuf,
}

impl Terminal {
    /// It ends with the scene, in whose cgroup it is.
    fn open(s: &Scene) -> Result<Self> {
        let terminal = Self { socket: s.folder().join("tmux"), folder: s.folder().to_owned() };
        let mut tmux = s.command("/usr/bin/tmux")?;
        tmux.arg("-S").arg(&terminal.socket).args(["-f", "/dev/null", "new-session", "-d"]);
        tmux.args(["-x", "80", "-y", "24", "env PS1='$ ' sh"]);
        ensure!(output(&mut tmux)?.status.success(), "tmux does not start");
        terminal.wait("a prompt", |text| text.contains('$'))?;
        Ok(terminal)
    }

    fn tmux(&self, args: &[&str]) -> Result<String> {
        let out = output(Command::new("/usr/bin/tmux").arg("-S").arg(&self.socket).args(args))?;
        ensure!(out.status.success(), "tmux {args:?}: {}", String::from_utf8_lossy(&out.stderr));
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    }

    fn press(&self, keys: &[&str]) -> Result<()> {
        self.tmux(&[&["send-keys"], keys].concat()).map(drop)
    }

    fn text(&self) -> Result<String> {
        self.tmux(&["capture-pane", "-p"])
    }

    fn wait(&self, what: &str, wanted: impl Fn(&str) -> bool) -> Result<String> {
        let found = within(what, || self.text().ok().filter(|text| wanted(text)));
        found.with_context(|| self.text().unwrap_or_default())
    }

    fn resize(&self, width: &str, height: &str) -> Result<()> {
        self.tmux(&["resize-window", "-x", width, "-y", height]).map(drop)
    }

    /// The settings of the terminal, as the shell in it sees them, and whether screen and cursor are the usual ones.
    fn settings(&self, name: &str) -> Result<String> {
        let file = self.folder.join(name);
        self.press(&["clear; stty -g > ", &format!("{}.new; mv {0}.new {0}", file.display()), "Enter"])?;
        let stty = within("the settings of the terminal", || std::fs::read_to_string(&file).ok())?;
        Ok(stty + &self.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"])?)
    }

    fn start(&self, daemon: &Daemon, binary: &str, more: &str) -> Result<()> {
        let socket = daemon.socket();
        self.press(&[&format!("{binary} top {more} --socket {}", socket.display()), "Enter"])
    }
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

        terminal.start(&daemon, &binary, "")?;
        let text = terminal.wait("the living server", |text| row(text, &["live", pid]))?;
        ensure!(text.contains("observes only") && text.contains("STATE"), "{text}");
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
        terminal.wait("the evidence", |text| text.contains("owner exited") && text.contains("Guards"))?;
        terminal.press(&["Escape"])?;
        terminal.wait("the list", |text| !text.contains("Evidence"))?;
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
        terminal.start(&daemon, &binary, &format!("--below {}", s.below()))?;
        terminal.wait("the daemon", |text| row(text, &["observes only"]))?;
        daemon.kill()?;
        terminal.wait("that the daemon is gone", |text| row(text, &["no daemon answers"]))?;
        let view = s.members().into_iter().find(|one| one.argv().get(1).is_some_and(|verb| verb == "top"));
        let view = view.context("no view")?;
        view.signal(rustix::process::Signal::TERM)?;
        view.wait_gone()?;
        ensure!(terminal.settings("killed")? == before, "a signal left the terminal changed");

        // The terminal goes, and nobody sends a signal: a session of its own gets no SIGHUP.
        terminal.start(&daemon, &format!("setsid {binary}"), &format!("--below {}", s.below()))?;
        terminal.wait("the view", |text| row(text, &["no daemon answers"]))?;
        let view = s.members().into_iter().find(|one| one.argv().get(1).is_some_and(|verb| verb == "top"));
        let view = view.context("no view")?;
        terminal.tmux(&["kill-server"])?;
        view.wait_gone()?;
        Ok(())
    })
}
