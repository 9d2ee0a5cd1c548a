//! Asks from where the manager takes questions: this program once more, with the rights of the manager's user and in its PID
//! namespace. What the other side answers is read with no more rights than it has itself, and if it makes the reader fail, only
//! the child does.

use std::{
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::process::CommandExt as _,
    },
    process::{ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{DumpableBehavior, dumpable_behavior, set_dumpable_behavior},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

use super::{ManagerError, PATIENCE, Question, bus};
use crate::os::own;
use orphand_core::model::UnitProperties;

/// The first argument that makes the program such a child; see [`child`].
pub const CHILD_ARGUMENT: &str = "__ask-manager";

/// No answer is longer.
const LONGEST: usize = 64 * 1024;

type Said = Result<UnitProperties, ManagerError>;

/// What the child does: standard input is the socket, its second argument the question; the answer goes to standard output.
/// Whether it could be given.
pub fn child() -> bool {
    // What executes is dumpable again.
    if set_dumpable_behavior(DumpableBehavior::NotDumpable).is_err() {
        return false;
    }
    let Some(question) = std::env::args().nth(2).and_then(|asked| serde_json::from_str(&asked).ok()) else {
        return false;
    };
    let said: Said = bus::ask(io::stdin(), &question);
    serde_json::to_vec(&said).is_ok_and(|answer| io::stdout().write_all(&answer).is_ok())
}

/// Who asks, and from where.
#[derive(Debug)]
pub(super) struct Asker {
    /// Its user, to be told.
    pub uid: u32,
    /// User and group, if they are not ours.
    pub user: Option<(u32, u32)>,
    /// The PID namespace, if it is not ours.
    pub namespace: Option<OwnedFd>,
}

/// Asks at `socket`.
pub(super) fn ask(asker: Asker, socket: OwnedFd, question: &Question) -> Said {
    let uid = asker.uid;
    let failed = |why: String| ManagerError::Child { uid, why };
    let argument = serde_json::to_string(question).map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new(own::PROGRAM);
    command
        .args([CHILD_ARGUMENT, &argument])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(socket))
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if let Some((uid, gid)) = asker.user {
        // `uid` drops the supplementary groups, too.
        command.uid(uid).gid(gid);
    }
    let child = match asker.namespace {
        None => command.spawn(),
        // Where a thread's children are born is a matter of the thread: this one ends with it.
        Some(namespace) => thread::scope(|scope| {
            let born = scope.spawn(|| {
                let _hidden = Hidden::begin()?;
                move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::ProcessID))?;
                command.spawn()
            });
            born.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
        }),
    };
    let mut child = child.map_err(|error| failed(error.to_string()))?;
    let answer = child.stdout.take().map_or_else(|| Ok(Vec::new()), read);
    // It has ended, or has said all it will.
    let _ = child.kill();
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    let answer = answer.map_err(|error| failed(error.to_string()))?;
    serde_json::from_slice(&answer).unwrap_or_else(|_| Err(failed(format!("no answer: {status}"))))
}

/// While it lives nobody may trace this process, nor a child between its birth and its execve(2), who is not allowed to trace all:
/// `PR_SET_DUMPABLE(2const)`. Others in a container see such a child, may be the same user, and its view of files is the host's.
struct Hidden(DumpableBehavior);

impl Hidden {
    fn begin() -> io::Result<Self> {
        let before = dumpable_behavior()?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        Ok(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // What the kernel chose (2) cannot be chosen; then it stays hidden.
        if let DumpableBehavior::Dumpable = self.0 {
            let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
        }
    }
}

/// All that is written until the end, or until it takes too long.
fn read(mut out: ChildStdout) -> io::Result<Vec<u8>> {
    let until = Instant::now() + PATIENCE + Duration::from_secs(1);
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while answer.len() < LONGEST {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| io::ErrorKind::TimedOut)?;
        if poll(&mut [PollFd::new(&out.as_fd(), PollFlags::IN)], Some(&left))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match out.read(&mut buffer)? {
            0 => break,
            got => answer.extend_from_slice(buffer.get(..got).unwrap_or_default()),
        }
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The owner of what a process has in /proc is root, whoever it runs as, where it is not dumpable.
    #[test]
    fn it_is_hidden_for_as_long_as_it_takes() {
        let before = dumpable_behavior().unwrap();
        let hidden = Hidden::begin().unwrap();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        drop(hidden);
        assert_eq!(dumpable_behavior().unwrap(), before);
    }
}
