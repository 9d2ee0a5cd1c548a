//! Runs other programs. An error names the program and shows what it printed.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

/// Says a step of a verb on stderr.
pub fn say(verb: &str, what: &str) {
    eprintln!("{verb}: {what}");
}

/// Runs `command` with our own stdio; an error names it and its exit status.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", line(command)))?;
    if !status.success() {
        bail!("{} failed: {status}", line(command));
    }
    Ok(())
}

/// Runs `command` and gives what it wrote to stdout; an error shows what it wrote to stderr.
pub fn output(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", line(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed: {}: {}", line(command), output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
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
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|arg| arg.to_string_lossy().into_owned()));
    format!("`{}`", words.join(" "))
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
}
