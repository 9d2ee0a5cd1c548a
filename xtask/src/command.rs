//! Runs other programs. An error names the program and shows what it printed.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum;

/// Says a step of a verb on stderr.
pub fn say(verb: &str, what: &str) {
    eprintln!("{verb}: {what}");
}

/// Runs `command` with our own stdio; an error names it and its exit status.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", line(command)))?;
    ensure!(status.success(), "{} failed: {status}", line(command));
    Ok(())
}

/// Runs `command` and gives what it wrote to stdout; an error shows what it wrote to stderr.
pub fn output(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", line(command)))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} failed: {}: {}", line(command), output.status, said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The same command behind these words, each of which ends by running the next.
pub fn behind(words: &[impl AsRef<OsStr>], command: &Command) -> Command {
    let own = [command.get_program()];
    let mut all = words.iter().map(AsRef::as_ref).chain(own).chain(command.get_args());
    let mut behind = Command::new(all.next().unwrap_or_default());
    behind.args(all);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => behind.env(name, value),
            None => behind.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        behind.current_dir(folder);
    }
    behind
}

/// Does it for all of them, whatever fails: one call shows everything that is wrong.
pub fn each<T: ValueEnum>(verb: &str, all: &[T], mut one: impl FnMut(&T) -> Result<()>) -> Result<()> {
    let mut failed = Vec::new();
    for item in all {
        let name = item.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        match one(item) {
            Ok(()) => say(verb, &format!("{name}: ok")),
            Err(error) => {
                say(verb, &format!("{name}: FAILED\n{error:#}"));
                failed.push(name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("{verb} failed: {}", failed.join(", ")) }
}

/// The program of this name in `PATH`.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| dir.join(program)).find(|file| is_executable(file))
}

/// Whether `file` is there and may be executed by us.
pub fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// The command as one would type it, for messages.
fn line(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    format!("`{}`", words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_in_path_and_nothing_else() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program-of-orphand").is_none());
    }

    #[test]
    fn a_failure_names_the_command_and_what_it_said() {
        let error = output(Command::new("sh").args(["-c", "echo because >&2; exit 3"])).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("because") && text.contains("exit status: 3"), "{text}");
    }

    #[test]
    fn behind_words_it_is_the_same_command() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo $0 $X $PWD", "a"]).env("X", "x").current_dir("/");
        assert_eq!(output(&mut behind(&["env", "-u", "Y"], &shell)).unwrap(), "a x /\n");
        assert_eq!(output(&mut behind(&[""; 0], &shell)).unwrap(), "a x /\n");
    }
}
