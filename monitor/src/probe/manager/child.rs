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
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

use super::{ManagerError, PATIENCE, Question, bus};
use crate::model::UnitProperties;

/// The first argument that makes the program such a child; see [`child`].
pub const CHILD_ARGUMENT: &str = "__ask-manager";

/// No answer is longer.
const LONGEST: usize = 64 * 1024;

type Said = Result<UnitProperties, ManagerError>;

/// What the child does: standard input is the socket, its second argument the question; the answer goes to standard output.
/// Whether it could be given.
pub fn child() -> bool {
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
    let mut command = Command::new("/proc/self/exe");
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
