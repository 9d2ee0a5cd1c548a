//! What a hook is told of an event beside its JSON, and which events it hears of. Pure.
//!
//! Invariant: every variable is always set, empty where nothing is known, and safe to print: names come from processes that may be
//! anybody's. An event is read by the fields it has, so one that is new needs nothing here.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    model::{Notice, ServerView},
    sink::text,
};

/// A name is cut after so many characters: it is for a line of a message, the whole of it is in the JSON.
const LONGEST: usize = 256;

/// Which events a hook hears of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All.
    All,
    /// Those with these names.
    Of(BTreeSet<String>),
}

impl Selection {
    /// Whether `event` is among them.
    pub fn has(&self, event: &str) -> bool {
        match self {
            Self::All => true,
            Self::Of(names) => names.contains(event),
        }
    }
}

/// The orphans that are alive, as far as the events told.
#[derive(Clone, Debug, Default)]
pub(super) struct Account {
    orphans: BTreeMap<String, u64>,
}

impl Account {
    /// Enters what an event says. To be called for every event, those that no hook hears of too.
    pub(super) fn note(&mut self, notice: &Notice) {
        let known = |server: &ServerView| server.rss_bytes.unwrap_or_default();
        match notice {
            Notice::OrphanDetected { server, rss_bytes, .. } => {
                self.orphans.insert(server.id.clone(), *rss_bytes);
            }
            // Told by an earlier daemon, perhaps.
            Notice::OrphanSpared { server, .. } => {
                let before = self.orphans.entry(server.id.clone()).or_default();
                *before = server.rss_bytes.unwrap_or(*before);
            }
            Notice::ReapFailed { server, .. } if self.orphans.contains_key(&server.id) => {
                self.orphans.insert(server.id.clone(), known(server));
            }
            Notice::OrphanReaped { server, .. }
            | Notice::OrphanExited { server, .. }
            | Notice::OrphanCleared { server, .. }
            | Notice::ServerExited { server, .. } => {
                self.orphans.remove(&server.id);
            }
            _ => {}
        }
    }
}

/// What the variables say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// The event's name.
    pub(super) event: String,
    agent: String,
    generation: String,
    orphans: usize,
    rss_bytes: u64,
    server: String,
}

impl Facts {
    /// The facts of an event that has been noted in `account`. None, if it has no name.
    pub(super) fn of(notice: &Notice, account: &Account) -> Option<Self> {
        let value = serde_json::to_value(notice).ok()?;
        let at = |path: &str| value.pointer(path).filter(|found| !found.is_null());
        let name = |paths: &[&str]| paths.iter().find_map(|path| at(path)?.as_str()).map(clean);
        // The run is the top-most agent's, which answers for what is below it.
        let whose = ["/server/run", "/owner", "/agent"].into_iter().find(|path| at(path).is_some());
        let whose = whose.unwrap_or("/none");
        let generation = at(&format!("{whose}/generation")).or_else(|| at("/generation"));
        let agent = [format!("{whose}/agent"), format!("{whose}/name"), whose.to_owned()];
        let agent = agent.iter().find_map(|path| at(path)?.as_str()).map(clean);
        let bytes = ["/rss_bytes", "/freed_bytes", "/server/rss_bytes"];
        let bytes = bytes.into_iter().find_map(|path| at(path)?.as_u64());
        Some(Self {
            event: at("/event")?.as_str()?.to_owned(),
            agent: agent.unwrap_or_default(),
            generation: generation.and_then(Value::as_u64).map(|n| n.to_string()).unwrap_or_default(),
            orphans: account.orphans.len(),
            rss_bytes: bytes.unwrap_or_else(|| account.orphans.values().sum()),
            server: name(&["/server/name"]).unwrap_or_default(),
        })
    }

    /// The variables.
    pub(super) fn environment(&self) -> [(&'static str, String); 6] {
        [
            ("ORPHAND_EVENT", self.event.clone()),
            ("ORPHAND_AGENT", self.agent.clone()),
            ("ORPHAND_GENERATION", self.generation.clone()),
            ("ORPHAND_ORPHANS", self.orphans.to_string()),
            ("ORPHAND_RSS_BYTES", self.rss_bytes.to_string()),
            ("ORPHAND_SERVER", self.server.clone()),
        ]
    }
}

/// A name without anything that a terminal or a line of text would obey, and without NUL, which no variable can have.
fn clean(name: &str) -> String {
    text::sanitise(name).chars().take(LONGEST).collect()
}
