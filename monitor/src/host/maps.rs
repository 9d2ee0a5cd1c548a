//! The memory that a process shares with others, from `/proc/PID/maps`.

use std::ops::Range;

use rustix::{
    fs::{Mode, OFlags, openat},
    io::Errno,
};

use super::{ProcessDir, next_apart};

/// How much of `maps` is read at once. A line that neither one nor the next of these ends is not read.
const CHUNK: usize = 64 * 1024;
/// How much of `maps` is read in all: ten times what 65,530 mappings take, the most of a process where nobody allows more
/// (`vm.max_map_count`).
const MOST: usize = 64 * 1024 * 1024;

/// No device.
const SYSTEM_V: u32 = u32::MAX;

/// Memory that a process shares with whoever maps the same file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedMemory {
    pub addresses: Range<u64>,
    /// The file: its device, as the kernel has it (`super_block::s_dev`), and its inode number.
    pub file: (u32, u64),
    /// Whether it has a name or a number that others may know, and map it by.
    pub is_named: bool,
}

impl ProcessDir {
    /// The memory that it shares and that is wanted, at most so much. An error if not all of it could be read.
    pub fn shared_memory(
        &self,
        is_wanted: impl Fn(&SharedMemory) -> bool,
        most: usize,
    ) -> Result<Vec<SharedMemory>, Errno> {
        let file = {
            let _at = self.at()?;
            openat(self.body(), "maps", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?
        };
        let (mut found, mut rest) = (Vec::new(), Vec::new());
        for _ in 0..MOST / CHUNK {
            // What it has cost so far may be more than anybody has for this process, or its user.
            drop(self.at()?);
            let text = next_apart(self.id().pid, &file, CHUNK)?;
            let more = text.len() > CHUNK;
            rest.extend(text);
            let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let lines = rest.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n');
            found.extend(lines.filter_map(shared).filter(&is_wanted));
            rest.drain(..whole);
            if !more || found.len() >= most {
                found.truncate(most);
                return Ok(found);
            }
            if rest.len() > CHUNK {
                break;
            }
        }
        Err(Errno::OVERFLOW)
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
    let (major, minor) = fields.nth(2)?.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    let (device, inode) = (number(major)? << 20 | number(minor)?, fields.next()?.parse().ok()?);
    let path = fields.next().unwrap_or_default();
    // Memory of System V has its own number in place of the inode's, on the device of all other memory without a file. Whoever
    // knows that number, or its key, may attach it (shmat(2)).
    let is_system_v = path.starts_with("/SYSV");
    let device = if is_system_v { SYSTEM_V } else { device };
    let is_named = !path.is_empty() && !is_made_up(path) && !text.ends_with(" (deleted)");
    Some(SharedMemory { addresses, file: (device, inode), is_named: is_named || is_system_v })
}

/// Whether Python's `multiprocessing`, or joblib's, made this name up for a semaphore. It tells the name to the workers that
/// it starts (`spawn`, `forkserver`), and they have the semaphore open from their start.
fn is_made_up(path: &str) -> bool {
    ["/dev/shm/sem.mp-", "/dev/shm/sem.loky-"].iter().any(|begin| path.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use std::{
        io::Read as _,
        process::{Command, Stdio},
    };

    use super::*;
    use crate::host::Proc;

    #[test]
    fn only_shared_memory_is_told() {
        let line = b"7f10-7f20 rw-s 00000000 00:01 2057                       /dev/zero (deleted)";
        let found = shared(line).unwrap();
        assert_eq!((found.addresses, found.file, found.is_named), (0x7f10..0x7f20, (1, 2057), false));
        let line = b"7f10-7f20 rw-s 00000000 fe:01 7                          /a/file (deleted)";
        assert_eq!(shared(line).unwrap().file, (0xfe << 20 | 1, 7));
        let line = b"7f10-7f20 rw-s 00000000 00:01 2057                       /SYSV00000000 (deleted)";
        let found = shared(line).unwrap();
        assert!(found.file != (1, 2057) && found.is_named, "whoever knows its number may attach it");
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

    /// A path of any length is one record of the kernel's: it is not waited for.
    #[test]
    fn a_path_without_end_is_unreadable() {
        const MAPS: &str = "import mmap, os
for n in range(700):
    os.mkdir('d' * 250); os.chdir('d' * 250)
file = os.open('f', os.O_CREAT | os.O_RDWR)
os.ftruncate(file, 4096)
memory = mmap.mmap(file, 4096)
print(flush=True)
input()";
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("python3");
        command.args(["-c", MAPS]).current_dir(dir.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let process = Proc::system().unwrap().process(child.id()).unwrap();
        assert_eq!(process.shared_memory(|_| true, usize::MAX), Err(Errno::OVERFLOW));
        drop(child.stdin.take());
        child.wait().unwrap();
        Command::new("rm").arg("-rf").arg(dir.path()).status().unwrap();
    }
}
