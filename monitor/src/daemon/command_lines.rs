//! How much the whole command lines of living processes take, for each user: he decides how long they are, and how many.
//!
//! Invariant: the command lines that were completed, and that the graph keeps of a user, take at most [`Room::OF_USER`] and what his
//! forks have of them.

use std::collections::HashMap;

use crate::host::Room;
use orphand_core::model::{ProcessId, Share, Snapshot};

#[derive(Debug, Default)]
pub struct CommandLines {
    sizes: HashMap<ProcessId, (Share, usize)>,
    users: HashMap<Share, usize>,
}

impl CommandLines {
    /// Whether the command line of this process, which takes so many bytes, may be kept. It counts if it may.
    pub fn enter(&mut self, process: ProcessId, uid: u32, size: usize) -> bool {
        let share = Share::of(uid);
        let taken = self.users.get(&share).copied().unwrap_or_default();
        let may = taken.saturating_add(size) <= Room::OF_USER;
        if may {
            self.count(process, share, size);
        }
        may
    }

    fn count(&mut self, process: ProcessId, share: Share, size: usize) {
        self.leave(process);
        self.sizes.insert(process, (share, size));
        *self.users.entry(share).or_default() += size;
    }

    /// A fork runs the program of its creator, and has its command line for as long as it lives.
    pub fn inherit(&mut self, child: ProcessId, creator: ProcessId) {
        if let Some((share, size)) = self.sizes.get(&creator).copied() {
            self.count(child, share, size);
        }
    }

    /// Exits may be among what was lost.
    pub fn repair(&mut self, snapshot: &Snapshot) {
        let gone: Vec<ProcessId> = self.sizes.keys().copied().filter(snapshot.gone()).collect();
        for process in gone {
            self.leave(process);
        }
    }

    /// The process has ended, runs another program, or is not followed any more.
    pub fn leave(&mut self, process: ProcessId) {
        let Some((share, size)) = self.sizes.remove(&process) else { return };
        let Some(taken) = self.users.get_mut(&share) else { return };
        *taken = taken.saturating_sub(size);
        if *taken == 0 {
            self.users.remove(&share);
        }
    }
}

#[cfg(test)]
mod tests {
    use orphand_core::model::{BootTime, SnapshotProcess};

    use super::*;

    #[test]
    fn a_user_has_so_much_for_those_that_live() {
        let mut lines = CommandLines::default();
        let id = |pid| ProcessId { pid, start: 1 };
        let half = Room::OF_USER / 2;
        assert!(lines.enter(id(1), 1000, half));
        assert!(lines.enter(id(2), 1000, half));
        assert!(!lines.enter(id(3), 1000, 1));
        assert!(lines.enter(id(4), 1001, half), "another user has his own");
        lines.leave(id(1));
        lines.leave(id(9));
        assert!(lines.enter(id(3), 1000, half));
        assert!(!lines.enter(id(5), 1000, half));
        let living = SnapshotProcess { id: id(2), ..SnapshotProcess::default() };
        let horizon = BootTime::of_ticks(2);
        let snapshot = Snapshot { horizon, processes: vec![living], unread: vec![4] };
        lines.repair(&snapshot);
        assert!(lines.enter(id(5), 1000, half), "the exit of another one was lost");
        lines.leave(id(5));
        lines.inherit(id(6), id(2));
        lines.inherit(id(7), id(99));
        lines.leave(id(2));
        assert!(!lines.enter(id(8), 1000, half + 1), "a fork has it still");
        for pid in [4, 6] {
            lines.leave(id(pid));
        }
        assert!(lines.users.is_empty() && lines.sizes.is_empty());
    }
}
