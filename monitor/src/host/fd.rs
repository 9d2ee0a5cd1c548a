//! The open files of a process, from `/proc/PID/fd`.

use std::{
    cell::OnceCell,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, Statx, StatxFlags, openat, statat, statx},
    io::Errno,
    path::DecInt,
};

use super::{DIRECTORY, fields, link, mounts, numbers, read, read_apart, watch::visit};
use orphand_core::model::Stdio;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Pipe(u64),
    Socket(u64),
    /// A file with a path (including devices and FIFOs), or an anonymous inode such as
    /// `anon_inode:[eventpoll]`.
    Path(Vec<u8>),
}

impl Target {
    pub fn parse(link: &[u8]) -> Self {
        let number = |prefix: &[u8]| -> Option<u64> {
            std::str::from_utf8(link.strip_prefix(prefix)?.strip_suffix(b"]")?).ok()?.parse().ok()
        };
        if let Some(inode) = number(b"pipe:[") {
            Self::Pipe(inode)
        } else if let Some(inode) = number(b"socket:[") {
            Self::Socket(inode)
        } else {
            Self::Path(link.to_vec())
        }
    }

    /// Whether it is a file of the kernel's, whose content changes by itself: in proc(5) or sysfs(5).
    pub fn is_of_the_kernel(&self) -> bool {
        matches!(self, Self::Path(path) if path.starts_with(b"/proc/") || path.starts_with(b"/sys/"))
    }

    /// Whether it stands for a process, whose end makes it readable: `pidfd_open(2)`.
    pub fn is_pidfd(&self) -> bool {
        matches!(self, Self::Path(path) if path == b"anon_inode:[pidfd]")
    }

    /// The pipe or socket, as a standard stream.
    pub const fn wire(&self) -> Option<Stdio> {
        match self {
            Self::Pipe(inode) => Some(Stdio::Pipe(*inode)),
            Self::Socket(inode) => Some(Stdio::Socket(*inode)),
            Self::Path(_) => None,
        }
    }

    pub const fn socket(&self) -> Option<u64> {
        if let Self::Socket(inode) = self { Some(*inode) } else { None }
    }

    /// Whether it has a path on a file system that stores files, as far as the path tells.
    pub fn is_stored(&self) -> bool {
        let others: [&[u8]; 4] = [b"/dev/", b"/proc/", b"/sys/", b"/memfd:"];
        matches!(self, Self::Path(path) if path.starts_with(b"/") && !others.iter().any(|other| path.starts_with(other)))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub read: bool,
    pub write: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fd {
    pub number: u32,
    pub target: Target,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FdTable {
    /// The descriptors, in ascending order of their numbers.
    pub fds: Vec<Fd>,
    /// Whether the process has more descriptors than the limit `FDS_MAX`.
    pub cut: bool,
}

/// The most descriptors that are read of one process. Without this limit a process with half a million open
/// files would delay the verdicts about others by half a second.
const FDS_MAX: usize = 32 * 1024;
/// The number of descriptors after which the deadline of the read starts again.
const AT_A_TIME: usize = 256;

impl FdTable {
    /// Reads the directory `path` below `dir`. `pid` is the process that it belongs to.
    pub(super) fn read(dir: impl AsFd, path: &str, pid: u32) -> Result<Self, Errno> {
        let mut at = visit(pid)?;
        let dir = openat(dir, path, DIRECTORY, Mode::empty())?;
        let mut numbers = numbers(&dir, ".")?;
        let cut = numbers.len() > FDS_MAX;
        numbers.truncate(FDS_MAX);
        numbers.sort_unstable();
        let mut fds = Vec::with_capacity(numbers.len());
        for number in numbers {
            // Restart the deadline: a long table takes long, although no single read blocks.
            if fds.len() % AT_A_TIME == AT_A_TIME - 1 {
                drop(at);
                at = visit(pid)?;
            }
            match link(&dir, DecInt::new(number).as_str()) {
                Ok(target) => fds.push(Fd { number, target: Target::parse(&target) }),
                // The descriptor was closed meanwhile, or its path is longer than a page.
                Err(Errno::NOENT | Errno::NAMETOOLONG) => {}
                Err(errno) => return Err(errno),
            }
        }
        drop(at);
        Ok(Self { fds, cut })
    }

    pub fn target(&self, number: u32) -> Option<&Target> {
        let at = self.fds.binary_search_by_key(&number, |fd| fd.number).ok()?;
        self.fds.get(at).map(|fd| &fd.target)
    }

    pub fn sockets(&self) -> impl Iterator<Item = u64> {
        self.fds.iter().filter_map(|fd| fd.target.socket())
    }
}

/// The open directory `/proc/PID/fd` of a process.
#[derive(Debug)]
pub struct FdDir {
    pid: u32,
    dir: OwnedFd,
    mountinfo: OnceCell<Vec<u8>>,
    /// Whether the kernel has a file system that may hang, as far as is known.
    is_any_remote: OnceCell<bool>,
}

/// Bytes of a file in `fdinfo` that are read.
const FDINFO_MAX: usize = 4096;
/// Bytes of the fdinfo of an epoll(7) instance that are read: a line for each file.
const WATCHED_MAX: usize = 64 * 1024;
/// Bytes of the fdinfo of an `io_uring` that are read.
const RING_MAX: usize = 256 * 1024;
/// Bytes of the list of file systems that are read: a few dozen names.
const FILESYSTEMS_MAX: usize = 16 * 1024;
const MOUNTINFO_MAX: usize = 1024 * 1024;

impl FdDir {
    pub(super) const fn new(pid: u32, dir: OwnedFd) -> Self {
        Self { pid, dir, mountinfo: OnceCell::new(), is_any_remote: OnceCell::new() }
    }

    /// Whether access to this path may block for ever, judged by the mounts that the process sees.
    pub fn may_hang(&self, path: &[u8]) -> bool {
        // The mounts are a long text where there are containers. Most kernels know no file system that matters.
        let is_any_remote = || {
            let kinds = read(&self.dir, "../../filesystems", FILESYSTEMS_MAX);
            !kinds.is_ok_and(|(kinds, more)| !more && !mounts::is_any_remote(&kinds))
        };
        *self.is_any_remote.get_or_init(is_any_remote) && mounts::may_hang(self.mountinfo(), path)
    }

    /// The mounts that the process sees, the text of its `mountinfo`.
    fn mountinfo(&self) -> &[u8] {
        // An unreadable `mountinfo` counts as empty: no mount is then taken for remote.
        let read = || read_apart(self.pid, &self.dir, "../mountinfo", MOUNTINFO_MAX);
        self.mountinfo.get_or_init(|| read().unwrap_or_default().0)
    }

    /// The object that descriptor `number` refers to now.
    pub fn target(&self, number: u32) -> Option<Target> {
        let _at = visit(self.pid).ok()?;
        link(&self.dir, DecInt::new(number).as_str()).ok().map(|target| Target::parse(&target))
    }

    /// The access mode of descriptor `number`. The permissions of the link show the file's `FMODE_READ` and
    /// `FMODE_WRITE`; the kernel refreshes them at each look-up (`tid_fd_update_inode()` in fs/proc/fd.c).
    /// This costs one system call; reading fdinfo costs three.
    pub fn access(&self, number: u32) -> Option<Access> {
        let _at = visit(self.pid).ok()?;
        let stat = statat(&self.dir, DecInt::new(number).as_str(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let mode = Mode::from_raw_mode(stat.st_mode);
        Some(Access { read: mode.contains(Mode::RUSR), write: mode.contains(Mode::WUSR) })
    }

    /// Whether descriptor `number` has a lock on its file: a line `lock:` of its fdinfo, since Linux 4.1.
    pub fn is_locked(&self, number: u32) -> bool {
        match self.fdinfo(number, FDINFO_MAX) {
            Ok(Some(text)) => text.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"lock:")),
            // It takes locks to make a text so long.
            read => read == Err(Errno::OVERFLOW),
        }
    }

    /// The descriptors that are registered with the epoll(7) instance on this one: lines `tfd:` of its fdinfo.
    pub fn watched(&self, number: u32) -> Result<Vec<u32>, Errno> {
        let text = self.fdinfo(number, WATCHED_MAX)?.ok_or(Errno::NOENT)?;
        Ok(text.split(|byte| *byte == b'\n').filter_map(|line| fields::number(line, "tfd")).collect())
    }

    /// The process of which descriptor `number` is a pidfd.
    pub fn pid(&self, number: u32) -> Result<Option<u32>, Errno> {
        Ok(self.fdinfo(number, FDINFO_MAX)?.and_then(|text| fields::number(&text, "Pid")))
    }

    /// The number of the terminal of which descriptor `number` is the other side (`/dev/ptmx`).
    pub fn terminal(&self, number: u32) -> Result<Option<u32>, Errno> {
        Ok(self.fdinfo(number, FDINFO_MAX)?.and_then(|text| fields::number(&text, "tty-index")))
    }

    /// The inode numbers of the sockets that are registered with the `io_uring` on descriptor `number`.
    pub fn sockets_of_ring(&self, number: u32) -> Result<Vec<u64>, Errno> {
        let text = self.fdinfo(number, RING_MAX)?.unwrap_or_default();
        let words = text.split(u8::is_ascii_whitespace);
        Ok(words.filter_map(|word| Target::parse(word).socket()).collect())
    }

    /// What the kernel tells of descriptor `number`; `None` if it was closed meanwhile. Not to be read to its end is an error:
    /// the process may have anything there.
    fn fdinfo(&self, number: u32, most: usize) -> Result<Option<Vec<u8>>, Errno> {
        match read_apart(self.pid, &self.dir, &format!("../fdinfo/{number}"), most) {
            Err(Errno::NOENT) => Ok(None),
            Ok((_, true)) => Err(Errno::OVERFLOW),
            read => Ok(Some(read?.0)),
        }
    }

    /// The kind of descriptor `number`, as a standard stream.
    pub fn stdio(&self, number: u32) -> Stdio {
        let Ok(_at) = visit(self.pid) else { return Stdio::Other };
        match link(&self.dir, DecInt::new(number).as_str()).map(|l| Target::parse(&l)) {
            Ok(Target::Pipe(inode)) => Stdio::Pipe(inode),
            Ok(Target::Socket(inode)) => Stdio::Socket(inode),
            Ok(Target::Path(path)) => self.kind(number, &path),
            Err(Errno::NAMETOOLONG) => Stdio::File,
            Err(_) => Stdio::Closed,
        }
    }

    /// The FIFO with a path that descriptor `number` refers to: its inode number, and whether it still has a name.
    /// `None` if it is another kind of file.
    pub fn fifo(&self, number: u32, path: &[u8]) -> Option<(u64, bool)> {
        const OTHERS: [&[u8]; 4] = [b"/dev/null", b"/dev/urandom", b"/dev/ptmx", b"/dev/tty"];
        let _at = visit(self.pid).ok()?;
        let is_other = !path.starts_with(b"/") || OTHERS.contains(&path) || path.starts_with(b"/dev/pts/");
        if is_other || self.may_hang(path) {
            return None;
        }
        let fields = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::NLINK;
        let file = self.status(number, fields).ok()?;
        let is_fifo = FileType::from_raw_mode(file.stx_mode.into()) == FileType::Fifo;
        is_fifo.then_some((file.stx_ino, file.stx_nlink > 0))
    }

    /// The inode number of the POSIX message queue that descriptor `number` refers to, whose link is `path`; `None` if it
    /// is another kind of file. A queue is in a mount of its own that nobody has in his tree (`mq_init_ns`, ipc/mqueue.c).
    /// Nothing is asked of the file itself: a file system of a user's may never answer.
    pub fn message_queue(&self, number: u32, path: &[u8]) -> Result<Option<u64>, Errno> {
        // The kernel keeps these in such mounts, too.
        const OTHERS: [&[u8]; 5] = [b"memfd:", b"dmabuf:", b"anon_hugepage", b"secretmem", b"SYSV"];
        let name = path.strip_prefix(b"/").filter(|name| !name.contains(&b'/'));
        if name.is_none_or(|name| OTHERS.iter().any(|other| name.starts_with(other))) {
            return Ok(None);
        }
        let Some(text) = self.fdinfo(number, FDINFO_MAX)? else { return Ok(None) };
        let _at = visit(self.pid)?;
        let Some(mount) = fields::words(&text, "mnt_id").and_then(|mut words| words.next()) else {
            return Ok(None);
        };
        let mut mounts = self.mountinfo().split(|byte| *byte == b'\n');
        let is_mounted = mounts.any(|line| line.split(|byte| *byte == b' ').next() == Some(mount.as_bytes()));
        Ok((!is_mounted).then(|| fields::number(&text, "ino").unwrap_or_default()))
    }

    fn status(&self, number: u32, fields: StatxFlags) -> Result<Statx, Errno> {
        statx(&self.dir, DecInt::new(number).as_str(), AtFlags::STATX_DONT_SYNC, fields)
    }

    /// The kind of the file behind the link. Well-known names are classified without a system call. Other
    /// files are classified by type and device number, because a FIFO may have any name. A dead network
    /// file system must not block the daemon: `DONT_SYNC` sends no request to the server, but the path walk
    /// may, so remote mounts are excluded before.
    fn kind(&self, number: u32, path: &[u8]) -> Stdio {
        match path {
            b"/dev/null" => return Stdio::Null,
            b"/dev/tty" | b"/dev/console" => return Stdio::Terminal,
            path if path.starts_with(b"/dev/pts/") => return Stdio::Terminal,
            path if !path.starts_with(b"/") => return Stdio::Other,
            path if self.may_hang(path) => return Stdio::File,
            _ => {}
        }
        let Ok(file) = self.status(number, StatxFlags::TYPE | StatxFlags::INO) else { return Stdio::Other };
        match (FileType::from_raw_mode(file.stx_mode.into()), file.stx_rdev_major, file.stx_rdev_minor) {
            (FileType::Fifo, ..) => Stdio::Pipe(file.stx_ino),
            (FileType::RegularFile, ..) => Stdio::File,
            (FileType::CharacterDevice, major, minor) => character_device(major, minor),
            _ => Stdio::Other,
        }
    }
}

/// Numbers from Documentation/admin-guide/devices.txt: 4 tty and ttyS, 5 /dev/tty and the console, 136 to 143
/// pseudo-terminals, 166 ttyACM, 188 ttyUSB, 204 small serial ports, 229 hvc.
pub const fn character_device(major: u32, minor: u32) -> Stdio {
    match (major, minor) {
        (1, 3) => Stdio::Null,
        (4 | 5 | 136..=143 | 166 | 188 | 204 | 229, _) => Stdio::Terminal,
        _ => Stdio::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Proc;

    #[test]
    fn links_are_told_apart() {
        assert_eq!(Target::parse(b"pipe:[4026531839]"), Target::Pipe(4_026_531_839));
        assert_eq!(Target::parse(b"socket:[7]"), Target::Socket(7));
        for path in [&b"/tmp/pipe:[7]"[..], b"pipe:[x]", b"pipe:[7", b"anon_inode:[eventpoll]"] {
            assert_eq!(Target::parse(path), Target::Path(path.to_vec()));
        }
    }

    #[test]
    fn the_ends_of_a_pipe_have_one_inode_and_opposite_access() {
        let (reader, writer) = std::io::pipe().unwrap();
        let ours = Proc::system().unwrap().process(std::process::id()).unwrap();
        let (table, fds) = (ours.fd_table().unwrap(), ours.fd_dir().unwrap());
        let (r, w) = (number(&reader), number(&writer));
        assert!(matches!(table.target(r), Some(Target::Pipe(_))));
        assert_eq!(table.target(r), table.target(w));
        assert_eq!(table.target(r), fds.target(r).as_ref());
        assert_eq!(fds.access(r), Some(Access { read: true, write: false }));
        assert_eq!(fds.access(w), Some(Access { read: false, write: true }));
    }

    #[test]
    fn devices_are_known_by_number() {
        let fds = Proc::system().unwrap().process(std::process::id()).unwrap().fd_dir().unwrap();
        let kind = |file: &std::fs::File| fds.stdio(number(file));
        assert_eq!(kind(&std::fs::File::open("/dev/null").unwrap()), Stdio::Null);
        assert_eq!(kind(&std::fs::File::open("/dev/zero").unwrap()), Stdio::Other);
        assert_eq!(kind(&tempfile::tempfile().unwrap()), Stdio::File);
        if let Ok(ptmx) = std::fs::File::open("/dev/ptmx") {
            assert_eq!(kind(&ptmx), Stdio::Terminal);
        }
        assert_eq!(fds.stdio(999_999), Stdio::Closed);
    }

    fn number(file: &impl std::os::fd::AsRawFd) -> u32 {
        u32::try_from(file.as_raw_fd()).unwrap()
    }
}
