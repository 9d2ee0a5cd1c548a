//! The last step before a hook runs, in the process that becomes the hook. It is this program once more,
//! between the runner and the hook.
//!
//! Invariant: the hook gets no capability, even as root. It gets no descriptor but its standard streams, and
//! no signal is blocked or ignored, no matter how the daemon was started. If a step fails, the reason is
//! written to the pipe that is the standard output here, and nothing is executed.

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

/// The first command-line argument that makes the program such a step; see [`main`]. After it: the limit of
/// descriptors (empty: unchanged), the hook's file, the event's name.
pub const ARGUMENT: &str = "__hook-step";

/// Starts the step, which has our standard input. `reports` becomes its standard output; `says` becomes its
/// standard error, and that of the hook. Returns its process id.
///
/// A child inherits the signals that the daemon was started to ignore (`nohup`, a shell's background job). A
/// shell script cannot even undo that, because its traps have no effect on such signals. `Command` of std
/// resets only SIGPIPE; `posix_spawn(3)` resets all.
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

/// Joins the parts to a C string for a system call.
fn word_of(parts: &[&OsStr]) -> io::Result<CString> {
    let bytes: Vec<u8> = parts.iter().flat_map(|part| part.as_bytes()).copied().collect();
    Ok(CString::new(bytes)?)
}

/// The main function of the step. It returns only if the hook could not be executed.
pub fn main() {
    // A duplicate for the report: the hook's standard output, /dev/null, is put in place at the very end.
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
    // The daemon may be protected from the kernel's OOM killer; a hook needs no such protection.
    own::drop_oom_protection();
    // In case a process kills the runner.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // The process that started the daemon may have left it descriptors without the close-on-exec flag.
    close_fds::set_fds_cloexec(3, &[]);
    // The daemon has raised its own limit, which programs that use select(2) do not expect.
    if let Some(limit) = limit.to_str().and_then(|limit| limit.parse().ok())
        && let Err(error) = descriptors::lower_to(limit)
    {
        return format!("cannot lower the limit of descriptors: {error}");
    }
    // The runner has some signals blocked. (SIGPIPE, which we ignore, is reset by std.)
    let _ = SigSet::empty().thread_set_mask();
    let error = Command::new(path).arg(event).stdout(Stdio::null()).exec();
    error.to_string()
}

/// Gives up for good, for every user, what execve(2) would keep and what root would gain by it.
fn drop_rights() -> io::Result<()> {
    clear_ambient_capability_set()?;
    // This takes a capability itself. A process without that capability gains nothing by execve(2) either, or
    // had less from the start.
    let all = (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number));
    for one in all.take_while(|one| capability_is_in_bounding_set(*one).is_ok()) {
        let _ = remove_capability_from_bounding_set(one);
    }
    let none = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}
