//! The events with their fields, and the words for reasons, from the doc comments of their types.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use orphand::sink::paint::appearance;
use orphand_core::model::{Doubt, EventKind, Evidence, Guard, Reason};

use super::{
    item, prose,
    source::{self, Field, Item},
};

const ENDING: &str = include_str!("../../core/src/model/ending.rs");
const HINTS: &str = include_str!("../../core/src/model/hints.rs");
const LEFTOVER: &str = include_str!("../../core/src/model/leftover.rs");
const CONTAINER: &str = include_str!("../../core/src/model/container.rs");
const NOTICE: &str = include_str!("../../core/src/model/notice.rs");
const VIEW: &str = include_str!("../../core/src/model/view.rs");
const RUN: &str = include_str!("../../core/src/model/run.rs");

/// Evidence, doubts and guards.
pub fn reasons() -> String {
    let mut text = String::new();
    for (title, all) in words() {
        let _ = write!(text, "### {title}\n\n");
        for Reason { name, about, .. } in all {
            text.push_str(&item(&format!("`{name}`: {about}")));
        }
        text.push('\n');
    }
    text
}

/// The reasons of each kind.
pub fn words() -> [(&'static str, Vec<&'static Reason>); 3] {
    let all = |evidence: &[Evidence], doubts: &[Doubt], guards: &[Guard]| {
        let all = evidence.iter().map(|one| one.reason()).chain(doubts.iter().map(|one| one.reason()));
        all.chain(guards.iter().map(|one| one.reason())).collect()
    };
    [
        ("Evidence", all(Evidence::ALL, &[], &[])),
        ("Doubts", all(&[], Doubt::ALL, &[])),
        ("Guards", all(&[], &[], Guard::ALL)),
    ]
}

/// Every event, then the objects in their fields.
pub fn all() -> Result<String> {
    let mut text = String::new();
    for Item { name, about, fields } in source::variants(NOTICE, "Notice")? {
        let kind = EventKind::ALL.iter().find(|kind| kind.name() == name);
        let entry = appearance(*kind.with_context(|| format!("{name} has no kind"))?);
        let _ = write!(text, "### {name}\n\n{}\n", prose(&about));
        let _ = writeln!(
            text,
            "- In the journal: `PRIORITY={}`, `MESSAGE_ID={}`",
            entry.priority as u8, entry.id
        );
        push(&fields, &mut text)?;
    }
    let objects = [
        ("Agent", VIEW, "AgentView"),
        ("Server", VIEW, "ServerView"),
        ("Process", VIEW, "ProcessView"),
        ("Run", RUN, "RunView"),
        ("Container", CONTAINER, "Container"),
        ("Reached by", VIEW, "ReachedBy"),
        ("Killed by", ENDING, "Killer"),
        ("Leftover", LEFTOVER, "Leftover"),
    ];
    for (title, file, name) in objects {
        let _ = write!(text, "### {title}\n\n");
        push(&source::fields(file, name)?, &mut text)?;
    }
    Ok(text)
}

fn push(fields: &[Field], text: &mut String) -> Result<()> {
    text.push_str(&listed(fields)?);
    text.push('\n');
    Ok(())
}

fn listed(fields: &[Field]) -> Result<String> {
    let mut text = String::new();
    for Field { name, kind, about, may_be_absent, inline } in fields {
        // The fields of its type stand in place of it.
        if *inline {
            let files = [ENDING, HINTS, VIEW];
            let fields = files.iter().find_map(|file| source::fields(file, kind).ok());
            text.push_str(&listed(&fields.with_context(|| format!("no file has {kind}"))?)?);
            continue;
        }
        let kind = match (value(kind).with_context(|| name.clone())?, may_be_absent) {
            (kind, true) => format!("{}, may be absent", kind.trim_end_matches(", or null")),
            (kind, false) => kind,
        };
        text.push_str(&item(&format!("`{name}` ({kind}): {about}")));
    }
    Ok(text)
}

/// A type of Rust as a value of JSON, in words.
fn value(kind: &str) -> Result<String> {
    let inner = |prefix: &str| kind.strip_prefix(prefix).and_then(|rest| rest.strip_suffix('>'));
    if let Some(inner) = inner("Option<") {
        return Ok(format!("{}, or null", value(inner)?));
    }
    if let Some(inner) = inner("Vec<") {
        return Ok(format!("list: {}", value(inner)?));
    }
    let word = match kind {
        "String" => "text",
        "u8" | "u32" | "u64" | "i32" | "f64" | "super::BootTime" => "number",
        "bool" => "true or false",
        "BTreeMap<String, u64>" => "numbers by name",
        "Losses" => "numbers by kind of record",
        "ProcessId" => "`pid` and `start`",
        "Evidence" => "[evidence](#evidence)",
        "Doubt" => "[doubt](#doubts)",
        "Guard" => "[guard](#guards)",
        "AgentView" => "[agent](#agent)",
        "ServerView" => "[server](#server)",
        "ProcessView" => "[process](#process)",
        "RunView" => "[run](#run)",
        "Container" => "[container](#container)",
        "ReachedBy" => "[reached by](#reached-by)",
        "Killer" => "[killed by](#killed-by)",
        "Leftover" => "[leftover](#leftover)",
        "LeftoverClass" => "`browser`, `listener`, `shell`, `copy` or `other`",
        "KilledBy" => "`process`, `itself`, `kernel`, `out_of_memory` or `orphand`",
        "Mode" => "`reap` or `observe`",
        "Class" => "`server` or `agent`",
        "Signal" => "`TERM` or `KILL`",
        "Watched" => "`orphans`, `rss`, `cpu`, `rate`, `reap_failures` or `blind`",
        _ => bail!("the documentation has no words for the type {kind}"),
    };
    Ok(word.to_owned())
}
