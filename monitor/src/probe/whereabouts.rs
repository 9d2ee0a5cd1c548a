//! Where a process works, and what it was started with, as hashes that can only be compared.
//!
//! Nothing is opened and no path is walked: the kernel names the working directory and the mount namespace by
//! links. The hashes have a key of this program, so a recording tells neither paths nor secrets.

use std::hash::{BuildHasher as _, RandomState};

use super::Probe;
use crate::host::is_as_started;
use orphand_core::model::{ProcessId, Whereabouts};

/// The most bytes of a command line that are compared. A longer one is not compared.
const COMMAND_LINE_MAX: usize = 128 * 1024;
/// The same of an environment.
const ENVIRONMENT_MAX: usize = 128 * 1024;

impl Probe {
    /// Where this process works. `None` if it has exited, if it cannot be read, or if its directory was removed:
    /// another one may have had the same path.
    pub(super) fn whereabouts(&self, process: ProcessId) -> Option<Whereabouts> {
        let dir = self.proc.identified(process).ok()??;
        let (directory, mounts) = (dir.link("cwd").ok()?, dir.link("ns/mnt").ok()?);
        if !directory.starts_with(b"/") || directory.ends_with(b" (deleted)") {
            return None;
        }
        let (command, more) = dir.command_line(COMMAND_LINE_MAX).ok()?;
        let command = (!more && is_as_started(&command)).then(|| self.hash_of(&command));
        let directory = self.hash_of(&[directory, mounts].join(&0));
        // A title that was written over the command line may go on over the environment.
        let environment = command.and_then(|_| dir.whole_environment(ENVIRONMENT_MAX));
        // Another user, or another network, is another environment, too.
        let around = |environment: Vec<u8>| {
            let user = dir.uid().ok()?.to_ne_bytes();
            Some(self.hash_of(&[&environment[..], &user, &dir.link("ns/net").ok()?].join(&0)))
        };
        let environment = environment.and_then(around);
        dir.still_alive().then_some(Whereabouts { directory, command, environment })
    }

    fn hash_of(&self, bytes: &[u8]) -> u64 {
        let key: &RandomState = &self.key;
        key.hash_one(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        path::Path,
        process::{Command, Stdio},
    };

    use super::*;
    use crate::{host::identity, probe::tests::Started};

    fn sleeper(directory: &Path, time: &str, variable: &str) -> Started {
        let mut command = Command::new("sleep");
        Started::new(command.arg(time).current_dir(directory).stdin(Stdio::null()).env("DATABASE", variable))
    }

    #[test]
    fn equal_are_those_with_the_same_directory_and_command_line() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let probe = Probe::new().unwrap();
        let one = sleeper(here.path(), "100", "1");
        let same = sleeper(here.path(), "100", "1");
        let other = sleeper(here.path(), "101", "1");
        let away = sleeper(there.path(), "100", "1");
        let [one, same, other, away] =
            [&one, &same, &other, &away].map(|s| probe.whereabouts(s.id()).unwrap());
        assert_eq!(one, same);
        assert!(one.command.is_some());
        assert_eq!(one.directory, other.directory);
        assert_ne!(one.command, other.command);
        assert_ne!(one.directory, away.directory);
        assert_eq!(one.command, away.command);
        let with = |variable| probe.whereabouts(sleeper(here.path(), "100", variable).id()).unwrap();
        assert_eq!(with("1"), one);
        let apart = with("2");
        assert_eq!((apart.directory, apart.command), (one.directory, one.command));
        assert_ne!(apart.environment, one.environment);
        assert!(apart.environment.is_some() && one.environment.is_some());
        let elsewhere = Probe::new().unwrap().whereabouts(identity::identity(std::process::id()).unwrap());
        assert_ne!(elsewhere, probe.whereabouts(identity::identity(std::process::id()).unwrap()));
    }

    #[test]
    fn what_is_gone_has_no_place() {
        let here = tempfile::tempdir().unwrap();
        let probe = Probe::new().unwrap();
        let process = sleeper(here.path(), "100", "1");
        let id = process.id();
        assert!(probe.whereabouts(id).is_some());
        std::fs::remove_dir(here.path()).unwrap();
        assert_eq!(probe.whereabouts(id), None, "its directory was removed");
        assert_eq!(probe.whereabouts(ProcessId { start: id.start + 1, ..id }), None, "another process");
        drop(process);
        assert_eq!(probe.whereabouts(id), None);
    }
}
