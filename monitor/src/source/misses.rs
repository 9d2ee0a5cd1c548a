//! Events that a program did not see, because the kernel does not run it on a CPU where it is running already: another task can
//! run it while it is preempted. Nothing is in the ring then, and no counter of the program's own has changed.
//!
//! The kernel counts them (`recursion_misses`, since Linux 5.12). For [`super::kernel`] only.

use std::os::fd::{AsFd as _, OwnedFd};

use aya::{Ebpf, programs::Program};

use crate::os::own;
use orphand_core::model::Losses;

/// The programs, and how many events each had missed when it was last asked.
pub(super) struct Misses(Vec<(Kind, OwnedFd, u64)>);

/// What a program reports.
#[derive(Clone, Copy)]
enum Kind {
    Fork,
    Exec,
    Exit,
    Setsid,
}

impl Misses {
    /// Of all programs that are loaded.
    pub(super) fn of(programs: &Ebpf) -> Self {
        let loaded = programs.programs().filter_map(|(name, program)| {
            let kind = match name {
                "sched_process_fork" => Kind::Fork,
                "sched_process_exec" => Kind::Exec,
                "sched_process_exit" => Kind::Exit,
                "ksys_setsid" | "sys_exit_setsid" => Kind::Setsid,
                _ => return None,
            };
            Some((kind, descriptor(program)?, 0))
        });
        Self(loaded.collect())
    }

    /// What was missed since the last call. What cannot be read now is in the next answer: the kernel's number only grows.
    pub(super) fn since_last_time(&mut self) -> Losses {
        let mut losses = Losses::default();
        for (kind, program, known) in &mut self.0 {
            let Some(missed) = own::told_of(program, "recursion_misses") else { continue };
            let more = missed.saturating_sub(*known);
            *known = missed.max(*known);
            let of_kind = match kind {
                Kind::Fork => &mut losses.fork,
                Kind::Exec => &mut losses.exec,
                Kind::Exit => &mut losses.exit,
                Kind::Setsid => &mut losses.setsid,
            };
            *of_kind = of_kind.saturating_add(more);
        }
        losses
    }
}

/// None: it is not loaded.
fn descriptor(program: &Program) -> Option<OwnedFd> {
    program.fd().ok()?.as_fd().try_clone_to_owned().ok()
}
