//! One run of a hook, as the daemon's thread sees it: it starts a runner and reads the runner's report.

use std::{
    env, fmt,
    fs::File,
    io::{self, Read as _},
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt as _},
    },
    process::{Command, Stdio},
};

use rustix::{fs::MemfdFlags, thread::set_thread_groups};
use serde::{Deserialize, Serialize};

use super::{Settings, queue::Event, runner};
use crate::os::{apart, descriptors, launch, own, sealed};

/// The longest report in bytes. The hook's output in it is limited to some kB, and is escaped.
const LONGEST: u64 = 64 * 1024;

/// The word that a run is counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Ok,
    Failed,
    TimedOut,
    Refused,
    Stopped,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) outcome: Outcome,
    /// Why it is no other one, for the log. It may contain what the hook printed.
    pub(super) why: String,
}

impl Report {
    pub(super) fn not_started(why: &dyn fmt::Display) -> Self {
        Self { outcome: Outcome::Failed, why: format!("it could not be started: {why}") }
    }
}

/// Runs the hook and waits for its end. `running` gets the socket of the runner, and says whether to go on; a
/// shutdown of that socket stops the runner.
pub(super) fn run(
    settings: &Settings,
    event: &Event,
    running: impl FnOnce(UnixStream) -> bool,
) -> io::Result<Report> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(own::PROGRAM);
    command
        .arg0("orphand")
        .args([runner::ARGUMENT, &settings.timeout.as_millis().to_string()])
        .arg(descriptors::for_others().map_or_else(String::new, |limit| limit.to_string()))
        .arg(&settings.path)
        .arg(event.name)
        .env_clear()
        .envs(env::var_os("PATH").map(|path| ("PATH", path)))
        .envs(event.variables.iter().cloned())
        .current_dir("/")
        .stdin(Stdio::from(input(&event.line)?))
        .stdout(Stdio::from(OwnedFd::from(theirs)))
        .stderr(Stdio::null());
    let user = &settings.user;
    if user.is_another {
        // So the runner is that user, too. To change the user later may take capabilities that we have given up.
        command.uid(user.uid).gid(user.gid);
    }
    if !running(ours.try_clone()?) {
        return Ok(Report { outcome: Outcome::Stopped, why: "the daemon stops".to_owned() });
    }
    let mut child = if user.is_another {
        // `uid` drops supplementary groups only if root becomes another user. Groups belong to the thread.
        apart(|| {
            set_thread_groups(&[])?;
            launch(&mut command)
        })
    } else {
        launch(&mut command)
    }?;
    // The command holds the runner's side of the socket.
    drop(command);
    let mut told = Vec::new();
    // The read ends when the runner ends, and the runner leaves no process behind.
    let read = (&mut ours).take(LONGEST).read_to_end(&mut told);
    drop(ours);
    let status = child.wait()?;
    read?;
    let report = serde_json::from_slice(&told);
    Ok(report.unwrap_or_else(|_| Report::not_started(&format!("its runner said nothing ({status})"))))
}

/// The event as a memory file: a hook that does not read it delays nobody, and a pipe may look like a wire.
fn input(line: &str) -> io::Result<File> {
    let name = "orphand-event";
    // NOEXEC_SEAL exists since Linux 6.3.
    sealed(name, line, MemfdFlags::NOEXEC_SEAL).or_else(|_| sealed(name, line, MemfdFlags::empty()))
}
