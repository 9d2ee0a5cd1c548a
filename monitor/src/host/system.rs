//! What /proc says about the host as a whole and about this program. No other process can delay these
//! reads.

use std::{fs, io, path::PathBuf};

use rustix::fs::CWD;

use super::{HostError, Proc, identity, read};

pub fn boot_id() -> Result<String, HostError> {
    const FILE: &str = "/proc/sys/kernel/random/boot_id";
    let (id, _) = read(CWD, FILE, 64).map_err(|errno| HostError::of_file("read", FILE.as_ref(), errno))?;
    Ok(String::from_utf8_lossy(&id).trim().to_owned())
}

/// The kernel's limits on the number of processes on this host, as far as they can be read.
pub fn process_limits() -> impl Iterator<Item = u32> {
    let limit = |name| fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok();
    ["pid_max", "threads-max"].into_iter().filter_map(limit)
}

/// Our own namespace of this kind (`pid`, `cgroup`), as the text of the link in `/proc/self/ns`.
pub fn own_namespace(kind: &str) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/ns/{kind}"))
}

/// The number of our own network namespace, as [`super::ProcessDir::network`] has it.
pub fn own_network() -> Option<u32> {
    Proc::system().ok()?.process(std::process::id()).ok()?.network()
}

/// The PID namespace of this process, likewise. This never waits for the process, unlike most that is read of one.
pub fn pid_namespace_of(pid: u32) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/pid"))
}

/// The pids of the children of this program, including the processes that it adopted.
pub fn own_children() -> io::Result<Vec<u32>> {
    let own = Proc::system().ok().and_then(|proc| proc.process(std::process::id()).ok());
    // The kernel has no CONFIG_PROC_CHILDREN.
    own.and_then(|own| own.children().ok()).map_or_else(scan, Ok)
}

fn scan() -> io::Result<Vec<u32>> {
    let numbers =
        fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(numbers.filter(|pid| is_own_child(*pid)).collect())
}

pub fn is_own_child(pid: u32) -> bool {
    identity::stat(pid).is_ok_and(|stat| stat.ppid == std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_has_a_boot_and_limits() {
        let id = boot_id().unwrap();
        assert!(id.len() == 36 && !id.ends_with('\n'), "{id:?}");
        assert_eq!(process_limits().count(), 2);
        assert!(process_limits().all(|limit| limit > 0));
        assert!(own_namespace("pid").unwrap().to_string_lossy().starts_with("pid:["));
    }

    #[test]
    fn children_are_listed_either_way() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(own_children().unwrap().contains(&child.id()));
        assert!(scan().unwrap().contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_own_child(child.id()));
        assert!(!is_own_child(1));
    }
}
