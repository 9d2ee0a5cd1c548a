//! The text of a scrape, in the format that the scraper prefers.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{
    families::{ALL, Family, Kind},
    labels::Labels,
};
use orphand_core::model::text::word;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    OpenMetrics,
    /// Prometheus' text format 0.0.4. The samples are the same, but a family is called like its samples, and there is neither
    /// an end mark nor a type `info`.
    Text,
}

impl Exposition {
    /// The format that a scraper prefers, from its `Accept` header.
    pub fn of_accept(accept: &str) -> Self {
        let mut wanted = accept.split(',').map(str::trim_start);
        let open = wanted.any(|wanted| wanted.starts_with("application/openmetrics-text"));
        if open { Self::OpenMetrics } else { Self::Text }
    }

    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

pub(super) type Values = BTreeMap<Labels, f64>;

/// Upper bounds of the latency buckets in seconds. A verdict takes a few milliseconds.
const BOUNDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// How many observations there were up to each bound, and of all sizes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Histogram {
    up_to: [u64; BOUNDS.len()],
    count: u64,
    sum: f64,
}

impl Histogram {
    pub(super) fn observe(&mut self, value: f64) {
        for (number, bound) in self.up_to.iter_mut().zip(BOUNDS) {
            *number += u64::from(value <= bound);
        }
        self.count += 1;
        self.sum += value;
    }
}

/// The samples of one scrape, by the names of families. A family that is here without values is written without samples.
#[derive(Debug, Default)]
pub(super) struct Scrape {
    values: BTreeMap<&'static str, Values>,
    pub(super) latency: Histogram,
}

impl Scrape {
    /// The values of a family, which is written from now on.
    pub(super) fn of(&mut self, family: &Family) -> &mut Values {
        self.values.entry(family.name).or_default()
    }

    pub(super) fn one(&mut self, family: &Family, value: f64) {
        self.of(family).insert(Labels::new(), value);
    }

    pub(super) fn add(&mut self, family: &Family, labels: &Labels, more: f64) {
        *self.of(family).entry(labels.clone()).or_default() += more;
    }

    pub(super) fn write(mut self, format: Exposition) -> String {
        let mut out = String::with_capacity(64 * 1024);
        for Family { name, kind, help, .. } in ALL {
            let samples = self.values.remove(name);
            if samples.is_none() && *kind != Kind::Histogram {
                continue;
            }
            let suffix = match kind {
                Kind::Counter => "_total",
                Kind::Info => "_info",
                Kind::Gauge | Kind::Histogram => "",
            };
            let (named, shown) = match (format, kind) {
                (Exposition::OpenMetrics, kind) => ("", kind),
                (Exposition::Text, Kind::Info) => (suffix, &Kind::Gauge),
                (Exposition::Text, kind) => (suffix, kind),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(out, "# HELP {name}{named} {help}\n# TYPE {name}{named} {}", word(shown));
            for (labels, value) in samples.into_iter().flatten() {
                let _ = writeln!(out, "{name}{suffix}{} {value:?}", written(&labels));
            }
            if *kind == Kind::Histogram {
                let Histogram { up_to, count, sum } = self.latency;
                let _ = writeln!(out, "{name}_sum {sum:?}\n{name}_count {count}");
                for (number, bound) in up_to.iter().zip(BOUNDS) {
                    let _ = writeln!(out, "{name}_bucket{{le=\"{bound:?}\"}} {number}");
                }
                let _ = writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {count}");
            }
        }
        if format == Exposition::OpenMetrics {
            out.push_str("# EOF\n");
        }
        out
    }
}

fn written(labels: &Labels) -> String {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let all: Vec<_> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
}
