//! The tracers of a process, ptrace(2). A process that is traced is being debugged now.

use rustix::io::Errno;

use crate::host::ProcessDir;

/// The ids of the threads that trace a thread of the process in `dir`.
pub(crate) fn of(dir: &ProcessDir) -> Result<Vec<u32>, Errno> {
    let mut tracers = Vec::new();
    for tid in dir.threads()? {
        let Some(tracer) = dir.tracer(tid)? else { continue };
        tracers.extend((tracer != 0 && !tracers.contains(&tracer)).then_some(tracer));
    }
    Ok(tracers)
}

#[cfg(test)]
mod tests {
    use std::process::Stdio as Std;

    use super::*;
    use crate::{host::Proc, probe::tests::Started};

    fn is_traced(process: &Started) -> bool {
        !of(&Proc::system().unwrap().process(process.0.id()).unwrap()).unwrap().is_empty()
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
        let server = Started::sleeper(Std::null());
        assert!(!is_traced(&server));
        for thread in [false, true] {
            let mut debugger = tracer(server.0.id(), thread);
            assert!(is_traced(&server));
            debugger.end();
            assert!(!is_traced(&server));
        }
    }

    #[test]
    #[ignore = "needs root: cargo xtask test runs it"]
    fn a_traced_thread_is_enough() {
        let script = "import threading, time
t = threading.Thread(target=time.sleep, args=(600,)); t.start(); print(t.native_id, flush=True); time.sleep(600)";
        let (server, tid) = Started::python(script, Std::null());
        assert!(!is_traced(&server));
        let _tracer = tracer(tid.parse().unwrap(), false);
        assert!(is_traced(&server));
    }

    #[test]
    fn the_dead_cannot_be_read() {
        let mut dead = Started::sleeper(Std::null());
        let dir = Proc::system().unwrap().process(dead.0.id()).unwrap();
        assert_eq!(of(&dir), Ok(Vec::new()));
        dead.end();
        assert!(of(&dir).is_err());
    }
}
