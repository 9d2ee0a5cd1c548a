//! The text formats of metrics.

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

    /// Converts `text`, which is in the format `OpenMetrics`.
    pub(super) fn write(self, text: String) -> String {
        match self {
            Self::OpenMetrics => text,
            Self::Text => older(&text),
        }
    }
}

/// Converts to the older format. The samples are the same, but it uses the name of a counter's samples for
/// its family, and has no end mark, no units and no type `info`.
fn older(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut help = None;
    for line in text.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            // The name of the family depends on its type, which follows.
            help = described.split_once(' ');
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|typed| typed.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                _ => ("", kind),
            };
            if let Some((_, help)) = help.take() {
                push(&mut out, &["# HELP ", name, suffix, " ", help]);
            }
            push(&mut out, &["# TYPE ", name, suffix, " ", kind]);
        } else if !line.starts_with('#') {
            push(&mut out, &[line]);
        }
    }
    out
}

fn push(out: &mut String, parts: &[&str]) {
    for part in parts {
        out.push_str(part);
    }
    out.push('\n');
}
