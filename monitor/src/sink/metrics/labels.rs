//! Labels of series. Empty labels are left out. Names that processes chose are sanitised, because a terminal
//! may show them.

use orphand_core::model::text::sanitise;
use orphand_core::model::{Class, RunView};

/// Labels in order.
pub(in crate::sink) type Labels = Vec<(&'static str, String)>;

/// The owner of a server: the agent of its run, otherwise the owner's name, otherwise `none`.
pub(in crate::sink) fn owner(run: Option<&RunView>, owner: Option<&str>) -> Labels {
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

/// The label of all owners that have no series of their own.
pub(super) fn other() -> Labels {
    vec![("agent", "other".to_owned())]
}

/// The labels and one more.
pub(super) fn with(labels: &Labels, name: &'static str, value: String) -> Labels {
    let mut more = labels.clone();
    more.push((name, value));
    more
}

/// Adds the class of agents that were left behind; servers have none.
pub(super) fn of_class(labels: &mut Labels, class: Class) {
    if class == Class::Agent {
        labels.push(("class", "agent".to_owned()));
    }
}
