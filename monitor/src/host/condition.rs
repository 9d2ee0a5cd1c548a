//! What a process is engaged in that its descriptors do not show: where its threads sleep, whether it ignores SIGHUP,
//! which PID namespace it lives in, and what its `io_uring` instances keep.

use rustix::io::Errno;

use super::{ProcessDir, Target, fields, link, read};

/// Bytes of the fdinfo of an `io_uring` that are read.
const RING_MAX: usize = 256 * 1024;

impl ProcessDir {
    /// Whether it ignores SIGHUP: the lowest bit of `SigIgn`.
    pub fn ignores_hangup(&self) -> Result<bool, Errno> {
        let _at = self.at()?;
        let (status, _) = read(self.body(), "status", 4096)?;
        let mask = fields::words(&status, "SigIgn").and_then(|mut words| words.next());
        mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).map(|mask| mask & 1 != 0).ok_or(Errno::INVAL)
    }

    /// The function of the kernel in which a thread sleeps (`wchan`); empty if that is not told.
    pub fn sleeps_in(&self, tid: u32) -> Result<Vec<u8>, Errno> {
        let _at = self.at()?;
        Ok(read(self.body(), &format!("task/{tid}/wchan"), 256)?.0)
    }

    /// The name of its PID namespace, `pid:[NUMBER]`.
    pub fn pid_namespace_name(&self) -> Result<Vec<u8>, Errno> {
        let _at = self.at()?;
        link(self.body(), "ns/pid")
    }

    /// The inode numbers of the sockets that are registered with its `io_uring` on this descriptor, as its fdinfo
    /// lists them.
    pub fn sockets_of_ring(&self, number: u32) -> Vec<u64> {
        let Ok(_at) = self.at() else { return Vec::new() };
        let Ok((text, _)) = read(self.body(), &format!("fdinfo/{number}"), RING_MAX) else {
            return Vec::new();
        };
        let words = text.split(u8::is_ascii_whitespace);
        words
            .filter_map(|word| match Target::parse(word) {
                Target::Socket(inode) => Some(inode),
                _ => None,
            })
            .collect()
    }
}
