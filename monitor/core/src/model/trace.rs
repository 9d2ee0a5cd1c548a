//! The lines of a recording of everything the engine was told.

use serde::{Deserialize, Serialize};

use super::{BootTime, Input, Policy, ProcessId};

/// The version of the format this orphand writes, and the one it reads.
pub const TRACE_FORMAT: u32 = 4;

/// The first line of a trace: what the engine was told once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceHeader {
    /// The version of the format.
    #[serde(rename = "orphand_trace")]
    pub format: u32,
    /// The version of orphand that recorded it.
    pub version: String,
    /// The kernel's release.
    pub kernel: String,
    /// `CLOCK_REALTIME` - `CLOCK_BOOTTIME` in nanoseconds when the recording began.
    pub realtime_offset_ns: i64,
    /// The policy at the start. Later changes are inputs.
    #[serde(flatten)]
    pub policy: Policy,
    /// The daemon and its ancestors.
    pub ourselves: Vec<ProcessId>,
}

/// An input of the engine and when it was handed in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceEntry {
    /// The `now` it was handed in with.
    pub at: BootTime,
    /// What was handed in.
    #[serde(flatten)]
    pub input: Input,
}
