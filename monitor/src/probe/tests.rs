//! Real processes for the tests of the probes.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio as Std},
};

use super::Probe;
use crate::os::forks_of_tests::calm;
use orphand_core::model::{
    ProcessId, ServerFacts, Stdio, Subject,
    scene::{SceneQuestion, SceneServer},
};

/// A child process that is killed when the test ends, also by a panic.
pub(crate) struct Started(pub Child);

impl Started {
    pub fn new(command: &mut Command) -> Self {
        let child = command.spawn();
        let mut child =
            child.unwrap_or_else(|e| panic!("{command:?}: {e}; cargo xtask setup --tests installs it"));
        // The parent of a vfork(2) continues before the new image has its arguments and environment
        // (`begin_new_exec()`).
        let environ = format!("/proc/{}/environ", child.id());
        while std::fs::read(&environ).is_ok_and(|bytes| bytes.is_empty()) {
            assert!(child.try_wait().unwrap().is_none(), "{command:?} has ended at once");
            std::thread::yield_now();
        }
        Self(child)
    }

    /// A process that reads nothing and keeps running.
    pub fn sleeper(stdin: impl Into<Std>) -> Self {
        Self::new(Command::new("sleep").arg("600").stdin(stdin))
    }

    /// A process with these standard streams and no other descriptor. A build tool passes pipes of its own to
    /// tests, which must not be inherited.
    pub fn bare(stdin: impl Into<Std>, stdout: impl Into<Std>, stderr: impl Into<Std>) -> Self {
        let script = "import os; os.closerange(3, 65536); os.execvp('sleep', ['sleep', 'infinity'])";
        let mut command = Command::new("python3");
        let bare = Self::new(command.args(["-c", script]).stdin(stdin).stdout(stdout).stderr(stderr));
        bare.until_asleep();
        bare
    }

    /// Waits until it runs sleep(1), and that sleeps; or until it is gone.
    pub fn until_asleep(&self) {
        let stat = format!("/proc/{}/stat", self.0.id());
        let is_under_way = |line: &str| !line.contains("(sleep) S") && !line.contains(") Z");
        while std::fs::read_to_string(&stat).is_ok_and(|line| is_under_way(&line)) {
            std::thread::yield_now();
        }
    }

    /// A Python process that prints a line when it is ready; returns that line.
    pub fn python(script: &str, stdin: impl Into<Std>) -> (Self, String) {
        Self::line_of(Command::new("python3").args(["-c", script]).stdin(stdin))
    }

    pub fn line_of(command: &mut Command) -> (Self, String) {
        let mut child = Self::new(command.stdout(Std::piped()));
        let mut line = String::new();
        BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (child, line.trim().to_owned())
    }

    pub fn id(&self) -> ProcessId {
        id(self.0.id())
    }

    /// The present standard input of the process.
    pub fn wire(&self) -> Stdio {
        Probe::new().unwrap().proc.process(self.0.id()).unwrap().stdio()[0]
    }

    pub fn end(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

pub(crate) fn id(pid: u32) -> ProcessId {
    Probe::new().unwrap().proc.process(pid).unwrap().id()
}

pub(crate) fn ourselves() -> ProcessId {
    id(std::process::id())
}

/// The id of our session, read from another file than the probe reads. It may be 0: below a pid 1 that never
/// called setsid(2), or if the leader is in an outer PID namespace. (getsid(2) in rustix panics then.)
pub(crate) fn our_session() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    // One number for each PID namespace, ours last.
    let line = status.lines().find(|line| line.starts_with("NSsid:")).unwrap();
    line.split_ascii_whitespace().last().unwrap().parse().unwrap()
}

/// The question about a server of these processes with this standard input.
pub(crate) fn subject(server: &[ProcessId], stdin: Stdio) -> Subject {
    let servers = vec![SceneServer { processes: server.to_vec(), stdin, stdout: Stdio::Null }];
    let question = SceneQuestion { servers, ..SceneQuestion::default() };
    Subject { processes: server.to_vec(), question, ..Subject::default() }
}

/// The facts about that server as /proc tells them. They must be complete.
pub(crate) fn facts(server: &[ProcessId], stdin: Stdio) -> ServerFacts {
    let facts = calm(|| Probe::new().unwrap().facts(&[&subject(server, stdin)]).remove(0));
    assert_eq!(facts.scene.unread, []);
    facts
}
