//! The programs that a server debugs, ptrace(2): the end of a debugger stops them, ends them (`PTRACE_O_EXITKILL`), or
//! leaves its breakpoints in them. They count as clients.
//!
//! Only they themselves tell who traces them, and there may be tens of thousands of processes. So they are asked only if
//! a process of the server is named like a debugger.

use super::{Probe, server::Looked};
use orphand_core::{
    model::{Image, ProcessId},
    recognise::is_debugger,
};

impl Probe {
    /// The processes that this process traces.
    pub(super) fn traced_by(&self, one: &Looked) -> anyhow::Result<Vec<ProcessId>> {
        let Some(dir) = self.proc.identified(one.process)? else { return Ok(Vec::new()) };
        let image: Image = dir.image();
        if !is_debugger(&image) {
            return Ok(Vec::new());
        }
        let threads = dir.threads()?;
        self.processes_that(|other| {
            let is_ours = |tid: &u32| matches!(other.tracer(*tid), Ok(Some(by)) if threads.contains(&by));
            other.id() != one.process && other.threads().is_ok_and(|tids| tids.iter().any(is_ours))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio as Std};

    use crate::probe::tests::{Started, facts, of};
    use orphand_core::model::Stdio;

    #[test]
    #[ignore = "needs root: cargo xtask test runs it"]
    fn what_a_debugger_is_attached_to_depends_on_it() {
        let dir = tempfile::tempdir().unwrap();
        let debugged = Started::bare(Std::null(), Std::null(), Std::null());
        for (name, expected) in [("lldb-server", true), ("fetcher", false)] {
            let path = dir.path().join(name);
            let script = format!(
                "import ctypes, time
assert ctypes.CDLL(None, use_errno=True).ptrace(0x4206, {}, None, None) == 0
print(flush=True); time.sleep(600)",
                debugged.0.id()
            );
            std::fs::write(&path, script).unwrap();
            let (mut tracer, _) = Started::line_of(Command::new("python3").arg(&path).stdin(Std::null()));
            assert_eq!(facts(&[tracer.id()], Stdio::Null).processes[0].sockets.clients, expected, "{name}");
            let both = facts(&[tracer.id(), debugged.id()], Stdio::Null);
            let inside = if expected { vec![debugged.id()] } else { Vec::new() };
            assert_eq!(of(&both, tracer.id()).sockets.inside, inside, "{name}");
            tracer.end();
        }
    }
}
