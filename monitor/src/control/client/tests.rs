use std::{
    os::unix::net::UnixListener,
    process::{Command, Stdio},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::*;
use crate::host::Instance;

#[test]
fn a_daemon_that_is_stopped_is_named_within_seconds() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("control.sock");
    let script = "import socket, sys\ns = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()\n\
                  print(flush=True); sys.stdin.read()";
    let mut silent = Command::new("python3")
        .args(["-c", script])
        .arg(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    BufReader::new(silent.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    let pid = silent.id().cast_signed();
    let client = Client::new(&path).within(LOOK + Duration::from_millis(100));
    let slow = client.status(false).unwrap_err();
    kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    let error = Client::new(&path).status(false).unwrap_err();
    silent.kill().unwrap();
    silent.wait().unwrap();
    assert!(matches!(slow, ClientError::Broken { .. }), "it is only slow: {slow}");
    assert!(matches!(error, ClientError::Stopped { pid: stopped, .. } if stopped == pid), "{error}");
}

#[test]
fn who_runs_without_its_socket_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("control.sock");
    let advice = || Client::new(&path).status(false).unwrap_err().to_string();
    drop(UnixListener::bind(&path).unwrap());
    assert!(
        advice().ends_with("start it with `orphand run`, or give its socket with --socket"),
        "{}",
        advice()
    );
    let _instance = Instance::lock(&dir.path().join(LOCK)).unwrap();
    std::fs::remove_file(&path).unwrap();
    let ours = std::process::id();
    assert!(advice().contains(&format!("orphand runs (pid {ours}), and its socket is gone")), "{}", advice());
}
