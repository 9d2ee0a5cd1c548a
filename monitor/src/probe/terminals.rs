//! The terminals that a server opened: the kernel hangs them up (SIGHUP) when the server has ended, and what runs there
//! ends with it. What runs there counts as a client. A shell that waits for a command does not, and neither does what
//! ignores SIGHUP.
//!
//! A terminal is known by its number alone. In another instance of devpts the same number is another terminal; the
//! answer is then that there may be clients.

use std::collections::HashSet;

use super::{Probe, server::Looked};
use crate::host::Target;
use orphand_core::{model::ProcessId, recognise::is_shell_of_a_person};

impl Probe {
    /// The processes that end with the terminals of which this process has the other side.
    pub(super) fn on_terminals_of(&self, one: &Looked) -> anyhow::Result<Vec<ProcessId>> {
        let is_side = |target: &Target| matches!(target, Target::Path(path) if path == b"/dev/ptmx" || path == b"/dev/pts/ptmx");
        let sides: Vec<u32> =
            one.table.fds.iter().filter(|fd| is_side(&fd.target)).map(|fd| fd.number).collect();
        if sides.is_empty() {
            return Ok(Vec::new());
        }
        let Some(dir) = self.proc.identified(one.process)? else { return Ok(Vec::new()) };
        let terminals: HashSet<u32> = sides.into_iter().filter_map(|side| dir.terminal_of(side)).collect();
        self.processes_that(|other| {
            let stat = other.stat();
            let is_there = stat.terminal().is_some_and(|terminal| terminals.contains(&terminal));
            is_there
                && !stat.has_begun_to_exit()
                && other.ignores_hangup() != Ok(true)
                && (stat.sid != other.id().pid || !is_shell_of_a_person(&other.image()))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio as Std;

    use crate::probe::tests::{Started, facts, id, of};
    use orphand_core::model::Stdio;

    /// A server with a terminal in which `command` runs, and that process.
    fn with_terminal(command: &str, ignores_hangup: bool) -> (Started, u32) {
        let script = format!(
            "import os, pty, signal, time
words = '{command}'.split()
pid, side = pty.fork()
if pid == 0:
    if {}: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.execvp(words[0], words)
while True:
    with open(f'/proc/{{pid}}/cmdline') as f:
        if f.read().startswith(words[0]): break
print(pid, flush=True); time.sleep(600)",
            if ignores_hangup { "True" } else { "False" }
        );
        let (server, line) = Started::python(&script, Std::null());
        (server, line.parse().unwrap())
    }

    #[test]
    fn what_runs_in_a_terminal_of_the_server_depends_on_it() {
        for (command, ignores_hangup, expected) in [
            ("sleep 600", false, true),
            ("sleep 600", true, false),
            ("sh", false, false),
            ("sh -i", false, false),
        ] {
            let (server, there) = with_terminal(command, ignores_hangup);
            let clients = facts(&[server.id()], Stdio::Null).processes[0].sockets.clients;
            assert_eq!(clients, expected, "{command}");
            if expected {
                let found = facts(&[server.id(), id(there)], Stdio::Null);
                let sockets = &of(&found, server.id()).sockets;
                assert_eq!((sockets.clients, sockets.inside.as_slice()), (false, &[id(there)][..]));
            }
        }
    }
}
