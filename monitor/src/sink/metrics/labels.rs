//! Who a series is about. A label that says nothing is left out.

use serde::Serialize;

use crate::model::{Class, RunView};

/// Labels in their order.
pub(super) type Labels = Vec<(&'static str, String)>;

/// The owner of a server: its run's agent; else the owner's name, else `none`.
pub(super) fn owner(run: Option<&RunView>, owner: Option<&str>) -> Labels {
    let Some(run) = run else { return vec![("agent", owner.unwrap_or("none").to_owned())] };
    let mut labels = vec![("agent", run.agent.clone())];
    if let Some(unit) = &run.unit {
        labels.push(("unit", unit.clone()));
        labels
            .extend(run.manager.iter().filter(|m| !m.is_empty()).map(|manager| ("manager", manager.clone())));
    } else if let Some(uid) = run.uid.filter(|uid| *uid != 0) {
        labels.push(("uid", uid.to_string()));
    }
    labels
}

/// Labels and one more.
pub(super) fn with(labels: &Labels, name: &'static str, value: String) -> Labels {
    let mut more = labels.clone();
    more.push((name, value));
    more
}

/// Agents that were left behind are told apart from servers.
pub(super) fn of_class(labels: &mut Labels, class: Class) {
    if class == Class::Agent {
        labels.push(("class", "agent".to_owned()));
    }
}

/// The word that the events use.
pub(super) fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "unknown".to_owned(),
    }
}
