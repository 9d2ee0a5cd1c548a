use std::{
    os::{
        fd::AsRawFd,
        unix::net::{UnixDatagram, UnixListener, UnixStream},
    },
    path::Path,
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use super::*;
use crate::{
    host::{Proc, UnixSockets},
    os::clock::{now, realtime_offset},
};

fn inode(socket: &impl AsRawFd) -> u64 {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
    link.to_str().unwrap().trim_start_matches("socket:[").trim_end_matches(']').parse().unwrap()
}

fn untouched(socket: &impl AsRawFd) -> bool {
    let found = UnixSockets::here().unwrap().find(inode(socket)).unwrap().unwrap();
    Proc::system().unwrap().process(std::process::id()).unwrap().is_untouched(&found)
}

/// Until the clock of the file system has gone on since this file was made.
fn a_tick_later(path: &Path) {
    let born = std::fs::symlink_metadata(path).unwrap().modified().unwrap();
    let probe = path.with_extension("later");
    while {
        std::fs::write(&probe, "").unwrap();
        std::fs::symlink_metadata(&probe).unwrap().modified().unwrap() <= born
    } {
        std::fs::remove_file(&probe).unwrap();
    }
}

#[test]
fn the_first_connection_shows_for_ever() {
    // On the disk of the temporary files, and in memory.
    for dir in [std::env::temp_dir(), "/dev/shm".into()] {
        let dir = tempfile::tempdir_in(dir).unwrap();
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        assert!(untouched(&listener));
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        a_tick_later(&path);
        assert!(untouched(&listener), "a change of its rights is no connection");
        drop(UnixStream::connect(&path).unwrap());
        drop(listener.accept().unwrap());
        assert!(!untouched(&listener), "{}", path.display());
    }
}

/// As ssh does; the twins have another file, or none, at the name that was given later, or had a call.
#[test]
fn a_socket_may_have_got_its_name_after_it_was_bound() {
    let dir = tempfile::tempdir().unwrap();
    let (name, bound) = (dir.path().join("master"), dir.path().join("master.0123456789abcdEF"));
    let listener = UnixListener::bind(&bound).unwrap();
    std::fs::hard_link(&bound, &name).unwrap();
    std::fs::remove_file(&bound).unwrap();
    assert!(untouched(&listener));
    a_tick_later(&name);
    drop(UnixStream::connect(&name).unwrap());
    assert!(!untouched(&listener), "it was called");
    let another = UnixListener::bind(&bound).unwrap();
    std::fs::remove_file(&bound).unwrap();
    assert!(!untouched(&another), "that is the first one's");
    std::fs::remove_file(&name).unwrap();
    assert!(!untouched(&another), "nobody has it");
}

#[test]
fn an_empty_lock_is_one_of_a_display() {
    let dir = tempfile::tempdir().unwrap();
    let (path, lock) = (dir.path().join("gamescope-0"), dir.path().join("gamescope-0.lock"));
    let own = Proc::system().unwrap().process(std::process::id()).unwrap();
    let is_there = || own.has_empty_lock(path.as_os_str().as_encoded_bytes());
    assert!(!is_there());
    std::fs::write(&lock, "").unwrap();
    assert!(is_there());
    std::fs::write(&lock, "4711\n").unwrap();
    assert!(!is_there(), "that of a database");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    assert!(!is_there());
}

#[test]
fn what_came_through_a_fifo_shows_for_ever() {
    realtime_offset();
    for dir in [std::env::temp_dir(), "/dev/shm".into()] {
        let dir = tempfile::tempdir_in(dir).unwrap();
        let path = dir.path().join("f");
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        a_tick_later(&path);
        let opens = || {
            let cat = Command::new("cat").arg(&path).stdout(Stdio::null()).spawn().unwrap();
            let process = Proc::system().unwrap().process(cat.id()).unwrap();
            let call = loop {
                match process.sleeps_in(cat.id()) {
                    Ok(Some(call)) if call.opens_fifo => break call,
                    _ => std::thread::sleep(Duration::from_millis(1)),
                }
            };
            let untouched = process.opens_untouched(&call, now() + Duration::from_secs(1));
            assert!(!process.opens_untouched(&call, BootTime::default()), "nobody knows the clock of then");
            let stamp = std::fs::metadata(&path).unwrap().created().unwrap();
            let stamp = stamp.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
            let stamp = BootTime(u64::try_from(stamp).unwrap().saturating_add_signed(-realtime_offset()));
            let a_tick_later = stamp + Duration::from_millis(10);
            assert!(!process.opens_untouched(&call, a_tick_later), "it may not be the first one");
            // It ends once it was written to.
            (untouched, cat)
        };
        let (untouched, mut cat) = opens();
        assert!(untouched, "{}", path.display());
        std::fs::write(&path, "x").unwrap();
        cat.wait().unwrap();
        // The second time as if the clock had been set back before the use.
        for _ in 0..2 {
            let (untouched, mut cat) = opens();
            assert!(!untouched, "{}", path.display());
            std::fs::write(&path, "x").unwrap();
            cat.wait().unwrap();
            set_times(&path, -3600);
        }
    }
}

#[test]
fn who_sends_a_datagram_shows_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let socket = UnixDatagram::bind(&path).unwrap();
    a_tick_later(&path);
    assert!(untouched(&socket));
    UnixDatagram::unbound().unwrap().send_to(b"x", &path).unwrap();
    assert!(!untouched(&socket));
}

#[test]
fn nobody_can_tell_of_a_file_that_is_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    assert!(untouched(&listener));
    std::fs::remove_file(&path).unwrap();
    assert!(!untouched(&listener), "gone");
    let other = UnixListener::bind(&path).unwrap();
    assert!(!untouched(&listener), "another one");
    assert!(untouched(&other));
}

#[test]
fn times_that_were_set_hide_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    // A time that is long past is what a use leaves behind after the clock was set back.
    for seconds in [60, -3600] {
        set_times(&path, seconds);
        assert!(!untouched(&listener), "{seconds}");
    }
}

/// Sets the times of a file to so many seconds from now.
fn set_times(path: &Path, seconds: i64) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs().cast_signed();
    let then = rustix::fs::Timespec { tv_sec: now + seconds, tv_nsec: 0 };
    let times = rustix::fs::Timestamps { last_access: then, last_modification: then };
    rustix::fs::utimensat(rustix::fs::CWD, path, &times, AtFlags::empty()).unwrap();
}

#[test]
fn an_abstract_name_keeps_no_account() {
    use std::os::linux::net::SocketAddrExt;
    let name = format!("orphand-test-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name).unwrap();
    assert!(!untouched(&UnixListener::bind_addr(&address).unwrap()));
}

/// A Python in a mount namespace where `mount` was done at `$1`, that binds a socket there and says which; `connect`s then.
fn elsewhere(mount: &str, name: &str, connects: bool) -> bool {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let disk = tempfile::tempdir().unwrap();
    let script = "import os, socket, sys, time
os.chdir(sys.argv[1]); s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[2]); s.listen()
born = os.stat(sys.argv[2]).st_mtime_ns
while True:
    open('later', 'w').close()
    if os.stat('later').st_mtime_ns > born: break
    os.unlink('later')
if sys.argv[3] == 'True': socket.socket(socket.AF_UNIX).connect(sys.argv[2])
print(os.fstat(s.fileno()).st_ino, flush=True); time.sleep(600)";
    let line = format!("{mount}; exec python3 -c \"$2\" \"$1\" {name} $3");
    let mut child = Command::new("unshare")
        .args(["--mount", "sh", "-ec", &line, "sh"])
        .arg(dir.path())
        .arg(script)
        .arg(if connects { "True" } else { "False" })
        .arg(disk.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut said)
        .unwrap();
    let found = UnixSockets::here().unwrap().find(said.trim().parse().unwrap()).unwrap().unwrap();
    let untouched = Proc::system().unwrap().process(child.id()).unwrap().is_untouched(&found);
    child.kill().unwrap();
    child.wait().unwrap();
    untouched
}

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn other_file_systems_and_names() {
    let overlay = "mkdir $4/l $4/u $4/w; mount -t overlay o -o lowerdir=$4/l,upperdir=$4/u,workdir=$4/w $1";
    let mixed = "mount -t tmpfs t $1; mkdir $1/u $1/w $1/m; \
                 mount -t overlay o -o lowerdir=$4,upperdir=$1/u,workdir=$1/w $1/m; set -- $1/m \"$2\" $3";
    for mount in ["mount -t tmpfs t $1", overlay, mixed] {
        assert!(elsewhere(mount, "$1/s", false), "{mount}");
        assert!(!elsewhere(mount, "$1/s", true), "{mount}");
    }
    // A relative name is one of the working directory.
    assert!(elsewhere("mount -t tmpfs t $1", "s", false));
    assert!(!elsewhere("mount -t tmpfs t $1", "s", true));
    // Where access times are not kept nobody can tell.
    assert!(!elsewhere("mount -t tmpfs -o noatime t $1", "$1/s", false));
}
