//! One run of a hook, as the daemon's thread sees it: it starts a runner and reads the runner's report.

use std::{
    env,
    ffi::OsStr,
    fs::File,
    io::{self, Read as _, Seek as _, Write as _},
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt as _},
    },
    process::{Command, Stdio},
    thread,
};

use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create},
    thread::set_thread_groups,
};

use crate::os::{descriptors, own};

use super::{
    Settings,
    facts::Facts,
    report::{End, Report},
    runner,
};

/// The longest report in bytes. The hook's output in it is limited to some kB, and is escaped.
const LONGEST: u64 = 64 * 1024;

/// Runs the hook and waits for its end. `running` gets the socket of the runner; a shutdown of that socket
/// stops the runner.
pub(super) fn run(
    settings: &Settings,
    facts: &Facts,
    line: &str,
    running: impl FnOnce(UnixStream) -> bool,
) -> io::Result<Report> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let millis = settings.timeout.as_millis().to_string();
    let words = [OsStr::new(runner::ARGUMENT), OsStr::new(&millis)];
    let mut command = Command::new(own::PROGRAM);
    command
        .arg0("orphand")
        .args(words)
        .arg(descriptors::for_others().map_or_else(String::new, |limit| limit.to_string()))
        .args([settings.path.as_os_str(), OsStr::new(&facts.event)])
        .env_clear()
        .envs(env::var_os("PATH").map(|path| ("PATH", path)))
        .envs(facts.environment())
        .current_dir("/")
        .stdin(Stdio::from(event(line)?))
        .stdout(Stdio::from(OwnedFd::from(theirs)))
        .stderr(Stdio::null());
    if let Some((uid, gid)) = settings.user.other {
        // The runner runs as that user too. To change the user later may take capabilities that we have given
        // up.
        command.uid(uid).gid(gid);
    }
    if !running(ours.try_clone()?) {
        return Ok(Report { end: End::Stopped, ..Report::default() });
    }
    let mut child = match settings.user.other {
        None => command.spawn(),
        // `uid` drops supplementary groups only if root becomes another user. Groups belong to the thread,
        // and this thread ends after the start.
        Some(_) => thread::scope(|scope| {
            let born = scope.spawn(|| {
                set_thread_groups(&[])?;
                command.spawn()
            });
            born.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
        }),
    }?;
    // The command holds the runner's side of the socket.
    drop(command);
    let mut told = Vec::new();
    // The read ends when the runner ends, and the runner leaves no process behind.
    let read = (&mut ours).take(LONGEST).read_to_end(&mut told);
    drop(ours);
    let status = child.wait()?;
    read?;
    Ok(serde_json::from_slice(&told).unwrap_or_else(|_| {
        let why = format!("its runner said nothing ({status})");
        Report { end: End::NotStarted { why }, ..Report::default() }
    }))
}

/// The event as a memory file. A hook that does not read it delays nobody. A pipe could be mistaken for the
/// wire of a server.
fn event(line: &str) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // NOEXEC_SEAL exists since Linux 6.3.
    let file = memfd_create("orphand-event", flags | MemfdFlags::NOEXEC_SEAL);
    let mut file = File::from(file.or_else(|_| memfd_create("orphand-event", flags))?);
    file.write_all(line.as_bytes())?;
    file.rewind()?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}
