//! `/proc/PID/stat`, the fields orphand needs. Pure.

/// Some fields of `/proc/PID/stat`, `proc_pid_stat(5)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The state of the leading thread, a letter: `R`, `S`, `D`, `T`, `Z`, ...
    pub state: u8,
    /// The parent, creator or adopter; 0 for none.
    pub ppid: u32,
    /// The session id.
    pub sid: u32,
    /// The kernel's `PF_*` flags.
    pub flags: u64,
    /// Threads, an exited leader that was not yet waited for included.
    pub threads: u32,
    /// Birth in clock ticks since boot.
    pub start: u64,
}

/// include/linux/sched.h
const PF_KTHREAD: u64 = 0x0020_0000;
/// Set at the beginning of `do_exit()`, before the process lets go of its files.
const PF_EXITING: u64 = 0x0000_0004;

impl Stat {
    /// Reads the file's one line. `None` where it is none.
    pub fn parse(line: &[u8]) -> Option<Self> {
        // The name between the parentheses is the process' own choice and may contain anything, `) R 1` too.
        let name_end = line.iter().rposition(|&b| b == b')')?;
        let rest = std::str::from_utf8(line.get(name_end + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        // The numbers are those of the manual page; after the name comes field 3.
        let state = *fields.next()?.as_bytes().first()?;
        let ppid = fields.next()?.parse().ok()?;
        let sid = fields.nth(6 - 5)?.parse().ok()?;
        let flags = fields.nth(9 - 7)?.parse().ok()?;
        let threads = fields.nth(20 - 10)?.parse().ok()?;
        let start = fields.nth(22 - 21)?.parse().ok()?;
        Some(Self { state, ppid, sid, flags, threads, start })
    }

    /// Whether it is a thread of the kernel.
    pub const fn is_kernel_thread(&self) -> bool {
        self.flags & PF_KTHREAD != 0
    }

    /// Whether the last of its threads has begun to exit: it uses nothing any more, although its files may be open for a moment.
    pub const fn has_begun_to_exit(&self) -> bool {
        !self.is_alive() || (self.flags & PF_EXITING != 0 && self.threads <= 1)
    }

    /// Whether its leading thread has exited (the process may live on in its other threads).
    pub const fn leader_exited(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// Whether the process lives: a zombie has one thread left, the leader; a process whose leader called
    /// `pthread_exit(3)` looks like one but has more (`get_nr_threads()` in fs/proc/array.c).
    pub const fn is_alive(&self) -> bool {
        !self.leader_exited() || self.threads > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        "4242 (name) S 17 4242 4200 0 -1 4194304 101 0 0 0 1 2 3 4 20 0 5 0 229468 9 9 9 9 9 9 9\n";

    #[test]
    fn fields_are_those_of_the_manual_page() {
        let stat = Stat::parse(LINE.as_bytes()).unwrap();
        assert_eq!(
            stat,
            Stat { state: b'S', ppid: 17, sid: 4200, flags: 4_194_304, threads: 5, start: 229_468 }
        );
    }

    #[test]
    fn the_name_cannot_forge_fields() {
        let mut line = b"4242 (\xff) R 1 1 1 (\n".to_vec();
        line.extend_from_slice(LINE.split_once("name").unwrap().1.as_bytes());
        assert_eq!(Stat::parse(&line), Stat::parse(LINE.as_bytes()));
    }

    #[test]
    fn a_short_line_is_no_stat() {
        assert_eq!(Stat::parse(b"4242 (name) S 17 4242 4200 0 -1 4194304"), None);
        assert_eq!(Stat::parse(b""), None);
    }

    #[test]
    fn the_last_thread_begins_to_exit() {
        let stat = |flags, threads| Stat { state: b'R', ppid: 1, sid: 1, flags, threads, start: 1 };
        assert!(stat(PF_EXITING, 1).has_begun_to_exit());
        // One that exits while the others go on is no process that does.
        assert!(!stat(PF_EXITING, 2).has_begun_to_exit());
        assert!(!stat(0, 1).has_begun_to_exit());
    }

    #[test]
    fn a_dead_leader_is_no_dead_process() {
        let stat = |state, threads| Stat { state, ppid: 1, sid: 1, flags: 0, threads, start: 1 };
        assert!(stat(b'Z', 2).is_alive());
        assert!(!stat(b'Z', 1).is_alive());
        assert!(stat(b'T', 1).is_alive());
    }
}
