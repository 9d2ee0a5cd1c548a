//! The proof that the kernel side works on this host: a child is started, and what is reported about it must agree with
//! what /proc and wait(2) say. Wrong offsets, a missing hook, a /proc of another PID namespace all fail
//! here, before anything is judged.

use std::{
    os::unix::process::ExitStatusExt as _,
    process::{Command, Stdio as Io},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{getuid, setsid};

use super::{kernel::KernelSource, kernel_error::KernelError};
use crate::{
    host::identity,
    os::{launch, own},
};
use orphand_core::model::{ExitStatus, ProcessEvent, ProcessId, Stdio, Tracking};

/// The one argument that makes the program the self-test's child; see [`child`].
pub const CHILD_ARGUMENT: &str = "__selftest-child";

/// How long a record may stay behind another CPU's that is not finished.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the child does: all that is hooked.
pub fn child() {
    // It is no group leader, so this cannot fail; if it does the parent will say so.
    let _ = setsid();
}

pub fn command() -> Command {
    let mut command = Command::new(own::PROGRAM);
    command.arg(CHILD_ARGUMENT);
    command
}

/// Runs `command`, which has to call setsid(2) and end, and compares. Returns the records about other
/// processes that came meanwhile.
pub fn run(source: &mut KernelSource, mut command: Command) -> Result<Vec<ProcessEvent>, KernelError> {
    let failed = |what: String| KernelError(format!("the self-test failed: {what}"));
    let me = identity::identity(std::process::id())
        .ok_or_else(|| failed("cannot read /proc/self/stat".to_owned()))?;
    source.members.track(me, Tracking::Member)?;
    let seen = witness(source, &mut command);
    source.members.untrack(me.pid)?;
    let (child, status, events) = seen?;

    let (own, others): (Vec<_>, Vec<_>) = events.into_iter().partition(|event| subject(event) == child.pid);
    let setsid_hooked = source.hooks().iter().any(|hook| hook.contains("setsid"));
    for (what, required) in [("fork", true), ("exec", true), ("setsid", setsid_hooked), ("exit", true)] {
        let mut found = own.iter().filter(|event| kind(event) == what);
        let Some(first) = found.clone().next() else {
            if required {
                return Err(failed(format!("no {what} record came about process {child}")));
            }
            continue;
        };
        if !found.any(|event| is_as_expected(event, me, child, status)) {
            return Err(failed(format!("the {what} record differs from /proc: {first:?}")));
        }
    }
    Ok(others)
}

type Seen = (ProcessId, ExitStatus, Vec<ProcessEvent>);

fn witness(source: &mut KernelSource, command: &mut Command) -> Result<Seen, KernelError> {
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        KernelError(format!("the self-test failed: {what}: {error}"))
    };
    command.stdin(Io::null()).stdout(Io::null()).stderr(Io::null());
    let mut process = launch(command).map_err(|e| failed("cannot start a child", &e))?;
    // Alive or a zombie: it has its number and its birth until it is waited for.
    let child = identity::identity(process.id());
    let ended = process.wait().map_err(|e| failed("cannot wait for the child", &e))?;
    let child = child.ok_or_else(|| failed("cannot read the child's /proc/PID/stat", &"no such process"))?;
    let status = match (ended.code(), ended.signal()) {
        (Some(code), _) => ExitStatus::Code(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, signal) => ExitStatus::Signal(signal.and_then(|s| u8::try_from(s).ok()).unwrap_or(0)),
    };
    let mut events = Vec::new();
    let start = Instant::now();
    loop {
        source.drain(|event| events.push(event));
        let ended = events.iter().any(|event| kind(event) == "exit" && subject(event) == child.pid);
        if ended || start.elapsed() > PATIENCE {
            return Ok((child, status, events));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn is_as_expected(event: &ProcessEvent, me: ProcessId, of: ProcessId, ended: ExitStatus) -> bool {
    let user = getuid().as_raw();
    match event {
        ProcessEvent::Fork { creator, child, uid, sid, .. } => {
            let session = identity::session().is_none_or(|session| session == *sid);
            (*creator, *child, *uid) == (me, of, user) && session
        }
        ProcessEvent::Exec { process, parent, uid, image, stdio, .. } => {
            let is_told = !image.exe.is_empty() && !image.argv.is_empty();
            (*process, *parent, *uid) == (of, me, user) && is_told && *stdio == [Stdio::Null; 3]
        }
        ProcessEvent::Setsid { process, sid, .. } => *process == of && *sid == of.pid,
        ProcessEvent::Exit { process, status, .. } => *process == of && *status == ended,
        ProcessEvent::ThreadExit { .. } | ProcessEvent::Signal { .. } => false,
    }
}

fn kind(event: &ProcessEvent) -> &'static str {
    event.into()
}

/// The number of the process a record is about.
const fn subject(event: &ProcessEvent) -> u32 {
    match event {
        ProcessEvent::Fork { child: process, .. }
        | ProcessEvent::Exec { process, .. }
        | ProcessEvent::Exit { process, .. }
        | ProcessEvent::Setsid { process, .. }
        | ProcessEvent::ThreadExit { process, .. }
        | ProcessEvent::Signal { process, .. } => process.pid,
    }
}
