//! Lines of a trace, the recording of all inputs of the engine.

use serde::{Deserialize, Serialize};

use super::{BootTime, Input, Policy, ProcessId};

/// The version of the format that is written, and the only one that is read.
pub const TRACE_FORMAT: u32 = 9;

/// The first line of a trace: the settings at the start of the recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceHeader {
    #[serde(rename = "orphand_trace")]
    pub format: u32,
    pub version: String,
    pub kernel: String,
    /// `CLOCK_REALTIME` - `CLOCK_BOOTTIME` in nanoseconds when the recording began.
    pub realtime_offset_ns: i64,
    /// The policy at the start. Later changes are inputs.
    #[serde(flatten)]
    pub policy: Policy,
    /// The daemon and its ancestors.
    pub ourselves: Vec<ProcessId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceEntry {
    /// The `now` of the engine when the input was handed in.
    pub at: BootTime,
    #[serde(flatten)]
    pub input: Input,
}
