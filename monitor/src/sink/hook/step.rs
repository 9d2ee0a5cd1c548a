//! The last step before a hook runs, in the process that becomes it: this program once more, between a runner and the hook.
//!
//! Invariant: what the hook gets is its user, no capability (but those that root has as root), its standard streams and no other
//! descriptor. Whatever fails on the way is said on the pipe that is the step's standard output, and nothing is executed.

use std::{
    env,
    ffi::OsString,
    fmt, io,
    io::Write as _,
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
};

use nix::{
    sys::signal::SigSet,
    unistd::{Gid, Uid, setgroups, setresgid, setresuid},
};
use rustix::{
    fs::Mode,
    process::{Signal, set_parent_process_death_signal, umask},
    thread::{CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities},
};

/// The first argument that makes the program such a step; see [`main`]. Behind it: whom to run as, file, event.
pub const ARGUMENT: &str = "__hook-step";

/// Whom to run as, in an argument: nothing if it is whom we run as already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Become(pub(super) Option<(u32, u32, Vec<u32>)>);

impl fmt::Display for Become {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((uid, gid, groups)) = &self.0 else { return f.write_str("-") };
        write!(f, "{uid}:{gid}:")?;
        groups
            .iter()
            .enumerate()
            .try_for_each(|(n, group)| write!(f, "{}{group}", if n > 0 { "," } else { "" }))
    }
}

impl Become {
    fn parse(text: &str) -> Option<Self> {
        if text == "-" {
            return Some(Self(None));
        }
        let mut parts = text.split(':');
        let (uid, gid) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let groups =
            parts.next()?.split(',').filter(|group| !group.is_empty()).map(|group| group.parse().ok());
        Some(Self(Some((uid, gid, groups.collect::<Option<_>>()?))))
    }
}

/// What the step does. It returns only where the hook could not be executed.
pub fn main() {
    // The hook's own standard output is nowhere; it is put in place as the very last.
    let Ok(report) = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3) else { return };
    let why = execute(env::args_os().skip(2));
    let _ = std::fs::File::from(report).write_all(why.as_bytes());
}

fn execute(mut arguments: impl Iterator<Item = OsString>) -> String {
    let whom = arguments.next().and_then(|whom| Become::parse(whom.to_str()?));
    let (Some(Become(whom)), Some(path), Some(event)) = (whom, arguments.next(), arguments.next()) else {
        return "arguments are missing".to_owned();
    };
    umask(Mode::from_raw_mode(0o022));
    if let Some((uid, gid, groups)) = whom
        && let Err(errno) = switch(uid, gid, &groups)
    {
        return format!("cannot become user {uid}: {}", errno.desc());
    }
    if let Err(error) = drop_rights() {
        return format!("cannot drop capabilities: {error}");
    }
    // Should the runner be killed. Cleared by a change of user, so it comes behind that.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // Whoever started the daemon may have left it descriptors that no program closes by itself.
    close_fds::set_fds_cloexec(3, &[]);
    // The runner has some blocked. (SIGPIPE, which we ignore, is set back by std.)
    let _ = SigSet::empty().thread_set_mask();
    let error = Command::new(path).arg(event).stdout(Stdio::null()).exec();
    error.to_string()
}

/// For good: real, effective and saved.
fn switch(uid: u32, gid: u32, groups: &[u32]) -> nix::Result<()> {
    let groups: Vec<_> = groups.iter().copied().map(Gid::from_raw).collect();
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    setgroups(&groups)?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)
}

/// What would outlive the execve(2). Root gets its own again by it: a hook that runs as root is root.
fn drop_rights() -> io::Result<()> {
    clear_ambient_capability_set()?;
    let mut sets = capabilities(None)?;
    sets.inheritable = CapabilitySet::empty();
    if !Uid::effective().is_root() {
        sets = CapabilitySets { effective: sets.inheritable, permitted: sets.inheritable, ..sets };
    }
    Ok(set_capabilities(None, sets)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_to_become_is_written_and_read() {
        for whom in [
            Become(None),
            Become(Some((1000, 1001, Vec::new()))),
            Become(Some((0, 0, vec![4]))),
            Become(Some((u32::MAX, 7, vec![1, 2, 3]))),
        ] {
            assert_eq!(Become::parse(&whom.to_string()), Some(whom));
        }
        for text in ["", "1", "1:2", "a:b:c", "1:2:3,x", "-1:2:"] {
            assert_eq!(Become::parse(text), None, "{text}");
        }
    }
}
