//! Names that anybody may see, and keys that say of two things whether they are the same.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher as _, Hash},
};

use crate::sink::metrics::Labels;
use orphand_core::model::{
    ServerView,
    text::{base, sanitise},
};

const SHOWN: usize = 64;

/// Makes keys. They differ from daemon to daemon, so that nobody can find out what they were made of.
#[derive(Debug, Default)]
pub(super) struct Keys(RandomState);

impl Keys {
    pub(super) fn of(&self, thing: impl Hash) -> String {
        format!("{:016x}", self.0.hash_one(thing))
    }
}

pub(super) fn owner(labels: &Labels) -> (String, Option<String>) {
    let label = |name: &str| labels.iter().find(|(label, _)| *label == name).map(|(_, value)| cut(value));
    (label("agent").unwrap_or_default(), label("unit"))
}

/// The name of a server, if its command line, which everybody can read, has it; a name from an agent's settings may
/// be private. Otherwise the name of its program.
pub(super) fn server(server: &ServerView) -> String {
    let mut arguments = server.processes.iter().flat_map(|process| &process.argv);
    if arguments.any(|argument| argument.contains(&server.name)) {
        // `@playwright/mcp` is the name of a package; what has more parts is a path.
        let scoped = server.name.starts_with('@') && server.name.matches('/').count() == 1;
        return cut(if scoped { &server.name } else { base(&server.name) });
    }
    let program = server.processes.last().map(|process| base(&process.exe)).filter(|name| !name.is_empty());
    program.map_or_else(|| "server".to_owned(), cut)
}

fn cut(name: &str) -> String {
    let name = sanitise(name);
    match name.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}..", name.get(..end).unwrap_or_default()),
        None => name.into_owned(),
    }
}
