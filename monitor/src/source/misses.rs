//! Events that a program did not see, because the kernel does not run it on a CPU where it is running already: another task can
//! run it while it is preempted. Nothing is in the ring then, and no counter of the program's own has changed.
//!
//! The kernel counts them (`recursion_misses`, since Linux 5.12). For [`super::kernel`] only.

use std::os::fd::{AsFd as _, OwnedFd};

use aya::Ebpf;

use crate::os::own;
use orphand_core::model::Losses;

/// Where events of a kind are counted.
type Kind = fn(&mut Losses) -> &mut u64;

/// The programs that are loaded, what a missed event of each is, and how many each had missed when it was last asked.
pub(super) struct Misses(Vec<(OwnedFd, Kind, u64)>);

impl Misses {
    pub(super) fn of(programs: &Ebpf) -> Self {
        let loaded = programs.programs().filter_map(|(name, program)| {
            let kind: Kind = match name {
                "sched_process_fork" => |losses| &mut losses.fork,
                "sched_process_exec" => |losses| &mut losses.exec,
                "sched_process_exit" => |losses| &mut losses.exit,
                "ksys_setsid" | "sys_exit_setsid" => |losses| &mut losses.setsid,
                _ => return None,
            };
            Some((program.fd().ok()?.as_fd().try_clone_to_owned().ok()?, kind, 0))
        });
        Self(loaded.collect())
    }

    /// What was missed since the last call. What cannot be read now is in the next answer: the kernel's number only grows.
    pub(super) fn since_last_time(&mut self) -> Losses {
        let mut losses = Losses::default();
        for (program, kind, known) in &mut self.0 {
            let missed = own::told_of(program, "recursion_misses").unwrap_or(0).max(*known);
            *kind(&mut losses) += missed - *known;
            *known = missed;
        }
        losses
    }
}
