//! What was left behind over time, for the chart and its table.

use jiff::Timestamp;
use serde::Serialize;

use super::{Page, names};
use crate::sink::metrics::owner_labels;
use orphand_core::model::{BootTime, Series, ServerCounts, Timeline, TimelineQuery};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    /// Seconds of a step.
    step: i64,
    steps: usize,
}

impl Range {
    pub fn named(name: &str) -> Option<Self> {
        let (step, steps) = match name {
            "10m" => (10, 60),
            "1h" => (60, 60),
            "6h" => (300, 72),
            "24h" => (900, 96),
            "7d" => (7200, 84),
            "30d" => (28_800, 90),
            _ => return None,
        };
        Some(Self { step, steps })
    }

    /// The steps up to now: the last one has just begun.
    fn query(self, now: Timestamp) -> TimelineQuery {
        let Self { step, steps } = self;
        let step_ms = step * 1000;
        let last = now.as_millisecond().div_euclid(step_ms) * step_ms;
        let first = last - step_ms * i64::try_from(steps.saturating_sub(1)).unwrap_or_default();
        TimelineQuery { from: Timestamp::from_millisecond(first).unwrap_or_default(), step_ms, steps }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Past {
    /// Milliseconds since 1970.
    from: i64,
    step_ms: i64,
    steps: usize,
    freed_bytes: Vec<u64>,
    sums: Sums,
    series: Vec<OfRun>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Sums {
    orphans: u64,
    reaped: u64,
    freed_bytes: u64,
    left: u64,
    unproven: u64,
}

/// A run, or all that have no series of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct OfRun {
    key: String,
    name: String,
    unit: Option<String>,
    generation: Option<u64>,
    other: bool,
    #[serde(flatten)]
    sums: Sums,
    bytes: Vec<u64>,
    counts: Vec<u64>,
}

impl Page {
    pub fn question(&self, range: Range, now: BootTime) -> TimelineQuery {
        range.query(self.wall.timestamp(now))
    }

    pub fn past(&self, query: &TimelineQuery, line: Timeline) -> Past {
        let mut all = line.other.sums;
        line.series.iter().for_each(|series| all.add(&series.sums));
        let mut series: Vec<OfRun> =
            line.series.into_iter().map(|series| self.of_run(series, false)).collect();
        if line.other.sums.servers > 0 {
            series.push(self.of_run(line.other, true));
        }
        Past {
            from: query.from.as_millisecond(),
            step_ms: query.step_ms,
            steps: query.steps,
            freed_bytes: line.freed_bytes,
            sums: sums(&all),
            series,
        }
    }

    fn of_run(&self, series: Series, other: bool) -> OfRun {
        let labels = owner_labels(series.run.as_ref(), series.owner.as_deref());
        let (name, unit) = if other { ("other".to_owned(), None) } else { names::owner(&labels) };
        OfRun {
            key: self.keys.of(&labels),
            name,
            unit,
            generation: series.run.and_then(|run| run.generation),
            other,
            sums: sums(&series.sums),
            bytes: series.bytes,
            counts: series.orphans,
        }
    }
}

/// What the host regained: proportional memory, where it could be read.
fn sums(counts: &ServerCounts) -> Sums {
    let freed_bytes = if counts.freed_pss_bytes > 0 { counts.freed_pss_bytes } else { counts.freed_bytes };
    Sums {
        orphans: counts.orphans,
        reaped: counts.reaped,
        freed_bytes,
        left: counts.left,
        unproven: counts.unproven,
    }
}
