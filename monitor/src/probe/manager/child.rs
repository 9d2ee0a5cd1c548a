//! A child process that asks the manager from where the manager accepts questions. It is this program once
//! more, with the rights of the manager's user and in its PID namespace. So the reply is parsed with no more
//! rights than its sender has, and a reply that crashes the parser crashes only the child.

use std::{
    io::{self, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::process::CommandExt as _,
    },
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use rustix::{
    process::{DumpableBehavior, dumpable_behavior, set_dumpable_behavior},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

use super::{ManagerError, PATIENCE, Question, bus};
use crate::{os::own, probe::helper_output};
use orphand_core::model::UnitProperties;

/// The first command-line argument that makes the program such a child; see [`child`].
pub const CHILD_ARGUMENT: &str = "__ask-manager";

/// The longest answer that is read, in bytes.
const LONGEST: usize = 64 * 1024;

type Said = Result<UnitProperties, ManagerError>;

/// The main function of the child. Standard input is the socket, the second argument is the question, and the
/// answer goes to standard output. Returns whether the answer could be written.
pub fn child() -> bool {
    // execve(2) made the process dumpable again.
    if set_dumpable_behavior(DumpableBehavior::NotDumpable).is_err() {
        return false;
    }
    let Some(question) = std::env::args().nth(2).and_then(|asked| serde_json::from_str(&asked).ok()) else {
        return false;
    };
    let said: Said = bus::ask(io::stdin(), &question);
    serde_json::to_vec(&said).is_ok_and(|answer| io::stdout().write_all(&answer).is_ok())
}

/// The identity and place from which the child asks.
#[derive(Debug)]
pub(super) struct Asker {
    /// The user id of the manager, for messages.
    pub uid: u32,
    /// The user and group to run as, if they differ from ours.
    pub user: Option<(u32, u32)>,
    /// The PID namespace to enter, if it differs from ours.
    pub namespace: Option<OwnedFd>,
}

/// Starts a child that asks the manager at `socket`, and returns its answer.
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
        // `uid` drops the supplementary groups as well.
        command.uid(uid).gid(gid);
    }
    let child = match asker.namespace {
        None => command.spawn(),
        // The PID namespace of new children is a property of the thread. This thread ends together with the
        // setting.
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
    let answer = child.stdout.take().map_or_else(
        || Ok(Vec::new()),
        |out| helper_output::read(out, PATIENCE + Duration::from_secs(1), LONGEST),
    );
    // The child has ended, or has said all that is read from it.
    let _ = child.kill();
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    let answer = answer.map_err(|error| failed(error.to_string()))?;
    serde_json::from_slice(&answer).unwrap_or_else(|_| Err(failed(format!("no answer: {status}"))))
}

/// While this value lives, an unprivileged process cannot trace this process, nor its child between fork(2)
/// and execve(2) (`PR_SET_DUMPABLE(2const)`). Other processes in a container see such a child and may run as
/// the same user, while the child still has the host's view of files.
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
        // The value 2 is set only by the kernel and cannot be set here. The process then stays hidden.
        if let DumpableBehavior::Dumpable = self.0 {
            let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Root owns the files in /proc of a process that is not dumpable, whichever user it runs as.
    #[test]
    fn it_is_hidden_for_as_long_as_it_takes() {
        let before = dumpable_behavior().unwrap();
        let hidden = Hidden::begin().unwrap();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        drop(hidden);
        assert_eq!(dumpable_behavior().unwrap(), before);
    }
}
