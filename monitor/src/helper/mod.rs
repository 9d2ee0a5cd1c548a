//! Helpers: this program once more, for what reads foreign bytes that no parser of ours stands between.
//!
//! What users write into their settings, and what engines and service managers answer, is parsed in a process of its
//! own (`confine.rs`): without capabilities, as another user where it can be, with limits of memory, stack, processor
//! time and descriptors. Invariant: whatever is in those bytes, a call of [`ask`] returns an answer of bounded size or
//! an error, within its patience and `ENDING`; the helper is ended and waited for; and nothing else happens. What it
//! cost is charged to the calling thread ([`processor_time`]). The user as whom it reads cannot trace it: it lives in the
//! daemon's control group, with its limits.

mod apart;
mod confine;
mod peek;

use std::{
    fs::File,
    io::{self, IoSlice, Read as _, Seek as _, Write as _},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Mutex, mpsc},
    time::{Duration, Instant},
};

use rustix::{
    fs::{MemfdFlags, memfd_create},
    io::Errno,
    net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
        sendmsg, socketpair,
    },
    process::{
        DumpableBehavior, Gid, Pid, PidfdFlags, Signal, Uid, dumpable_behavior, pidfd_open,
        pidfd_send_signal, set_dumpable_behavior,
    },
    thread::{
        CapabilitySet, LinkNameSpaceType, capabilities, move_into_link_name_space, set_thread_groups,
        set_thread_res_gid, set_thread_res_uid,
    },
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub use self::{
    apart::{Cost, can_serve, read},
    confine::{ARGUMENT, answered, serve},
};
use crate::os::{
    self,
    capabilities::{OTHER_USERS, raise},
    has_ended, lock, own, processor_time,
};
use orphand_core::model::{Share, text};

/// A user that is nobody (systemd keeps 65520 to 65533 free).
pub const NOBODY: u32 = 65_533;
/// The most files that a helper is given.
pub const FILES: usize = 64;
const LONGEST: u64 = 64 * 1024;
/// How long the end of a helper may take.
const ENDING: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    Engine,
    Manager,
    Settings,
    /// It stays, and reads whatever file it is given; in a pipe or socket what waits there.
    Text,
}

#[derive(Debug)]
pub struct Order {
    pub task: Task,
    /// What it is given to read from: not more than [`FILES`].
    pub files: Vec<OwnedFd>,
    /// The user and group that it runs as, if they are not ours. It is in no other group.
    pub user: Option<(u32, u32)>,
    /// The PID namespace that it is in, if that is not ours.
    pub namespace: Option<OwnedFd>,
    pub patience: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum HelperError {
    /// It could not be started, or listened to.
    #[error("cannot start it: {0}")]
    Start(#[from] io::Error),
    #[error("no answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// It answered too much, too little, or nothing that is an answer.
    #[error("no answer: {0}")]
    Failed(ExitStatus),
    /// An earlier helper for the same user, or too many, cannot be ended: a file that they read does not answer.
    #[error("an earlier one has not ended yet")]
    Stuck,
}

impl From<Errno> for HelperError {
    fn from(errno: Errno) -> Self {
        Self::Start(errno.into())
    }
}

pub fn can_be_others() -> bool {
    capabilities(None).is_ok_and(|had| had.permitted.contains(OTHER_USERS))
}

/// Starts a helper, puts the question to it, and gives its answer.
pub fn ask<A: DeserializeOwned>(order: Order, question: &impl Serialize) -> Result<A, HelperError> {
    let (patience, user, began) = (order.patience, order.user.map(|(uid, _)| uid), Instant::now());
    require_room(user)?;
    // A file, not a pipe: a process with two wires might be a server.
    let mut answer = File::from(memfd_create("answer", MemfdFlags::CLOEXEC)?);
    let (child, _stays) = start(order, question, answer.try_clone()?)?;
    let pidfd = match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(errno) => {
            keep(child, user);
            return Err(errno.into());
        }
    };
    let is_in_time = has_ended(&pidfd, patience);
    let has_ended = is_in_time || {
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
        has_ended(&pidfd, ENDING)
    };
    processor_time::add(processor_time::of_process(child.id()).unwrap_or_else(|| began.elapsed()));
    if !has_ended {
        keep(child, user);
        return Err(HelperError::Silent(patience));
    }
    let status = { child }.wait()?;
    if !is_in_time {
        return Err(HelperError::Silent(patience));
    }
    let mut said = Vec::new();
    answer.rewind()?;
    answer.take(LONGEST).read_to_end(&mut said)?;
    let said = serde_json::from_slice(&said).ok().filter(|_| status.success());
    said.ok_or(HelperError::Failed(status))
}

/// The helper, and what it ends with: the thread that started it, since users, groups and namespaces are those of a thread.
fn start(
    order: Order,
    question: &impl Serialize,
    stdout: File,
) -> Result<(Child, mpsc::Sender<()>), HelperError> {
    let Order { task, files, user, namespace, .. } = order;
    let stdin = sent(question, &files)?;
    drop(files);
    let ((tell, told), (stays, over)) = (mpsc::channel(), mpsc::channel());
    os::start("helper", move || {
        let _ = tell.send(started(task, user, namespace, stdin, stdout));
        let _ = over.recv();
    })?;
    Ok((told.recv().map_err(io::Error::other)??, stays))
}

fn started(
    task: Task,
    user: Option<(u32, u32)>,
    namespace: Option<OwnedFd>,
    stdin: OwnedFd,
    stdout: File,
) -> io::Result<Child> {
    let _hidden = namespace.as_ref().map(|_| Hidden::begin()).transpose()?;
    if let Some(namespace) = namespace {
        enter(&namespace)?;
    }
    if let Some((uid, gid)) = user {
        let _raised = raise(OTHER_USERS).ok_or(Errno::PERM)?;
        let (nobody, uid, gid) = (Uid::from_raw(NOBODY), Uid::from_raw(uid), Gid::from_raw(gid));
        set_thread_groups(&[])?;
        set_thread_res_gid(gid, gid, gid)?;
        // Only who has each of its user ids may trace it (`__ptrace_may_access()`): between its execve(2) and the first
        // thing that it does, too.
        set_thread_res_uid(nobody, uid, nobody)?;
    }
    os::launch(command(task).stdin(stdin).stdout(stdout))
}

/// New children of this thread are in this PID namespace from now on.
fn enter(namespace: &OwnedFd) -> Result<(), Errno> {
    // Without the capability the kernel refuses that.
    let _raised = raise(CapabilitySet::SYS_ADMIN);
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::ProcessID))
}

fn command(task: Task) -> Command {
    let mut command = Command::new(own::PROGRAM);
    command.args([ARGUMENT, &text::word(task)]).env_clear().current_dir("/").stderr(Stdio::null());
    command
}

/// The end of a socket in which the question and the files wait.
fn sent(question: &impl Serialize, files: &[OwnedFd]) -> Result<OwnedFd, HelperError> {
    if files.len() > FILES {
        return Err(Errno::TOOBIG.into());
    }
    let mut text = File::from(memfd_create("question", MemfdFlags::CLOEXEC)?);
    serde_json::to_writer(&mut text, question).map_err(io::Error::from)?;
    text.flush()?;
    text.rewind()?;
    let given: Vec<BorrowedFd<'_>> =
        std::iter::once(text.as_fd()).chain(files.iter().map(OwnedFd::as_fd)).collect();
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    send(&ours, &[0], &given)?;
    Ok(theirs)
}

fn send(way: &impl AsFd, bytes: &[u8], files: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES + 1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(Errno::TOOBIG);
    }
    sendmsg(way, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).map(|_| ())
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

/// The most of them in all.
const UNENDED: usize = 16;

/// Helpers that could not be ended in time, and their users: one that reads from a file system of a user's own dies only
/// when that answers. There is one of a user; until it has ended, no further one is started for that user.
static THEM: Mutex<Vec<(Option<u32>, Child)>> = Mutex::new(Vec::new());

/// It is to end, and has to be waited for.
fn keep(mut child: Child, user: Option<u32>) {
    // Nobody has waited for it, so its number is its own.
    let _ = child.kill();
    lock(&THEM).push((user, child));
}

/// Waits for those that have ended, and refuses a user of whom one has not.
fn require_room(user: Option<u32>) -> Result<(), HelperError> {
    let mut them = lock(&THEM);
    them.retain_mut(|(_, child)| matches!(child.try_wait(), Ok(None)));
    let is_theirs = |of: Option<u32>| of.map(Share::of) == user.map(Share::of);
    let is_full = them.len() >= UNENDED || them.iter().any(|(of, _)| is_theirs(*of));
    if is_full { Err(HelperError::Stuck) } else { Ok(()) }
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

    /// The daemon holds the capability back.
    #[test]
    #[ignore = "needs root: cargo xtask test runs it"]
    fn a_namespace_is_entered_by_a_right_that_is_out_of_effect() {
        std::thread::spawn(|| {
            let had = capabilities(None).unwrap();
            let effective = had.effective - CapabilitySet::SYS_ADMIN;
            rustix::thread::set_capabilities(None, rustix::thread::CapabilitySets { effective, ..had })
                .unwrap();
            let own = OwnedFd::from(File::open("/proc/self/ns/pid").unwrap());
            enter(&own).unwrap();
            assert_eq!(capabilities(None).unwrap().effective, effective);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn no_more_files_are_sent_than_fit() {
        let file = || OwnedFd::from(File::open("/dev/null").unwrap());
        let of = |count: usize| sent(&7, &(0..count).map(|_| file()).collect::<Vec<_>>());
        assert!(of(0).is_ok() && of(FILES).is_ok() && of(FILES + 1).is_err());
    }

    use std::process::{Command, Stdio};

    #[test]
    fn a_user_with_one_that_lives_gets_no_other() {
        let mut command = Command::new("cat");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let stdin = child.stdin.take();
        let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
        let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
        lock(&THEM).push((Some(104_711), child));
        assert!(require_room(Some(104_711)).is_err() && require_room(Some(4712)).is_ok());
        assert!(require_room(Some(104_712)).is_err(), "a range of numbers is one user");
        let file = OwnedFd::from(File::open("/dev/null").unwrap());
        let text = |user| read(&file, 1, || Some(user), &mut Cost::default());
        assert_eq!((text(104_711), text(4712)), (Err(Errno::TIMEDOUT), Ok(Vec::new())));
        drop(stdin);
        assert!(has_ended(&pidfd, std::time::Duration::from_secs(20)));
        assert!(require_room(Some(104_711)).is_ok() && lock(&THEM).is_empty());
    }
}
