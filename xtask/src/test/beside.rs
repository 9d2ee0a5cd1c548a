//! Runs commands during tests that leave the processors idle, because they mostly wait for time to pass.
//!
//! Such a command gets only processor time that no other process wants (`SCHED_IDLE`, sched(7)), so it does not slow
//! the tests, unless they will wait for it. Its output is shown when it has exited. It ends if we do.

use std::{
    fs::File,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};

use super::pool::Count;
use crate::{command, files, workspace};

/// What makes a command such a one: how it is scheduled, and that it ends.
pub const IDLE: &str = "chrt --idle 0 setpriv --pdeathsig TERM";

/// For commands that tests will wait for: they get as much processor time as others.
pub const WANTED: &str = "setpriv --pdeathsig TERM";

/// Commands that run, each with a name, for people, and the file that it prints to.
#[derive(Debug)]
pub struct Beside(Vec<(&'static str, Child, PathBuf)>);

impl Beside {
    /// Starts the commands behind these words.
    pub fn start(words: &str, commands: impl IntoIterator<Item = (&'static str, Command)>) -> Result<Self> {
        let words: Vec<&str> = words.split(' ').collect();
        let folder = workspace::target_dir()?.join("beside");
        files::folder(&folder)?;
        let start = |(name, command): (&'static str, Command)| {
            let printed = folder.join(name);
            let out =
                File::create(&printed).with_context(|| format!("cannot create {}", printed.display()))?;
            let mut command = command::behind(&words, &command);
            command.stdin(Stdio::null()).stderr(out.try_clone()?).stdout(out);
            Ok((name, command.spawn().with_context(|| format!("cannot start {name}"))?, printed))
        };
        commands.into_iter().map(start).collect::<Result<_>>().map(Self)
    }

    /// Waits for all of them, shows what they printed, and counts the tests among them. An error names those that failed.
    pub fn finish(self) -> Result<Count> {
        let (mut failed, mut count) = (Vec::new(), Count::default());
        for (name, mut child, printed) in self.0 {
            let well = child.wait()?.success();
            let printed = files::read(&printed)?;
            eprint!("{printed}");
            failed.extend((!well).then_some(name));
            count = count + Count::of(&printed, well);
        }
        ensure!(failed.is_empty(), "beside the tests failed (above): {}", failed.join(", "));
        Ok(count)
    }
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
        let commands = vec![("idle", shell(policy)), ("bad", shell("echo because; exit 3"))];
        let ended = Beside::start(IDLE, commands).unwrap().finish().unwrap_err();
        assert_eq!(ended.to_string(), "beside the tests failed (above): bad");
        let folder = workspace::target_dir().unwrap().join("beside");
        let printed = ["idle", "bad"].map(|name| files::read(&folder.join(name)).unwrap());
        assert_eq!(printed, ["5\nerr\n", "because\n"]);
    }
}
