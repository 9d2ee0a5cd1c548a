//! What was left behind over time, from the store: the answer for a chart. Its size is bounded, whatever the store has.

use jiff::Timestamp;

use super::{RunView, ServerCounts};

/// How many runs have a series of their own.
pub const SERIES: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineQuery {
    /// When the first step begins.
    pub from: Timestamp,
    /// The length of a step in milliseconds.
    pub step_ms: i64,
    pub steps: usize,
}

/// What was left behind in each step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The runs that left most memory behind, in that order, at most [`SERIES`].
    pub series: Vec<Series>,
    pub other: Series,
    /// Memory that was freed by ending orphans, in bytes, for each step.
    pub freed_bytes: Vec<u64>,
}

/// The orphans of one run in each step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// The run; absent for servers of no known run, and for several runs.
    pub run: Option<RunView>,
    pub owner: Option<String>,
    /// How many there were, and what became of them. `servers` counts those that were judged.
    pub sums: ServerCounts,
    /// Memory of the orphans that were there in a step, in bytes as of their verdicts.
    pub bytes: Vec<u64>,
    /// How many orphans were there in a step.
    pub orphans: Vec<u64>,
}
