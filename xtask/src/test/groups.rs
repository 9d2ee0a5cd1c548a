//! What takes minutes and finds nothing new from day to day: it runs when its inputs changed, or when it is asked for
//! (`cargo xtask test all`).
//!
//! Changed is what differs from the upstream branch; where that is this very commit, or there is none, from the commit
//! before. Where there is none either, as in a clone of one commit, everything counts as changed.

use std::process::Command;

use anyhow::Result;

use super::alone;
use crate::{command, workspace};

#[derive(Debug)]
pub struct Group {
    /// Its name, for people.
    pub name: &'static str,
    /// The tests in it, as in [`alone`]; none where it is no test.
    programs: &'static [&'static str],
    /// The beginnings of the paths of its inputs.
    inputs: &'static str,
}

/// The fuzz targets with an engine. Their corpus is read in any case.
pub const FUZZ: &str = "fuzz";
/// `cargo install --path monitor`, as the README says.
pub const INSTALL: &str = "cargo install";

/// The laws on so many random stories each; on a third of them in any case. The same code is told the same stories.
pub const LAWS: &str = "laws in depth";
pub const STORIES: &str = "300";

/// All of them.
const GROUPS: [Group; 6] = [
    Group { name: LAWS, programs: &[], inputs: "monitor/core/" },
    // The Debian package in a root of its own.
    Group {
        name: "packages",
        programs: &["package"],
        inputs: "packaging/ xtask/src/dist/ monitor/Cargo.toml monitor/build.rs tests/tests/package.rs tests/src/root.rs \
                 tests/stage/root.sh",
    },
    Group {
        name: FUZZ,
        programs: &[],
        inputs: "tests/fuzz/ xtask/src/fuzz.rs monitor/core/src/recognise/ monitor/core/src/model/redact/ \
                 monitor/src/config/ monitor/src/control/ monitor/src/host/ monitor/src/source/",
    },
    Group {
        name: INSTALL,
        programs: &[],
        inputs: "Cargo.toml Cargo.lock monitor/Cargo.toml monitor/build.rs",
    },
    // Published software below the published SDKs, and a hundred jobs that these cancel.
    Group {
        name: "published software",
        programs: &["published", "cancelled_jobs"],
        inputs: "tests/fixtures/ tests/tests/published.rs tests/tests/cancelled_jobs.rs tests/src/client.rs \
                 tests/src/jobs.rs monitor/core/src/engine/ monitor/core/src/reach/ monitor/core/src/recognise/ \
                 monitor/core/src/verdict/ monitor/src/read/ examples/leak/",
    },
    // A podman without root.
    Group {
        name: "rootless engines",
        programs: &["containers_rootless"],
        inputs: "tests/tests/containers_rootless.rs tests/src/engine.rs monitor/src/probe/containers",
    },
];

/// The groups that do not run now, after saying so.
pub fn left_out() -> Vec<&'static Group> {
    let Some((base, changed)) = changed() else { return Vec::new() };
    let (run, left): (Vec<&Group>, Vec<&Group>) = GROUPS.iter().partition(|group| group.is_changed(&changed));
    for (what, groups, advice) in
        [("inputs changed", &run, ""), ("left out, unchanged", &left, " (`cargo xtask test all` runs them)")]
    {
        let names = groups.iter().map(|group| group.name).collect::<Vec<_>>().join(", ");
        if !groups.is_empty() {
            command::say("test", &format!("{what} since {base}: {names}{advice}"));
        }
    }
    left
}

impl Group {
    fn inputs(&self) -> impl Iterator<Item = &str> {
        self.inputs.split_ascii_whitespace()
    }

    /// Whether the test of this name is in it.
    pub fn has(&self, name: &str) -> bool {
        self.programs.iter().any(|program| alone::is_of(program, name))
    }

    fn is_changed(&self, changed: &[String]) -> bool {
        changed.iter().any(|path| self.inputs().any(|input| path.starts_with(input)))
    }
}

/// The commit that is compared with, and the paths that differ from it; nothing where that cannot be told.
fn changed() -> Option<(String, Vec<String>)> {
    let head = git(&["rev-parse", "HEAD"]).ok()?;
    let upstream = git(&["merge-base", "HEAD", "@{upstream}"]).ok().filter(|base| *base != head);
    let base = upstream.or_else(|| git(&["rev-parse", "--verify", "--quiet", "HEAD^"]).ok())?;
    let base = base.trim();
    let differs = git(&["diff", "--name-only", base]).ok()?;
    let new = git(&["ls-files", "--others", "--exclude-standard"]).ok()?;
    let paths = differs.lines().chain(new.lines()).map(str::to_owned).collect();
    Some((base.get(..12).unwrap_or(base).to_owned(), paths))
}

fn git(args: &[&str]) -> Result<String> {
    command::output(Command::new("git").args(args).current_dir(workspace::root()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_files_and_folders_that_are_there() {
        for input in GROUPS.iter().flat_map(Group::inputs) {
            let (folder, start) = input.rsplit_once('/').unwrap_or(("", input));
            let entries = std::fs::read_dir(workspace::root().join(folder)).unwrap();
            let mut names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            assert!(names.any(|name| name.starts_with(start)), "{input}");
        }
    }

    #[test]
    fn a_group_is_changed_by_what_is_below_its_inputs() {
        let [_, packages, fuzz, ..] = &GROUPS;
        let paths = |path: &str| [path.to_owned()];
        assert!(fuzz.is_changed(&paths("tests/fuzz/src/lib.rs")) && !fuzz.is_changed(&paths("docs/fuzz.md")));
        assert!(packages.is_changed(&paths("monitor/Cargo.toml")) && !packages.is_changed(&[]));
    }
}
