//! Asks as another user: this program once more, with that user's rights and nothing of root's, so that what the other side
//! answers is read with no more rights than it has itself.

use std::{
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::process::CommandExt as _,
    },
    process::{ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

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

/// Asks at `socket` as this user and group, in no others.
pub(super) fn ask_as(uid: u32, gid: u32, socket: OwnedFd, question: &Question) -> Said {
    let failed = |why: String| ManagerError::Child { uid, why };
    let asked = serde_json::to_string(question).map_err(|error| failed(error.to_string()))?;
    // `uid` drops the supplementary groups, too.
    let mut child = Command::new("/proc/self/exe")
        .args([CHILD_ARGUMENT, &asked])
        .uid(uid)
        .gid(gid)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(socket))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
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
