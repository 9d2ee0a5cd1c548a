//! The kernel file systems that eBPF uses: tracefs (for the setsid tracepoint) and bpffs.

use std::{fs, path::Path};

use rustix::mount::{MountFlags, mount};

use crate::{command, privilege};

/// Kind and place; the second places of tracefs is where older kernels put it.
const MOUNTS: [(&str, &[&str]); 2] =
    [("tracefs", &["/sys/kernel/tracing", "/sys/kernel/debug/tracing"]), ("bpf", &["/sys/fs/bpf"])];

/// Mounts what is missing where root can; the daemon says for itself what it lacks, so this is never an error.
pub fn mount_missing() {
    if !privilege::is_root() {
        return;
    }
    let mounted = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for (kind, places) in MOUNTS {
        let place = places.first().copied().unwrap_or_default();
        if is_mounted(&mounted, kind, places) || !Path::new(place).is_dir() {
            continue;
        }
        match mount(kind, place, kind, MountFlags::empty(), None) {
            Ok(()) => command::say("setup", &format!("mounted {kind} on {place}")),
            Err(error) => command::say("setup", &format!("cannot mount {kind} on {place}: {error}")),
        }
    }
}

/// Whether `/proc/self/mounts` has this kind at one of these places.
fn is_mounted(mounts: &str, kind: &str, places: &[&str]) -> bool {
    mounts.lines().any(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, its) = (words.next(), words.next());
        its == Some(kind) && place.is_some_and(|place| places.contains(&place))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_kind_and_place() {
        let mounts = "proc /proc proc rw 0 0\nt /sys/kernel/debug/tracing tracefs rw 0 0\n";
        let [tracefs, bpf] = MOUNTS;
        assert!(is_mounted(mounts, tracefs.0, tracefs.1));
        assert!(!is_mounted(mounts, bpf.0, bpf.1));
        assert!(!is_mounted("proc /sys/fs/bpf proc rw 0 0\n", bpf.0, bpf.1));
    }
}
