//! What the daemon said about the processes of a situation: its last verdict on each server.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::stated::Cast;
use crate::event::Event;

/// The verdicts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// The last verdicts: `orphan`, `unproven`, `spared`, `in use` ..
    pub words: BTreeSet<String>,
    /// Evidence and doubts.
    pub reasons: BTreeSet<String>,
    pub guards: BTreeSet<String>,
}

impl Said {
    /// What `events` say about `cast`.
    pub fn about(cast: &Cast, events: &[Event]) -> Self {
        let cast: Vec<_> = cast.all().collect();
        let ids: BTreeSet<&str> = events.iter().filter(|e| e.has_any(&cast)).map(Event::server).collect();
        let mut latest = BTreeMap::new();
        for event in events.iter().filter(|e| ids.contains(e.server())) {
            if let Some(word) = word(event) {
                latest.insert(event.server(), (word, event));
            }
        }
        let mut said = Self::default();
        for (word, event) in latest.into_values() {
            said.words.insert(word.to_owned());
            let list = |key: &str| event.list(key).into_iter().map(str::to_owned).collect::<Vec<_>>();
            said.reasons.extend(list(if word == "unproven" { "doubts" } else { "evidence" }));
            said.guards.extend(list("guards"));
        }
        said
    }
}

/// The verdict in an event; `None` if there is none.
fn word(event: &Event) -> Option<&'static str> {
    match event.kind() {
        "orphan_suspected" => Some("suspect"),
        "orphan_detected" => Some("orphan"),
        "orphan_unproven" => Some("unproven"),
        "orphan_spared" => Some("spared"),
        "orphan_cleared" if event.get("reason").and_then(Value::as_str) == Some("exited") => {
            Some("ended by itself")
        }
        "orphan_cleared" => Some("in use"),
        "reap_failed" => Some("not ended"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Identity;

    fn events(lines: &[&str]) -> Vec<Event> {
        lines.iter().map(|line| Event::in_part((*line).to_owned()).unwrap()).collect()
    }

    fn cast(pid: u32) -> Cast {
        Cast { in_use: vec![Identity { pid, start: 1 }], ..Cast::default() }
    }

    const SUSPECTED: &str = r#"{"event":"orphan_suspected","server":{"id":"5@1","processes":[{"pid":5,"start":1},{"pid":6,"start":1}]}}"#;
    const UNPROVEN: &str = r#"{"event":"orphan_unproven","server":{"id":"5@1","processes":[{"pid":5,"start":1}]},
        "evidence":["owner_exited"],"doubts":["wire_held"]}"#;
    const DETECTED: &str = r#"{"event":"orphan_detected","server":{"id":"5@1","processes":[{"pid":5,"start":1}]},
        "evidence":["owner_exited"],"guards":["observe"]}"#;

    #[test]
    fn the_last_word_counts() {
        assert_eq!(Said::about(&cast(5), &events(&[SUSPECTED])).words, ["suspect".to_owned()].into());
        let said = Said::about(&cast(5), &events(&[SUSPECTED, UNPROVEN]));
        assert_eq!(
            (said.words, said.reasons),
            (["unproven".to_owned()].into(), ["wire_held".to_owned()].into())
        );
        let said = Said::about(&cast(5), &events(&[SUSPECTED, UNPROVEN, DETECTED]));
        assert_eq!(
            (said.words, said.reasons),
            (["orphan".to_owned()].into(), ["owner_exited".to_owned()].into())
        );
        assert_eq!(said.guards, ["observe".to_owned()].into());
    }

    #[test]
    fn a_process_that_is_told_once_stands_for_its_server_ever_after() {
        assert_eq!(
            Said::about(&cast(6), &events(&[SUSPECTED, DETECTED])).words,
            ["orphan".to_owned()].into()
        );
    }

    #[test]
    fn others_are_no_matter_and_an_age_makes_another() {
        assert_eq!(Said::about(&cast(7), &events(&[SUSPECTED, DETECTED])), Said::default());
        let reused = Cast { in_use: vec![Identity { pid: 5, start: 2 }], ..Cast::default() };
        assert_eq!(Said::about(&reused, &events(&[SUSPECTED, DETECTED])), Said::default());
    }

    #[test]
    fn cleared_is_two_things() {
        let cleared = |reason: &str| {
            format!(
                r#"{{"event":"orphan_cleared","reason":"{reason}","server":{{"id":"5@1","processes":[{{"pid":5,"start":1}}]}}}}"#
            )
        };
        assert_eq!(
            Said::about(&cast(5), &events(&[&cleared("exited")])).words,
            ["ended by itself".to_owned()].into()
        );
        assert_eq!(
            Said::about(&cast(5), &events(&[&cleared("owner_found")])).words,
            ["in use".to_owned()].into()
        );
    }
}
