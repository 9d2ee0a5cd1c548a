//! A terminal as a person has one, in tmux.

use std::{env, fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};

use crate::{Scene, output, within};

/// A terminal with a shell in it.
#[derive(Debug)]
pub struct Terminal {
    socket: PathBuf,
    folder: PathBuf,
}

impl Terminal {
    /// It ends with the scene, in whose cgroup it is.
    pub fn open(s: &Scene) -> Result<Self> {
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

    /// Presses keys, by the names that tmux has for them.
    pub fn press(&self, keys: &[&str]) -> Result<()> {
        self.tmux(&[&["send-keys"], keys].concat()).map(drop)
    }

    /// What it shows.
    pub fn text(&self) -> Result<String> {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until it shows what is wanted.
    pub fn wait(&self, what: &str, wanted: impl Fn(&str) -> bool) -> Result<String> {
        let found = within(what, || self.text().ok().filter(|text| wanted(text)));
        found.with_context(|| self.text().unwrap_or_default())
    }

    /// Gives it another size, in cells.
    pub fn resize(&self, width: &str, height: &str) -> Result<()> {
        self.tmux(&["resize-window", "-x", width, "-y", height]).map(drop)
    }

    /// The settings of the terminal, as the shell in it sees them, and whether screen and cursor are the usual ones.
    pub fn settings(&self, name: &str) -> Result<String> {
        let file = self.folder.join(name);
        self.press(&["clear; stty -g > ", &format!("{}.new; mv {0}.new {0}", file.display()), "Enter"])?;
        let stty = within("the settings of the terminal", || fs::read_to_string(&file).ok())?;
        Ok(stty + &self.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"])?)
    }

    /// It goes away, without a signal to anybody.
    pub fn hang_up(&self) -> Result<()> {
        self.tmux(&["kill-server"]).map(drop)
    }

    /// Keeps what it shows, with colours, in the folder that `ORPHAND_PICTURES` names, if it does.
    pub fn picture(&self, name: &str) -> Result<()> {
        let Some(folder) = env::var_os("ORPHAND_PICTURES").map(PathBuf::from) else { return Ok(()) };
        let file = folder.join(format!("{name}.ansi"));
        fs::write(&file, self.tmux(&["capture-pane", "-e", "-p"])?)
            .with_context(|| format!("write {}", file.display()))
    }
}
