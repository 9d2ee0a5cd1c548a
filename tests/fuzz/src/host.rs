//! What /proc says.
#![expect(clippy::unwrap_used, reason = "a target that cannot be set up has to fail")]

use std::{cell::OnceCell, fs, path::Path};

use orphand::host::{Lodging, Proc, Stat, Target, internet_socket, unix_socket};
use tempfile::TempDir;

/// `stat`, and the links of `fd`.
pub fn stat(bytes: &[u8]) {
    let _ = Stat::parse(bytes);
    let _ = Target::parse(bytes);
}

/// `cgroup`.
pub fn cgroup(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Lodging::parse(text).map(|lodging| lodging.is_managed_from(text));
    }
}

/// The files of a process, one after the other with 0xff between them. (No file of /proc that is read has that byte by itself; where
/// one has it, it is two.)
pub fn process(bytes: &[u8]) {
    const FILES: [&str; 9] =
        ["status", "cgroup", "cmdline", "environ", "uid_map", "io", "statm", "smaps_rollup", "fdinfo/0"];
    thread_local!(static TREE: OnceCell<TempDir> = const { OnceCell::new() });
    TREE.with(|tree| {
        let tree = tree.get_or_init(|| {
            let memory = Path::new("/dev/shm");
            let tree = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
            let tree = tree.unwrap();
            fs::create_dir_all(tree.path().join("1/fdinfo")).unwrap();
            fs::create_dir_all(tree.path().join("1/fd")).unwrap();
            std::os::unix::fs::symlink("pipe:[4711]", tree.path().join("1/fd/0")).unwrap();
            fs::write(tree.path().join("1/stat"), STAT).unwrap();
            tree
        });
        let mut parts = bytes.split(|b| *b == 0xff);
        for file in FILES {
            fs::write(tree.path().join("1").join(file), parts.next().unwrap_or_default()).unwrap();
        }
        let proc = Proc::at(tree.path()).unwrap();
        let dir = proc.process(1).unwrap();
        let _ = (dir.uid(), dir.gid(), dir.uid_inside(1000), dir.leads_namespace(), dir.leader());
        let _ = (dir.image(), dir.stdio(), dir.transfers(), dir.used(), dir.proportional_bytes());
        let _ = (dir.has_environment(b"ORPHAND_OPT_OUT=1"), dir.environment("PATH"));
        let _ = dir.cgroup().map(|cgroup| Lodging::parse(&cgroup));
        let _ = dir.fd_dir().map(|fds| fds.access(0));
    });
}

const STAT: &str = "1 (fuzzed) S 0 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 100 1000000 100 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0";

/// The tables of sockets.
pub fn net(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for line in text.lines() {
        let _ = (internet_socket(line), unix_socket(line));
    }
}
