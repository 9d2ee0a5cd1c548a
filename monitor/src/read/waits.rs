//! What the threads of a process wait for: of a server, what others may wake it at; of a forked copy, all. Only what is known to bring nothing by itself is accepted; everything
//! else may make the copy go on.
//!
//! A thread waits for a pipe, a connection, another thread or a signal, without a time limit: only another process can wake
//! it, and who could is asked elsewhere. What comes through any other socket (an answer over UDP, a message of the kernel)
//! comes by itself, and so do some signals, which end any wait. A thread that sleeps for a time, waits for a lock of a file, in
//! open(2), in sigwait(3), at a terminal or a queue, that runs, or that is stopped (by SIGSTOP or a debugger), may go on at any
//! time.

use std::{collections::BTreeSet, os::fd::OwnedFd};

use nix::libc;
use rustix::{
    io::Errno,
    net::{
        AddressFamily, SocketType, getpeername,
        sockopt::{Timeout, socket_acceptconn, socket_domain, socket_timeout, socket_type},
    },
};

use super::{descriptors::device, pipe::duplicate_any};
use crate::host::{Fd, FdTable, Proc, ProcessDir, SharedMemory, SystemCall, Target};
use orphand_core::model::{BootTime, Stdio, scene::Called};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wait {
    /// Input on this descriptor.
    Input(u64),
    /// Any of some descriptors, without a time limit.
    Several,
    /// What is registered with the epoll(7) instance on this descriptor, without a time limit.
    Watched(u64),
    /// Another thread, a child or a handler, without a time limit.
    Wake,
    /// Anything else, or for a time.
    Other,
}

/// The system call in which each thread of the process sleeps; `None` for one that runs, or is stopped.
pub(super) fn calls(dir: &ProcessDir) -> Result<Vec<Option<SystemCall>>, Errno> {
    let threads = dir.threads()?.into_iter().map(|tid| dir.sleeps_in(tid));
    // A thread that is gone has ended.
    threads.filter(|call| !matches!(call, Err(Errno::NOENT | Errno::SRCH))).collect()
}

/// Whether all threads of the process wait, and only for pipes, sockets, each other and signals.
pub(super) fn for_nothing_else(dir: &ProcessDir, table: &FdTable, calls: &[Option<SystemCall>]) -> bool {
    // Whoever waits for more than one: all descriptors of the process are asked about, once.
    let several = |wait| if let Wait::Watched(_) = wait { Wait::Several } else { wait };
    let waits: BTreeSet<Wait> = waits(calls).map(several).collect();
    calls.iter().all(Option::is_some)
        && waits.into_iter().all(|wait| is_covered(dir, table, wait))
        && dir.has_timers() == Ok(false)
        && dir.signals().is_ok_and(|signals| !BY_THE_KERNEL.iter().any(|signal| signals.hears(*signal)))
}

/// The signals that the kernel was told to send some day, which shows nowhere: alarm(2) and setitimer(2); fcntl(2) about a folder,
/// a lease or what comes in. Timers of processor time do not run while a process rests, and those of `timer_create(2)` show.
const BY_THE_KERNEL: [i32; 2] = [libc::SIGALRM, libc::SIGIO];

/// What the threads wait for, each wait once: a thousand may wait for the same.
fn waits(calls: &[Option<SystemCall>]) -> impl Iterator<Item = Wait> {
    calls.iter().flatten().map(wait).collect::<BTreeSet<_>>().into_iter()
}

/// The pipes and sockets that these wait to read. Those of poll(2) are not told; but who waits there has a reference to each.
pub(super) fn inputs(dir: &ProcessDir, calls: &[Option<SystemCall>]) -> Result<Vec<Stdio>, Errno> {
    let (fds, mut numbers) = (dir.fd_dir()?, BTreeSet::new());
    for wait in waits(calls) {
        match wait {
            Wait::Input(number) => numbers.extend([id(number)]),
            Wait::Watched(number) => numbers.extend(fds.watched(id(number))?),
            Wait::Several | Wait::Wake | Wait::Other => {}
        }
    }
    Ok(numbers.into_iter().map(|number| fds.stdio(number)).filter(|input| input.is_wire()).collect())
}

/// Whether the first thread waits for a child, and whether another one does; some shells wait for its signal, for which they have
/// a handler (a program in Swift leaves its first thread in sigsuspend(2) for ever). And for which one alone, or for which group,
/// the first does. In a program in Go the first thread is one like any other: it runs whatever comes next.
pub(super) fn await_a_child(
    proc: &Proc,
    dir: &ProcessDir,
    calls: &[Option<SystemCall>],
) -> Result<([bool; 2], Option<i32>), Errno> {
    const WAITS: [i64; 3] = [libc::SYS_wait4, libc::SYS_waitid, libc::SYS_rt_sigsuspend];
    const P_PID: u64 = 1;
    const P_PGID: u64 = 2;
    const P_PIDFD: u64 = 3;
    let may_wait = |call: &Option<SystemCall>| call.is_some_and(|call| WAITS.contains(&call.number));
    if !calls.iter().any(may_wait) {
        return Ok(([false; 2], None));
    }
    let signals = dir.signals()?;
    let is_told = |call: SystemCall| call.number != libc::SYS_rt_sigsuspend || signals.catches(libc::SIGCHLD);
    let waits = |call: &Option<SystemCall>| may_wait(call) && call.is_some_and(is_told);
    let known_as = |number: i32| match number {
        -1 => None,
        // Of its own group.
        0 => Some(-dir.stat().group.cast_signed()),
        _ => proc.child_known_as(dir, number).ok().flatten(),
    };
    let awaited = |call: SystemCall| match (call.number, call.arguments) {
        (libc::SYS_wait4, [child, ..]) | (libc::SYS_waitid, [P_PID, child, ..]) => {
            known_as(id(child).cast_signed())
        }
        (libc::SYS_waitid, [P_PGID, group, ..]) => known_as(id(group).cast_signed().checked_neg()?),
        (libc::SYS_waitid, [P_PIDFD, number, ..]) => {
            let pid = dir.fd_dir().and_then(|fds| fds.pid(id(number)));
            pid.ok().flatten().and_then(|pid| pid.try_into().ok())
        }
        _ => None,
    };
    let child = calls.first().copied().flatten().and_then(awaited);
    let [first, others] = [calls.first().is_some_and(waits), calls.iter().skip(1).any(waits)];
    // Go stops its threads by SIGURG, and has a handler for it from its start; hardly anything else does.
    let is_go = first && signals.catches(libc::SIGURG);
    Ok(if is_go { ([false, true], None) } else { ([first, others], child) })
}

/// Whether a thread waits for signals to take them itself (sigwait(3)): which ones does not show then.
pub(super) fn take_signals(calls: &[Option<SystemCall>]) -> bool {
    calls.iter().flatten().any(|call| call.number == libc::SYS_rt_sigtimedwait)
}

/// What threads of a process wait at that has no descriptor: others may have it, too.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    /// Memory that is shared (futex(2)).
    pub memory: Vec<SharedMemory>,
    /// Message queues and semaphores of System V, by number: whoever knows one may use it (sysvipc(7)).
    pub queues: BTreeSet<u32>,
    /// Whether it waits for anybody: for who opens a FIFO (and whether anybody ever did), or types at a terminal.
    pub anybody: Option<Called>,
}

/// `since`: the birth of the oldest process of its server.
pub(super) fn places(
    dir: &ProcessDir,
    table: &FdTable,
    calls: &[Option<SystemCall>],
    since: BootTime,
) -> Result<Places, Errno> {
    const PRIVATE: u64 = 0x80;
    /// Of a process, which may have tens of thousands.
    const MEMORY: usize = 64;
    let (mut addresses, mut queues, mut anybody, mut several) = (Vec::new(), BTreeSet::new(), None, false);
    for call in calls.iter().flatten() {
        let SystemCall { number, arguments: [first, operation, ..], opens_fifo } = *call;
        if opens_fifo && anybody != Some(Called::Unknown) && !dir.opens_for_debuggers(call) {
            anybody = Some(if dir.opens_untouched(call, since) { Called::No } else { Called::Unknown });
        }
        match number {
            libc::SYS_futex => addresses.extend((operation & PRIVATE == 0).then_some(first)),
            libc::SYS_msgrcv | libc::SYS_msgsnd => _ = queues.insert(id(first)),
            // The numbers of semaphores are others than those of queues.
            libc::SYS_semop | libc::SYS_semtimedop => _ = queues.insert(id(first) | SEMAPHORES),
            // The addresses are in its memory. So may be those of calls that are newer than this one, as futex_wait(2) is.
            libc::SYS_futex_waitv.. => several = true,
            libc::SYS_read | libc::SYS_readv if table.target(id(first)).is_some_and(is_terminal) => {
                anybody = Some(Called::Unknown);
            }
            _ => {}
        }
    }
    // Who runs may be on its way back to a terminal that it opened itself.
    let runs = calls.iter().any(Option::is_none);
    let is_own_terminal = |fd: &Fd| fd.number > 2 && is_terminal(&fd.target);
    if runs && table.fds.iter().any(is_own_terminal) {
        anybody = Some(Called::Unknown);
    }
    let has_one =
        |memory: &SharedMemory| several || addresses.iter().any(|address| memory.addresses.contains(address));
    let is_any = several || !addresses.is_empty();
    let mut memory = if is_any { dir.shared_memory(has_one, MEMORY + 1)? } else { Vec::new() };
    if memory.len() > MEMORY {
        memory.clear();
        anybody = Some(Called::Unknown);
    }
    Ok(Places { memory, queues, anybody })
}

/// Marks a number of semaphores: the kernel gives out positive numbers of 31 bits.
const SEMAPHORES: u32 = 1 << 31;

/// An argument of the type `int`.
#[expect(clippy::cast_possible_truncation, reason = "the kernel looks at the lower half only")]
const fn id(argument: u64) -> u32 {
    argument as u32
}

fn is_terminal(target: &Target) -> bool {
    let begins: [&[u8]; 3] = [b"/dev/tty", b"/dev/pts/", b"/dev/console"];
    matches!(target, Target::Path(path) if begins.iter().any(|begin| device(path).starts_with(begin)))
}

/// Whether who may end this wait is asked elsewhere: it concerns pipes, sockets, or the process itself.
fn is_covered(dir: &ProcessDir, table: &FdTable, wait: Wait) -> bool {
    match wait {
        Wait::Wake => true,
        Wait::Input(number) => {
            let Ok(number) = u32::try_from(number) else { return false };
            match table.target(number) {
                Some(Target::Pipe(_)) => true,
                Some(Target::Socket(_)) => asked(dir, number, |socket| {
                    is_joined(socket) && socket_timeout(socket, Timeout::Recv) == Ok(None)
                }),
                // A FIFO with a name.
                Some(Target::Path(path)) if path.starts_with(b"/") => {
                    dir.fd_dir().is_ok_and(|fds| matches!(fds.stdio(number), Stdio::Pipe(_)))
                }
                _ => false,
            }
        }
        Wait::Several | Wait::Watched(_) => !table.fds.iter().any(|fd| brings_something(dir, fd)),
        Wait::Other => false,
    }
}

/// Whether this holds of a socket, as far as that can be asked.
fn asked(dir: &ProcessDir, number: u32, holds: impl FnOnce(&OwnedFd) -> bool) -> bool {
    matches!(duplicate_any(dir, number), Ok(Some(copy)) if holds(&copy.file))
}

/// Whether it is seen who may send to this socket: it is connected, or a listener.
fn is_joined(socket: &OwnedFd) -> bool {
    const FAMILIES: [AddressFamily; 3] = [AddressFamily::UNIX, AddressFamily::INET, AddressFamily::INET6];
    socket_domain(socket).is_ok_and(|family| FAMILIES.contains(&family))
        && socket_type(socket) != Ok(SocketType::RAW)
        && (getpeername(socket).is_ok() || socket_acceptconn(socket) == Ok(true))
}

/// Whether a wait at this file may end by itself, or by what others do: a timer, watched files, a process whose end is
/// waited for, a device, a file of the kernel (the list of mounts, the pressure of memory). Regular files are always ready.
fn brings_something(dir: &ProcessDir, fd: &Fd) -> bool {
    const NEVER: [&[u8]; 3] = [b"anon_inode:[eventpoll]", b"anon_inode:[eventfd]", b"anon_inode:[signalfd]"];
    const DEVICES: [&[u8]; 5] = [b"/dev/null", b"/dev/zero", b"/dev/full", b"/dev/random", b"/dev/urandom"];
    match &fd.target {
        Target::Pipe(_) => false,
        Target::Socket(_) => !asked(dir, fd.number, is_joined),
        Target::Path(path) if device(path).starts_with(b"/dev/") => {
            !DEVICES.contains(&device(path)) && !device(path).starts_with(b"/dev/shm/")
        }
        Target::Path(path) if path.starts_with(b"/") => fd.target.is_of_the_kernel(),
        Target::Path(path) => !NEVER.contains(&&**path),
    }
}

fn wait(call: &SystemCall) -> Wait {
    let [first, second, third, fourth, fifth, _] = call.arguments;
    let unlimited = |limit: u64, wait: Wait| if limit == 0 { wait } else { Wait::Other };
    if let Some(wait) = wait_of_old(call) {
        return wait;
    }
    match call.number {
        libc::SYS_read
        | libc::SYS_readv
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_accept
        | libc::SYS_accept4 => Wait::Input(first),
        libc::SYS_recvmmsg => unlimited(fifth, Wait::Input(first)),
        libc::SYS_ppoll => unlimited(third, Wait::Several),
        libc::SYS_pselect6 => unlimited(fifth, Wait::Several),
        libc::SYS_epoll_pwait => milliseconds(fourth, Wait::Watched(first)),
        libc::SYS_epoll_pwait2 => unlimited(fourth, Wait::Watched(first)),
        libc::SYS_futex if waits_at_futex(second) => unlimited(fourth, Wait::Wake),
        libc::SYS_wait4 | libc::SYS_waitid | libc::SYS_rt_sigsuspend => Wait::Wake,
        _ => Wait::Other,
    }
}

/// The same for system calls that younger architectures do not have.
#[cfg(target_arch = "x86_64")]
fn wait_of_old(call: &SystemCall) -> Option<Wait> {
    let [first, _, third, fourth, fifth, _] = call.arguments;
    Some(match call.number {
        libc::SYS_pause => Wait::Wake,
        libc::SYS_poll => milliseconds(third, Wait::Several),
        libc::SYS_epoll_wait => milliseconds(fourth, Wait::Watched(first)),
        libc::SYS_select if fifth == 0 => Wait::Several,
        _ => return None,
    })
}

#[cfg(not(target_arch = "x86_64"))]
const fn wait_of_old(_: &SystemCall) -> Option<Wait> {
    None
}

/// A wait for some descriptors with a time limit of type `int`: a negative one is none.
const fn milliseconds(limit: u64, wait: Wait) -> Wait {
    if limit & 0x8000_0000 == 0 { Wait::Other } else { wait }
}

/// Whether an operation of futex(2) is a wait, with the time limit in its fourth argument.
const fn waits_at_futex(operation: u64) -> bool {
    const FLAGS: u64 = 0x180;
    const WAIT: u64 = 0;
    const LOCK_PI: u64 = 6;
    const WAIT_BITSET: u64 = 9;
    const LOCK_PI2: u64 = 13;
    matches!(operation & !FLAGS, WAIT | LOCK_PI | WAIT_BITSET | LOCK_PI2)
}

#[cfg(test)]
mod tests;
