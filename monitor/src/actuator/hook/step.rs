//! The last step before a hook runs, in the process that becomes it: this program once more, between a runner and the hook.
//!
//! Invariant: the hook gets no capability, as root neither, no descriptor but its standard streams, and no signal that is blocked or
//! ignored, whatever the daemon was started with. Whatever fails on the way is said on the pipe that is the step's standard output, and
//! nothing is executed.

use std::{
    env,
    ffi::{CString, OsStr, OsString},
    fs,
    io::{self, PipeWriter, Write as _},
    os::{
        fd::AsRawFd as _,
        unix::{ffi::OsStrExt as _, process::CommandExt as _},
    },
    process::{Command, Stdio},
};

use nix::{
    spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn},
    sys::signal::SigSet,
};
use rustix::{
    fs::Mode,
    process::{Signal, set_parent_process_death_signal, umask},
    thread::{
        CapabilitySet, CapabilitySets, capability_is_in_bounding_set, clear_ambient_capability_set,
        remove_capability_from_bounding_set, set_capabilities,
    },
};

use crate::os::{descriptors, own};

/// The first argument that makes the program such a step; see [`main`]. Behind it: limit of descriptors (empty: as it is), file, event.
pub const ARGUMENT: &str = "__hook-step";

/// Starts the step behind our own standard input: `reports` is its standard output, `says` its standard error, and the hook's. Gives its
/// number.
///
/// What the daemon was started to ignore (`nohup`, a shell's background) all below it would, a shell script even for good: no trap in
/// it is heard. std's `Command` sets nothing back but SIGPIPE, `posix_spawn(3)` does.
pub(super) fn start(
    arguments: impl Iterator<Item = OsString>,
    reports: &PipeWriter,
    says: &PipeWriter,
) -> io::Result<u32> {
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_flags(PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF)?;
    attributes.set_sigdefault(&SigSet::all())?;
    let mut streams = PosixSpawnFileActions::init()?;
    streams.add_dup2(reports.as_raw_fd(), 1)?;
    streams.add_dup2(says.as_raw_fd(), 2)?;
    let own = ["orphand", ARGUMENT].map(OsString::from).into_iter();
    let words = own.chain(arguments).map(|word| word_of(&[&word])).collect::<io::Result<Vec<_>>>()?;
    let environment = env::vars_os()
        .map(|(name, value)| word_of(&[&name, OsStr::new("="), &value]))
        .collect::<io::Result<Vec<_>>>()?;
    let pid = posix_spawn(own::PROGRAM, &streams, &attributes, &words, &environment)?;
    Ok(pid.as_raw().unsigned_abs())
}

/// A word for the kernel, of these parts.
fn word_of(parts: &[&OsStr]) -> io::Result<CString> {
    let bytes: Vec<u8> = parts.iter().flat_map(|part| part.as_bytes()).copied().collect();
    Ok(CString::new(bytes)?)
}

/// What the step does. It returns only where the hook could not be executed.
pub fn main() {
    // The hook's own standard output is nowhere; it is put in place as the very last.
    let Ok(report) = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3) else { return };
    let why = execute(env::args_os().skip(2));
    let _ = fs::File::from(report).write_all(why.as_bytes());
}

fn execute(mut arguments: impl Iterator<Item = OsString>) -> String {
    let (Some(limit), Some(path), Some(event)) = (arguments.next(), arguments.next(), arguments.next())
    else {
        return "arguments are missing".to_owned();
    };
    umask(Mode::from_raw_mode(0o022));
    if let Err(error) = drop_rights() {
        return format!("cannot drop capabilities: {error}");
    }
    // The daemon may be one of the last that a kernel without memory ends; a hook is one of many.
    own::drop_oom_protection();
    // Should somebody kill the runner.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // Whoever started the daemon may have left it descriptors that no program closes by itself.
    close_fds::set_fds_cloexec(3, &[]);
    // The daemon has raised its own: programs that use select(2) do not expect that.
    if let Some(limit) = limit.to_str().and_then(|limit| limit.parse().ok())
        && let Err(error) = descriptors::lower_to(limit)
    {
        return format!("cannot lower the limit of descriptors: {error}");
    }
    // The runner has some blocked. (SIGPIPE, which we ignore, is set back by std.)
    let _ = SigSet::empty().thread_set_mask();
    let error = Command::new(path).arg(event).stdout(Stdio::null()).exec();
    error.to_string()
}

/// For good, whoever we are: what the execve(2) would keep, and what root would get by it.
fn drop_rights() -> io::Result<()> {
    clear_ambient_capability_set()?;
    // It takes a right of its own. Who has not got it gains nothing by an execve(2) either, or began with less.
    let all = (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number));
    for one in all.take_while(|one| capability_is_in_bounding_set(*one).is_ok()) {
        let _ = remove_capability_from_bounding_set(one);
    }
    let none = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}
