//! Runs commands during tests that leave the processors idle, because they mostly wait for time to pass.
//!
//! Such a command gets only processor time that no other process wants (`SCHED_IDLE`, sched(7)), so it does not slow
//! the tests. Its output is shown when it has exited. It ends if we do.

use std::{
    path::Path,
    process::Command,
    thread::{self, JoinHandle},
};

use anyhow::{Context as _, Result, anyhow, ensure};

use super::pool::play;
use crate::{command, files, workspace};

/// Commands that run one after the other, until [`Beside::finish`].
#[derive(Debug)]
pub struct Beside(Option<JoinHandle<Vec<Ended>>>);

/// A command that has ended: its name, what it printed, and whether it ended well.
type Ended = (&'static str, String, bool);

impl Beside {
    /// Starts the commands. Each has a name, for people.
    pub fn start(commands: Vec<(&'static str, Command)>) -> Result<Self> {
        let folder = workspace::target_dir()?.join("beside");
        files::folder(&folder)?;
        let all = thread::Builder::new().spawn(move || all(commands, &folder));
        Ok(Self(Some(all.context("cannot start a thread")?)))
    }

    /// Waits for all of them and shows what they printed. An error names those that failed.
    pub fn finish(mut self) -> Result<()> {
        let Some(thread) = self.0.take() else { return Ok(()) };
        let ended = thread.join().map_err(|_| anyhow!("what ran beside the tests panicked"))?;
        eprint!("{}", ended.iter().map(|(_, printed, _)| printed.as_str()).collect::<String>());
        let failed: Vec<&str> = ended.iter().filter(|(.., well)| !well).map(|(name, ..)| *name).collect();
        ensure!(failed.is_empty(), "beside the tests failed (above): {}", failed.join(", "));
        Ok(())
    }
}

impl Drop for Beside {
    /// Nobody asks any more; but it is not left to run alone.
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            drop(thread.join());
        }
    }
}

/// Each to its end. What this thread starts inherits that it gets only what is idle.
fn all(commands: Vec<(&'static str, Command)>, folder: &Path) -> Vec<Ended> {
    let own = rustix::thread::gettid().as_raw_pid().to_string();
    if let Err(error) = command::output(Command::new("chrt").args(["--idle", "--pid", "0", &own])) {
        command::say("test", &format!("what runs beside the tests may slow them: {error:#}"));
    }
    let one = |(name, command): (&'static str, Command)| {
        let ended =
            play(&mut command::behind(&["setpriv", "--pdeathsig", "TERM"], &command), &folder.join(name));
        let (printed, well) = ended.unwrap_or_else(|error| (format!("{error:#}\n"), false));
        (name, printed, well)
    };
    commands.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_gets_what_is_idle_only_and_a_failure_does_not_hide_what_is_printed() {
        let shell = |script: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", script]);
            shell
        };
        // The policy is the 41st field of proc_pid_stat(5): 5 is SCHED_IDLE.
        let policy = "read -r line < /proc/$$/stat; set -- ${line##*) }; echo ${39}; echo err >&2";
        let dir = tempfile::tempdir().unwrap();
        let commands = vec![("idle", shell(policy)), ("bad", shell("echo because; exit 3"))];
        let ended = thread::scope(|scope| scope.spawn(|| all(commands, dir.path())).join().unwrap());
        assert_eq!(ended, [("idle", "5\nerr\n".to_owned(), true), ("bad", "because\n".to_owned(), false)]);
    }
}
