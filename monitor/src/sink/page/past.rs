//! What was left behind over time, for the chart and its table.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Page, shown_owner};
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
}

impl Page {
    /// The steps up to now: the last one has just begun.
    pub fn question(&self, range: Range, now: BootTime) -> TimelineQuery {
        let Range { step, steps } = range;
        let step_ms = step * 1000;
        let last = self.wall.timestamp(now).as_millisecond().div_euclid(step_ms) * step_ms;
        let first = last - step_ms * i64::try_from(steps.saturating_sub(1)).unwrap_or_default();
        TimelineQuery { from: Timestamp::from_millisecond(first).unwrap_or_default(), step_ms, steps }
    }

    /// What the page is told. Times are milliseconds since 1970.
    pub fn past(&self, query: &TimelineQuery, line: Timeline) -> Value {
        let mut all = line.other.sums;
        line.series.iter().for_each(|series| all.add(&series.sums));
        let mut series: Vec<_> = line.series.into_iter().map(|series| self.of_run(series, false)).collect();
        if line.other.sums.servers > 0 {
            series.push(self.of_run(line.other, true));
        }
        json!({
            "from": query.from.as_millisecond(),
            "step_ms": query.step_ms,
            "steps": query.steps,
            "freed_bytes": line.freed_bytes,
            "sums": sums(&all),
            "series": series,
        })
    }

    /// A run, or all that have no series of their own.
    fn of_run(&self, series: Series, other: bool) -> Map<String, Value> {
        let labels = owner_labels(series.run.as_ref(), series.owner.as_deref());
        let (name, unit) = if other { ("other".to_owned(), None) } else { shown_owner(&labels) };
        let own = [
            ("key", self.key(&labels).into()),
            ("name", name.into()),
            ("unit", unit.into()),
            ("generation", series.run.and_then(|run| run.generation).into()),
            ("other", other.into()),
            ("bytes", series.bytes.into()),
            ("counts", series.orphans.into()),
        ];
        sums(&series.sums).into_iter().chain(own.map(|(field, value)| (field.to_owned(), value))).collect()
    }
}

/// What the host regained is proportional memory, where it could be read.
fn sums(counts: &ServerCounts) -> Map<String, Value> {
    let freed_bytes = if counts.freed_pss_bytes > 0 { counts.freed_pss_bytes } else { counts.freed_bytes };
    let sums = [
        ("orphans", counts.orphans),
        ("reaped", counts.reaped),
        ("freed_bytes", freed_bytes),
        ("left", counts.left),
        ("unproven", counts.unproven),
    ];
    sums.into_iter().map(|(field, number)| (field.to_owned(), number.into())).collect()
}
