//! The fields of `/proc/PID/stat` that orphand needs. Pure.

use std::str::SplitAsciiWhitespace;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The state of the leading thread, a letter: `R`, `S`, `D`, `T`, `Z`, ...
    pub state: u8,
    /// The parent's pid: the creator or the process that adopted it; 0 for none.
    pub ppid: u32,
    pub group: u32,
    pub sid: u32,
    /// The number of its controlling terminal; 0 for none.
    pub tty: u32,
    pub flags: u64,
    /// Its CPU time in clock ticks, that of threads that have ended included.
    pub cpu: u64,
    /// The number of threads. An exited leader counts until it is waited for.
    pub threads: u32,
    /// The start time in clock ticks since boot.
    pub start: u64,
}

/// The major number of the terminals of devpts, whose minor numbers are their names.
pub(super) const UNIX98_PTY_SLAVE_MAJOR: u32 = 136;
/// Marks a kernel thread, include/linux/sched.h.
const PF_KTHREAD: u64 = 0x0020_0000;
/// Set at the beginning of `do_exit()`, before the process releases its files.
const PF_EXITING: u64 = 0x0000_0004;

impl Stat {
    /// Parses the single line of the file. `None` if it is malformed.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = fields(line)?;
        let state = *fields.next()?.as_bytes().first()?;
        let ppid = number_or_zero(fields.next()?)?;
        let (group, sid) = (number_or_zero(fields.next()?)?, number_or_zero(fields.next()?)?);
        // The kernel writes a signed number.
        let tty = u32::try_from(fields.next()?.parse::<i64>().ok()? & i64::from(u32::MAX)).ok()?;
        let flags = fields.nth(9 - 8)?.parse().ok()?;
        let (user, system): (u64, u64) = (fields.nth(14 - 10)?.parse().ok()?, fields.next()?.parse().ok()?);
        let threads = fields.nth(20 - 16)?.parse().ok()?;
        let start = fields.nth(22 - 21)?.parse().ok()?;
        Some(Self { state, ppid, group, sid, tty, flags, cpu: user.saturating_add(system), threads, start })
    }

    /// Its controlling terminal, if that is a pseudo terminal: the number in `/dev/pts`.
    pub const fn terminal(&self) -> Option<u32> {
        // The numbers as `new_encode_dev()` writes them, include/linux/kdev_t.h.
        let major = (self.tty >> 8) & 0xfff;
        let minor = (self.tty & 0xff) | ((self.tty >> 12) & 0xf_ff00);
        if major == UNIX98_PTY_SLAVE_MAJOR { Some(minor) } else { None }
    }

    /// The name of its controlling terminal below `/dev`, if that is a pseudo terminal or a console.
    pub fn terminal_name(&self) -> Option<String> {
        const TTY_MAJOR: u32 = 4;
        // Consoles are counted from 1 to 63 (`MAX_NR_CONSOLES`); above them are serial lines.
        let console = (self.tty & 0xff).clamp(1, 63);
        let is_console = self.tty == TTY_MAJOR << 8 | console;
        let pseudo = self.terminal().map(|number| format!("pts/{number}"));
        pseudo.or_else(|| is_console.then(|| format!("tty{console}")))
    }

    pub const fn is_kernel_thread(&self) -> bool {
        self.flags & PF_KTHREAD != 0
    }

    /// Whether the last of its threads has begun to exit. It uses nothing any more, but its files may stay
    /// open for a moment.
    pub const fn has_begun_to_exit(&self) -> bool {
        !self.is_alive() || (self.flags & PF_EXITING != 0 && self.threads <= 1)
    }

    /// For the `stat` of a thread: whether the thread has begun to exit. Its exit may already have been reported.
    pub const fn thread_exits(&self) -> bool {
        self.leader_exited() || self.flags & PF_EXITING != 0
    }

    /// Whether it is stopped, by SIGSTOP (`T`) or by a tracer (`t`).
    pub const fn is_stopped(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }

    /// Whether its leading thread has exited. The process may live on in its other threads.
    pub const fn leader_exited(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// Whether the process is alive. A zombie has one thread left, the leader. A process whose leader
    /// called `pthread_exit(3)` shows the same state but has more threads (`get_nr_threads()` in
    /// fs/proc/array.c).
    pub const fn is_alive(&self) -> bool {
        !self.leader_exited() || self.threads > 1
    }
}

/// The fields after the name. They are numbered as in the manual page: the first of these is field 3.
pub(super) fn fields(line: &[u8]) -> Option<SplitAsciiWhitespace<'_>> {
    // The process chooses the name between the parentheses. It may contain anything, even `) R 1`.
    let name_end = line.iter().rposition(|&b| b == b')')?;
    Some(std::str::from_utf8(line.get(name_end + 1..)?).ok()?.split_ascii_whitespace())
}

/// A pid. The kernel writes -1 where it finds none: for a process that is released while its line is written
/// (`do_task_stat()` in fs/proc/array.c).
fn number_or_zero(field: &str) -> Option<u32> {
    field.parse::<i64>().ok()?.max(0).try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_being_released_has_ended() {
        let line = b"7 (sh) X 0 -1 -1 0 -1 4228108 0 0 0 0 0 0 0 0 20 0 0 0 229468 0 0\n";
        assert!(!Stat::parse(line).unwrap().is_alive());
    }

    #[test]
    fn a_terminal_is_told_by_its_number() {
        for (tty, expected) in
            [("34816", Some(0)), ("34823", Some(7)), ("1083454", Some(318)), ("0", None), ("1025", None)]
        {
            let line = format!("7 (sh) S 1 7 7 {tty} -1 4228108 0 0 0 0 0 0 0 0 20 0 1 0 229468 0 0\n");
            assert_eq!(Stat::parse(line.as_bytes()).unwrap().terminal(), expected, "{tty}");
        }
    }

    const LINE: &str =
        "4242 (name) S 17 4242 4200 0 -1 4194304 101 0 0 0 1 2 3 4 20 0 5 0 229468 9 9 9 9 9 9 9\n";

    #[test]
    fn fields_are_those_of_the_manual_page() {
        let stat = Stat::parse(LINE.as_bytes()).unwrap();
        assert_eq!(
            stat,
            Stat {
                state: b'S',
                ppid: 17,
                group: 4242,
                sid: 4200,
                tty: 0,
                flags: 4_194_304,
                cpu: 3,
                threads: 5,
                start: 229_468
            }
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
        let stat = |flags, threads| Stat {
            state: b'R',
            ppid: 1,
            group: 1,
            sid: 1,
            tty: 0,
            flags,
            cpu: 0,
            threads,
            start: 1,
        };
        assert!(stat(PF_EXITING, 1).has_begun_to_exit());
        // The process does not exit while another thread goes on.
        assert!(!stat(PF_EXITING, 2).has_begun_to_exit());
        assert!(!stat(0, 1).has_begun_to_exit());
    }

    #[test]
    fn a_dead_leader_is_no_dead_process() {
        let stat = |state, threads| Stat {
            state,
            ppid: 1,
            group: 1,
            sid: 1,
            tty: 0,
            flags: 0,
            cpu: 0,
            threads,
            start: 1,
        };
        assert!(stat(b'Z', 2).is_alive());
        assert!(!stat(b'Z', 1).is_alive());
        assert!(stat(b'T', 1).is_alive());
    }
}
