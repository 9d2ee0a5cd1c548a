//! The memory that a process shares with others, from `/proc/PID/maps`.

use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    ops::Range,
};

use rustix::{
    fs::{Mode, OFlags, openat},
    io::Errno,
};

use super::ProcessDir;

/// How much of `maps` is read at once. The whole has no bound that a user could not reach: a process may have a million
/// mappings (`vm.max_map_count`), with names of 4 KiB each.
const CHUNK: usize = 64 * 1024;

/// Memory that a process shares with whoever maps the same file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedMemory {
    pub addresses: Range<u64>,
    /// The file: its device, as the kernel writes it, and its inode number.
    pub file: (String, u64),
    /// Whether the file has a name that others may know, and open it by.
    pub is_named: bool,
}

impl ProcessDir {
    /// The memory that it shares and that is wanted, at most so much. An error if not all of it could be read.
    pub fn shared_memory(
        &self,
        is_wanted: impl Fn(&SharedMemory) -> bool,
        most: usize,
    ) -> Result<Vec<SharedMemory>, Errno> {
        let _at = self.at()?;
        let file = openat(self.body(), "maps", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let lines = BufReader::with_capacity(CHUNK, File::from(file)).split(b'\n');
        let wanted = lines.map(|line| Ok(shared(&line?).filter(&is_wanted))).filter_map(Result::transpose);
        let all: std::io::Result<Vec<SharedMemory>> = wanted.take(most).collect();
        all.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

/// Parses a line `FROM-TO PERMISSIONS OFFSET DEVICE INODE PATH`. `None` if the memory is not shared.
fn shared(line: &[u8]) -> Option<SharedMemory> {
    // Most lines are of private memory: nothing else is read of them.
    let permissions = line.splitn(3, |byte| *byte == b' ').nth(1)?;
    if !permissions.ends_with(b"s") {
        return None;
    }
    let text = String::from_utf8_lossy(line);
    let mut fields = text.split_ascii_whitespace();
    let (from, to) = fields.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let addresses = number(from)?..number(to)?;
    let (device, inode) = (fields.nth(2)?, fields.next()?.parse().ok()?);
    let path = fields.next().unwrap_or_default();
    // Memory of System V has its own number in place of the inode's, on the device of all other memory without a file.
    let device = if path.starts_with("/SYSV") { format!("{device} SYSV") } else { device.to_owned() };
    let is_named = !path.is_empty() && !is_made_up(path) && !text.ends_with(" (deleted)");
    Some(SharedMemory { addresses, file: (device, inode), is_named })
}

/// Whether Python's `multiprocessing`, or joblib's, made this name up for a semaphore. It tells the name to the workers that
/// it starts (`spawn`, `forkserver`), and they have the semaphore open from their start.
fn is_made_up(path: &str) -> bool {
    ["/dev/shm/sem.mp-", "/dev/shm/sem.loky-"].iter().any(|begin| path.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Proc;

    #[test]
    fn only_shared_memory_is_told() {
        let line = b"7f10-7f20 rw-s 00000000 00:01 2057                       /dev/zero (deleted)";
        let found = shared(line).unwrap();
        assert_eq!(
            (found.addresses, found.file, found.is_named),
            (0x7f10..0x7f20, ("00:01".to_owned(), 2057), false)
        );
        let line = b"7f10-7f20 rw-s 00000000 00:01 2057                       /SYSV00000000 (deleted)";
        assert_ne!(shared(line).unwrap().file, ("00:01".to_owned(), 2057));
        let line = b"7f10-7f20 rw-s 00000000 00:1b 7      /dev/shm/sem.with a name";
        assert!(shared(line).unwrap().is_named);
        let line = b"7f10-7f20 rw-s 00000000 00:1b 7      /dev/shm/sem.mp-k3x_9ab1";
        assert!(!shared(line).unwrap().is_named);
        for other in
            [&b"7f10-7f20 rw-p 00000000 00:00 0 "[..], b"7f10-7f20 r--p 00000000 08:01 7 /bin/sh", b"", b"x"]
        {
            assert_eq!(shared(other), None);
        }
        assert!(
            Proc::system().unwrap().process(std::process::id()).unwrap().shared_memory(|_| true, 1).is_ok()
        );
    }
}
