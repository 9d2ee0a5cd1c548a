//! Counters of the eBPF programs: one set for each CPU, which user space adds up. They never decrease.

/// What is counted; an index into [`Counters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Counter {
    /// Fork records made, lost ones included.
    ForkProduced,
    /// Exec records made, lost ones included.
    ExecProduced,
    /// Exit records made, of thread groups and of threads, lost ones included.
    ExitProduced,
    /// Setsid records made, lost ones included.
    SetsidProduced,
    /// Signal records made, lost ones included.
    SignalProduced,
    /// Fork records that did not get into the ring.
    ForkDropped,
    /// Exec records that did not get into the ring.
    ExecDropped,
    /// Exit records that did not get into the ring.
    ExitDropped,
    /// Setsid records that did not get into the ring.
    SetsidDropped,
    /// Signal records that did not get into the ring. No loss that /proc could make up for: the sender stays unknown.
    SignalDropped,
    /// A process found no room in MEMBERS, or a record none in the ring: full, or the share of its user is used up.
    MembersFull,
    /// A fork below a pending candidate that was over the budget.
    BudgetUsedUp,
    /// A field of a task could not be read: "it cannot happen".
    Unreadable,
    /// The arguments could not be read (their page was not there).
    ArgvFault,
    /// The file name could not be read: "it cannot happen".
    ExeFault,
    /// The per-CPU buffer was not there: "it cannot happen".
    NoScratch,
    /// A fork below a candidate that ANCHORS has evicted, with the decision about it: followed without a budget.
    AnchorForgotten,
    /// A call to a followed process that could not be written down: "it cannot happen".
    CallDropped,
}

impl Counter {
    /// How many there are.
    pub const COUNT: usize = Self::CallDropped as usize + 1;
}

/// Value of the per-CPU map COUNTERS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counters(pub [u64; Counter::COUNT]);

impl Counters {
    /// One counter.
    pub fn get(&self, what: Counter) -> u64 {
        self.0.get(what as usize).copied().unwrap_or(0)
    }

    /// Adds another CPU's counters.
    pub fn add(&mut self, other: &Self) {
        for (sum, n) in self.0.iter_mut().zip(other.0) {
            *sum += n;
        }
    }
}
