//! Detects from the times of a file whether any process ever used it: connected to a bound unix socket or sent to it, or
//! passed anything through a FIFO with a name.
//!
//! connect(2) and sendto(2) update the access time of a socket's file (`touch_atime()` in `unix_find_bsd()`). Before the first
//! such call the access time equals the birth time of the file, and after it does not: it is earlier where the clock was set
//! back in between. With `relatime`, the default, the first update after the birth always takes place
//! (`relatime_need_update()`). The access time tells neither the time of the last connection nor the process that made it: a
//! process that connects to itself updates it as well.
//!
//! Who writes to a FIFO updates its modification time (`pipe_write()`), and who reads from it its access time (`pipe_read()`);
//! overlayfs keeps the latter only.
//!
//! Two cases are not visible. One is a use in the same clock tick (some milliseconds) in which the file was made, with none
//! later. The other is a use through another mount of the file that is read-only or has `noatime`.

use std::{fs::File, os::unix::fs::FileExt};

use nix::libc;
use rustix::{
    fd::OwnedFd,
    fs::{
        AtFlags, FileType, Mode, OFlags, ResolveFlags, StatVfsMountFlags, Statx, StatxFlags, StatxTimestamp,
        fstatfs, fstatvfs, makedev, openat, openat2, statx,
    },
    io::Errno,
};

use super::{ProcessDir, SystemCall, UnixSocket, link, process::PATH};
use crate::os::clock::wall_time_at_the_earliest;
use orphand_core::model::BootTime;

/// `statfs::f_type` of the file systems that keep access times in the ordinary way.
const KEEP_ACCESS_TIMES: [u64; 6] = [EXT4, TMPFS, OVERLAY, BTRFS, XFS, F2FS];
const EXT4: u64 = 0xef53;
const TMPFS: u64 = 0x0102_1994;
const OVERLAY: u64 = 0x794c_7630;
const BTRFS: u64 = 0x9123_683e;
const XFS: u64 = 0x5846_5342;
const F2FS: u64 = 0xf2f5_2010;

/// The kernel stamps files with the time of its last tick, 10 ms ago at most.
const TICKS: i128 = 50_000_000;

impl ProcessDir {
    /// Whether it is certain that no process ever connected or sent to this bound socket, which the process
    /// has open. The answer is `false` if the socket has an abstract name, if its file is gone or was
    /// replaced, or if its file system does not keep access times.
    pub fn is_untouched(&self, socket: &UnixSocket) -> bool {
        let (Some(name), Some(file)) = (&socket.name, socket.file) else { return false };
        let Ok(_at) = self.at() else { return false };
        // A name of the abstract namespace has no file.
        let found = self.named_file(name).or_else(|gone| self.named_file(given_later(name).ok_or(gone)?));
        found.and_then(|found| is_untouched(&found, file)).unwrap_or(false)
    }

    /// Whether the process sees an empty lock beside the file of this name. The lock of a database has a number in it.
    pub fn has_empty_lock(&self, name: &[u8]) -> bool {
        let Ok(_at) = self.at() else { return false };
        let found = self.named_file(&[name, b".lock"].concat()).and_then(|found| times(&found));
        found.is_ok_and(|(file, ..)| {
            FileType::from_raw_mode(file.stx_mode.into()) == FileType::RegularFile && file.stx_size == 0
        })
    }

    /// Whether it is certain that nothing came through the FIFO that this call of a thread opens, and that it is older than
    /// `since`: a younger one may have had one before it, which was used.
    pub fn opens_untouched(&self, call: &SystemCall, since: BootTime) -> bool {
        let Ok(_at) = self.at() else { return false };
        let found = self.opened_name(call).and_then(|name| self.named_file(&name));
        found.and_then(|found| is_untouched_fifo(&found, since)).unwrap_or(false)
    }

    /// Whether this call of a thread opens a file for debuggers ([`is_for_debuggers`]).
    pub fn opens_for_debuggers(&self, call: &SystemCall) -> bool {
        self.opened_name(call).is_ok_and(|name| is_for_debuggers(&name))
    }

    /// The name that a call of openat(2) was given, from the memory of the process. An error where the name counts from
    /// another folder than the working directory.
    fn opened_name(&self, call: &SystemCall) -> Result<Vec<u8>, Errno> {
        const PATH_MAX: usize = 4096;
        // The kernel looks at the lower half of the first argument only.
        let here = call.arguments[0] & u64::from(u32::MAX) == u64::from(libc::AT_FDCWD.cast_unsigned());
        if !here || ![libc::SYS_openat, libc::SYS_openat2].contains(&call.number) {
            return Err(Errno::NOTSUP);
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let memory = File::from(openat(self.body(), "mem", flags, Mode::empty())?);
        let mut name = vec![0; PATH_MAX];
        // What follows the name may not be mapped: then fewer bytes come.
        let read = memory.read_at(&mut name, call.arguments[1]).map_err(|_| Errno::FAULT)?;
        name.truncate(read);
        let end = name.iter().position(|byte| *byte == 0).ok_or(Errno::NAMETOOLONG)?;
        name.truncate(end);
        Ok(name)
    }

    /// Opens the file of this name, as the process sees it, with `O_PATH`.
    fn named_file(&self, name: &[u8]) -> Result<OwnedFd, Errno> {
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

/// Whether a FIFO or a socket of this name is one at which a runtime waits for debuggers and profilers: that of .NET, from the
/// start, or the JVM, once it was looked into.
pub fn is_for_debuggers(name: &[u8]) -> bool {
    let file = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    [&b"clr-debug-pipe-"[..], b"dotnet-diagnostic-", b".java_pid"]
        .into_iter()
        .any(|begin| file.starts_with(begin))
}

/// The name that ssh(1) gives the socket of a `ControlMaster` when it listens: it is bound to that name with a dot and 16 drawn
/// letters (`muxserver_listen()` in mux.c), which is what the kernel tells for as long as it lives.
fn given_later(bound: &[u8]) -> Option<&[u8]> {
    let (name, drawn) = bound.split_last_chunk::<17>()?;
    (drawn[0] == b'.' && drawn[1..].iter().all(u8::is_ascii_alphanumeric)).then_some(name)
}

fn is_untouched(found: &OwnedFd, (inode, device): (u32, u64)) -> Result<bool, Errno> {
    let (file, kind, kept) = times(found)?;
    // On btrfs and overlayfs stat(2) reports another device than the kernel uses for the file.
    let same_device =
        matches!(kind, BTRFS | OVERLAY) || makedev(file.stx_dev_major, file.stx_dev_minor) == device;
    let is_it = FileType::from_raw_mode(file.stx_mode.into()) == FileType::Socket
        && file.stx_ino & u64::from(u32::MAX) == u64::from(inode)
        && same_device;
    // utimensat(2) sets access and modification time, but not the birth time.
    let touched = time(file.stx_atime) != time(file.stx_mtime)
        || (has_birth(&file) && time(file.stx_atime) != time(file.stx_btime));
    Ok(is_it && kept && !touched)
}

fn is_untouched_fifo(found: &OwnedFd, since: BootTime) -> Result<bool, Errno> {
    let (file, _, kept) = times(found)?;
    let born = time(file.stx_btime);
    let born_at = i128::from(born.0) * 1_000_000_000 + i128::from(born.1);
    let is_older = wall_time_at_the_earliest(since).is_some_and(|since| born_at + TICKS < i128::from(since));
    let is_it = FileType::from_raw_mode(file.stx_mode.into()) == FileType::Fifo;
    Ok(is_it
        && kept
        && has_birth(&file)
        && is_older
        && [file.stx_mtime, file.stx_atime].into_iter().all(|stamp| time(stamp) == born))
}

/// The times of a file, the type of its file system, and whether its access time is kept there.
fn times(found: &OwnedFd) -> Result<(Statx, u64, bool), Errno> {
    let fields = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let file = statx(found, c"", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, fields)?;
    let kind = u64::try_from(fstatfs(found)?.f_type).unwrap_or_default();
    let kept = KEEP_ACCESS_TIMES.contains(&kind)
        && !fstatvfs(found)?.f_flag.intersects(StatVfsMountFlags::NOATIME | StatVfsMountFlags::RDONLY);
    Ok((file, kind, kept))
}

fn has_birth(file: &Statx) -> bool {
    StatxFlags::from_bits_retain(file.stx_mask).contains(StatxFlags::BTIME)
}

const fn time(stamp: StatxTimestamp) -> (i64, u32) {
    (stamp.tv_sec, stamp.tv_nsec)
}

#[cfg(test)]
mod tests;
