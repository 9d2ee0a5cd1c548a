//! Notes about values that are allowed but probably not intended. `orphand config check` prints them. Pure.

use std::collections::BTreeMap;

use super::{Config, EVERY_EVENT, Mistake, Origins, error::Location};
use orphand_core::recognise::{ProgramKind, Rule};

/// The notes, in no particular order.
pub(super) fn notes(config: &Config, origins: &Origins) -> Vec<Mistake> {
    let mut notes = Vec::new();
    let mut before = Patterns::new();
    for (kind, rules) in config.rules().tables() {
        duplicates(kind, rules, &mut before, origins, &mut notes);
        // An exempt server is still a server, so both rules make sense.
        if kind == "exempt" {
            before.clear();
        }
    }
    hooks(config, origins, &mut notes);
    notes
}

/// Finds hooks that can never run.
fn hooks(config: &Config, origins: &Origins, notes: &mut Vec<Mistake>) {
    for (index, hook) in config.hook.iter().enumerate() {
        let only = |some: &[&str]| hook.events.iter().all(|event| some.contains(&event.as_str()));
        let said = if hook.events.is_empty() {
            format!("events is empty, so the hook never runs: name some events, or \"{EVERY_EVENT}\"")
        } else if config.alert.is_empty() && only(&["alert", "alert_resolved"]) {
            "without alert there is none of its events, so the hook never runs".to_owned()
        } else {
            continue;
        };
        notes.extend(origins.location("hook", index).map(|here| Mistake::new(here, Some("hook"), said)));
    }
}

/// The patterns of a rule as text, and the kind and index of the first rule that has them.
type Patterns<'k> = BTreeMap<String, (&'k str, usize)>;

/// Finds rules that never match because an earlier one has the same patterns, and rules with the same name,
/// which events cannot tell apart.
fn duplicates<'k>(
    kind: &'k str,
    rules: &[Rule],
    before: &mut Patterns<'k>,
    origins: &Origins,
    notes: &mut Vec<Mistake>,
) {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, rule) in rules.iter().enumerate() {
        let (name, pattern) = (rule.name(), patterns(rule));
        let said = match (before.get(&pattern), names.get(name)) {
            (Some((first, number)), _) => Some((
                *first,
                *number,
                format!(
                    "rule \"{name}\" has no effect: an earlier rule in [[{first}]] has the same patterns"
                ),
            )),
            (None, Some(number)) => Some((
                kind,
                *number,
                format!("two rules are called \"{name}\": events cannot tell which of them matched"),
            )),
            (None, None) => None,
        };
        if let Some((first, number, message)) = said
            && let (Some(first), Some(here)) =
                (origins.location(first, number), origins.location(kind, index))
        {
            let message = format!("{message} ({})", other(&first, &here));
            notes.push(Mistake::new(here, Some(kind), message));
        }
        before.entry(pattern).or_insert((kind, index));
        names.entry(name).or_insert(index);
    }
}

fn patterns(rule: &Rule) -> String {
    let mut table = toml::Table::try_from(rule).unwrap_or_default();
    table.remove("name");
    for other in ["reap", "daemon", "thread_scoped", "grace", "idle_duplicates"] {
        table.remove(other);
    }
    // What is tried before agents is no double of theirs.
    if !matches!(rule.kind(), Some(ProgramKind::Multiplexer | ProgramKind::Server)) {
        table.remove("kind");
    }
    table.to_string()
}

/// The position of the other rule; without the file if it is the same.
fn other(first: &Location, here: &Location) -> String {
    match first.line {
        Some(line) if first.file == here.file => format!("line {line}"),
        _ => first.to_string(),
    }
}
