//! Counters of the eBPF programs: one set for each CPU, which user space adds up. They never decrease.

/// What is counted; an index into [`Counters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Counter {
    // Records made, lost ones included.
    ForkProduced,
    ExecProduced,
    /// Of thread groups and of threads.
    ExitProduced,
    SetsidProduced,
    SignalProduced,
    // Records that did not get into the ring.
    ForkDropped,
    ExecDropped,
    ExitDropped,
    SetsidDropped,
    /// No loss that /proc could make up for: the sender stays unknown.
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

/// Kinds of records: the first counters are of those made, the next of those lost, in the same order.
const KINDS: usize = Counter::ForkDropped as usize;
const _: () = assert!(Counter::SignalDropped as usize == 2 * KINDS - 1);

impl Counter {
    pub const COUNT: usize = Self::CallDropped as usize + 1;
}

/// Value of the per-CPU map COUNTERS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counters(pub [u64; Counter::COUNT]);

impl Counters {
    pub fn get(&self, what: Counter) -> u64 {
        self.0.get(what as usize).copied().unwrap_or(0)
    }

    /// Records made of all kinds, lost ones included.
    pub fn made(&self) -> u64 {
        self.0.iter().take(KINDS).sum()
    }

    /// Records that did not get into the ring.
    pub fn dropped(&self) -> u64 {
        self.0.iter().skip(KINDS).take(KINDS).sum()
    }

    pub fn add(&mut self, other: &Self) {
        for (sum, n) in self.0.iter_mut().zip(other.0) {
            *sum += n;
        }
    }
}
