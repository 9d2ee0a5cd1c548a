//! What a process is engaged in that its descriptors do not show: where its threads sleep, whether it ignores SIGHUP,
//! who its children are.

use nix::libc;
use rustix::io::Errno;

use super::{ProcessDir, cgroup::is_frozen, fields, stat::Stat};

/// Bytes of a list of children that are read.
const CHILDREN_MAX: usize = 64 * 1024;

/// What a process does with signals, as its `status` says: one bit for each.
#[derive(Clone, Copy, Debug)]
pub struct Signals {
    ignored: u64,
    caught: u64,
    blocked: u64,
}

impl Signals {
    pub const fn ignores(self, signal: i32) -> bool {
        self.ignored & bit(signal) != 0
    }

    /// Whether it has a handler for this signal.
    pub const fn catches(self, signal: i32) -> bool {
        self.caught & bit(signal) != 0
    }

    /// Whether it may go on when this signal comes: by a handler, or because it takes it itself (signalfd(2)). What it takes
    /// in sigwait(3) does not show as long as it waits there.
    pub const fn hears(self, signal: i32) -> bool {
        (self.caught | self.blocked) & bit(signal) != 0
    }
}

const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

impl ProcessDir {
    /// The numbers of the children of its threads; an error where that is not all: not every kernel has them
    /// (`CONFIG_PROC_CHILDREN`), and nobody has thousands.
    pub fn children(&self) -> Result<Vec<u32>, Errno> {
        let mut found = Vec::new();
        for tid in self.threads()? {
            let (text, more) = match self.file_of_all(&format!("task/{tid}/children"), CHILDREN_MAX) {
                // The thread has ended.
                Err(Errno::NOENT | Errno::SRCH) if self.tracer(tid) == Ok(None) => continue,
                text => text?,
            };
            if more {
                return Err(Errno::OVERFLOW);
            }
            let text = String::from_utf8_lossy(&text);
            found.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        Ok(found)
    }

    pub fn signals(&self) -> Result<Signals, Errno> {
        let status = self.whole_status()?;
        let mask = |name: &str| {
            let word = fields::words(&status, name).and_then(|mut words| words.next());
            word.and_then(|mask| u64::from_str_radix(mask, 16).ok()).ok_or(Errno::INVAL)
        };
        Ok(Signals { ignored: mask("SigIgn")?, caught: mask("SigCgt")?, blocked: mask("SigBlk")? })
    }

    /// Whether it is kept from running: stopped by SIGSTOP or a debugger, or frozen with its control group (`docker pause`,
    /// `systemctl freeze`). It can do nothing, and goes on some day. A frozen process shows as asleep in the system call that
    /// it was in. The freezer of cgroup version 1 leaves many a one where it sleeps, and shows it like one that waits for a disk.
    pub fn is_held(&self) -> Result<bool, Errno> {
        Ok(self.stat().is_stopped()
            || FREEZERS.contains(&&*place(self.file("wchan", 64))?)
            || self.stat().state == b'D' && is_frozen(&self.cgroup()?))
    }

    /// The system call in which a thread sleeps. `None` if it runs, is stopped or frozen, or sleeps elsewhere.
    pub fn sleeps_in(&self, tid: u32) -> Result<Option<SystemCall>, Errno> {
        let (stat, _) = self.file_of_all(&format!("task/{tid}/stat"), 4096)?;
        let (text, _) = self.file_of_all(&format!("task/{tid}/syscall"), 256)?;
        let place = place(self.file_of_all(&format!("task/{tid}/wchan"), 64))?;
        let sleeps =
            Stat::parse(&stat).is_some_and(|stat| stat.state == b'S') && !FREEZERS.contains(&&*place);
        let opens_fifo = FIFOS.contains(&&*place);
        Ok(SystemCall::parse(&text).filter(|_| sleeps).map(|call| SystemCall { opens_fifo, ..call }))
    }

    /// Whether it has set a timer of its own (`timer_create(2)`), which will wake it.
    pub fn has_timers(&self) -> Result<bool, Errno> {
        match self.file_of_all("timers", 64) {
            Ok((text, _)) => Ok(!text.is_empty()),
            // This kernel does not tell.
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno),
        }
    }
}

/// Where a frozen thread sleeps (kernel/signal.c, where the compiler may put `do_freezer_trap()` into `get_signal()`, and
/// kernel/freezer.c). Whoever is stopped sleeps in `get_signal()`, too, and nobody else does.
const FREEZERS: [&[u8]; 3] = [b"do_freezer_trap", b"get_signal", b"__refrigerator"];

/// Where a thread waits in open(2) for somebody to open the other end of a FIFO (fs/pipe.c, where the compiler may put the
/// first into the second).
const FIFOS: [&[u8]; 2] = [b"wait_for_partner", b"fifo_open"];

/// The function of the kernel in which a thread sleeps, from its `wchan`.
fn place(wchan: Result<(Vec<u8>, bool), Errno>) -> Result<Vec<u8>, Errno> {
    // A kernel without this file must not look like one whose threads have all ended.
    let (place, _) = wchan.map_err(|why| if why == Errno::NOENT { Errno::NOSYS } else { why })?;
    Ok(place)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemCall {
    pub number: i64,
    /// Its arguments. Of those that it does not have, the values mean nothing.
    pub arguments: [u64; 6],
    /// Whether it waits for somebody to open the other end of a FIFO.
    pub opens_fifo: bool,
}

impl SystemCall {
    /// Parses `/proc/PID/syscall`: the number, six arguments, the stack pointer and the program counter.
    fn parse(text: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
        let number = words.next()?.parse().ok().filter(|number| *number >= 0)?;
        let mut value = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            *argument = value()?;
        }
        // A program of 64 bits may have the stack of a thread that low.
        let (stack, instruction) = (value()?, value()?);
        let is_low = [stack, instruction].iter().all(|address| u32::try_from(*address).is_ok());
        let call = Self { number, arguments, opens_fifo: false };
        Some(if is_low { call.of_32_bits() } else { call })
    }

    /// A call of a program of 32 bits, which has another number there. Those that nobody asks about get none.
    #[cfg(target_arch = "x86_64")]
    fn of_32_bits(self) -> Self {
        let Self { number, mut arguments, .. } = self;
        let number = match (number, arguments[0]) {
            (3, _) => libc::SYS_read,
            (240 | 422, _) => libc::SYS_futex,
            (401, _) => libc::SYS_msgrcv,
            (420, _) => libc::SYS_semtimedop,
            // From 403 on the numbers are the same.
            (libc::SYS_futex_waitv.., _) => number,
            // ipc(2): which call it is, then the arguments of that.
            (117, call @ (1 | 4 | 11 | 12)) => {
                arguments.rotate_left(1);
                if call <= 4 { libc::SYS_semop } else { libc::SYS_msgrcv }
            }
            _ => -1,
        };
        Self { number, arguments, ..self }
    }

    #[cfg(not(target_arch = "x86_64"))]
    const fn of_32_bits(self) -> Self {
        Self { number: -1, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_thread_sleeps_is_parsed() {
        let parse = |text: &str| SystemCall::parse(text.as_bytes());
        let line = "0 0x3 0x7fbd9edb2000 0x20000 0x0 0xffffffff 0x0 0x7fffb87c4178 0x7fbd9ef2d2ad\n";
        let call = parse(line).unwrap();
        assert_eq!((call.number, call.arguments[0], call.arguments[4]), (0, 3, 0xffff_ffff));
        for other in ["running\n", "-1 0x7fffb87c4178 0x7fbd9ef2d2ad\n", "", "0 0x3\n"] {
            assert_eq!(parse(other), None, "{other}");
        }
        // Of a program of 32 bits: exit_group, and msgrcv by way of ipc(2).
        let number = |text: &str| parse(text).map(|call| (call.number, call.arguments[0]));
        assert_eq!(number("252 0x5 0x0 0x0 0x0 0x0 0x0 0xffc4178 0x8048000\n"), Some((-1, 5)));
        // Of one of 64 bits whose thread has a low stack.
        assert_eq!(number("0 0x3 0x1 0x1 0x0 0x0 0x0 0xffc4178 0x7fbd9ef2d2ad\n"), Some((0, 3)));
        #[cfg(target_arch = "x86_64")]
        assert_eq!(number("117 0xc 0x7 0x0 0x0 0x0 0x0 0xffc4178 0x8048000\n"), Some((libc::SYS_msgrcv, 7)));
    }
}
