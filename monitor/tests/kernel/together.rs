//! Several that get SIGKILL together: none of them does anything about the end of another.

use std::{
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Child, Command, Stdio as Io},
    thread::sleep,
    time::Duration,
};

use orphand::{
    actuator::reaper::Reaper,
    daemon::last_check::PendingRecords,
    driver::SignalRequest,
    host::{Proc, identity::identity},
    source::kernel::KernelSource,
};
use orphand_core::model::{BootTime, ProcessEvent, ProcessId, Signal, SignalError};

use crate::stage::{options, runtime};

/// So many pairs are ended, with so many others between the two of each. Without the stop most act.
const PAIRS: usize = 10;
const BETWEEN: usize = 50;

/// A process that holds a pipe, and one that reads it and writes the file when it is at its end.
fn pair(file: &Path) -> [Child; 2] {
    let mut main = Command::new("sleep").arg("600").stdout(Io::piped()).spawn().unwrap();
    let act = format!("read x; : > {}", file.display());
    let helper = Command::new("sh").args(["-c", &act]).stdin(main.stdout.take().unwrap()).spawn().unwrap();
    let proc = Proc::system().unwrap();
    let waits = |pid| proc.process(pid).unwrap().stat().state == b'S';
    while ![&main, &helper].iter().all(|child| waits(child.id())) {
        sleep(Duration::from_millis(1));
    }
    [main, helper]
}

fn is_there(pid: u32, state: u8) -> bool {
    Proc::system().unwrap().process(pid).is_ok_and(|dir| dir.stat().state == state)
}

struct Stand {
    kernel: KernelSource,
    reaper: Reaper,
    pending: PendingRecords,
}

impl Stand {
    fn new() -> Self {
        let kernel = KernelSource::open(&options()).unwrap();
        Self { kernel, reaper: Reaper::new().unwrap(), pending: PendingRecords::default() }
    }

    fn kill(&mut self, processes: &[ProcessId], between: Option<ProcessEvent>) -> Vec<Option<SignalError>> {
        let uid = Some(rustix::process::getuid().as_raw());
        let request = |process: &ProcessId| SignalRequest { process: *process, uid, signal: Signal::Kill };
        let aimed = processes.iter().map(request).map(|request| {
            let aim = self.pending.aim(&mut self.kernel, &self.reaper, false, request);
            (request, aim.unwrap())
        });
        let aimed: Vec<_> = aimed.collect();
        self.pending.extend(between);
        let outcomes = self.pending.send_all(&mut self.kernel, &self.reaper, &aimed);
        outcomes.into_iter().map(|(_, error)| error).collect()
    }
}

/// The one that is seen gets it first, which is the worst order.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn who_is_ended_together_does_nothing_about_it() {
    let runtime = runtime();
    let _inside = runtime.enter();
    let dir = tempfile::tempdir().unwrap();
    let mut stand = Stand::new();
    for round in 0..PAIRS {
        let file = dir.path().join(round.to_string());
        let [main, helper] = pair(&file);
        let others = (0..BETWEEN).map(|_| Command::new("sleep").arg("600").spawn().unwrap());
        let mut children: Vec<Child> = [main].into_iter().chain(others).chain([helper]).collect();
        let processes: Vec<_> = children.iter().map(|child| identity(child.id()).unwrap()).collect();
        assert!(stand.kill(&processes, None).iter().all(Option::is_none));
        for child in &mut children {
            assert_eq!(child.wait().unwrap().signal(), Some(9), "round {round}");
        }
        assert!(!file.exists(), "round {round}");
    }
}

/// Of those one has made a session of its own meanwhile: it is not killed, and goes on.
#[test]
#[ignore = "needs root and a kernel: cargo xtask test runs it"]
fn who_is_not_killed_after_all_goes_on() {
    let runtime = runtime();
    let _inside = runtime.enter();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("acted");
    let [mut main, mut helper] = pair(&file);
    let processes = [&main, &helper].map(|child| identity(child.id()).unwrap());
    let [_, process] = processes;
    let gone_on = ProcessEvent::Setsid { at: BootTime(1), process, sid: process.pid };
    let errors = Stand::new().kill(&processes, Some(gone_on));
    assert!(matches!(errors[..], [None, Some(SignalError::Unsure { .. })]), "{errors:?}");
    assert_eq!(main.wait().unwrap().signal(), Some(9));
    assert!(!is_there(helper.id(), b'T'));
    assert_eq!((helper.wait().unwrap().code(), file.exists()), (Some(0), true));
}
