//! The threads whose end the kernel side reports, because they made a server: the map THREADS seen from user space.
//!
//! Invariant: a thread that is followed is in the map before it is looked at in /proc, so that its end is either reported
//! or seen there. The kernel side removes a thread that ends.

use std::{collections::HashMap as Map, num::NonZeroU32};

use aya::{
    Ebpf,
    maps::{HashMap, MapData, MapError},
};

use super::{
    kernel_error::KernelError,
    maps::{absent_is_fine, full_is_fine, hash_map},
};
use crate::{host::identity, os::clock};
use orphand_core::model::{BootTime, ProcessId, Share};

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

/// Between two times at which all that are followed are looked for in /proc: as many times as long as the first one took.
const REST: u32 = 20;

pub struct Threads {
    entries: HashMap<MapData, u32, u32>,
    held: Held,
    /// Until when they are not looked for again.
    rests_until: BootTime,
    /// How many had no room.
    pub(super) full: u64,
}

/// The threads in the map, each with its user, and how many there is room for.
struct Held {
    of: Map<u32, Share>,
    room: usize,
}

impl Held {
    /// Whether this user has as much as he leaves free: one alone has half of it, three have a quarter each.
    fn is_full_for(&self, user: Share) -> bool {
        let own = self.of.values().filter(|one| **one == user).count();
        own >= self.room.saturating_sub(self.of.len())
    }
}

impl Threads {
    pub(super) fn new(programs: &mut Ebpf, room: u32) -> Result<Self, KernelError> {
        let held = Held { of: Map::new(), room: room as usize };
        Ok(Self { entries: hash_map(programs, "THREADS")?, held, rests_until: BootTime::default(), full: 0 })
    }

    /// The kernel side has told the end of this thread, and removed it.
    pub(super) fn ended(&mut self, thread: NonZeroU32) {
        self.held.of.remove(&thread.get());
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
        let user = Share::of(identity::real_user(pid).unwrap_or_default());
        let is_new = !self.held.of.contains_key(&thread);
        if is_new && self.held.is_full_for(user) {
            self.sweep()?;
            if self.held.is_full_for(user) {
                return Ok(false);
            }
        }
        let entered = full_is_fine(self.entries.insert(thread, pid, 0))?;
        if entered {
            self.held.of.insert(thread, user);
        }
        Ok(entered)
    }

    /// Forgets threads that ended when their process was not followed as an agent any more.
    fn sweep(&mut self) -> Result<(), KernelError> {
        let begun = clock::now();
        if begun < self.rests_until {
            return Ok(());
        }
        let entered: Vec<(u32, u32)> = self.entries.iter().collect::<Result<_, _>>()?;
        for (thread, pid) in entered {
            if identity::thread_began(pid, thread) == Ok(None) {
                self.forget(thread)?;
            }
        }
        // The end of one may not have been told.
        let is_there = |thread: &u32| self.entries.get(thread, 0).is_ok();
        self.held.of.retain(|thread, _| is_there(thread));
        let over = clock::now();
        self.rests_until = over + over.since(begun) * REST;
        Ok(())
    }

    fn forget(&mut self, thread: u32) -> Result<(), MapError> {
        self.held.of.remove(&thread);
        absent_is_fine(self.entries.remove(&thread)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_has_half_of_the_room_and_three_a_quarter_each() {
        for (users, most) in [(1, 32), (3, 16)] {
            let mut held = Held { of: Map::new(), room: 64 };
            for thread in 0..200 {
                let user = Share::of(1000 + thread % users);
                if !held.is_full_for(user) {
                    held.of.insert(thread, user);
                }
            }
            let of = |user| held.of.values().filter(|one| **one == Share::of(user)).count();
            assert_eq!(of(1000), most);
            assert!(!held.is_full_for(Share::of(5000)));
        }
    }
}
