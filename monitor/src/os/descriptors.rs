//! Descriptors: as many as the host allows, and what it means when there are none left.
//!
//! Invariant: whatever could not be looked at for want of descriptors is told as blindness, never taken for "it is not there".
//! What is started for others (hooks) has the limit that the daemon was started with.

use std::{io, sync::OnceLock};

use rustix::{
    event::{EventfdFlags, eventfd},
    fd::OwnedFd,
    io::Errno,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

/// The soft limit that the daemon was started with, for those that it starts.
static STARTED_WITH: OnceLock<Option<u64>> = OnceLock::new();

/// So many have to be free: a look at a process takes some at a time.
const ENOUGH: usize = 16;

/// Raises the soft limit to the hard one: systemd starts services with a soft limit of 1024, for the sake of select(2).
pub fn raise() {
    let limit = getrlimit(Resource::Nofile);
    let _ = STARTED_WITH.set(limit.current);
    if limit.current == limit.maximum {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(%error, "cannot raise the limit of descriptors (RLIMIT_NOFILE)");
    }
}

/// The soft limit for what is started for others; nothing: without one, or never raised.
pub fn for_others() -> Option<u64> {
    STARTED_WITH.get().copied().flatten()
}

/// A quarter of what we may open now.
pub fn quarter() -> usize {
    let may = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(may / 4).unwrap_or(usize::MAX)
}

/// Takes back what [`raise`] did, in a process that becomes another program.
pub fn lower_to(soft: u64) -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let within = limit.maximum.map_or(soft, |hard| hard.min(soft));
    Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(within), ..limit })?)
}

/// Whether an error says that descriptors have run out: ours, or those of the host.
pub fn ran_out(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE)
}

/// Why nothing more can be looked at, if there are too few descriptors left.
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
