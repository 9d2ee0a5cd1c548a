//! The tracers of a process, ptrace(2). A process that is traced is being debugged now.

use rustix::io::Errno;

use crate::host::{Proc, ProcessDir};
use orphand_core::model::ProcessId;

/// The ids of the threads that trace a thread of the process in `dir`.
pub(super) fn of(dir: &ProcessDir) -> Result<Vec<u32>, Errno> {
    let mut tracers = Vec::new();
    for tid in dir.threads()? {
        let Some(tracer) = dir.tracer(tid)? else { continue };
        tracers.extend((tracer != 0 && !tracers.contains(&tracer)).then_some(tracer));
    }
    Ok(tracers)
}

/// Whether one of these threads belongs to a process that is not among `inside`.
pub(super) fn is_outside(proc: &Proc, tracers: &[u32], inside: &[ProcessId]) -> Result<bool, Errno> {
    let is_inside = |pid: u32| inside.iter().any(|process| process.pid == pid);
    for &tracer in tracers.iter().filter(|tracer| !is_inside(**tracer)) {
        match proc.process(tracer).and_then(|thread| thread.leader()) {
            Ok(leader) if is_inside(leader) => {}
            Ok(_) => return Ok(true),
            // The tracer has ended, and its tracing with it.
            Err(Errno::NOENT | Errno::SRCH) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::process::Stdio as Std;

    use super::*;
    use crate::probe::tests::{Started, ourselves};

    fn is_traced(proc: &Proc, dir: &ProcessDir, inside: &[ProcessId]) -> Result<bool, Errno> {
        is_outside(proc, &of(dir)?, inside)
    }

    /// Traces the process with this number until standard input ends (`PTRACE_SEIZE`, which does not stop the
    /// process).
    fn tracer(of: u32, thread: bool) -> Started {
        let seize = format!(
            "import ctypes, sys, threading, time
def seize():
    ok = ctypes.CDLL(None, use_errno=True).ptrace(0x4206, {of}, None, None) == 0
    print('seized' if ok else 'refused', flush=True)
    time.sleep(600)
"
        );
        let run = if thread { "threading.Thread(target=seize).start()" } else { "seize()" };
        let (tracer, line) = Started::python(&format!("{seize}{run}"), Std::null());
        assert_eq!(line, "seized");
        tracer
    }

    #[test]
    #[ignore = "needs root: cargo xtask test runs it"]
    fn a_debugger_is_seen_until_it_lets_go() {
        let proc = Proc::system().unwrap();
        let server = Started::sleeper(Std::null());
        let traced =
            |inside: &[ProcessId]| is_traced(&proc, &proc.process(server.0.id()).unwrap(), inside).unwrap();
        assert!(!traced(&[server.id()]));
        for thread in [false, true] {
            let mut debugger = tracer(server.0.id(), thread);
            assert!(traced(&[server.id()]));
            // The tracer is a crash handler of the server itself.
            assert!(!traced(&[server.id(), debugger.id()]));
            debugger.end();
            assert!(!traced(&[server.id()]));
        }
    }

    #[test]
    #[ignore = "needs root: cargo xtask test runs it"]
    fn a_traced_thread_is_enough() {
        let script = "import threading, time
t = threading.Thread(target=time.sleep, args=(600,)); t.start(); print(t.native_id, flush=True); time.sleep(600)";
        let (server, tid) = Started::python(script, Std::null());
        let proc = Proc::system().unwrap();
        let dir = proc.process(server.0.id()).unwrap();
        assert!(!is_traced(&proc, &dir, &[server.id()]).unwrap());
        let _tracer = tracer(tid.parse().unwrap(), false);
        assert!(is_traced(&proc, &dir, &[server.id()]).unwrap());
    }

    #[test]
    fn nobody_traces_us_and_the_dead_cannot_be_read() {
        let proc = Proc::system().unwrap();
        let mut dead = Started::sleeper(Std::null());
        let dir = proc.process(dead.0.id()).unwrap();
        assert!(!is_traced(&proc, &dir, &[ourselves()]).unwrap());
        dead.end();
        assert!(is_traced(&proc, &dir, &[]).is_err());
    }
}
