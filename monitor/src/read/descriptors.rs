//! What the descriptors of a process that was asked about are ends of: pipes and FIFOs, the other sides of terminals, what
//! wakes others, and the devices that it offers.

use rustix::io::Errno;

use crate::host::{Access, FdTable, ProcessDir, Target};

/// The most descriptors that are read for a scene, at 1 us and some 500 bytes each. Processes beyond that are not read: that is
/// a doubt about their servers, and neither a delay for others nor more memory than the unit has, for three at a time.
pub(super) const MOST: usize = 64 * 1024;

/// The environment variable by which a process asks to be left alone.
pub(super) const OPT_OUT: &[u8] = b"ORPHAND_OPT_OUT=1";

const RING: &[u8] = b"anon_inode:[io_uring]";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stream {
    pub number: u32,
    pub inode: u64,
    pub access: Access,
    /// Whether it is a FIFO that still has a name.
    pub named: bool,
    /// Whether it has never had one: pipe(2) made it.
    pub nameless: bool,
}

#[derive(Default)]
pub(super) struct Ends {
    pub streams: Vec<Stream>,
    /// The numbers of the terminals of which it has the other side.
    pub terminals: Vec<u32>,
    /// The descriptors of what wakes whoever waits at it, and has no other end: whoever has a descriptor of the same open
    /// file can use it.
    pub counters: Vec<u32>,
    /// Sockets that its `io_uring` instances keep, and that need no descriptor.
    pub in_rings: Vec<u64>,
    /// Its POSIX message queues, by inode number: whoever knows the name of one may send to it (`mq_overview(7)`).
    pub queues: Vec<u64>,
    pub serves_a_device: bool,
}

impl Ends {
    pub fn of(dir: &ProcessDir, table: &FdTable) -> Result<Self, Errno> {
        let fds = dir.fd_dir()?;
        let mut ends = Self::default();
        for fd in &table.fds {
            let number = fd.number;
            let stream = match &fd.target {
                Target::Pipe(inode) => Some((*inode, false)),
                Target::Socket(_) => None,
                Target::Path(path) => fds.fifo(number, path),
            };
            // A descriptor that was closed meanwhile is none.
            if let Some((inode, named)) = stream
                && let Some(access) = fds.access(number)
            {
                let nameless = matches!(fd.target, Target::Pipe(_));
                ends.streams.push(Stream { number, inode, access, named, nameless });
            }
            let Target::Path(path) = &fd.target else { continue };
            match device(path) {
                b"/dev/ptmx" | b"/dev/pts/ptmx" => ends.terminals.extend(fds.terminal(number)?),
                b"anon_inode:[eventfd]" | b"anon_inode:[eventpoll]" | b"anon_inode:[timerfd]" => {
                    ends.counters.push(number);
                }
                RING => {
                    ends.counters.push(number);
                    ends.in_rings.extend(fds.sockets_of_ring(number)?);
                }
                _ => ends.queues.extend(fds.message_queue(number, path)?),
            }
            ends.serves_a_device |= is_device(device(path));
        }
        Ok(ends)
    }
}

/// Whether who has this file open is the other side of something that the kernel offers to others: a file system (FUSE),
/// a character device (CUSE), a network device (TUN, TAP, PPP), a disk (NBD, ublk, VDUSE), an input device, one at a USB
/// host, a port for MIDI, the devices of a virtual machine; keeps the host from a restart (watchdog); or answers for other
/// processes when they touch memory (userfaultfd(2)) or call the kernel (`seccomp_unotify(2)`).
fn is_device(path: &[u8]) -> bool {
    const DEVICES: [&[u8]; 10] = [
        b"/dev/fuse",
        b"/dev/cuse",
        b"/dev/net/tun",
        b"/dev/ppp",
        b"/dev/snd/seq",
        b"/dev/ublk-control",
        b"/dev/uhid",
        b"/dev/uinput",
        b"anon_inode:[userfaultfd]",
        b"anon_inode:seccomp notify",
    ];
    const FAMILIES: [&[u8]; 7] = [
        b"/dev/hidg",
        b"/dev/nbd",
        b"/dev/tap",
        b"/dev/ublkc",
        b"/dev/vduse/",
        b"/dev/vhost-",
        b"/dev/watchdog",
    ];
    // What is in a folder of that name is another file, of somebody whose projects are in `~/dev`.
    let is_of = |family: &&[u8]| path.strip_prefix(*family).is_some_and(|number| !number.contains(&b'/'));
    DEVICES.contains(&path) || FAMILIES.iter().any(is_of)
}

/// The path of a device from its folder `/dev` on. What is in a chroot(2) has a `/dev` of its own, and we see the path from
/// our own root.
pub(super) fn device(path: &[u8]) -> &[u8] {
    const FOLDER: &[u8] = b"/dev/";
    let begins = path.windows(FOLDER.len()).rposition(|part| part == FOLDER);
    begins.and_then(|at| path.get(at..)).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_one_in_a_chroot_too() {
        for path in [&b"/dev/fuse"[..], b"/srv/jail/dev/fuse", b"/dev/shm/jail/dev/fuse"] {
            assert!(is_device(device(path)));
        }
        assert_eq!(device(b"/srv/jail/dev/pts/ptmx"), b"/dev/pts/ptmx");
        for path in [&b"/srv/fuse"[..], b"/srv/dev/null", b"/home/x/dev/watchdog/log", b"/home/x/dev/tapes/1"]
        {
            assert!(!is_device(device(path)));
        }
    }
}
