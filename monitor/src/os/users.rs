//! Users and groups by name and by number, as the host knows them, network directories included. A look-up blocks.
//!
//! Invariant: the C library of this process is never asked. In a static binary (`cargo xtask dist`) it would load modules of the
//! name service, and with them a second C library, and crash. getent(1) and id(1) of the host give the same answers.

use std::{
    collections::BTreeMap,
    io,
    process::{Command, Output, Stdio},
    sync::mpsc,
    time::Duration,
};

use anyhow::{Result, anyhow, bail};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{launch, start};

/// The directories of the host's own programs, independent of our environment. The last is for `NixOS`.
const PATH: &str = "/usr/bin:/bin:/usr/sbin:/sbin:/run/current-system/sw/bin";
/// The time limit for one look-up. A network directory that does not answer in time gives an error.
const PATIENCE: Duration = Duration::from_secs(5);
/// The exit status of getent(1) if there is no such entry.
const NO_SUCH: i32 = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
}

pub fn user(name: &str) -> Result<Option<User>> {
    // getent(1) looks up a name of digits as a number.
    Ok(entry("passwd", name, user_of)?.filter(|user| user.name == name))
}

pub fn user_by_id(uid: u32) -> Result<Option<User>> {
    entry("passwd", &uid.to_string(), user_of)
}

pub fn group(name: &str) -> Result<Option<u32>> {
    Ok(entry("group", name, group_of)?.filter(|(its, _)| its == name).map(|(_, gid)| gid))
}

/// The ids of all groups of a user, including the primary group.
pub fn groups(user: &User) -> Result<Vec<u32>> {
    let said = answer("id", &run("id", &["-G", "--", &user.name])?)?;
    let numbers = said.split_whitespace().map(|number| number.parse().ok()).collect::<Option<Vec<_>>>();
    numbers.filter(|numbers| !numbers.is_empty()).ok_or_else(|| anyhow!("id answered {said:?}"))
}

/// The names of users by their ids, as this host's own file has them. It blocks for nothing, and knows no network directory.
pub fn local_names() -> BTreeMap<u32, String> {
    let text = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    text.lines().filter_map(user_of).map(|user| (user.uid, user.name)).collect()
}

/// The entry of `key` in a database; `None` if there is none.
fn entry<T>(database: &str, key: &str, read: fn(&str) -> Option<T>) -> Result<Option<T>> {
    let output = run("getent", &["--", database, key])?;
    if output.status.code() == Some(NO_SUCH) {
        return Ok(None);
    }
    parse(&answer("getent", &output)?, read).map(Some)
}

fn run(program: &'static str, arguments: &[&str]) -> Result<Output> {
    let failed = |error: io::Error| anyhow!("cannot run {program}: {error}");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", PATH)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = launch(&mut command).map_err(failed)?;
    let holds = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).map_err(|e| failed(e.into()))?;
    let (tell, told) = mpsc::channel();
    start("name", move || drop(tell.send(child.wait_with_output()))).map_err(failed)?;
    if let Ok(output) = told.recv_timeout(PATIENCE) {
        return output.map_err(failed);
    }
    // The thread waits for the killed process.
    let _ = pidfd_send_signal(&holds, Signal::KILL);
    Err(failed(io::Error::new(io::ErrorKind::TimedOut, format!("it did not answer within {PATIENCE:?}"))))
}

fn answer(program: &'static str, output: &Output) -> Result<String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or_default();
    bail!("{program} failed with {}: {said}", output.status)
}

fn parse<T>(line: &str, read: fn(&str) -> Option<T>) -> Result<T> {
    read(line).ok_or_else(|| anyhow!("getent answered {line:?}"))
}

fn user_of(text: &str) -> Option<User> {
    let mut fields = text.lines().next()?.split(':');
    let name = fields.next()?.to_owned();
    let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(User { name, uid, gid })
}

fn group_of(text: &str) -> Option<(String, u32)> {
    let mut fields = text.lines().next()?.split(':');
    let name = fields.next()?.to_owned();
    Some((name, fields.nth(1)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_by_name_and_number() {
        let root = User { name: "root".into(), uid: 0, gid: 0 };
        assert_eq!(user("root").unwrap(), Some(root.clone()));
        assert_eq!(user_by_id(0).unwrap(), Some(root.clone()));
        assert_eq!(group("root").unwrap(), Some(0));
        assert!(groups(&root).unwrap().contains(&0));
    }

    #[test]
    fn nobody_else_is() {
        assert_eq!(user("no-such-user").unwrap(), None);
        assert_eq!(user_by_id(4_000_000).unwrap(), None);
        assert_eq!(group("no-such-group").unwrap(), None);
        // A number is not a name, nor is an option, and no user has an empty name.
        for name in ["0", "-s", "--help", ""] {
            assert_eq!(user(name).unwrap(), None, "{name:?}");
            assert_eq!(group(name).unwrap(), None, "{name:?}");
        }
        let gone = User { name: "no-such-user".into(), uid: 4_000_000, gid: 4_000_000 };
        let error = groups(&gone).unwrap_err().to_string();
        assert!(error.starts_with("id failed with exit status: 1: "), "{error}");
    }

    #[test]
    fn what_is_no_entry_is_told() {
        assert_eq!(user_of("orphand:x:998:997:,:/:/bin/sh\n").map(|u| (u.uid, u.gid)), Some((998, 997)));
        assert_eq!(group_of("orphand:x:998:\n"), Some(("orphand".into(), 998)));
        for text in ["", "\n", "orphand", "orphand:x", "orphand:x:many:1", "orphand:x:1:-1"] {
            assert_eq!(user_of(text), None, "{text:?}");
        }
        let error = parse("?", user_of).unwrap_err().to_string();
        assert_eq!(error, "getent answered \"?\"");
    }
}
