//! Who else depends on a server's processes: the users of a file system or a device that it serves, and what would end
//! with it because it is the first process of a PID namespace, has the other side of a terminal, or is a debugger. They
//! count as clients.

use super::{Probe, server::Looked};
use crate::host::{ProcessDir, Target, UNANSWERED};
use orphand_core::model::{ProcessId, SocketUse};

impl Probe {
    /// Adds those who depend on the inspected processes to what is known about their sockets.
    pub(super) fn add_dependents(&self, looked: &[Looked], each: &mut [SocketUse]) {
        for (one, facts) in looked.iter().zip(each) {
            facts.clients |= serves_a_device(one);
            let all = [self.ends_with(one.process), self.on_terminals_of(one), self.traced_by(one)];
            match all.into_iter().collect::<anyhow::Result<Vec<_>>>() {
                Ok(dependents) => {
                    for process in dependents.into_iter().flatten() {
                        if !looked.iter().any(|one| one.process == process) {
                            facts.clients = true;
                        } else if !facts.inside.contains(&process) {
                            facts.inside.push(process);
                        }
                    }
                }
                Err(error) => {
                    tracing::debug!("cannot list what ends with {}: {error}", one.process);
                    facts.clients = true;
                }
            }
        }
    }

    /// The other processes of a PID namespace whose first process this is: the kernel ends them with it. Those of
    /// namespaces below have an ancestor here.
    fn ends_with(&self, process: ProcessId) -> anyhow::Result<Vec<ProcessId>> {
        let Ok(Some(dir)) = self.proc.identified(process) else { return Ok(Vec::new()) };
        // pid 1 of our own namespace is no server.
        if process.pid == 1 || !matches!(dir.leads_namespace(), Ok(true)) {
            return Ok(Vec::new());
        }
        let namespace = dir.pid_namespace_name()?;
        self.processes_that(|other| {
            let is_inside = other.pid_namespace_name().is_ok_and(|name| name == namespace);
            is_inside && other.id() != process && !other.stat().has_begun_to_exit()
        })
    }

    /// The processes of the host of which this holds. An error if one does not answer: it may hold of that.
    pub(super) fn processes_that(
        &self,
        holds: impl Fn(&ProcessDir) -> bool,
    ) -> anyhow::Result<Vec<ProcessId>> {
        let mut found = Vec::new();
        for pid in self.proc.pids()? {
            match self.proc.process(pid) {
                Ok(other) if holds(&other) => found.push(other.id()),
                Err(UNANSWERED) => anyhow::bail!("process {pid} does not answer"),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(found)
    }
}

/// Whether the process is the other side of something that the kernel offers to others: a file system (FUSE), a
/// character device (CUSE), a network device (TUN, TAP, PPP), a disk (NBD, ublk, VDUSE), an input device, or the devices
/// of a virtual machine. Whoever uses that is its client.
fn serves_a_device(one: &Looked) -> bool {
    const DEVICES: [&[u8]; 7] = [
        b"/dev/fuse",
        b"/dev/cuse",
        b"/dev/net/tun",
        b"/dev/ppp",
        b"/dev/ublk-control",
        b"/dev/uhid",
        b"/dev/uinput",
    ];
    const FAMILIES: [&[u8]; 5] = [b"/dev/nbd", b"/dev/tap", b"/dev/ublkc", b"/dev/vduse/", b"/dev/vhost-"];
    one.table.fds.iter().any(|fd| match &fd.target {
        Target::Path(path) => {
            DEVICES.contains(&&**path) || FAMILIES.iter().any(|family| path.starts_with(family))
        }
        Target::Pipe(_) | Target::Socket(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio as Std};

    use crate::probe::tests::{Started, facts, id, of};
    use orphand_core::model::Stdio;

    #[test]
    #[ignore = "needs root: cargo xtask test runs it"]
    fn what_ends_with_the_first_process_of_a_namespace_depends_on_it() {
        let script = "import os, time
if os.fork(): print(flush=True)
time.sleep(600)";
        let mut command = Command::new("unshare");
        let words = ["--pid", "--fork", "--kill-child", "python3", "-c", script];
        let (outer, _) = Started::line_of(command.args(words).stdin(Std::null()));
        let child = |of: u32| {
            let text = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap();
            id(text.trim().parse().unwrap())
        };
        let first = child(outer.0.id());
        let second = child(first.pid);
        assert!(facts(&[first], Stdio::Null).processes[0].sockets.clients);
        let both = facts(&[first, second], Stdio::Null);
        let found = &of(&both, first).sockets;
        assert_eq!((found.clients, found.inside.as_slice()), (false, &[second][..]));
        assert!(of(&both, second).sockets.inside.is_empty());
    }

    #[test]
    #[ignore = "needs root: cargo xtask test runs it"]
    fn who_serves_a_file_system_or_a_device_has_clients() {
        for (device, expected) in [("/dev/fuse", true), ("/dev/net/tun", true), ("/dev/null", false)] {
            let script = format!(
                "import os, time; os.open('{device}', os.O_RDWR); print(flush=True); time.sleep(600)"
            );
            let (server, _) = Started::python(&script, Std::null());
            assert_eq!(facts(&[server.id()], Stdio::Null).processes[0].sockets.clients, expected, "{device}");
        }
    }
}
