//! Runs a hook, in a process of its own: this program once more. It answers for all that the hook leaves behind.
//!
//! Invariant: when the runner ends, nothing that the hook has started is left, whatever session it went to (but what nobody can
//! kill with the rights of the hook's user: that is told). They cannot get out
//! from below a subreaper, `PR_SET_CHILD_SUBREAPER(2const)`. The runner ends them at the end of the time, and as soon as the daemon
//! is gone or has changed its mind, which it sees at the socket that is its standard output.

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

/// The first argument that makes the program a runner; see [`main`]. Behind it: milliseconds, limit of descriptors, file, event.
pub const ARGUMENT: &str = "__hook-runner";

/// So much of what the hook says on its standard error is kept.
const KEPT: usize = 4096;

/// When nothing tells of one that came to us meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Who has become another user (sudo) cannot be killed by us, and who waits for a dead disk by nobody. The next event is due.
const GIVE_UP: Duration = Duration::from_secs(5);

/// What the runner does: standard input is the hook's, standard output a socket to the daemon. Whether it could tell what happened.
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
    // What is meant for the daemon and all below it: the runner stays until the last of the hook is gone.
    let mut stay = SigSet::empty();
    for number in [Number::SIGHUP, Number::SIGINT, Number::SIGQUIT, Number::SIGTERM] {
        stay.add(number);
    }
    stay.thread_block().map_err(io::Error::from).map_err(failed("block signals"))?;
    // Otherwise it is called `exe`, by its path.
    let _ = rustix::thread::set_name(c"orphand-runner");
    // It fails for who leads a session already.
    let _ = setsid();
    set_child_subreaper(Some(getpid())).map_err(io::Error::from).map_err(failed("become a subreaper"))?;

    let (said, says) = io::pipe().map_err(failed("make a pipe"))?;
    rustix::io::ioctl_fionbio(&said, true).map_err(io::Error::from).map_err(failed("set up a pipe"))?;
    let (started, starts) = io::pipe().map_err(failed("make a pipe"))?;
    let (ends, end) = io::pipe().map_err(failed("make a pipe"))?;
    // The thread first: what was started must not be left alone because there is none.
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
    // Who reads waits for the end.
    drop((starts, says));
    let _ = tell.send(child);
    let mut watch =
        Watch { said: Some(said), kept: Vec::new(), ends, status: Arc::clone(&status), left: true };
    // Where it cannot wait it ends them.
    let end = match watch.until(until).unwrap_or(Over::Stopped) {
        Over::Ended => None,
        Over::Late => Some(End::TimedOut { exited: watch.status.get().is_some() }),
        Over::Stopped => Some(End::Stopped),
    };
    let (killed, left) = watch.end_all();
    watch.listen();
    // It is empty if the hook was executed: the descriptor closed then.
    let mut why = String::new();
    let _ = started.take(KEPT as u64).read_to_string(&mut why);
    let end = match (end, why.is_empty()) {
        (_, false) => End::NotStarted { why },
        (Some(end), true) => end,
        (None, true) => watch.status.get().cloned().unwrap_or_default(),
    };
    Ok(Report { end, killed, left, said: String::from_utf8_lossy(&watch.kept).into_owned() })
}

/// Why the wait is over.
enum Over {
    /// All have ended.
    Ended,
    /// The time is over.
    Late,
    /// The daemon is gone, or wants no more of it.
    Stopped,
}

/// What the runner looks at.
struct Watch {
    /// The hook's standard error, until nobody has it any more.
    said: Option<PipeReader>,
    /// The first of what was said there.
    kept: Vec<u8>,
    /// A byte for each that has ended; its end when nobody is left.
    ends: PipeReader,
    status: Arc<OnceLock<End>>,
    /// Whether anybody is left.
    left: bool,
}

impl Watch {
    /// Waits until all have ended, until `until`, or for the daemon's word.
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

    /// Waits for news, at most so long; whether the daemon has said its word.
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

    /// Reads what the hook says, so that it never waits for us; the first of it is kept.
    fn listen(&mut self) {
        let mut buffer = [0; 16 * 1024];
        // Not without end: the time is looked at between two turns.
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

    /// Ends all that is left, from the top down: whoever loses its parent comes to us. How many were sent SIGKILL, and how many
    /// are there in spite of it.
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

/// Waits for whoever ends, until nobody is left.
fn collect(child: u32, status: &OnceLock<End>, mut ended: PipeWriter) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, how))) => {
                if pid.as_raw_pid().unsigned_abs() == child {
                    let _ = status.set(End::of(how));
                }
                // The other side goes last.
                let _ = ended.write_all(&[0]);
            }
            Ok(None) | Err(Errno::INTR) => {}
            // Nobody is left.
            Err(_) => return,
        }
    }
}

/// Ends a child. While the descriptor's process lives the number is its own, so that what is read says whose it is; if it has
/// ended, nobody is signalled.
fn end(pid: u32) -> bool {
    let pid_of = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let Some(pidfd) = pid_of.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return false };
    is_own_child(pid) && pidfd_send_signal(pidfd, Signal::KILL).is_ok()
}
