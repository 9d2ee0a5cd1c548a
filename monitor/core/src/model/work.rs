//! What a process has done since it started.

use serde::{Deserialize, Serialize};

use super::ProcessId;

/// What a process has done since it started, what it read and what it wrote apart. If two accounts of it are equal, it
/// did nothing in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    pub process: ProcessId,
    /// CPU time of all its threads in nanoseconds (`/proc/PID/task/TID/schedstat`, field 1).
    pub cpu_ns: u64,
    /// Bytes read (`rchar` of `/proc/PID/io`).
    pub read_bytes: u64,
    /// Bytes written (`wchar` of `/proc/PID/io`).
    pub written_bytes: u64,
    /// How often it wrote (`syscw`).
    pub writes: u64,
}
