//! Limits of file descriptors: the daemon uses as many as the host allows, and reports it when none are left.
//!
//! Invariant: what cannot be inspected for lack of them is reported as not seen, never as "not there". Hooks get the limit
//! that the daemon was started with.

use std::{io, sync::OnceLock};

use anyhow::bail;
use rustix::{
    event::{EventfdFlags, eventfd},
    fd::OwnedFd,
    io::Errno,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

/// The soft limit that the daemon was started with, for the programs that it starts.
static STARTED_WITH: OnceLock<Option<u64>> = OnceLock::new();

/// The number of descriptors that must be free, because an inspection of a process takes some at a time.
const ENOUGH: usize = 16;

/// Without any server the daemon has some 60 open.
const LEAST: u64 = 128;

/// Raises the soft limit, 1024 for the sake of select(2), to the hard limit. Fails where the daemon could not even start.
pub fn raise() -> anyhow::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let _ = STARTED_WITH.set(limit.current);
    if let Some(most) = limit.maximum.filter(|most| *most < LEAST) {
        bail!(
            "only {most} files may be open at a time, orphand needs {LEAST}: raise the hard limit (LimitNOFILE=, ulimit -Hn)"
        );
    }
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
    {
        tracing::warn!(%error, "cannot raise the limit of descriptors (RLIMIT_NOFILE)");
    }
    Ok(())
}

/// The soft limit for programs that are started for others; `None` without one, or if [`raise`] was not called.
pub fn for_others() -> Option<u64> {
    STARTED_WITH.get().copied().flatten()
}

/// Undoes [`raise`], in a process that becomes another program.
pub fn lower_to(soft: u64) -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let within = limit.maximum.map_or(soft, |hard| hard.min(soft));
    Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(within), ..limit })?)
}

/// Whether an error means that no descriptors are left, of this process or of the host.
pub fn ran_out(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE)
}

/// The error that prevents further inspections if too few descriptors are left; `None` if enough are.
pub fn shortage() -> Option<Errno> {
    let tried: Result<Vec<OwnedFd>, Errno> =
        std::iter::repeat_with(|| eventfd(0, EventfdFlags::CLOEXEC)).take(ENOUGH).collect();
    tried.err().filter(|errno| ran_out(*errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_enough_here_and_only_want_is_want() {
        assert_eq!(shortage(), None);
        assert!(ran_out(Errno::MFILE) && ran_out(Errno::NFILE) && !ran_out(Errno::PERM));
    }
}
