//! Finds the paths that must not be walked because the walk may block. Pure.

/// Whether the file system under `path` may ask a server about a file that is reached through a magic link.
/// Such a request never ends while the server does not respond. These file systems have a
/// `d_weak_revalidate()`, called by `complete_walk()` in fs/namei.c. `mountinfo` must be that of the
/// process that has the file open. The answer is too cautious if a local file system is mounted below a
/// remote one.
pub(super) fn may_hang(mountinfo: &[u8], path: &[u8]) -> bool {
    mountinfo.split(|&b| b == b'\n').filter_map(remote_mount).any(|mount| {
        // Special characters such as spaces are written as `\040`. The comparison stops at the first of
        // them.
        let mount = mount.split(|&b| b == b'\\').next().unwrap_or(mount);
        path.starts_with(mount)
    })
}

/// Whether the kernel has one of these file systems, by the text of `/proc/filesystems`.
pub(super) fn is_any_remote(filesystems: &[u8]) -> bool {
    filesystems.split(u8::is_ascii_whitespace).any(|kind| REMOTE.contains(&kind))
}

/// The file systems that have a `d_weak_revalidate()`.
const REMOTE: [&[u8]; 3] = [b"nfs", b"nfs4", b"9p"];

/// The mount point in a line of `mountinfo`, if its file system is remote in that sense.
fn remote_mount(line: &[u8]) -> Option<&[u8]> {
    let mut fields = line.split(|&b| b == b' ');
    let mount = fields.nth(4)?;
    let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
    REMOTE.contains(&kind).then_some(mount)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &[u8] = b"\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw,relatime shared:5 master:2 - nfs4 server:/home rw,vers=4.2
31 22 0:41 / /mnt/a\\040b rw - 9p share rw
32 22 0:42 / /tmp rw - tmpfs nfs rw
";

    #[test]
    fn kernels_with_a_remote_file_system_are_known() {
        assert!(is_any_remote(b"nodev\tproc\n\text4\nnodev\tnfs4\n") && is_any_remote(b"nodev\t9p"));
        assert!(!is_any_remote(b"nodev\tproc\nnodev\tnfsd\n\text4\n"));
    }

    #[test]
    fn paths_on_remote_file_systems_are_known() {
        for path in [&b"/home/user/log"[..], b"/mnt/a b/log"] {
            assert!(may_hang(MOUNTS, path));
        }
        for path in [&b"/tmp/fifo"[..], b"/mnt/b", b"/var/log/x"] {
            assert!(!may_hang(MOUNTS, path));
        }
        assert!(!may_hang(b"", b"/home/x") && !may_hang(b"nonsense\n - nfs", b"/"));
    }
}
