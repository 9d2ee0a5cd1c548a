//! Detects from the file of a bound unix socket whether any process ever connected to it, or sent to it.
//!
//! connect(2) and sendto(2) update the access time of that file (`touch_atime()` in `unix_find_bsd()`).
//! Before the first such call the access time equals the birth time of the file. With `relatime`, the
//! default, the first update after the birth always takes place (`relatime_need_update()`). The access time
//! tells neither the time of the last connection nor the process that made it: a process that connects to
//! itself updates it as well.
//!
//! Two cases are not visible. One is a connection in the same clock tick (some milliseconds) in which the
//! socket was bound, with none later. The other is a connection through another mount of the file that is
//! read-only or has `noatime`.

use rustix::{
    fd::OwnedFd,
    fs::{
        AtFlags, FileType, Mode, OFlags, ResolveFlags, StatVfsMountFlags, StatxFlags, StatxTimestamp,
        fstatfs, fstatvfs, makedev, openat, openat2, statx,
    },
    io::Errno,
};

use super::{ProcessDir, UnixSocket, link, process::PATH};

/// `statfs::f_type` of the file systems that keep access times in the ordinary way.
const KEEP_ACCESS_TIMES: [u64; 6] = [EXT4, TMPFS, OVERLAY, BTRFS, XFS, F2FS];
const EXT4: u64 = 0xef53;
const TMPFS: u64 = 0x0102_1994;
const OVERLAY: u64 = 0x794c_7630;
const BTRFS: u64 = 0x9123_683e;
const XFS: u64 = 0x5846_5342;
const F2FS: u64 = 0xf2f5_2010;

impl ProcessDir {
    /// Whether it is certain that no process ever connected or sent to this bound socket, which the process
    /// has open. The answer is `false` if the socket has an abstract name, if its file is gone or was
    /// replaced, or if its file system does not keep access times.
    pub fn is_untouched(&self, socket: &UnixSocket) -> bool {
        let (Some(name), Some(file)) = (&socket.name, socket.file) else { return false };
        let Ok(_at) = self.at() else { return false };
        // A name of the abstract namespace has no file.
        self.socket_file(name).and_then(|found| is_untouched(&found, file)).unwrap_or(false)
    }

    /// Opens the file of this name, as the process sees it, with `O_PATH`.
    fn socket_file(&self, name: &[u8]) -> Result<OwnedFd, Errno> {
        let (from, whole, resolve) = if name.starts_with(b"/") {
            ("root", name.to_vec(), ResolveFlags::IN_ROOT)
        } else {
            ("cwd", [&link(self.body(), "cwd")?, &b"/"[..], name].concat(), ResolveFlags::BENEATH)
        };
        // A path look-up never ends if it asks a server that is dead.
        if self.fd_dir()?.may_hang(&whole) {
            return Err(Errno::STALE);
        }
        let from = openat(self.body(), from, PATH, Mode::empty())?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat2(&from, name, flags, Mode::empty(), resolve | ResolveFlags::NO_MAGICLINKS)
    }
}

fn is_untouched(found: &OwnedFd, (inode, device): (u32, u64)) -> Result<bool, Errno> {
    let fields = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let file = statx(found, c"", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, fields)?;
    let kind = u64::try_from(fstatfs(found)?.f_type).unwrap_or_default();
    // On btrfs and overlayfs stat(2) reports another device than the kernel uses for the file.
    let same_device =
        matches!(kind, BTRFS | OVERLAY) || makedev(file.stx_dev_major, file.stx_dev_minor) == device;
    let is_it = FileType::from_raw_mode(file.stx_mode.into()) == FileType::Socket
        && file.stx_ino & u64::from(u32::MAX) == u64::from(inode)
        && same_device;
    let kept = KEEP_ACCESS_TIMES.contains(&kind)
        && !fstatvfs(found)?.f_flag.intersects(StatVfsMountFlags::NOATIME | StatVfsMountFlags::RDONLY);
    // utimensat(2) sets access and modification time, but not the birth time.
    let has_birth = StatxFlags::from_bits_retain(file.stx_mask).contains(StatxFlags::BTIME);
    let touched = time(file.stx_atime) > time(file.stx_mtime)
        || (has_birth && time(file.stx_atime) > time(file.stx_btime));
    Ok(is_it && kept && !touched)
}

const fn time(stamp: StatxTimestamp) -> (i64, u32) {
    (stamp.tv_sec, stamp.tv_nsec)
}

#[cfg(test)]
mod tests;
