//! Numbers of kernel records by kind.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Kernel records by kind: those that could not be delivered, or those that were received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// Forks.
    pub fork: u64,
    /// Execs.
    pub exec: u64,
    /// Exits.
    pub exit: u64,
    /// Setsids.
    pub setsid: u64,
    /// What did not fit into a user's share: processes into the map of followed processes, records into the ring.
    pub member: u64,
}

impl Losses {
    /// The numbers with the names of their kinds.
    pub const fn kinds(self) -> [(&'static str, u64); 5] {
        let Self { fork, exec, exit, setsid, member } = self;
        [("fork", fork), ("exec", exec), ("exit", exit), ("setsid", setsid), ("member", member)]
    }
}

impl AddAssign for Losses {
    fn add_assign(&mut self, more: Self) {
        for (sum, more) in [
            (&mut self.fork, more.fork),
            (&mut self.exec, more.exec),
            (&mut self.exit, more.exit),
            (&mut self.setsid, more.setsid),
            (&mut self.member, more.member),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}
