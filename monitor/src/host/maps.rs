//! The memory that a process shares with others, from `/proc/PID/maps`.

use std::ops::Range;

use rustix::io::Errno;

use super::ProcessDir;

/// Bytes of `maps` that are read. A process may have 65,530 mappings (`DEFAULT_MAX_MAP_COUNT`).
const MAPS_MAX: usize = 16 * 1024 * 1024;

/// Memory that a process shares with whoever maps the same file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedMemory {
    pub addresses: Range<u64>,
    /// The file: its device, as the kernel writes it, and its inode number.
    pub file: (String, u64),
    /// Whether the file has a name, so that others may open it.
    pub is_named: bool,
}

impl ProcessDir {
    /// The memory that it shares. An error if not all of it could be read.
    pub fn shared_memory(&self) -> Result<Vec<SharedMemory>, Errno> {
        let (text, more) = self.file("maps", MAPS_MAX)?;
        if more {
            return Err(Errno::FBIG);
        }
        Ok(text.split(|byte| *byte == b'\n').filter_map(shared).collect())
    }
}

/// Parses a line `FROM-TO PERMISSIONS OFFSET DEVICE INODE PATH`. `None` if the memory is not shared.
fn shared(line: &[u8]) -> Option<SharedMemory> {
    let text = String::from_utf8_lossy(line);
    let mut fields = text.split_ascii_whitespace();
    let (from, to) = fields.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let addresses = number(from)?..number(to)?;
    if !fields.next()?.ends_with('s') {
        return None;
    }
    let (device, inode) = (fields.nth(1)?.to_owned(), fields.next()?.parse().ok()?);
    let is_named = fields.next().is_some() && !text.ends_with(" (deleted)");
    Some(SharedMemory { addresses, file: (device, inode), is_named })
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
        let line = b"7f10-7f20 rw-s 00000000 00:1b 7      /dev/shm/sem.with a name";
        assert!(shared(line).unwrap().is_named);
        for other in
            [&b"7f10-7f20 rw-p 00000000 00:00 0 "[..], b"7f10-7f20 r--p 00000000 08:01 7 /bin/sh", b"", b"x"]
        {
            assert_eq!(shared(other), None);
        }
        assert!(Proc::system().unwrap().process(std::process::id()).unwrap().shared_memory().is_ok());
    }
}
