//! An actor that has set something up, says so, and keeps it until the test lets go.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    process::{Child, ChildStdin, Command, Stdio as Io},
};

use orphand::host::identity::identity;
use orphand_core::model::ProcessId;
use serde_json::Value;

use crate::stage::python;

/// What every script begins with. It ends with the script's truth, and all that it started ends with it: `until_the_end()` is for
/// children.
const PRELUDE: &str = r#"
import array, ctypes, json, os, resource, signal, socket, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
os.closerange(3, 4096)   # what whoever started the tests has left open
stop, go_on = os.pipe()
def until_the_end():
    os.close(go_on); os.read(stop, 1); os._exit(0)
done, tell = os.pipe()
def start(pid): return int(open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1].split()[19])
def ino(fd): return os.fstat(fd if isinstance(fd, int) else fd.fileno()).st_ino
said = {}
def who(name, pid=None): said[name] = [pid or os.getpid(), start(pid or os.getpid())]
def say(**more): os.write(1, (json.dumps(said | more) + "\n").encode())
def child(f):
    pid = os.fork()
    if pid == 0: f(); os.write(tell, b"x"); until_the_end()
    os.read(done, 1)
    return pid
def grandchild(f, fork=os.fork):   # of a child, for which the test waits meanwhile
    began, tell_it = os.pipe(); pid = fork()
    if pid == 0: os.close(began); f(); os.write(tell_it, b"x"); os.close(tell_it); until_the_end()
    os.close(tell_it); os.read(began, 1); os.close(began)
    return pid
"#;

/// Ends, with what it started, when it is dropped.
pub struct Stand {
    child: Child,
    hold: Option<ChildStdin>,
    truth: Value,
}

impl Stand {
    /// Runs the script until it has said its truth.
    pub fn new(script: &str) -> Self {
        let mut child = Command::new(python())
            .arg0(python())
            .args(["-c", &format!("{PRELUDE}\n{script}\nos.read(0, 1); os._exit(0)")])
            .stdin(Io::piped())
            .stdout(Io::piped())
            .spawn()
            .unwrap();
        let hold = child.stdin.take();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, hold, truth: serde_json::from_str(&line).unwrap() }
    }

    /// A number that it said.
    pub fn number(&self, key: &str) -> u64 {
        self.truth[key].as_u64().unwrap_or_else(|| panic!("no {key} in {}", self.truth))
    }

    /// A descriptor that it said.
    pub fn fd(&self, key: &str) -> u32 {
        u32::try_from(self.number(key)).unwrap()
    }

    /// Numbers that it said.
    pub fn numbers(&self, key: &str) -> Vec<u64> {
        self.truth[key].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect()
    }

    /// A process that it named.
    pub fn who(&self, key: &str) -> ProcessId {
        let [pid, start] = self.numbers(key)[..] else { panic!("no {key} in {}", self.truth) };
        ProcessId::new(u32::try_from(pid).unwrap(), start)
    }

    /// Itself.
    pub fn me(&self) -> ProcessId {
        identity(self.child.id()).unwrap()
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        let _ = self.hold.take().map(|mut hold| hold.write_all(b"x"));
        let _ = self.child.wait();
    }
}
