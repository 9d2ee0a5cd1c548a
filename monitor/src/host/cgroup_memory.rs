//! What the file system of control groups shows of a group: its memory, its owner.

use std::{fs, os::unix::fs::MetadataExt as _};

use super::cgroup::group;

/// Where the hierarchies are mounted: version 2, its place on hybrid hosts, and version 1.
const UNIFIED: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
const MEMORY: &str = "/sys/fs/cgroup/memory";
const LEGACY: &str = "/sys/fs/cgroup";

/// The memory in bytes of the control group of a process with this text of `/proc/PID/cgroup`, without inactive page
/// cache, which the kernel takes back when it wants to. `None` if it cannot be read.
pub fn memory_of(cgroup: &str) -> Option<u64> {
    cgroup.lines().find_map(|line| {
        let (controllers, path) = group(line)?;
        // A group outside of our cgroup namespace has a path that is not known.
        if path.split('/').any(|part| part == "..") {
            return None;
        }
        if controllers.split(',').any(|controller| controller == "memory") {
            return read(MEMORY, path, "memory.usage_in_bytes", "total_inactive_file ");
        }
        let mut mounts = UNIFIED.iter().filter(|_| controllers.is_empty());
        mounts.find_map(|mount| read(mount, path, "memory.current", "inactive_file "))
    })
}

/// The user who owns the control group with this line of `/proc/PID/cgroup`: only this user and root make groups in it.
/// `None` if it cannot be seen.
pub fn owner_of_group(line: &str) -> Option<u32> {
    let (controllers, path) = group(line)?;
    if path.split('/').any(|part| part == "..") {
        return None;
    }
    let owner = |mount: &str| Some(fs::symlink_metadata(format!("{mount}{path}")).ok()?.uid());
    if controllers.is_empty() {
        // On hybrid hosts the first place is only the directory of the other hierarchies.
        let is_mount = |mount: &&str| fs::exists(format!("{mount}/cgroup.procs")).is_ok_and(|there| there);
        return UNIFIED.iter().copied().find(is_mount).and_then(owner);
    }
    let name = controllers.strip_prefix("name=").unwrap_or(controllers);
    owner(&format!("{LEGACY}/{name}"))
}

fn read(mount: &str, path: &str, current: &str, cache: &str) -> Option<u64> {
    let text = |name: &str| fs::read_to_string(format!("{mount}{path}/{name}")).ok();
    let current: u64 = text(current)?.trim().parse().ok()?;
    let stat = text("memory.stat")?;
    let cache = stat.lines().find_map(|line| line.strip_prefix(cache)).and_then(|line| line.parse().ok());
    Some(current.saturating_sub(cache.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_that_have_no_known_owner() {
        for line in ["", "0::/../x", "0::/no/such/group", "4:memory:/no/such/group", "4:nothing:", "x", "1:y"]
        {
            assert_eq!(owner_of_group(line), None, "{line}");
        }
    }

    #[test]
    fn groups_that_cannot_be_read() {
        for text in ["", "0::/../x", "0::/no/such/group", "4:memory:/no/such/group", "4:cpu,memory:/..", "x"]
        {
            assert_eq!(memory_of(text), None, "{text}");
        }
    }
}
