//! The file that a unix socket is bound to: whether anybody ever connected to it, or sent to it.
//!
//! connect(2) and sendto(2) touch the access time of that file (`touch_atime()` in `unix_find_bsd()`). Until
//! then it is the time of the file's birth. With `relatime`, the default, the first touch after the birth always counts
//! (`relatime_need_update()`). When the last one was, it does not tell; nor who it was: a process that connects to itself
//! touches the file as well.
//!
//! Not to be seen: who connected in the very tick of the clock (some milliseconds) in which the socket was bound and never again,
//! and who connects through another mount of the file that is read-only or has `noatime`.

use rustix::{
    fd::OwnedFd,
    fs::{
        AtFlags, FileType, Mode, OFlags, ResolveFlags, StatVfsMountFlags, StatxFlags, StatxTimestamp,
        fstatfs, fstatvfs, makedev, openat, openat2, statx,
    },
    io::Errno,
};

use super::{ProcessDir, UnixSocket, link, process::PATH};

/// `statfs::f_type` of file systems that keep access times in the ordinary way.
const KEEP_ACCESS_TIMES: [u64; 6] = [EXT4, TMPFS, OVERLAY, BTRFS, XFS, F2FS];
const EXT4: u64 = 0xef53;
const TMPFS: u64 = 0x0102_1994;
const OVERLAY: u64 = 0x794c_7630;
const BTRFS: u64 = 0x9123_683e;
const XFS: u64 = 0x5846_5342;
const F2FS: u64 = 0xf2f5_2010;

impl ProcessDir {
    /// Whether certainly nobody ever connected or sent to this bound socket, which the process has open. An abstract name keeps no
    /// such account, nor does a file that is gone, that is another one by now, or that lies where access times are not kept.
    pub fn is_untouched(&self, socket: &UnixSocket) -> bool {
        let (Some(name), Some(file)) = (&socket.name, socket.file) else { return false };
        let Ok(_at) = self.at() else { return false };
        // A name of the abstract namespace has no file.
        self.socket_file(name).and_then(|found| is_untouched(&found, file)).unwrap_or(false)
    }

    /// The file of this name as the process sees it, only to name it.
    fn socket_file(&self, name: &[u8]) -> Result<OwnedFd, Errno> {
        let (from, whole, resolve) = if name.starts_with(b"/") {
            ("root", name.to_vec(), ResolveFlags::IN_ROOT)
        } else {
            ("cwd", [&link(self.body(), "cwd")?, &b"/"[..], name].concat(), ResolveFlags::BENEATH)
        };
        // Where a dead server is asked a look-up never ends.
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
    // These two tell stat(2) of another device than the one that the kernel knows the file by.
    let same_device =
        matches!(kind, BTRFS | OVERLAY) || makedev(file.stx_dev_major, file.stx_dev_minor) == device;
    let is_it = FileType::from_raw_mode(file.stx_mode.into()) == FileType::Socket
        && file.stx_ino & u64::from(u32::MAX) == u64::from(inode)
        && same_device;
    let kept = KEEP_ACCESS_TIMES.contains(&kind)
        && !fstatvfs(found)?.f_flag.intersects(StatVfsMountFlags::NOATIME | StatVfsMountFlags::RDONLY);
    // utimensat(2) sets both times, but not that of the birth.
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
