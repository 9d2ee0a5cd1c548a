//! The test programs, and which tests are in them.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::{alone, pool::Job};
use crate::{command, workspace};

/// The program of tests/tests, each module of which is a topic.
const TOPICS: &str = "all";

/// A test program.
#[derive(Debug)]
pub struct Program {
    /// The name of its target; of a library or a binary with that word.
    pub name: String,
    path: PathBuf,
    /// The folder of its package, where cargo runs it.
    folder: PathBuf,
}

impl Program {
    /// Builds them, what they run, and all else that is built: in one go, so that nothing waits for the end of another. Names them.
    pub fn all() -> Result<Vec<Self>> {
        let mut cargo = workspace::cargo();
        cargo.arg("test").args(workspace::WHAT).args(["--no-run", "--all-targets"]);
        cargo.args(["--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit());
        let built = cargo.output().context("cannot start cargo test")?;
        ensure!(built.status.success(), "the tests cannot be built: {}", built.status);
        let text = String::from_utf8_lossy(&built.stdout);
        let mut all: Vec<Self> = text.lines().filter_map(Self::of_line).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// By a line of `cargo test --message-format=json`.
    fn of_line(line: &str) -> Option<Self> {
        let artifact: Value = serde_json::from_str(line).ok()?;
        let text = |path: &str| artifact.pointer(path)?.as_str();
        // Whether it is what the name says, and not the program itself, which tests may call.
        artifact.pointer("/profile/test")?.as_bool().filter(|is_test| *is_test)?;
        let (name, kind) = (text("/target/name")?, text("/target/kind/0")?);
        // It measures, and tests nothing.
        (kind != "bench").then_some(())?;
        let name = if kind == "test" { name.to_owned() } else { format!("{name} ({kind})") };
        let folder = Path::new(text("/manifest_path")?).parent()?.to_owned();
        Some(Self { name, path: text("/executable")?.into(), folder })
    }

    /// A job for each test that needs root and whose name contains `filter`; one for all where that is cheaper, or where the
    /// program is one test without a name.
    pub fn privileged(&self, root: &[OsString], filter: Option<&str>) -> Result<Vec<Job>> {
        let mut list = Command::new(&self.path);
        let said =
            command::output(list.args(["--list", "--ignored"]).args(filter).current_dir(&self.folder))?;
        let tests = listed(&said);
        if said.is_empty() || !tests.is_empty() && alone::WHOLE.contains(&&*self.name) {
            let args = ["--ignored", "--test-threads=1"].into_iter().chain(filter).collect::<Vec<_>>();
            return Ok(vec![self.job(self.name.clone(), root, &args)]);
        }
        let one = |test| {
            let args = ["--ignored", "--test-threads=1", "--exact", test];
            self.job(self.name_of(test), root, &args)
        };
        Ok(tests.into_iter().map(one).collect())
    }

    /// The name of a test, for people and for [`alone`]: its program, or its module where that program has all topics, and
    /// what it is called there.
    fn name_of(&self, test: &str) -> String {
        if self.name == TOPICS { test.replacen("::", " ", 1) } else { format!("{} {test}", self.name) }
    }

    /// Runs it with these arguments, by `runner`: the words before a command line. It ends if we do. Whoever
    /// runs us may ignore SIGHUP (nohup), and what ignores it is judged otherwise.
    pub fn job(&self, name: String, runner: &[OsString], args: &[&str]) -> Job {
        let mut command = command::behind(runner, &Command::new("setpriv"));
        command.args(["--pdeathsig", "KILL", "env", "--default-signal=HUP"]).arg(&self.path).args(args);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        Job { name, command }
    }
}

/// The names in the lines `name: test`.
fn listed(said: &str) -> Vec<&str> {
    said.lines().filter_map(|line| line.strip_suffix(": test")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_cargo_and_the_programs_say() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/o/tests/Cargo.toml","target":{"kind":["test"],"name":"top"},"profile":{"test":true},"executable":"/o/target/top-1"}"#;
        let top = Program::of_line(line).unwrap();
        assert_eq!((top.name.as_str(), &*top.folder), ("top", Path::new("/o/tests")));
        let library = Program::of_line(&line.replace("[\"test\"]", "[\"lib\"]")).unwrap();
        assert_eq!(library.name, "top (lib)");
        assert!(Program::of_line(&line.replace("\"/o/target/top-1\"", "null")).is_none());
        assert!(Program::of_line(&line.replace("true", "false")).is_none());
        assert!(Program::of_line(&line.replace("[\"test\"]", "[\"bench\"]")).is_none());
        assert!(Program::of_line(r#"{"reason":"build-finished","success":true}"#).is_none());
        assert_eq!(top.name_of("a::b"), "top a::b");
        assert_eq!(Program { name: TOPICS.into(), ..top }.name_of("a::b::c"), "a b::c");
        assert_eq!(listed("a::b: test\nc: test\n\n2 tests, 0 benchmarks\n"), ["a::b", "c"]);
    }
}
