//! Who a series is about. A label that says nothing is left out; a name of somebody else's is made harmless: what reads it may be
//! a terminal.

use serde::Serialize;

use orphand_core::model::text::sanitise;
use orphand_core::model::{Class, RunView};

/// Labels in their order.
pub(super) type Labels = Vec<(&'static str, String)>;

/// The owner of a server: its run's agent; else the owner's name, else `none`.
pub(super) fn owner(run: Option<&RunView>, owner: Option<&str>) -> Labels {
    let harmless = |name: &str| sanitise(name).into_owned();
    let Some(run) = run else { return vec![("agent", harmless(owner.unwrap_or("none")))] };
    let mut labels = vec![("agent", harmless(&run.agent))];
    if let Some(unit) = &run.unit {
        labels.push(("unit", harmless(unit)));
        labels.extend(
            run.manager.iter().filter(|m| !m.is_empty()).map(|manager| ("manager", harmless(manager))),
        );
    } else if let Some(uid) = run.uid.filter(|uid| *uid != 0) {
        labels.push(("uid", uid.to_string()));
    }
    labels
}

/// All owners that have no series of their own.
pub(super) fn other() -> Labels {
    vec![("agent", "other".to_owned())]
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
