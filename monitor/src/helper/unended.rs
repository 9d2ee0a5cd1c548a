//! Helpers that could not be ended in time: one that reads from a file system of a user's own dies only when that
//! answers.
//!
//! Invariant: there is one of a user, and [`MOST`] in all; until it has ended, no further one is started for that user.

use std::{process::Child, sync::Mutex};

use super::HelperError;
use crate::os::lock;

/// The most in all.
const MOST: usize = 16;

static THEM: Mutex<Vec<(Option<u32>, Child)>> = Mutex::new(Vec::new());

/// It is to end, and has to be waited for.
pub(super) fn keep(mut child: Child, user: Option<u32>) {
    // Nobody has waited for it, so its number is its own.
    let _ = child.kill();
    lock(&THEM).push((user, child));
}

/// Waits for those that have ended, and refuses a user of whom one has not.
pub(super) fn require_room(user: Option<u32>) -> Result<(), HelperError> {
    let mut them = lock(&THEM);
    them.retain_mut(|(_, child)| matches!(child.try_wait(), Ok(None)));
    let is_full = them.len() >= MOST || them.iter().any(|(of, _)| *of == user);
    if is_full { Err(HelperError::Stuck) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_user_with_one_that_lives_gets_no_other() {
        let mut command = Command::new("cat");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let stdin = child.stdin.take();
        let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
        let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
        lock(&THEM).push((Some(4711), child));
        assert!(require_room(Some(4711)).is_err() && require_room(Some(4712)).is_ok());
        drop(stdin);
        assert!(super::super::ends(&pidfd, std::time::Duration::from_secs(20)));
        assert!(require_room(Some(4711)).is_ok() && lock(&THEM).is_empty());
    }
}
