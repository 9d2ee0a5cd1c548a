//! How many records the programs have made. For [`super::kernel`] only, which hands it out.

/// Records made by kind, lost ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Produced {
    /// Forks.
    pub fork: u64,
    /// Execs.
    pub exec: u64,
    /// Exits, those of threads included.
    pub exit: u64,
    /// Setsids.
    pub setsid: u64,
    /// Signals that end a followed process.
    pub signal: u64,
}

impl Produced {
    /// All kinds together.
    pub const fn total(&self) -> u64 {
        self.fork + self.exec + self.exit + self.setsid + self.signal
    }
}
