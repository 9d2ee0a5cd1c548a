use std::{fs, os::unix::fs::symlink, path::Path, process::Stdio as Std};

use super::*;
use crate::probe::tests::Started;
use orphand_core::model::{SnapshotProcess, Stdio};

fn found(child: &Started) -> SnapshotProcess {
    let snapshot = Proc::system().unwrap().snapshot(BootTime(1), |_| true, BTreeMap::new()).unwrap();
    snapshot.processes.into_iter().find(|p| p.id == child.id()).unwrap()
}

fn add(root: &Path, pid: u32, stat: &str, cmdline: &[u8], exe: Option<&str>) {
    let dir = root.join(pid.to_string());
    fs::create_dir_all(dir.join("fd")).unwrap();
    fs::write(dir.join("stat"), format!("{pid} (n) {stat} 0 0\n")).unwrap();
    fs::write(dir.join("status"), "Name:\tn\nUid:\t1000\t0\t0\t0\n").unwrap();
    fs::write(dir.join("cmdline"), cmdline).unwrap();
    if let Some(exe) = exe {
        symlink(exe, dir.join("exe")).unwrap();
    }
}

/// The fields of `stat` after the name.
fn stat(state: char, ppid: u32, flags: u32, threads: u32, start: u64) -> String {
    format!("{state} {ppid} 1 77 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 {threads} 0 {start}")
}

#[test]
fn what_counts_as_a_process() {
    let tree = tempfile::tempdir().unwrap();
    let root = tree.path();
    add(root, 1, &stat('S', 0, 0, 1, 5), b"/sbin/init\0", Some("/sbin/init"));
    add(root, 2, &stat('S', 0, 0x20_0000, 1, 5), b"", None);
    add(root, 20, &stat('Z', 1, 0, 1, 50), b"", None);
    add(root, 21, &stat('Z', 1, 0, 2, 50), b"", None);
    add(root, 30, &stat('R', 1, 0, 1, 60), b"node\0s.js\0", Some("/usr/bin/node (deleted)"));
    add(root, 31, &stat('R', 30, 0, 1, 70), b"x\0", None);
    // Its parent's number belongs to a younger process by now; that one has ended, too.
    add(root, 32, &stat('R', 31, 0, 1, 69), b"x\0", None);
    add(root, 33, &stat('R', 99, 0, 1, 80), b"x\0", None);
    fs::create_dir(root.join("sys")).unwrap();
    symlink("pipe:[12]", root.join("30/fd/0")).unwrap();
    symlink("socket:[13]", root.join("30/fd/1")).unwrap();
    symlink("/dev/null", root.join("30/fd/2")).unwrap();

    let procfs = Proc::at(root).unwrap();
    let mut snapshot =
        procfs.snapshot(BootTime(9), |image| image.exe.ends_with("node"), BTreeMap::new()).unwrap();
    snapshot.processes.sort_by_key(|p| p.id);
    assert_eq!(snapshot.horizon, BootTime(9));
    let parents: Vec<_> = snapshot.processes.iter().map(|p| (p.id.pid, p.parent.map(|p| p.pid))).collect();
    assert_eq!(parents, [(1, None), (21, Some(1)), (30, Some(1)), (31, Some(30)), (32, None), (33, None)]);

    let node = &snapshot.processes[2];
    assert_eq!(node.id, ProcessId::new(30, 60));
    assert_eq!((node.uid, node.sid), (1000, 77));
    assert_eq!(node.image.exe, "/usr/bin/node");
    assert_eq!(node.image.argv, ["node", "s.js"]);
    assert_eq!(node.stdio, [Stdio::Pipe(12), Stdio::Socket(13), Stdio::Null]);
    assert_eq!(snapshot.processes[3].image.exe, "");
    assert_eq!(snapshot.processes[3].stdio, [Stdio::Closed; 3]);

    // What is known of 30 and 31 is another program and another parent than theirs; 20 is a zombie.
    let known = |pid, start, parent| SnapshotProcess {
        id: ProcessId::new(pid, start),
        parent: Some(ProcessId::new(parent, 5)),
        uid: 7,
        ..SnapshotProcess::default()
    };
    let known = [known(30, 60, 1), known(31, 70, 1), known(20, 50, 1), known(33, 81, 99)];
    let again = procfs.snapshot(BootTime(9), |_| true, known.iter().cloned().map(|p| (p.id, p)).collect());
    let mut again = again.unwrap().processes;
    again.sort_by_key(|p| p.id);
    let users: Vec<_> = again.iter().map(|p| (p.id.pid, p.uid)).collect();
    assert_eq!(users, [(1, 1000), (21, 1000), (30, 7), (31, 1000), (32, 1000), (33, 1000)]);
    assert_eq!((&again[2], again[3].parent), (&known[0], Some(node.id)));

    assert_eq!(procfs.seen(node.id).as_ref(), Some(node));
    assert_eq!(procfs.seen(ProcessId::new(30, 61)), None);
    assert_eq!(procfs.seen(ProcessId::new(20, 50)), None);
    assert_eq!(procfs.seen(ProcessId::new(999, 1)), None);
}

#[test]
fn a_real_child_is_seen_below_us() {
    let (child, _) = Started::python("print(flush=True); input()", Std::piped());
    let process = found(&child);
    assert_eq!(process.parent.map(|p| p.pid), Some(std::process::id()));
    assert!(matches!(process.stdio[..2], [Stdio::Pipe(_), Stdio::Pipe(_)]));
    let again = Proc::system().unwrap().seen(process.id).unwrap();
    assert_eq!((again.parent, again.stdio, again.uid), (process.parent, process.stdio, process.uid));
}

#[test]
fn a_zombie_is_not_seen() {
    let (mut child, _) = Started::python("print(flush=True); input()", Std::piped());
    drop(child.0.stdin.take());
    let pid = child.0.id();
    while !fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    let snapshot = Proc::system().unwrap().snapshot(BootTime(1), |_| true, BTreeMap::new()).unwrap();
    assert!(snapshot.processes.iter().all(|p| p.id.pid != pid));
}

/// What mcp 2 does with its standard streams, with self-pipes and pairs of its own before the wire.
const MOVE: &str = "import os, socket, sys, time
r, w = os.pipe(); a, b = socket.socketpair()
wire = os.dup(0); os.dup2(os.open('/dev/null', os.O_RDWR), 0)
out = os.dup(1); os.dup2(2, 1)
stat = os.fstat(wire)
def say(n): os.write(out, b'%d\\n' % n)
";

#[test]
fn a_moved_wire_is_found() {
    let (child, inode) = Started::python(&format!("{MOVE}say(stat.st_ino); os.read(wire, 1)"), Std::piped());
    assert_eq!(found(&child).stdio[0], Stdio::Pipe(inode.parse().unwrap()));
    let alone = Proc::system().unwrap().seen(child.id()).unwrap();
    assert_eq!(alone.stdio[0], Stdio::Null, "of one process none is sought: that would read all of the host");
}

#[test]
fn a_moved_wire_that_is_a_socket_is_found_hung_up_too() {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let script = format!("{MOVE}say(stat.st_ino); time.sleep(60)");
    let (child, inode) = Started::python(&script, std::os::fd::OwnedFd::from(theirs));
    let wire = Stdio::Socket(inode.parse().unwrap());
    assert_eq!(found(&child).stdio[0], wire);
    drop(ours);
    assert_eq!(found(&child).stdio[0], wire);
}

#[test]
fn a_bridges_own_child_is_no_wire() {
    // The only read end that leads out of the process leads to its child.
    let script = "import os, subprocess, time
out = os.dup(1); os.dup2(os.open('/dev/null', os.O_RDWR), 0); os.dup2(2, 1)
c = subprocess.Popen(['cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
os.write(out, b'ready\\n'); time.sleep(60)";
    let (child, _) = Started::python(script, Std::piped());
    assert_eq!(found(&child).stdio[0], Stdio::Null);
}

/// Any user may start thousands of processes with sixty thousand arguments each.
#[test]
fn what_is_kept_of_command_lines_is_bounded() {
    let mut command = std::process::Command::new("sleep");
    let child = Started::new(command.arg("600").args(std::iter::repeat_n("0", 20_000)).stdin(Std::null()));
    let image = found(&child).image;
    assert!(image.argv_truncated && image.argv.len() < 200, "{}", image.argv.len());
    let (mut room, mut bytes) = (Room::default(), 0);
    for _ in 0..10_000 {
        let mut image = image.clone();
        room.fit(1000, &mut image);
        bytes += image.size();
    }
    assert!(bytes < 2 * Room::OF_USER + 10_000 * 1024, "{bytes}");
    let mut other = image.clone();
    room.fit(1001, &mut other);
    assert_eq!(other, image);
}
