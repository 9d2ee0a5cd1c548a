//! Runs a hook in a process of its own, which is this program once more. It ends everything that the hook
//! leaves behind.
//!
//! Invariant: when the runner ends, no process that the hook started is left, whatever session it is in. The
//! only exception is a process that the rights of the hook's user do not suffice to kill; the report tells of
//! it. Processes cannot leave the subtree of a subreaper, `PR_SET_CHILD_SUBREAPER(2const)`. The runner ends
//! them when the time is over, and as soon as the daemon ends or tells it to stop. It sees both at the socket
//! that is its standard output.

use std::{
    collections::BTreeSet,
    env,
    io::{self, PipeReader, PipeWriter, Read as _, Write as _},
    os::fd::{AsFd as _, BorrowedFd},
    sync::{Arc, OnceLock, mpsc},
    thread,
    time::{Duration, Instant},
};

use nix::sys::signal::{SigSet, Signal as Number};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, pidfd_send_signal, set_child_subreaper,
        setsid, wait,
    },
};

use super::{
    report::{End, Report},
    step,
};
use crate::host::{is_own_child, own_children};

/// The first command-line argument that makes the program a runner; see [`main`]. After it: the time limit in
/// milliseconds, the limit of descriptors, the hook's file, the event's name.
pub const ARGUMENT: &str = "__hook-runner";

/// How many bytes of the hook's standard error are kept.
const KEPT: usize = 4096;

/// The time between two inspections of our children, because no event announces a new one.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// How long the runner tries to kill what is left. We have no right to kill a process that became another
/// user (sudo), and a process that waits for a dead disk does not die at all. Then the next event gets its
/// turn.
const GIVE_UP: Duration = Duration::from_secs(5);

/// The main function of the runner. Standard input is the event for the hook, standard output is a socket to
/// the daemon. Returns whether the report could be written.
pub fn main() -> bool {
    let report = run().unwrap_or_else(|why| Report { end: End::NotStarted { why }, ..Report::default() });
    serde_json::to_vec(&report).is_ok_and(|report| io::stdout().write_all(&report).is_ok())
}

fn run() -> Result<Report, String> {
    let failed = |what: &'static str| move |error: io::Error| format!("cannot {what}: {error}");
    let mut arguments = env::args_os().skip(2);
    let millis =
        arguments.next().and_then(|millis| millis.to_str()?.parse().ok()).ok_or("no time is given")?;
    let until = Instant::now() + Duration::from_millis(millis);
    // These signals may be meant for the daemon and all its children. The runner stays until the last process
    // of the hook is gone.
    let mut stay = SigSet::empty();
    for number in [Number::SIGHUP, Number::SIGINT, Number::SIGQUIT, Number::SIGTERM] {
        stay.add(number);
    }
    stay.thread_block().map_err(io::Error::from).map_err(failed("block signals"))?;
    // Otherwise the process would be called `exe`, after the path that it is started by.
    let _ = rustix::thread::set_name(c"orphand-runner");
    // This fails if the process leads a session already.
    let _ = setsid();
    set_child_subreaper(Some(getpid())).map_err(io::Error::from).map_err(failed("become a subreaper"))?;

    let (said, says) = io::pipe().map_err(failed("make a pipe"))?;
    rustix::io::ioctl_fionbio(&said, true).map_err(io::Error::from).map_err(failed("set up a pipe"))?;
    let (started, starts) = io::pipe().map_err(failed("make a pipe"))?;
    let (ends, end) = io::pipe().map_err(failed("make a pipe"))?;
    // The thread is started before the hook. If it cannot be started, there is no hook that would run
    // unattended.
    let (tell, told) = mpsc::channel();
    let status = Arc::new(OnceLock::new());
    let copy = Arc::clone(&status);
    let collector = move || {
        if let Ok(child) = told.recv() {
            collect(child, &copy, end);
        }
    };
    thread::Builder::new().spawn(collector).map_err(failed("start a thread"))?;
    let child = step::start(arguments, &starts, &says).map_err(failed("start a process"))?;
    // Close our copies: the readers wait until the last copy is closed.
    drop((starts, says));
    let _ = tell.send(child);
    let mut watch =
        Watch { said: Some(said), kept: Vec::new(), ends, status: Arc::clone(&status), left: true };
    // If the runner cannot wait, it ends the processes.
    let end = match watch.until(until).unwrap_or(Over::Stopped) {
        Over::Ended => None,
        Over::Late => Some(End::TimedOut { exited: watch.status.get().is_some() }),
        Over::Stopped => Some(End::Stopped),
    };
    let (killed, left) = watch.end_all();
    watch.listen();
    // Nothing was written if the hook was executed: the descriptor was closed by that.
    let mut why = String::new();
    let _ = started.take(KEPT as u64).read_to_string(&mut why);
    let end = match (end, why.is_empty()) {
        (_, false) => End::NotStarted { why },
        (Some(end), true) => end,
        (None, true) => watch.status.get().cloned().unwrap_or_default(),
    };
    Ok(Report { end, killed, left, said: String::from_utf8_lossy(&watch.kept).into_owned() })
}

/// Why the wait ended.
enum Over {
    /// All processes have ended.
    Ended,
    /// The time limit was reached.
    Late,
    /// The daemon has ended, or told the runner to stop.
    Stopped,
}

/// The descriptors that the runner watches.
struct Watch {
    /// The hook's standard error, until no process has it open any more.
    said: Option<PipeReader>,
    /// The beginning of the hook's standard error.
    kept: Vec<u8>,
    /// One byte for each process that has ended; end of file when none is left.
    ends: PipeReader,
    status: Arc<OnceLock<End>>,
    /// Whether any process is left.
    left: bool,
}

impl Watch {
    /// Waits until all processes have ended, until the time `until`, or until the daemon tells the runner to
    /// stop.
    fn until(&mut self, until: Instant) -> io::Result<Over> {
        while self.left {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Over::Late);
            }
            if self.wait(left, Some(io::stdout().as_fd()))? {
                return Ok(Over::Stopped);
            }
        }
        Ok(Over::Ended)
    }

    /// Waits for an event for at most `patience`. Returns whether the daemon told the runner to stop.
    fn wait(&mut self, patience: Duration, daemon: Option<BorrowedFd<'_>>) -> io::Result<bool> {
        let patience = Timespec::try_from(patience).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut fds = vec![PollFd::new(&self.ends, PollFlags::IN)];
        fds.extend(self.said.as_ref().map(|said| PollFd::new(said, PollFlags::IN)));
        let at = daemon.map(|daemon| {
            fds.push(PollFd::from_borrowed_fd(daemon, PollFlags::IN));
            fds.len() - 1
        });
        match poll(&mut fds, Some(&patience)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let told = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        let stop = at.is_some_and(told);
        if told(0) {
            self.left = self.ends.read(&mut [0; 4096])? > 0;
        }
        self.listen();
        Ok(stop)
    }

    /// Reads the hook's standard error, so that the hook never blocks on it. The beginning is kept.
    fn listen(&mut self) {
        let mut buffer = [0; 16 * 1024];
        // The number of reads is limited, so that the time limit is checked in between.
        for _ in 0..16 {
            let Some(said) = &mut self.said else { return };
            match said.read(&mut buffer) {
                Ok(0) => self.said = None,
                Ok(got) => {
                    let room = KEPT.saturating_sub(self.kept.len()).min(got);
                    self.kept.extend_from_slice(buffer.get(..room).unwrap_or_default());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.said = None,
            }
        }
    }

    /// Kills all processes that are left, parents first. A process that loses its parent becomes our child.
    /// Returns how many were sent SIGKILL, and how many still exist.
    fn end_all(&mut self) -> (u64, u64) {
        let mut sent = BTreeSet::new();
        let until = Instant::now() + GIVE_UP;
        while self.left {
            if Instant::now() > until {
                return (sent.len() as u64, own_children().unwrap_or_default().len() as u64);
            }
            sent.extend(own_children().unwrap_or_default().into_iter().filter(|pid| end(*pid)));
            if self.wait(LOOK_AGAIN, None).is_err() {
                thread::yield_now();
            }
        }
        (sent.len() as u64, 0)
    }
}

/// Waits for each child that ends, until none is left.
fn collect(child: u32, status: &OnceLock<End>, mut ended: PipeWriter) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, how))) => {
                if pid.as_raw_pid().unsigned_abs() == child {
                    let _ = status.set(End::of(how));
                }
                // The reader outlives this thread.
                let _ = ended.write_all(&[0]);
            }
            Ok(None) | Err(Errno::INTR) => {}
            // No child is left.
            Err(_) => return,
        }
    }
}

/// Kills a child. While the process of the descriptor lives, no other process has its number, so what was
/// read by number is about this process. If it has ended, no process is signalled.
fn end(pid: u32) -> bool {
    let pid_of = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let Some(pidfd) = pid_of.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return false };
    is_own_child(pid) && pidfd_send_signal(pidfd, Signal::KILL).is_ok()
}
