//! Which agents and runs left orphans behind, most memory first.

use std::collections::BTreeMap;

use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;

use super::{
    super::{
        paint::Paint,
        report,
        table::{Users, cell, number},
        text,
    },
    is_there, place, table_of, users, when, whose,
};
use orphand_core::model::{AgentHints, Fate, History, RunView};

const LEAKS: &str = "RUN|?>UID|STARTED|>ORPHANS|>MEMORY|>REAPED|>LEFT|LAST|WHERE";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Leak {
    /// The run; absent if the run of the owner was not known.
    pub run: Option<RunView>,
    /// The name of the owner.
    pub owner: Option<String>,
    /// When the run began, if it is in the same history.
    pub started: Option<Timestamp>,
    /// By what a person recognises its first agent.
    #[serde(flatten)]
    pub hints: AgentHints,
    /// Servers that were judged orphans.
    pub orphans: u64,
    /// Their resident memory in bytes at the verdict.
    pub rss_bytes: u64,
    /// Those that orphand ended.
    pub reaped: u64,
    /// Those that are still there.
    pub left: u64,
    /// When the last one was judged.
    pub last: Timestamp,
}

pub fn leaks(past: &History) -> Vec<Leak> {
    let runs: BTreeMap<_, _> = past.runs.iter().map(|one| (&one.run, one)).collect();
    let mut found: BTreeMap<_, Leak> = BTreeMap::new();
    for orphan in &past.orphans {
        let owner = orphan.owner.as_ref().filter(|_| orphan.run.is_none());
        let run = orphan.run.as_ref().and_then(|run| runs.get(run));
        let leak = found.entry((orphan.run.as_ref(), owner)).or_insert_with(|| Leak {
            run: orphan.run.clone(),
            owner: orphan.owner.clone(),
            started: run.map(|run| run.started),
            hints: run.map(|run| run.hints.clone()).unwrap_or_default(),
            ..Leak::default()
        });
        leak.orphans += 1;
        leak.rss_bytes = leak.rss_bytes.saturating_add(orphan.rss_bytes);
        leak.reaped += u64::from(matches!(orphan.outcome, Fate::Reaped { .. }));
        leak.left += u64::from(is_there(orphan));
        leak.last = leak.last.max(orphan.judged);
    }
    let mut leaks: Vec<_> = found.into_values().collect();
    leaks.sort_by_key(|leak| std::cmp::Reverse((leak.rss_bytes, leak.last)));
    leaks
}

pub fn json(past: &History) -> Result<String, serde_json::Error> {
    report::json(&serde_json::json!({ "since": past.since, "until": past.until, "leaks": leaks(past) }))
}

pub fn render(past: &History, zone: &TimeZone, paint: Paint) -> String {
    let leaks = leaks(past);
    let users = users(past);
    let out = table_of(LEAKS, leaks.iter().map(|leak| row(leak, users, zone)), paint);
    let (orphans, bytes) = leaks.iter().fold((0, 0_u64), |(orphans, bytes), leak| {
        (orphans + leak.orphans, bytes.saturating_add(leak.rss_bytes))
    });
    let sum = if leaks.is_empty() {
        "Nothing leaked.\n".to_owned()
    } else {
        let runs = text::count(leaks.len() as u64, "run", "runs");
        let servers = text::count(orphans, "MCP server", "MCP servers");
        format!("{runs} leaked {servers}, {}.\n", text::size(bytes))
    };
    out + &sum
}

fn row(leak: &Leak, users: Users, zone: &TimeZone) -> Vec<String> {
    let [run, uid] = whose(users, leak.run.as_ref(), leak.owner.as_deref());
    vec![
        run,
        uid,
        cell(leak.started.map(|at| when(at, zone))),
        leak.orphans.to_string(),
        text::size(leak.rss_bytes),
        number(leak.reaped),
        number(leak.left),
        when(leak.last, zone),
        place(&leak.hints),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::history::tests::{past, time};

    #[test]
    fn the_most_memory_first() {
        let past = past();
        let leaks = leaks(&past);
        let told: Vec<_> =
            leaks.iter().map(|one| (one.run.is_some(), one.orphans, one.reaped, one.left)).collect();
        assert_eq!(told, [(true, 13, 12, 1), (false, 1, 0, 1)]);
        assert_eq!((leaks[0].rss_bytes, leaks[0].started), (13 * 197_132_288, Some(time("06:00:00"))));
        let shown = render(&past, &TimeZone::UTC, Paint::new(false));
        assert!(
            shown.contains("claude #2") && shown.ends_with("2 runs leaked 14 MCP servers, 2.8 GB.\n"),
            "{shown}"
        );
        assert_eq!(render(&History::default(), &TimeZone::UTC, Paint::new(false)), "Nothing leaked.\n");
        let value: serde_json::Value = serde_json::from_str(&json(&past).unwrap()).unwrap();
        assert_eq!(value["leaks"][0]["orphans"], 13);
    }
}
