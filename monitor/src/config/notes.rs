//! What a configuration may say and hardly means: told by `orphand config check`, no reason to refuse it. Pure.

use std::{collections::BTreeMap, path::Path};

use super::{Config, Content, EVERY_EVENT, Origins, error::Place};
use orphand_core::{model::Watched, recognise::Rule};

/// What is odd, in no order that matters.
pub(super) fn notes(config: &Config, origins: &Origins) -> Vec<Content> {
    let mut notes = Vec::new();
    let mut before = Patterns::new();
    for (kind, rules) in config.rule_book().tables() {
        twins(kind, rules, &mut before, origins, &mut notes);
        // A server that is exempt is one all the same.
        if kind == "exempt" {
            before.clear();
        }
    }
    for (key, path) in [("socket", &config.socket), ("state_dir", &config.state_dir)] {
        relative(key, path, origins, &mut notes);
    }
    hook(config, origins, &mut notes);
    alerts(config, origins, &mut notes);
    notes
}

/// A hook that is never run.
fn hook(config: &Config, origins: &Origins, notes: &mut Vec<Content>) {
    let hook = &config.hook;
    let only = |some: &[&str]| hook.events.iter().all(|event| some.contains(&event.as_str()));
    let said = if hook.path.is_none() {
        let first = ["hook.user", "hook.events", "hook.timeout"]
            .into_iter()
            .find(|key| origins.place(key, 0).is_some());
        first.map(|key| (key, "without path there is no hook, and this says nothing".to_owned()))
    } else if hook.events.is_empty() {
        Some((
            "hook.events",
            format!("there is none, so the hook is never run: name some, or \"{EVERY_EVENT}\""),
        ))
    } else if config.alert.is_empty() && only(&["alert", "alert_resolved"]) {
        Some((
            "hook.events",
            "without an [[alert]] there is no such event, so the hook is never run".to_owned(),
        ))
    } else {
        None
    };
    if let Some((key, message)) = said
        && let Some(place) = origins.place(key, 0)
    {
        notes.push(note(place, key, message));
    }
}

/// Alerts that nobody can tell apart, and those that can never come.
fn alerts(config: &Config, origins: &Origins, notes: &mut Vec<Content>) {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, alert) in config.alert.iter().enumerate() {
        let name = alert.name.as_str();
        let Some(here) = origins.place("alert", index) else { continue };
        if let Some(first) = names.get(name).and_then(|first| origins.place("alert", *first)) {
            let message = format!(
                "two alerts are called \"{name}\": events cannot tell them apart ({})",
                other(&first, &here)
            );
            notes.push(note(here.clone(), "alert", message));
        }
        if config.observe && alert.on == Watched::ReapFailures {
            let message = format!("\"{name}\" never comes: with observe nothing is ended, so nothing fails");
            notes.push(note(here, "alert", message));
        }
        names.entry(name).or_insert(index);
    }
}

/// What rules look for, and the kind and index of the first that does.
type Patterns<'k> = BTreeMap<String, (&'k str, usize)>;

/// The first rule that holds counts: one that looks for the same as an earlier one never does. Two that look for different
/// things under one name cannot be told apart in events.
fn twins<'k>(
    kind: &'k str,
    rules: &[Rule],
    before: &mut Patterns<'k>,
    origins: &Origins,
    notes: &mut Vec<Content>,
) {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, rule) in rules.iter().enumerate() {
        let (name, pattern) = (rule.name(), looks_for(rule));
        let said = match (before.get(&pattern), names.get(name)) {
            (Some((first, number)), _) => Some((
                *first,
                *number,
                format!(
                    "rule \"{name}\" never counts: [[{first}]] has one that looks for the same and comes first"
                ),
            )),
            (None, Some(number)) => Some((
                kind,
                *number,
                format!("two rules are called \"{name}\": events cannot tell which of them held"),
            )),
            (None, None) => None,
        };
        if let Some((first, number, message)) = said
            && let (Some(first), Some(here)) = (origins.place(first, number), origins.place(kind, index))
        {
            let message = format!("{message} ({})", other(&first, &here));
            notes.push(note(here, kind, message));
        }
        before.entry(pattern).or_insert((kind, index));
        names.entry(name).or_insert(index);
    }
}

/// A rule without its name.
fn looks_for(rule: &Rule) -> String {
    let mut table = toml::Table::try_from(rule).unwrap_or_default();
    table.remove("name");
    table.remove("reap");
    table.to_string()
}

/// The place of the other one, without the file if that is the same.
fn other(first: &Place, here: &Place) -> String {
    if first.file == here.file { format!("line {}", first.line) } else { first.to_string() }
}

fn relative(key: &str, path: &Path, origins: &Origins, notes: &mut Vec<Content>) {
    if path.is_relative()
        && let Some(place) = origins.place(key, 0)
    {
        let message = format!(
            "\"{}\" depends on the directory orphand is started in: write it from / on",
            path.display()
        );
        notes.push(note(place, key, message));
    }
}

fn note(place: Place, key: &str, message: String) -> Content {
    Content { place, key: Some(key.to_owned()), message, near: None, example: None }
}
