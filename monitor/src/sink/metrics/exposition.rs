//! The text formats of metrics.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{
    families::{Family, Kind},
    labels::Labels,
};

/// A format that scrapers understand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// `OpenMetrics` 1.0.
    OpenMetrics,
    /// Prometheus' text format 0.0.4.
    Text,
}

impl Exposition {
    /// The format that a scraper prefers, from its `Accept` header.
    pub fn of_accept(accept: &str) -> Self {
        let wanted = accept.split(',').map(str::trim_start);
        if wanted.into_iter().any(|wanted| wanted.starts_with("application/openmetrics-text")) {
            Self::OpenMetrics
        } else {
            Self::Text
        }
    }

    /// Its media type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Writes families with their series. They differ in the names of families and the end mark only: the older format
    /// has the name of a counter's samples for its family, and no type `info`.
    pub(super) fn write(self, families: &[(Family, Series)]) -> String {
        let mut out = String::with_capacity(64 * 1024);
        for (Family { name, kind, help, .. }, series) in families {
            let suffix = match kind {
                Kind::Counter => "_total",
                Kind::Info => "_info",
                Kind::Gauge | Kind::Histogram => "",
            };
            let (word, of_family) = match (self, kind) {
                (Self::OpenMetrics, Kind::Info) => ("info", ""),
                (Self::OpenMetrics, Kind::Counter) => ("counter", ""),
                (Self::Text, Kind::Counter) => ("counter", suffix),
                (Self::Text, Kind::Info) => ("gauge", suffix),
                (_, Kind::Gauge) => ("gauge", ""),
                (_, Kind::Histogram) => ("histogram", ""),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(out, "# HELP {name}{of_family} {help}\n# TYPE {name}{of_family} {word}");
            match series {
                Series::Values(values) => {
                    for (labels, value) in values {
                        let labels = written(labels);
                        let _ = match kind {
                            Kind::Gauge => writeln!(out, "{name}{labels} {value:?}"),
                            _ => writeln!(out, "{name}{suffix}{labels} {value}"),
                        };
                    }
                }
                Series::Latency(latency) => latency.write(name, &mut out),
            }
        }
        if self == Self::OpenMetrics {
            out.push_str("# EOF\n");
        }
        out
    }
}

/// The labels of a series, in braces.
fn written(labels: &Labels) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let label = |(name, value): &(&str, String)| {
        let value = value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
        format!("{name}=\"{value}\"")
    };
    format!("{{{}}}", labels.iter().map(label).collect::<Vec<_>>().join(","))
}

/// Upper bounds of the latency buckets in seconds. A verdict takes a few milliseconds.
const BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// The values of a family by their labels.
pub(super) type Values = BTreeMap<Labels, f64>;

/// The series of a family.
#[derive(Debug)]
pub(super) enum Series {
    /// One value each.
    Values(Values),
    /// A histogram without labels.
    Latency(Latency),
}

/// A histogram of latencies.
#[derive(Clone, Debug, Default)]
pub(super) struct Latency {
    sum: f64,
    count: u64,
    /// How many were not above the bound of this place.
    within: [u64; BUCKETS.len()],
}

impl Latency {
    /// Counts one.
    pub(super) fn observe(&mut self, seconds: f64) {
        self.sum += seconds;
        self.count += 1;
        for (number, bound) in self.within.iter_mut().zip(BUCKETS) {
            *number += u64::from(seconds <= bound);
        }
    }

    fn write(&self, name: &str, out: &mut String) {
        let Self { sum, count, within } = self;
        let _ = writeln!(out, "{name}_sum {sum:?}\n{name}_count {count}");
        for (number, bound) in within.iter().zip(BUCKETS) {
            let _ = writeln!(out, "{name}_bucket{{le=\"{bound:?}\"}} {number}");
        }
        let _ = writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {count}");
    }
}
