//! The process names whose exec the kernel side reports. The exec of a script is seen under the script's
//! name, and again under the interpreter's if `env` starts it.

use std::collections::BTreeMap;

use super::{
    Candidate, RuleBook,
    agents::AGENTS,
    known_programs::{LAUNCHERS, SHELLS},
    runner::{CONTAINER_CLIENTS, RUNNERS},
    servers,
};

/// `TASK_COMM_LEN` - 1, in bytes: the kernel cuts names to this length.
const COMM_BYTES: usize = 15;

/// Interpreters of agents. They are reported with any standard input, because an agent may run on a terminal.
const AGENT_INTERPRETERS: &[&str] =
    &["node", "nodejs", "bun", "deno", "tsx", "ts-node", "python", "python2", "python3", "pypy", "pypy3"];

/// Interpreters of servers. They are reported only if standard input is a wire.
const SERVER_INTERPRETERS: &[&str] =
    &["ruby", "perl", "php", "java", "dotnet", "julia", "Rscript", "escript", "lua"];

/// The names from the built-in rules and from `book`.
pub(super) fn of(book: &RuleBook) -> Vec<Candidate> {
    let mut names = BTreeMap::new();
    let mut add = |name: &str, needs_wire: bool| {
        let comm = cut(name);
        if !comm.is_empty() {
            names.entry(comm.to_owned()).and_modify(|n| *n &= needs_wire).or_insert(needs_wire);
        }
    };
    for program in AGENTS.iter().flat_map(|a| a.programs).chain(AGENT_INTERPRETERS) {
        add(program, false);
    }
    for program in AGENTS.iter().flat_map(|a| a.programs) {
        add(&format!("{program}.exe"), false);
    }
    for minor in 6..=20 {
        add(&format!("python3.{minor}"), false);
        add(&format!("python3.{minor}t"), false);
    }
    for program in [SERVER_INTERPRETERS, SHELLS, LAUNCHERS, RUNNERS, CONTAINER_CLIENTS, servers::KNOWN]
        .into_iter()
        .flatten()
    {
        add(super::text::base(program), true);
    }
    for program in servers::documented() {
        add(super::text::base(program), true);
    }
    for (rule, needs_wire) in book.rules() {
        if let Some(name) = rule.file_name() {
            add(name, needs_wire);
        }
    }
    if book.agent.iter().any(super::Rule::is_about_place) {
        // A service manager that starts later, such as a user's, has units too.
        add("systemd", false);
    }
    names.into_iter().map(|(comm, needs_wire)| Candidate { comm, needs_wire }).collect()
}

/// The first 15 bytes. If the kernel would cut a multi-byte character, that character is left out, and such a
/// name is not found.
fn cut(name: &str) -> &str {
    let mut end = name.len().min(COMM_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or_default()
}
