//! The events with their fields, and the words for reasons, from the doc comments of their types.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use orphand::sink::paint::appearance;
use orphand_core::model::{Doubt, EventKind, Evidence, Guard, Reason};

use super::{
    item, prose,
    source::{Field, Item, Sources},
};

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

/// The objects that have a section of their own: its title, and the type.
const OBJECTS: [(&str, &str); 8] = [
    ("Agent", "AgentView"),
    ("Server", "ServerView"),
    ("Process", "ProcessView"),
    ("Run", "RunView"),
    ("Container", "Container"),
    ("Reached by", "ReachedBy"),
    ("Killed by", "Killer"),
    ("Leftover", "Leftover"),
];

/// Every event, then the objects in their fields.
pub fn all(sources: &Sources) -> Result<String> {
    let mut text = String::new();
    for Item { name, about, fields } in sources.variants("Notice")? {
        let kind = EventKind::ALL.iter().find(|kind| kind.name() == name);
        let entry = appearance(*kind.with_context(|| format!("{name} has no kind"))?);
        let _ = write!(text, "### {name}\n\n{}\n", prose(&about));
        let _ = writeln!(
            text,
            "- In the journal: `PRIORITY={}`, `MESSAGE_ID={}`",
            entry.priority as u8, entry.id
        );
        text += &(listed(sources, &fields)? + "\n");
    }
    for (title, name) in OBJECTS {
        let _ = write!(text, "### {title}\n\n{}\n", listed(sources, &sources.fields(name)?)?);
    }
    Ok(text)
}

fn listed(sources: &Sources, fields: &[Field]) -> Result<String> {
    let mut text = String::new();
    for Field { name, kind, about, may_be_absent, inline } in fields {
        // The fields of its type stand in place of it.
        if *inline {
            text += &listed(sources, &sources.fields(kind)?)?;
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
    if let Some((title, _)) = OBJECTS.iter().find(|(_, name)| *name == kind) {
        let title = title.to_lowercase();
        return Ok(format!("[{title}](#{})", title.replace(' ', "-")));
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
        "LeftoverClass" => "`browser`, `listener`, `shell`, `copy` or `other`",
        "KilledBy" => "`process`, `itself`, `kernel`, `out_of_memory` or `orphand`",
        "Mode" => "`enforce` or `observe`",
        "Class" => "`server` or `agent`",
        "Signal" => "`TERM` or `KILL`",
        "Watched" => "`orphans`, `rss`, `cpu`, `rate`, `reap_failures` or `blind`",
        _ => bail!("the documentation has no words for the type {kind}"),
    };
    Ok(word.to_owned())
}
