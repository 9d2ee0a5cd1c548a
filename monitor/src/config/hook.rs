//! `[[hook]]`: a program that is run for events.

use std::{collections::BTreeSet, path::PathBuf};

use serde::{Deserialize, Deserializer, Serialize, de::Error};

use orphand_core::model::EventKind;

/// The word that means every event.
pub const ALL: &str = "all";

/// The names of events, and the word for all.
fn known() -> Vec<&'static str> {
    [ALL].into_iter().chain(EventKind::ALL.iter().map(|kind| kind.name())).collect()
}

/// The default of `events`.
#[rustfmt::skip]
const DEFAULT: &[&str] = &[
    "orphan_detected", "orphan_spared", "orphan_reaped", "orphan_exited", "reap_failed", "alert", "alert_resolved", "lost",
];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// The program, an absolute path.
    pub path: PathBuf,
    /// The user it runs as; absent for the daemon's user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The events it runs for; `all` means every event.
    #[serde(default = "usual_events", deserialize_with = "events")]
    pub events: BTreeSet<String>,
}

impl Hook {
    /// This program, for the usual events.
    pub fn at(path: PathBuf) -> Self {
        Self { path, user: None, events: usual_events() }
    }
}

fn usual_events() -> BTreeSet<String> {
    DEFAULT.iter().map(ToString::to_string).collect()
}

fn events<'de, D: Deserializer<'de>>(d: D) -> Result<BTreeSet<String>, D::Error> {
    let names = BTreeSet::<String>::deserialize(d)?;
    let known = known();
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(names),
        Some(unknown) => {
            let advice = super::nearest::among(unknown, &known);
            Err(D::Error::custom(format!("unknown event \"{unknown}\": {advice}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orphand_core::model::Notice;

    #[test]
    fn every_event_has_its_name_here() {
        // serde's error lists the known names.
        let error = serde_json::from_str::<Notice>(r#"{"event":"?"}"#).unwrap_err().to_string();
        let names: Vec<_> = error.split('`').skip(1).step_by(2).filter(|name| *name != "?").collect();
        assert!(names.len() > 10, "{error}");
        for name in names {
            assert!(known().contains(&name), "{name} is missing");
        }
        assert!(DEFAULT.iter().all(|name| known().contains(name)));
        // Of what is unproven nothing need come.
        assert!(known().contains(&"orphan_unproven") && !DEFAULT.contains(&"orphan_unproven"));
    }
}
