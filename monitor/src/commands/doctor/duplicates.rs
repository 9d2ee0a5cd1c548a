//! Whether file descriptors of other processes may be duplicated. Seccomp filters of containers and units
//! often forbid it.

use std::os::fd::AsRawFd as _;

use rustix::{
    fs::fstat,
    io::Errno,
    process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open},
};

use orphand_core::model::Check;

const NAME: &str = "named pipes";

/// Tries it with a descriptor of this process, which only a filter or an old kernel refuses.
pub(super) fn check() -> Check {
    of(duplicate())
}

fn duplicate() -> Result<bool, Errno> {
    let (read, _write) = rustix::pipe::pipe()?;
    let ourselves = pidfd_open(getpid(), PidfdFlags::empty())?;
    let copy = pidfd_getfd(&ourselves, read.as_raw_fd(), PidfdGetfdFlags::empty())?;
    Ok(fstat(&copy)?.st_ino == fstat(&read)?.st_ino)
}

fn of(tried: Result<bool, Errno>) -> Check {
    const COST: &str =
        "servers whose wires are named pipes cannot be judged and stay unproven (wire_unknown)";
    match tried {
        Ok(true) => Check::ok(NAME, "their ends can be inspected through a duplicate (pidfd_getfd)"),
        Ok(false) => Check::wrong(NAME, format!("pidfd_getfd returns a wrong file: {COST}")),
        Err(Errno::NOSYS) => Check::note(
            NAME,
            format!("this kernel or sandbox has no pidfd_getfd (ENOSYS): {COST}; it needs Linux 5.6"),
        ),
        Err(Errno::PERM) => Check::note(
            NAME,
            format!(
                "a sandbox forbids pidfd_getfd (EPERM): {COST}; in a unit, SystemCallFilter=pidfd_getfd allows it"
            ),
        ),
        Err(errno) => Check::note(NAME, format!("pidfd_getfd fails ({errno}): {COST}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orphand_core::model::Health;

    #[test]
    fn it_works_here() {
        assert_eq!(duplicate(), Ok(true));
        assert_eq!(check().is, Health::Ok);
    }

    #[test]
    fn what_it_costs_is_told_with_the_reason() {
        for (errno, word) in [(Errno::PERM, "EPERM"), (Errno::NOSYS, "ENOSYS"), (Errno::MFILE, "fails")] {
            let check = of(Err(errno));
            assert!(check.is == Health::Note && check.found.contains(word), "{check:?}");
            assert!(check.found.contains("wire_unknown"), "{check:?}");
        }
        assert_eq!(of(Ok(false)).is, Health::Wrong);
    }
}
