//! The threads whose end the kernel side reports, because they made a server: the map THREADS seen from user space.
//!
//! Invariant: a thread that is followed is in the map before it is looked at in /proc, so that its end is either reported
//! or seen there. The kernel side removes a thread that ends.

use std::num::NonZeroU32;

use aya::{
    Ebpf,
    maps::{HashMap, MapData, MapError},
};

use super::{
    kernel_error::KernelError,
    maps::{absent_is_fine, full_is_fine, hash_map},
};
use crate::{host::identity, os::clock};
use orphand_core::model::{BootTime, ProcessId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    Yes,
    Ended {
        /// A moment at which it had ended, and before which nobody else with its number began.
        at: BootTime,
    },
    /// Nothing will be reported: its process has ended, or there is no room.
    No,
}

pub struct Threads {
    entries: HashMap<MapData, u32, u32>,
    /// How many had no room.
    pub(super) full: u64,
}

impl Threads {
    pub(super) fn new(programs: &mut Ebpf) -> Result<Self, KernelError> {
        Ok(Self { entries: hash_map(programs, "THREADS")?, full: 0 })
    }

    /// Has the end of a thread reported: the one that had this number when it started a process that began at `until`, in
    /// clock ticks since boot. Its process must be followed as an agent.
    pub fn follow(
        &mut self,
        process: ProcessId,
        thread: NonZeroU32,
        until: u64,
    ) -> Result<Followed, KernelError> {
        let thread = thread.get();
        if !self.enter(thread, process.pid)? {
            self.full += 1;
            if self.full == 1 {
                tracing::warn!("too many threads have started servers: the end of further ones is not seen");
            }
            return Ok(Followed::No);
        }
        // One that cannot be read is as alive as can be told. If it is not, nothing follows from that.
        let Ok(began) = identity::thread_began(process.pid, thread) else { return Ok(Followed::Yes) };
        let seen_at = clock::now();
        if !identity::stays(process) {
            self.forget(thread)?;
            return Ok(Followed::No);
        }
        match began {
            Some(began) if began <= until => Ok(Followed::Yes),
            // Its number belongs to a later thread, which may have started servers, too.
            Some(later) => Ok(Followed::Ended { at: BootTime::of_ticks(later.saturating_sub(1)) }),
            None => {
                self.forget(thread)?;
                Ok(Followed::Ended { at: seen_at })
            }
        }
    }

    fn enter(&mut self, thread: u32, pid: u32) -> Result<bool, KernelError> {
        if full_is_fine(self.entries.insert(thread, pid, 0))? {
            return Ok(true);
        }
        self.sweep()?;
        Ok(full_is_fine(self.entries.insert(thread, pid, 0))?)
    }

    /// Forgets threads that ended when their process was not followed as an agent any more.
    fn sweep(&mut self) -> Result<(), KernelError> {
        let entered: Vec<(u32, u32)> = self.entries.iter().collect::<Result<_, _>>()?;
        for (thread, pid) in entered {
            if identity::thread_began(pid, thread) == Ok(None) {
                self.forget(thread)?;
            }
        }
        Ok(())
    }

    fn forget(&mut self, thread: u32) -> Result<(), MapError> {
        absent_is_fine(self.entries.remove(&thread)).map(drop)
    }
}
