//! Runs commands during tests that leave the processors idle, because they mostly wait for time to pass.
//!
//! Such a command gets only processor time that no other process wants (`SCHED_IDLE`, sched(7)), so it does not slow
//! the tests. Its output is shown when it has exited. It ends if we do.

use std::{
    fs,
    path::Path,
    process::Command,
    thread::{self, JoinHandle},
};

use anyhow::{Context as _, Result, anyhow, bail};

use crate::{command, workspace};

/// Commands that run one after the other, until [`Beside::finish`].
#[derive(Debug)]
pub struct Beside(Option<JoinHandle<Result<Vec<Ended>>>>);

/// A command that has ended.
#[derive(Debug)]
struct Ended {
    name: &'static str,
    /// What it printed, on both of its streams.
    printed: String,
    /// Why it failed, if it did.
    failure: Option<String>,
}

impl Beside {
    /// Starts the commands. Each has a name, for people.
    pub fn start(commands: Vec<(&'static str, Command)>) -> Result<Self> {
        let folder = workspace::target_dir()?.join("beside");
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let all = move || commands.into_iter().map(|(name, command)| run(&folder, name, &command)).collect();
        Ok(Self(Some(thread::Builder::new().spawn(all).context("cannot start a thread")?)))
    }

    /// Waits for all of them and shows what they printed. An error names those that failed.
    pub fn finish(mut self) -> Result<()> {
        let Some(thread) = self.0.take() else { return Ok(()) };
        let mut failed = Vec::new();
        for ended in thread.join().map_err(|_| anyhow!("what ran beside the tests panicked"))?? {
            eprint!("{}", ended.printed);
            if let Some(why) = ended.failure {
                failed.push(format!("{}: {why}", ended.name));
            }
        }
        if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("; ")) }
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

/// One command, to its end.
fn run(folder: &Path, name: &'static str, command: &Command) -> Result<Ended> {
    let path = folder.join(name);
    let file = fs::File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    let copy = file.try_clone().context("cannot copy a descriptor")?;
    let failure = command::run(idle(command).stdout(file).stderr(copy)).err();
    let printed = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Ended {
        name,
        printed: String::from_utf8_lossy(&printed).into_owned(),
        failure: failure.map(|error| format!("{error:#}")),
    })
}

/// The same command, which gets only what is idle. util-linux and coreutils have these two programs.
fn idle(command: &Command) -> Command {
    let ways: [&[&str]; 2] = [&["chrt", "--idle", "0"], &["nice", "-n", "19"]];
    let found = ways.into_iter().find(|way| way.first().is_some_and(|name| command::find(name).is_some()));
    let own = command.get_program();
    let ends: &[&str] =
        if command::find("setpriv").is_some() { &["setpriv", "--pdeathsig", "TERM"] } else { &[] };
    let mut words = ends.iter().chain(found.unwrap_or_default()).map(AsRef::as_ref).chain([own]);
    let mut idle = Command::new(words.next().unwrap_or(own));
    idle.args(words).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => idle.env(name, value),
            None => idle.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        idle.current_dir(folder);
    }
    idle.stdin(std::process::Stdio::null());
    idle
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        shell
    }

    #[test]
    fn what_is_printed_is_kept_and_a_failure_does_not_hide_it() {
        let dir = tempfile::tempdir().unwrap();
        let ended = run(dir.path(), "good", shell("echo out; echo err >&2; echo $X").env("X", "x")).unwrap();
        assert_eq!((ended.printed.as_str(), ended.failure), ("out\nerr\nx\n", None));
        let ended = run(dir.path(), "bad", &shell("echo because; exit 3")).unwrap();
        assert_eq!(ended.printed, "because\n");
        assert!(ended.failure.unwrap().contains("exit status: 3"));
    }

    #[test]
    fn it_gets_what_is_idle_only() {
        let dir = tempfile::tempdir().unwrap();
        // The policy is the 41st field of proc_pid_stat(5), the nice value the 19th: 5 is SCHED_IDLE.
        let own = "read -r line < /proc/$$/stat; set -- ${line##*) }; echo ${17} ${39}";
        let ended = run(dir.path(), "idle", &shell(own)).unwrap();
        let fields: Vec<&str> = ended.printed.split_whitespace().collect();
        let [nice, policy] = fields[..] else { panic!("{ended:?}") };
        // The unit tests run without these programs in PATH, too, and perhaps with a nice value of their own.
        if command::find("chrt").is_some() {
            assert_eq!(policy, "5", "{ended:?}");
        } else if command::find("nice").is_some() {
            assert_eq!(nice, "19", "{ended:?}");
        } else {
            assert_eq!(policy, "0", "{ended:?}");
        }
    }
}
