//! Runs a hook in a process of its own, which is this program once more, and ends everything that the hook leaves.
//!
//! Invariant: when the runner ends, no process that the hook started is left, whatever session it is in: none can leave
//! the subtree of a subreaper, `PR_SET_CHILD_SUBREAPER(2const)`. The report tells of one that the rights of the hook's user
//! do not suffice to kill. They are ended when the time is over, and as soon as the daemon ends or says so, which the runner
//! sees at the socket that is its standard output.
//!
//! Invariant: the hook gets no capability, even as root, no descriptor but its standard streams, and no signal that is
//! blocked or ignored, however the daemon was started. The runner gives up what the hook must not have before it starts
//! it, because no code of ours can run between fork and exec.

use std::{
    collections::BTreeSet,
    env,
    ffi::{CString, OsStr, OsString},
    fmt::Write as _,
    fs::File,
    io::{self, PipeWriter, Write as _},
    os::{
        fd::{AsFd as _, AsRawFd as _},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
    time::Duration,
};

use nix::{
    spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn},
    sys::signal::{SigSet, Signal as Number},
};
use rustix::{
    fs::{Access, Mode, access},
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, getuid, pidfd_open, pidfd_send_signal,
        set_child_subreaper, setsid, umask, wait,
    },
};
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe,
    runtime::Builder,
    signal::unix::{SignalKind, signal},
    time::{Instant, sleep_until, timeout},
};

use super::run::{Outcome, Report};
use crate::{
    host::{is_own_child, own_children},
    os::{capabilities, descriptors, own, readable, users},
};
use orphand_core::model::text;

/// The first command-line argument that makes the program a runner; see [`main`]. After it: the time limit in
/// milliseconds, the limit of descriptors (empty: unchanged), the hook's file, the event's name.
pub const ARGUMENT: &str = "__hook-runner";

/// How many bytes of the hook's standard error are kept.
const KEPT: usize = 4096;

/// The time between two inspections of our children, because no event announces a new one.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// How long the runner tries to kill what is left. That may be another user's (sudo), or wait for a dead disk: then the next
/// event gets its turn.
const GIVE_UP: Duration = Duration::from_secs(5);

/// Standard input is the event for the hook, standard output a socket to the daemon. Returns whether the report was written.
pub fn main() -> bool {
    let report = prepared().unwrap_or_else(|why| Report::not_started(&why));
    serde_json::to_vec(&report).is_ok_and(|report| io::stdout().write_all(&report).is_ok())
}

fn prepared() -> Result<Report, String> {
    let mut arguments = env::args_os().skip(2);
    let mut argument = || arguments.next().ok_or("arguments are missing");
    let [millis, limit, path, event] = [argument()?, argument()?, argument()?, argument()?];
    let number = |text: OsString| text.to_str()?.parse().ok();
    let time = Duration::from_millis(number(millis).ok_or("no time is given")?);
    confine(number(limit)).map_err(|error| format!("cannot give up rights: {error}"))?;
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.and_then(|runtime| runtime.block_on(run(time, path, event))).map_err(|error| error.to_string())
}

/// Gives up for good what the hook may not have, before there is a second thread: capabilities belong to threads.
fn confine(descriptors: Option<u64>) -> io::Result<()> {
    // These may be meant for the daemon and all its children. The runner stays until the last process is gone.
    let stay = [Number::SIGHUP, Number::SIGINT, Number::SIGQUIT, Number::SIGTERM];
    stay.into_iter().collect::<SigSet>().thread_block()?;
    // Otherwise the process would be called `exe`, after the path that it is started by.
    let _ = rustix::thread::set_name(c"orphand-runner");
    // This fails if the process leads a session already.
    let _ = setsid();
    set_child_subreaper(Some(getpid()))?;
    umask(Mode::from_raw_mode(0o022));
    capabilities::drop_all()?;
    // The daemon may be protected from the kernel's OOM killer; a hook needs no such protection.
    own::raise_oom_score(0);
    // The process that started the daemon may have left it descriptors without the close-on-exec flag.
    close_fds::set_fds_cloexec(3, &[]);
    // The daemon has raised its own limit, which programs that use select(2) do not expect.
    descriptors.map_or(Ok(()), descriptors::lower_to)
}

/// Starts the hook, and waits until no child is left: neither the hook nor what it left, which becomes our child.
async fn run(time: Duration, path: OsString, event: OsString) -> io::Result<Report> {
    let mut ends = signal(SignalKind::child())?;
    let daemon = readable(io::stdout().as_fd().try_clone_to_owned()?)?;
    let (said, says) = io::pipe()?;
    let mut said = pipe::Receiver::from_owned_fd(said.into())?;
    // The last thing that can fail, so that nothing is left of a hook then.
    let hook = start(&path, &event, &says)?;
    // The reader sees the end when nobody else has it.
    drop(says);
    let until = Instant::now() + time;
    let (mut status, mut sent, mut words) = (None, BTreeSet::new(), Words::default());
    // Why everything is killed, and until when that is tried.
    let mut over: Option<(Outcome, &str, Instant)> = None;
    let left = loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, how))) => {
                status = if pid == hook { Some(how) } else { status };
                continue;
            }
            Err(Errno::INTR) => continue,
            Ok(None) => {}
            Err(_) => break 0,
        }
        let mut look = until;
        if let Some((_, _, give_up)) = over {
            let children = own_children().unwrap_or_default();
            if Instant::now() > give_up {
                break children.len() as u64;
            }
            // Parents first. A process that loses its parent becomes our child.
            sent.extend(children.into_iter().filter(|pid| end(*pid)));
            look = Instant::now() + LOOK_AGAIN;
        }
        tokio::select! {
            _ = ends.recv() => {}
            () = words.hear(&mut said), if !words.ended => {}
            _ = daemon.readable(), if over.is_none() => {
                over = Some((Outcome::Stopped, "the daemon stops", Instant::now() + GIVE_UP));
            }
            () = sleep_until(look) => {
                let why = match status {
                    None => "it took too long",
                    Some(_) => "it ended, but what it had left in the background took too long",
                };
                over = over.or(Some((Outcome::TimedOut, why, Instant::now() + GIVE_UP)));
            }
        }
    };
    let (outcome, mut why) = match over {
        None => ended(status),
        Some((outcome, why, _)) => {
            (outcome, format!("{why}, killed ({})", text::count(sent.len() as u64, "process", "processes")))
        }
    };
    if left > 0 {
        let left = text::count(left, "process", "processes");
        // Writing to a string cannot fail.
        let _ = write!(why, "; {left} could not be killed");
    }
    // Who cannot be killed may hold the pipe open.
    while !words.ended && timeout(LOOK_AGAIN, words.hear(&mut said)).await.is_ok() {}
    words.kept.truncate(KEPT);
    let said = String::from_utf8_lossy(&words.kept);
    if !said.trim().is_empty() {
        let _ = write!(why, "; it said: {}", said.trim());
    }
    Ok(Report { outcome, why })
}

/// What the hook writes to its standard error: all is read, so that it never blocks on it, and the beginning is kept.
#[derive(Default)]
struct Words {
    kept: Vec<u8>,
    ended: bool,
}

impl Words {
    async fn hear(&mut self, said: &mut pipe::Receiver) {
        let mut buffer = [0; KEPT];
        match said.read(&mut buffer).await {
            Ok(got @ 1..) if self.kept.len() < KEPT => {
                self.kept.extend(buffer.get(..got).unwrap_or_default());
            }
            got => self.ended = !matches!(got, Ok(1..)),
        }
    }
}

fn ended(status: Option<WaitStatus>) -> (Outcome, String) {
    let (code, signal) =
        status.map_or((None, None), |status| (status.exit_status(), status.terminating_signal()));
    match (code, signal) {
        (Some(0), _) => (Outcome::Ok, String::new()),
        (Some(code), _) => (Outcome::Failed, format!("it ended with status {code}")),
        (None, Some(signal)) => (Outcome::Failed, format!("it was ended by signal {signal}")),
        (None, None) => (Outcome::Failed, "nobody saw its end".to_owned()),
    }
}

/// Starts the hook, which has our standard input and our environment. It must not inherit the signals that the daemon was
/// started to ignore (`nohup`): a shell script cannot undo that. `Command` of std resets SIGPIPE alone, `posix_spawn(3)` all.
fn start(path: &OsStr, event: &OsStr, says: &PipeWriter) -> io::Result<Pid> {
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_flags(PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK)?;
    attributes.set_sigdefault(&SigSet::all())?;
    attributes.set_sigmask(&SigSet::empty())?;
    let nothing = File::options().write(true).open("/dev/null")?;
    let mut streams = PosixSpawnFileActions::init()?;
    streams.add_dup2(nothing.as_raw_fd(), 1)?;
    streams.add_dup2(says.as_raw_fd(), 2)?;
    let words = [path, event].map(|word| CString::new(word.as_bytes()));
    let words = words.into_iter().collect::<Result<Vec<_>, _>>()?;
    let environment =
        env::vars_os().map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()));
    let environment = environment.collect::<Result<Vec<_>, _>>()?;
    let started = posix_spawn(path, &streams, &attributes, &words, &environment);
    let pid = started.map_err(io::Error::from).map_err(|why| match Errno::from_io_error(&why) {
        // The file itself was there a moment ago.
        Some(Errno::NOENT | Errno::NOEXEC) => io::Error::other(format!(
            "{why}; its first line must name a program that is there, as #!/bin/sh does"
        )),
        Some(Errno::ACCESS) => closed_to_us(Path::new(path)).map_or(why, io::Error::other),
        _ => why,
    })?;
    Pid::from_raw(pid.as_raw()).ok_or(io::ErrorKind::NotFound.into())
}

/// Why this user, who may execute the file, does not get there: he may not enter a folder above it.
fn closed_to_us(path: &Path) -> Option<String> {
    let above: Vec<&Path> = path.ancestors().skip(1).collect();
    let closed =
        above.into_iter().rev().find(|folder| access(*folder, Access::EXEC_OK) == Err(Errno::ACCESS))?;
    let uid = getuid().as_raw();
    let user = users::user_by_id(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name);
    let folder = closed.display();
    Some(format!(
        "user {user} may not enter the folder {folder}: let him (chmod o+x {folder}), or move the hook"
    ))
}

/// Kills a child. While the pidfd's process lives no other one has its number, so what is read by number is about it.
fn end(pid: u32) -> bool {
    let pid_of = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let Some(pidfd) = pid_of.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return false };
    is_own_child(pid) && pidfd_send_signal(pidfd, Signal::KILL).is_ok()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;
    use crate::os::apart;

    /// Who has no capabilities may not enter a folder without its bit. The twin has it.
    #[test]
    fn the_folder_that_is_closed_to_the_user_is_named() {
        for (mode, is_closed) in [(0o600, true), (0o700, false)] {
            let folder = tempfile::tempdir().unwrap();
            let closed = folder.path().join("private");
            fs::create_dir(&closed).unwrap();
            fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).unwrap();
            let hook = closed.join("below").join("hook");
            let found = apart(|| {
                capabilities::drop_all()?;
                Ok(closed_to_us(&hook))
            });
            let said = found.unwrap().unwrap_or_default();
            let first = closed.display().to_string();
            assert_eq!(said.contains(&format!("may not enter the folder {first}: ")), is_closed, "{said}");
        }
    }
}
