//! The programs that the tests of the first round may call.
//!
//! These tests get a `PATH` that contains nothing else. A program that is missing in the list of programs installed
//! before them is therefore missing on every machine, not only on a newly installed one.

use std::{
    fs,
    io::ErrorKind,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

use super::programs::{Program, TESTS};
use crate::command;

/// What Debian is never without and tests call, or what starts Python where a version manager stands before it:
/// shells, coreutils, util-linux, sed, grep, awk.
const EVERYWHERE: &str = "awk base64 basename bash cat chmod cut date dirname env expr false grep head hostname id kill \
    ln logger ls mkdir mkfifo mktemp mv nproc nsenter printf readlink realpath rm sed seq setpriv setsid sh sleep sort stat \
    tail tee test timeout touch tr true uname uniq unshare wc";

/// The programs that the first round calls, seen to be there: nobody can run that round without.
#[derive(Debug)]
pub struct Tools {
    /// Where each of them is.
    programs: Vec<(&'static str, PathBuf)>,
}

impl Tools {
    /// Looks for them; an error names those that are missing, and how they are installed.
    pub fn found() -> Result<Self> {
        let called = || TESTS.iter().filter(|program| !program.first.is_empty());
        let missing: Vec<&Program> = called().filter(|program| !program.is_there()).collect();
        if !missing.is_empty() {
            bail!("{}", complaint(&missing));
        }
        let names = called().flat_map(|program| program.first).copied();
        let names = names.chain(EVERYWHERE.split_ascii_whitespace());
        let programs = names.filter_map(|name| Some((name, command::find(name)?))).collect();
        Ok(Self { programs })
    }

    /// Makes `folder` one of links to them, and of nothing else.
    pub fn link(&self, folder: &Path) -> Result<()> {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot empty {}", folder.display()));
            }
            _ => fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?,
        }
        self.programs.iter().try_for_each(|(name, place)| {
            symlink(place, folder.join(name)).with_context(|| format!("cannot link {}", place.display()))
        })
    }
}

/// What is said where programs are missing.
fn complaint(missing: &[&Program]) -> String {
    let names: Vec<&str> = missing.iter().map(|program| program.name).collect();
    let packages: Vec<&str> = missing.iter().flat_map(|program| program.packages).copied().collect();
    format!(
        "the tests call what is not here: {}. As root: apt-get install {}; or let `cargo xtask setup --tests` do it",
        names.join(", "),
        packages.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_names_the_programs_and_their_packages() {
        let missing: Vec<&Program> =
            TESTS.iter().filter(|program| ["msmtp", "curl and jq"].contains(&program.name)).collect();
        let said = complaint(&missing);
        assert!(
            said.contains("not here: curl and jq, msmtp.") && said.contains("install curl jq msmtp;"),
            "{said}"
        );
    }

    #[test]
    fn the_folder_has_what_is_listed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("tools");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("of-before"), "").unwrap();
        let tools = Tools { programs: vec![("sh", "/bin/sh".into())] };
        tools.link(&folder).unwrap();
        let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["sh"]);
        assert!(command::is_executable(&folder.join("sh")));
    }
}
