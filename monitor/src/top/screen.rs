//! The terminal while the view has it. However the program ends, the terminal is as it was: at a normal end and an error by
//! [`Screen`]'s drop, at a panic by a hook, at a signal because the loop ends.

use std::{
    io::{self, IsTerminal as _},
    mem::ManuallyDrop,
    panic,
    sync::mpsc::Sender,
    thread,
    time::Duration,
};

use anyhow::{Context as _, bail};
use crossterm::{
    clipboard::CopyToClipboard,
    event::{DisableMouseCapture, EnableMouseCapture},
    execute,
    terminal::{Clear, ClearType, EnterAlternateScreen, enable_raw_mode},
};
use nix::sys::signal::{SigSet, Signal};
use ratatui::DefaultTerminal;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};

use super::News;
use crate::os::start;

const PATIENCE: Duration = Duration::from_secs(1);

/// The terminal in raw mode, on its second screen. At its own drop it would write to standard error if it is gone, and panic.
pub(super) struct Screen(pub(super) ManuallyDrop<DefaultTerminal>);

impl Screen {
    pub(super) fn take() -> anyhow::Result<Self> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            bail!("top needs a terminal; use `orphand ps` in a pipe");
        }
        if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
            bail!("top cannot place text on this terminal (TERM=dumb); use `orphand ps`");
        }
        // At a panic ratatui's own hook restores the rest, and calls this one.
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            release_mouse();
            before(info);
        }));
        let screen =
            ratatui::try_init().map(|it| Self(ManuallyDrop::new(it))).context("cannot use the terminal")?;
        execute!(io::stdout(), EnableMouseCapture).context("cannot use the mouse")?;
        Ok(screen)
    }

    /// Gives the terminal back to the shell and stops, until the shell lets it go on.
    pub(super) fn suspend(&mut self) -> anyhow::Result<()> {
        let why = "cannot use the terminal again";
        release_mouse();
        let _ = self.0.show_cursor();
        let _ = ratatui::try_restore();
        nix::sys::signal::raise(Signal::SIGTSTP).context("cannot stop")?;
        enable_raw_mode().context(why)?;
        execute!(io::stdout(), EnterAlternateScreen, Clear(ClearType::All), EnableMouseCapture)
            .context(why)?;
        // It takes the screen for empty now. To clear it in its own way it would ask the terminal, whose answer the keys would get.
        self.0.swap_buffers();
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // If the terminal is gone there is nothing to restore.
        release_mouse();
        let _ = self.0.show_cursor();
        let _ = ratatui::try_restore();
    }
}

fn release_mouse() {
    let _ = execute!(io::stdout(), DisableMouseCapture);
}

/// Tells the terminal to put this into its clipboard (OSC 52). Not every terminal does.
pub(super) fn copy(text: &str) -> anyhow::Result<()> {
    execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text)).context("cannot write to the terminal")
}

/// From now on a signal that asks the program to end is told instead. A thread that was started before would be ended by it.
pub(super) fn watch_signals(tell: Sender<News>) -> anyhow::Result<()> {
    let why = "cannot wait for signals";
    let asked: SigSet =
        [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT].into_iter().collect();
    asked.thread_block().context(why)?;
    let hung_up = tell.clone();
    let signalled = move || {
        let _ = asked.wait();
        leave(&tell);
    };
    start("signals", signalled).context(why)?;
    let hangup = move || {
        wait_for_hangup();
        leave(&hung_up);
    };
    start("hangup", hangup).context("cannot wait for the terminal")
}

/// Returns when the terminal is gone: not everybody gets SIGHUP then.
fn wait_for_hangup() {
    let stdin = std::io::stdin();
    loop {
        // POLLHUP is told without being asked for, poll(2).
        match poll(&mut [PollFd::new(&stdin, PollFlags::empty())], None) {
            Err(Errno::INTR) => {}
            _ => return,
        }
    }
}

/// Asks the loop to end. It cannot hear while it writes to a terminal that is gone, which never answers.
fn leave(tell: &Sender<News>) {
    let _ = tell.send(News::Leave);
    thread::sleep(PATIENCE);
    release_mouse();
    let _ = ratatui::try_restore();
    std::process::exit(0);
}

#[cfg(test)]
mod tests {
    use std::{env, process::Command};

    use super::*;

    /// Set for the copy of this test that has a terminal.
    const INSIDE: &str = "ORPHAND_TEST_HAS_A_TERMINAL";
    const NAME: &str = "top::screen::tests::a_panic_leaves_the_terminal_whole";

    /// script(1) and stty(1) are part of every Debian.
    #[test]
    fn a_panic_leaves_the_terminal_whole() {
        if env::var_os(INSIDE).is_some() {
            let screen = Screen::take().unwrap().0.size().unwrap();
            panic!("while it has {screen:?}");
        }
        let inside =
            format!("'{}' --exact {NAME} --nocapture; stty -a", env::current_exe().unwrap().display());
        let mut script = Command::new("/usr/bin/script");
        script.args(["-qec", &inside, "/dev/null"]).env(INSIDE, "1").env("PATH", "/usr/bin:/bin");
        let script = script.output().unwrap();
        let said = String::from_utf8_lossy(&script.stdout);
        let taken = said.find("\x1b[?1049h").expect("it had the second screen");
        for left in ["\x1b[?1049l", "\x1b[?1000l"] {
            let at = said.find(left).unwrap_or_else(|| panic!("no {left:?} in {said:?}"));
            assert!(taken < at && at < said.find("panicked at").unwrap(), "{said:?}");
        }
        assert!(said.contains(" icanon") && said.contains(" echo ") && !said.contains("-icanon"), "{said:?}");
    }
}
