//! Processes of the host. This package ends a process only through a pidfd whose identity was compared.

use std::{
    fmt, fs,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use serde_json::Value;

use crate::{scene::Scene, schema};

/// The timeout of everything that a test waits for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(400);

/// The pause between two checks of something that cannot be waited for.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A process, by its id and start time: clock ticks since boot, field 22 of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// Its process id.
    pub pid: u32,
    /// Its start time in clock ticks since boot.
    pub start: u64,
}

impl Identity {
    /// The process that has this id now; it may be a zombie.
    pub fn of(pid: u32) -> Option<Self> {
        stat(pid).map(|s| Self { pid, start: s.start })
    }

    /// The process that an event names.
    pub(crate) fn told(process: &Value) -> Option<Self> {
        let number = |name: &str| process.get(name)?.as_u64();
        Some(Self { pid: number("pid")?.try_into().ok()?, start: number("start")? })
    }

    /// Whether it runs; a zombie does not.
    pub fn alive(self) -> bool {
        stat(self.pid).is_some_and(|s| s.start == self.start && s.alive)
    }

    /// Its present parent.
    pub fn parent(self) -> Option<u32> {
        stat(self.pid).filter(|s| s.start == self.start).map(|s| s.parent)
    }

    /// The present children of all its threads.
    pub fn children(self) -> Vec<Self> {
        let mut all: Vec<Self> = processes().filter(|p| p.parent() == Some(self.pid)).collect();
        all.sort_unstable();
        all
    }

    /// The present children of a daemon, without its helpers: some of these stay for the next question.
    pub fn children_beside_helpers(self) -> Vec<Self> {
        let is_helper = |child: &Self| child.argv().get(1).is_some_and(|argument| argument == "__helper");
        self.children().into_iter().filter(|child| !is_helper(child)).collect()
    }

    /// Its present descendants, parents first.
    pub fn descendants(self) -> Vec<Self> {
        let mut found = self.children();
        let mut next = 0;
        while let Some(one) = found.get(next).copied() {
            found.extend(one.children());
            next += 1;
        }
        found
    }

    /// Its arguments.
    pub fn argv(self) -> Vec<String> {
        let bytes = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        bytes.split(|&b| b == 0).map(|a| String::from_utf8_lossy(a).into_owned()).collect()
    }

    /// Sends `signal` to this process and no other.
    pub fn signal(self, signal: Signal) -> Result<()> {
        let pidfd = self.pidfd()?;
        pidfd_send_signal(&pidfd, signal).with_context(|| format!("send {signal:?} to {self}"))
    }

    /// Waits until it has ended.
    pub fn wait_gone(self) -> Result<()> {
        let Ok(pidfd) = self.pidfd() else { return Ok(()) };
        let mut fds = [PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)];
        let limit = Timespec { tv_sec: i64::try_from(PATIENCE.as_secs())?, tv_nsec: 0 };
        if poll(&mut fds, Some(&limit))? == 0 {
            bail!("{self} ({:?}) did not end within {PATIENCE:?}", self.argv());
        }
        Ok(())
    }

    fn pidfd(self) -> Result<OwnedFd> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw).context("a pid out of range")?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).with_context(|| format!("pidfd_open {self}"))?;
        // Compared after the open: from then on the descriptor means this process, whatever becomes of its
        // id.
        if Self::of(self.pid) != Some(self) {
            bail!("{self} has ended, its number belongs to another process");
        }
        Ok(pidfd)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.pid, self.start)
    }
}

impl PartialEq<Value> for Identity {
    /// Whether this is the process of an event.
    fn eq(&self, process: &Value) -> bool {
        Self::told(process) == Some(*self)
    }
}

/// All processes of the host.
pub(crate) fn processes() -> impl Iterator<Item = Identity> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).filter_map(Identity::of)
}

struct Stat {
    alive: bool,
    parent: u32,
    start: u64,
}

/// The process that has this id now, `proc_pid_stat(5)`.
fn stat(pid: u32) -> Option<Stat> {
    let bytes = fs::read(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    // The name in parentheses may contain anything, even parentheses.
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let threads: u32 = fields.nth(15)?.parse().ok()?;
    let start = fields.nth(1)?.parse().ok()?;
    // The state is that of the leader: a process whose leader has exited before its other threads looks like
    // a zombie.
    Some(Stat { alive: threads > 1 || !matches!(state, "Z" | "X"), parent, start })
}

/// Repeats `look` until it finds something; for what cannot be waited for.
pub fn within<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if Instant::now() > deadline {
            bail!("not within {PATIENCE:?}: {what}");
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// The exit code of a command that ends by itself, its standard output and its standard error.
pub fn told(command: &mut Command) -> Result<(i32, String, String)> {
    let told = output(command)?;
    let code = told.status.code().with_context(|| format!("{command:?} was killed"))?;
    Ok((code, String::from_utf8(told.stdout)?, String::from_utf8(told.stderr)?))
}

/// A program that runs as this user, in this group and no other.
pub fn as_user(uid: u32, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("/usr/bin/setpriv");
    command.args([format!("--reuid={uid}"), format!("--regid={uid}"), "--clear-groups".to_owned()]);
    command.arg(program);
    command
}

/// Runs a command and returns its output. If it does not end, it is killed, which its status shows. What a verb prints with
/// `--json` is as the schema says.
pub fn output(command: &mut Command) -> Result<Output> {
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = piped.spawn().with_context(|| format!("start {command:?}"))?;
    let id = Identity::of(child.id()).context("the child has no identity")?;
    let (done, watch) = channel::<()>();
    let watchdog = thread::spawn(move || {
        if watch.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            let _ = id.signal(Signal::KILL);
        }
    });
    let output = child.wait_with_output().with_context(|| format!("wait for {command:?}"));
    drop(done);
    let _ = watchdog.join();
    let output = output?;
    schema::check_printed(command.get_args(), &output.stdout)?;
    Ok(output)
}

/// A process that ends when this is dropped.
#[derive(Debug)]
pub struct Bystander(Child);

impl Bystander {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Whether it still runs.
    pub fn unharmed(&mut self) -> Result<bool> {
        Ok(self.0.try_wait()?.is_none())
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An innocent process of the scene that gets the number `pid`, as soon as that is free: the kernel hands out the number
/// after `ns_last_pid` next, `pid_namespaces(7)`.
pub fn reuse(s: &Scene, pid: u32) -> Result<Bystander> {
    let mut sleep = s.command("sleep")?;
    sleep.arg("1000");
    let one = within(&format!("a process with the number {pid}"), || {
        fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).ok()?;
        let one = Bystander(sleep.spawn().ok()?);
        (one.id() == pid).then_some(one)
    })?;
    within("that process is in the scene", || s.members().iter().any(|m| m.pid == pid).then_some(()))?;
    Ok(one)
}
