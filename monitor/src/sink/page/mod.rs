//! The web page: the document, and what it is told of the host.
//!
//! Invariant: nothing here has a process number, a path, an argument, or a user. It is for whoever can reach the
//! address, so it has what the metrics have, and the names of programs that everybody sees in the process list.
//! Everything is bounded, whatever users start.

mod snapshot;

use std::{
    collections::hash_map::RandomState,
    fmt::Write as _,
    hash::{BuildHasher as _, Hash},
};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    human::Text,
    metrics::{Labels, owner_labels},
    paint::{self, appearance},
    report,
    wall_clock::WallClock,
};
use orphand_core::model::{
    BootTime, Notice, Series, ServerView, Timeline, TimelineQuery,
    text::{base, sanitise},
};

const HTML: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

#[derive(Debug)]
pub struct Page {
    wall: WallClock,
    /// What keys are made with. They differ from daemon to daemon, so that nobody can find out what they were made of.
    keys: RandomState,
}

impl Page {
    pub fn new(wall: WallClock) -> Self {
        Self { wall, keys: RandomState::new() }
    }

    fn key(&self, thing: impl Hash) -> String {
        format!("{:016x}", self.keys.hash_one(thing))
    }
}

/// The document. Its style and script have this nonce, 16 random bytes.
pub fn document(nonce: [u8; 16]) -> (String, String) {
    let nonce = nonce.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    let page = HTML.replace("{nonce}", &nonce).replace("{style}", STYLE).replace("{script}", SCRIPT);
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    );
    (page, policy)
}

const SHOWN: usize = 64;

fn shown_owner(labels: &Labels) -> (String, Option<String>) {
    let label = |name: &str| labels.iter().find(|(label, _)| *label == name).map(|(_, value)| cut(value));
    (label("agent").unwrap_or_default(), label("unit"))
}

/// The name of a server, if its command line has it, which everybody can read; one from settings may be private: then its program's.
pub(super) fn shown_server(server: &ServerView) -> String {
    let mut arguments = server.processes.iter().flat_map(|process| &process.argv);
    if arguments.any(|argument| argument.contains(&server.name)) {
        // `@playwright/mcp` is the name of a package; what has more parts is a path.
        let scoped = server.name.starts_with('@') && server.name.matches('/').count() == 1;
        return cut(if scoped { &server.name } else { base(&server.name) });
    }
    let program = server.processes.last().map(|process| base(&process.exe)).filter(|name| !name.is_empty());
    program.map_or_else(|| "server".to_owned(), cut)
}

fn cut(name: &str) -> String {
    let name = sanitise(name);
    match name.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}..", name.get(..end).unwrap_or_default()),
        None => name.into_owned(),
    }
}

/// What the page is told of the event with this number: when it was (milliseconds since 1970), in one word what happened, how
/// it is meant, and a sentence. Nothing for events that say little without a process number.
pub fn happening(id: u64, wall: WallClock, at: BootTime, notice: &Notice) -> Option<Value> {
    if matches!(notice, Notice::AgentsFolded { .. } | Notice::ServerDetached { .. }) {
        return None;
    }
    let look = appearance(notice.kind());
    let tone = match look.style {
        paint::ALARM => "alarm",
        paint::GOOD => "good",
        _ if matches!(notice, Notice::Stopping { .. }) => "warning",
        paint::WARNING => "warning",
        _ => "note",
    };
    let (time, text) = (wall.timestamp(at).as_millisecond(), Text::public(wall, at, notice));
    Some(json!({ "id": id, "time": time, "kind": look.word, "tone": tone, "text": text }))
}

/// A span of time for the chart of what was left behind, and its table.
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
            "sums": all,
            "series": series,
        })
    }

    /// A run, or all that have no series of their own.
    fn of_run(&self, series: Series, other: bool) -> Value {
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
        report::with(&series.sums, own).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
