//! How much the whole command lines of living processes take, for each user: he decides how long they are, and how many.
//!
//! Invariant: what the graph keeps of a user is at most what is entered here for him, and what was read together ([`Room`]).

use std::{collections::HashMap, time::Duration};

use crate::host::Room;
use orphand_core::model::{BootTime, ProcessId, Share};

/// Between two looks at which of a user's processes live: of one that is not followed any more no exit is told.
const BETWEEN_SWEEPS: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub struct CommandLines {
    sizes: HashMap<ProcessId, (Share, usize)>,
    users: HashMap<Share, Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    bytes: usize,
    swept: Option<BootTime>,
}

impl CommandLines {
    /// Whether the command line of this process, which takes so many bytes, may be kept. It counts if it may.
    pub fn enter(
        &mut self,
        now: BootTime,
        (process, uid): (ProcessId, u32),
        size: usize,
        lives: impl Fn(ProcessId) -> bool,
    ) -> bool {
        let share = Share::of(uid);
        let fits = |lines: &Self| {
            lines.users.get(&share).is_none_or(|taken| taken.bytes.saturating_add(size) <= Room::OF_USER)
        };
        if !fits(self) && self.is_due(now, share) {
            let all = self.sizes.iter().filter(|(_, (of, _))| *of == share).map(|(process, _)| *process);
            let gone: Vec<ProcessId> = all.filter(|process| !lives(*process)).collect();
            for process in gone {
                self.leave(process);
            }
        }
        let may = fits(self);
        if may {
            self.users.entry(share).or_default().bytes += size;
            self.sizes.insert(process, (share, size));
        }
        may
    }

    fn is_due(&mut self, now: BootTime, share: Share) -> bool {
        let swept = &mut self.users.entry(share).or_default().swept;
        let is_due = swept.is_none_or(|at| now.since(at) >= BETWEEN_SWEEPS);
        *swept = if is_due { Some(now) } else { *swept };
        is_due
    }

    /// A fork runs the program of its creator, and has its command line for as long as it lives.
    pub fn inherit(&mut self, child: ProcessId, creator: ProcessId) {
        let Some((share, size)) = self.sizes.get(&creator).copied() else { return };
        if self.sizes.insert(child, (share, size)).is_none() {
            self.users.entry(share).or_default().bytes += size;
        }
    }

    /// The process has ended, or runs another program.
    pub fn leave(&mut self, process: ProcessId) {
        let Some((share, size)) = self.sizes.remove(&process) else { return };
        let Some(taken) = self.users.get_mut(&share) else { return };
        taken.bytes -= size;
        if taken.bytes == 0 {
            self.users.remove(&share);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_so_much_for_those_that_live() {
        let (mut lines, now) = (CommandLines::default(), BootTime(1));
        let id = |pid| ProcessId { pid, start: 1 };
        let half = Room::OF_USER / 2;
        assert!(lines.enter(now, (id(1), 1000), half, |_| true));
        assert!(lines.enter(now, (id(2), 1000), half, |_| true));
        assert!(!lines.enter(now, (id(3), 1000), 1, |_| true));
        assert!(lines.enter(now, (id(4), 1001), half, |_| true), "another user has his own");
        lines.leave(id(1));
        lines.leave(id(9));
        assert!(lines.enter(now, (id(3), 1000), half, |_| true));
        assert!(!lines.enter(now, (id(5), 1000), half, |_| false), "they were looked at a moment ago");
        let later = now + BETWEEN_SWEEPS;
        assert!(lines.enter(later, (id(5), 1000), half, |process| process != id(3)));
        lines.leave(id(5));
        lines.inherit(id(6), id(2));
        lines.inherit(id(7), id(99));
        lines.leave(id(2));
        assert!(!lines.enter(later, (id(8), 1000), half + 1, |_| true), "a fork has it still");
        for pid in [4, 6] {
            lines.leave(id(pid));
        }
        assert!(lines.users.is_empty() && lines.sizes.is_empty());
    }
}
