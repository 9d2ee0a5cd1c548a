//! The settings that the engine judges by, and the head of a recording, which has them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{AlertRule, BootTime, Input, Mode, ProcessId, SessionPolicy};

/// The settings that the engine judges by. They may change while the daemon runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    pub mode: Mode,
    /// Who decided the mode; absent if the configuration did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// Who ends what was there before the first start, or before what was known was lost.
    pub found: Found,
    /// The grace period: the time from the owner's exit to the verdict.
    #[serde(rename = "grace_ns", with = "nanoseconds")]
    pub grace: Duration,
    /// The time from the sign that a living owner abandoned a server to the verdict.
    #[serde(rename = "abandoned_grace_ns", with = "nanoseconds")]
    pub abandoned_grace: Duration,
    /// The time for which a tool below an orphan may go on with its work.
    #[serde(rename = "work_grace_ns", with = "nanoseconds")]
    pub work_grace: Duration,
    #[serde(rename = "term_timeout_ns", with = "nanoseconds")]
    pub term_timeout: Duration,
    /// Whether servers that run as another user than their owner may be ended.
    pub other_uids: bool,
    /// The rules of the configuration as TOML; empty if there are none.
    pub rules: String,
    /// Whether a process that no rule knows is a server if its first message is one of the protocol.
    pub recognise_protocol: bool,
    pub alerts: Vec<AlertRule>,
    /// How sessions are judged; absent if they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionPolicy>,
    /// The container engines that are asked, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub engines: Vec<String>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            mode: Mode::Enforce,
            decided_by: None,
            found: Found::default(),
            grace: Duration::from_secs(10),
            abandoned_grace: Duration::from_secs(30),
            work_grace: Duration::from_secs(300),
            term_timeout: Duration::from_secs(5),
            other_uids: false,
            rules: String::new(),
            recognise_protocol: true,
            alerts: Vec::new(),
            sessions: None,
            engines: Vec::new(),
        }
    }
}

/// Who ends orphans that were there before the first start of orphand on this host, or before what it knew was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// A person, whom orphand tells of them.
    #[default]
    Ask,
    /// orphand, like all others.
    End,
}

pub(super) mod nanoseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_nanos)
    }
}

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

/// A further line. Whoever writes one borrows the input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceEntry<I = Input> {
    /// The `now` of the engine when the input was handed in.
    pub at: BootTime,
    #[serde(flatten)]
    pub input: I,
}
