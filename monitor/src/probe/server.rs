//! All that a verdict on one server needs from the host.

use rustix::io::Errno;

use super::{Probe, clients, memory};
use crate::{
    host::{FdTable, ProcessDir},
    model::{ProcessFacts, ProcessId, ServerFacts, Stdio, WireState},
};

/// What in a process' environment asks to be left alone.
const OPT_OUT: &[u8] = b"ORPHAND_OPT_OUT=1";

impl Probe {
    /// The facts about a server of these processes, whose standard input was `wire` at its birth. Processes that have
    /// ended are left out. Whatever could not be seen of those that live is told in [`ServerFacts::blind`].
    pub fn facts(&self, processes: &[ProcessId], wire: Stdio) -> ServerFacts {
        let mut facts = ServerFacts::default();
        let mut open = Vec::new();
        for &process in processes {
            // One at a time: a server may have more processes than we may have descriptors.
            match self.proc.identified(process).and_then(|dir| dir.map(|dir| look(&dir)).transpose()) {
                Ok(Some(seen)) => {
                    facts.opted_out |= seen.opted_out;
                    facts.processes.push(seen.facts);
                    if seen.table.cut {
                        facts
                            .blind
                            .get_or_insert(format!("{process} has more open files than orphand looks at"));
                    }
                    open.push((process, seen.table));
                }
                Ok(None) | Err(Errno::NOENT | Errno::SRCH) => {}
                Err(errno) => {
                    facts.blind.get_or_insert(format!("cannot read process {process} in /proc: {errno}"));
                }
            }
        }
        if facts.processes.is_empty() {
            return facts;
        }
        let sight = self.wire(wire, &open);
        facts.stdin = sight.state;
        if let WireState::Held { holders, .. } = &mut facts.stdin {
            for holder in holders {
                if !processes.contains(&holder.process) {
                    holder.unit = self.unit(holder.process);
                }
            }
        }
        facts.unit = self.unit_of(facts.processes.iter().map(|found| found.process));
        match clients::any(&self.proc, &open) {
            Ok(found) => {
                for process in &mut facts.processes {
                    (process.sockets.listens, process.sockets.clients) = (found.listens, found.served);
                }
            }
            Err(why) => _ = facts.blind.get_or_insert(why),
        }
        facts.blind = facts.blind.or(sight.blind);
        facts
    }
}

struct Seen {
    facts: ProcessFacts,
    opted_out: bool,
    table: FdTable,
}

fn look(dir: &ProcessDir) -> Result<Seen, Errno> {
    Ok(Seen {
        facts: ProcessFacts {
            process: dir.id(),
            uid: dir.uid()?,
            sid: dir.stat().sid,
            rss_bytes: memory::resident_bytes(dir).ok_or(Errno::SRCH)?,
            // Memory is news, not evidence: without it the look is complete.
            pss_bytes: dir.proportional_bytes().ok(),
            stdio: dir.stdio(),
            ..ProcessFacts::default()
        },
        opted_out: dir.has_environment(OPT_OUT),
        table: dir.fd_table()?,
    })
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
