//! The process names whose exec the kernel side reports. The exec of a script is seen under the script's
//! name, and again under the interpreter's if `env` starts it.

use std::collections::BTreeMap;

use super::{
    Candidate, Rules,
    agents::AGENTS,
    carriers::ROWS,
    known_programs::{CONTAINER_CLIENTS, LAUNCHERS},
    servers,
    text::{base, wrapped},
};

/// `TASK_COMM_LEN` - 1, in bytes: the kernel cuts names to this length.
const COMM_BYTES: usize = 15;

/// Interpreters with a version in their names.
const VERSIONED: &[&str] = &["python2", "python3", "pypy3"];

impl Rules {
    /// The process names whose exec the kernel side must report, sorted. Names that contain `mcp` are always
    /// reported.
    pub fn candidates(&self) -> Vec<Candidate> {
        let mut names = BTreeMap::new();
        let mut add = |name: &str, needs_wire: bool| {
            let comm = cut(name);
            if !comm.is_empty() {
                names.entry(comm.to_owned()).and_modify(|n| *n &= needs_wire).or_insert(needs_wire);
            }
        };
        // An agent may run on a terminal. What else runs a program is reported only if standard input is a wire.
        for program in AGENTS.iter().flat_map(|agent| agent.programs) {
            add(program, false);
            for file in wrapped(program) {
                add(&file, false);
            }
            add(&format!("{program}.exe"), false);
        }
        for program in VERSIONED {
            add(program, false);
        }
        for minor in 6..=20 {
            add(&format!("python3.{minor}"), false);
            add(&format!("python3.{minor}t"), false);
        }
        for row in ROWS {
            for name in row.names {
                let name = name.trim_end_matches('*');
                add(name, !row.hosts_agents);
                if row.hosts_agents {
                    add(&format!("{name}.exe"), false);
                }
            }
        }
        let known = [LAUNCHERS, CONTAINER_CLIENTS, servers::KNOWN].into_iter().flatten().copied();
        for program in known.chain(servers::DOCUMENTED.iter().map(|(program, _)| *program)) {
            add(base(program), true);
        }
        for (table, rules) in self.tables() {
            for name in rules.iter().filter_map(super::Rule::file_name) {
                add(name, table != "agent");
                for file in wrapped(name) {
                    add(&file, table != "agent");
                }
            }
        }
        if self.agent.iter().any(super::Rule::is_about_place) {
            // A service manager that starts later, such as a user's, has units too.
            add("systemd", false);
        }
        names.into_iter().map(|(comm, needs_wire)| Candidate { comm, needs_wire }).collect()
    }
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
