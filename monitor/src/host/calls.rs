//! Who calls a port. /proc shows a connection that was closed for a minute, or not at all.
//!
//! The kernel side implements this (`source::calls`).

use orphand_core::model::ProcessId;

/// Who called a TCP port in the last ten minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LastCaller {
    /// Nobody.
    Nobody,
    /// This process, from the same address, and no other.
    Process(ProcessId),
    /// Another host, or another process that may be any.
    Anybody,
    /// That cannot be told: it was not watched for so long.
    Unknown,
}

impl LastCaller {
    /// The process, if it was exactly one.
    pub const fn process(self) -> Option<ProcessId> {
        match self {
            Self::Process(process) => Some(process),
            Self::Nobody | Self::Anybody | Self::Unknown => None,
        }
    }
}

/// A witness of calls.
pub trait Calls: std::fmt::Debug + Send {
    /// Who called this port lately, at which a process listens.
    ///
    /// # Errors
    ///
    /// A line that says why that cannot be told.
    fn lately(&mut self, port: u16, holder: ProcessId) -> Result<LastCaller, String>;
}
