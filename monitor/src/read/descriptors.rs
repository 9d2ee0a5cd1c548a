//! The descriptors of a process that was asked about: its pipes and FIFOs, the other sides of terminals, and the devices
//! that it offers.

use rustix::io::Errno;

use crate::host::{Access, Fd, FdTable, ProcessDir, Target};
use orphand_core::model::ProcessId;

/// The most descriptors that are read for a scene, at 1 us each. Processes beyond that are not read: that is a doubt
/// about their servers, and no delay for others.
pub(crate) const MOST: usize = 128 * 1024;

/// The environment variable by which a process asks to be left alone.
pub(crate) const OPT_OUT: &[u8] = b"ORPHAND_OPT_OUT=1";

/// A process and its open files, read once.
pub(crate) struct Looked {
    pub process: ProcessId,
    pub table: FdTable,
    /// Sockets that its `io_uring` instances keep, and that need no descriptor.
    pub in_rings: Vec<u64>,
}

/// A descriptor of a pipe or FIFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stream {
    pub number: u32,
    pub inode: u64,
    pub access: Access,
    /// Whether it is a FIFO that still has a name.
    pub named: bool,
}

/// The pipes and FIFOs among the descriptors of a process.
pub(super) fn streams(dir: &ProcessDir, table: &FdTable) -> Result<Vec<Stream>, Errno> {
    let fds = dir.fd_dir()?;
    let mut found = Vec::new();
    for fd in &table.fds {
        let stream = match &fd.target {
            Target::Pipe(inode) => Some((*inode, false)),
            Target::Socket(_) => None,
            Target::Path(path) => fds.fifo(fd.number, path),
        };
        // A descriptor that was closed meanwhile is none.
        if let Some((inode, named)) = stream
            && let Some(access) = fds.access(fd.number)
        {
            found.push(Stream { number: fd.number, inode, access, named });
        }
    }
    Ok(found)
}

/// The sockets that are registered with an `io_uring` of this process.
pub(crate) fn sockets_in_rings(dir: &ProcessDir, table: &FdTable) -> Vec<u64> {
    let is_ring = |fd: &&Fd| fd.target == Target::Path(b"anon_inode:[io_uring]".to_vec());
    table.fds.iter().filter(is_ring).flat_map(|fd| dir.sockets_of_ring(fd.number)).collect()
}

/// The numbers of the terminals of which this process has the other side.
pub(super) fn terminals(dir: &ProcessDir, table: &FdTable) -> Result<Vec<u32>, Errno> {
    let is_side = |fd: &&Fd| matches!(&fd.target, Target::Path(path) if path == b"/dev/ptmx" || path == b"/dev/pts/ptmx");
    table.fds.iter().filter(is_side).filter_map(|fd| dir.terminal_of(fd.number).transpose()).collect()
}

/// The numbers of the descriptors of what wakes whoever waits at it, and has no other end: whoever has a descriptor of
/// the same open file can use it.
pub(super) fn counters(table: &FdTable) -> Vec<u32> {
    const KINDS: [&[u8]; 3] = [b"anon_inode:[eventfd]", b"anon_inode:[timerfd]", b"anon_inode:[io_uring]"];
    let is_one = |fd: &&Fd| matches!(&fd.target, Target::Path(path) if KINDS.contains(&&**path));
    table.fds.iter().filter(is_one).map(|fd| fd.number).collect()
}

/// The POSIX message queues of this process, by inode number: whoever knows the name of one may send to it
/// (`mq_overview(7)`).
pub(super) fn queues(dir: &ProcessDir, table: &FdTable) -> Result<Vec<u64>, Errno> {
    let fds = dir.fd_dir()?;
    let queue = |fd: &Fd| match &fd.target {
        Target::Path(path) => fds.message_queue(fd.number, path),
        Target::Pipe(_) | Target::Socket(_) => None,
    };
    Ok(table.fds.iter().filter_map(queue).collect())
}

/// Whether the process is the other side of something that the kernel offers to others: a file system (FUSE), a
/// character device (CUSE), a network device (TUN, TAP, PPP), a disk (NBD, ublk, VDUSE), an input device, the devices of
/// a virtual machine; or answers for other processes when they touch memory (userfaultfd(2)) or call the kernel
/// (`seccomp_unotify(2)`).
pub(crate) fn serves_a_device(table: &FdTable) -> bool {
    const DEVICES: [&[u8]; 9] = [
        b"/dev/fuse",
        b"/dev/cuse",
        b"/dev/net/tun",
        b"/dev/ppp",
        b"/dev/ublk-control",
        b"/dev/uhid",
        b"/dev/uinput",
        b"anon_inode:[userfaultfd]",
        b"anon_inode:seccomp notify",
    ];
    const FAMILIES: [&[u8]; 5] = [b"/dev/nbd", b"/dev/tap", b"/dev/ublkc", b"/dev/vduse/", b"/dev/vhost-"];
    table.fds.iter().any(|fd| match &fd.target {
        Target::Path(path) => {
            DEVICES.contains(&&**path) || FAMILIES.iter().any(|family| path.starts_with(family))
        }
        Target::Pipe(_) | Target::Socket(_) => false,
    })
}
