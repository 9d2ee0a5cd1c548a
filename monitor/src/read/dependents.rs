//! Who is joined with a process without a descriptor in common: through terminals, PID namespaces, debuggers, shared
//! memory, and what a process offers through the kernel.

use std::collections::{BTreeSet, HashMap};

use rustix::io::Errno;

use super::{
    process::Member,
    rows::{Key, Rows},
    shared::Lines,
};
use crate::{host::TaskRow, source::kernel_side::KernelSide};
use orphand_core::model::{
    ProcessId,
    scene::{Endpoint, Side},
};

/// What is looked for among all processes of the host, each with its endpoint.
#[derive(Default)]
struct Wanted {
    /// By the number of the terminal, with who opened it.
    terminals: HashMap<u32, (u32, ProcessId)>,
    namespaces: Vec<(ProcessId, u32)>,
    /// Those that lead the session of a terminal.
    leaders: Vec<(ProcessId, u32)>,
    /// By the threads of debuggers.
    debuggers: HashMap<u32, u32>,
    /// Who was asked about, by number: a child may be to end with any of them, whatever streams they share.
    parents: HashMap<u32, ProcessId>,
    /// By device and inode number of the mapped file.
    memory: HashMap<(u32, u64), u32>,
}

impl Wanted {
    /// What all tasks are asked for.
    fn depends(&self) -> Vec<u32> {
        let terminals = self.terminals.values().map(|(at, _)| *at);
        let others = self.namespaces.iter().chain(&self.leaders).map(|(_, at)| *at);
        terminals.chain(others).chain(self.debuggers.values().copied()).collect()
    }
}

/// Enters what these processes offer, and who depends on it.
pub(super) fn enter(rows: &mut Rows<'_>, members: &[Member], lines: &Lines, kernel: &KernelSide) {
    let wanted = wanted(rows, members);
    ask_tasks(rows, &wanted, lines, kernel);
    ask_maps(rows, &wanted);
}

fn wanted(rows: &mut Rows<'_>, members: &[Member]) -> Wanted {
    let mut wanted = Wanted::default();
    for member in members {
        let process = member.process;
        wanted.parents.insert(process.pid, process);
        for terminal in &member.ends.terminals {
            let at = serves(rows, process, Key::Terminal(*terminal), Endpoint::Terminal);
            wanted.terminals.insert(*terminal, (at, process));
        }
        if let Some(name) = &member.leads {
            let at = serves(rows, process, Key::PidNamespace(name.clone()), Endpoint::PidNamespace);
            wanted.namespaces.push((process, at));
        }
        // The kernel hangs up on who works in the terminal of a session when its leader ends.
        if member.leads_a_terminal {
            let at = serves(rows, process, Key::Session(process), Endpoint::Terminal);
            wanted.leaders.push((process, at));
        }
        if member.ends.serves_a_device {
            let at = serves(rows, process, Key::Device(process), Endpoint::Device);
            rows.anybody(at, Side::Depends);
        }
        // Only the traced processes tell who traces them, and there may be tens of thousands. So they are asked only if
        // one of those that were asked about is named like a debugger.
        if member.is_debugger {
            let at = serves(rows, process, Key::Trace(process), Endpoint::Trace);
            match threads(rows, process) {
                Ok(threads) => wanted.debuggers.extend(threads.into_iter().map(|thread| (thread, at))),
                Err(Errno::NOENT | Errno::SRCH) => {}
                Err(_) => rows.unreadable(at, Side::Depends),
            }
        }
        for memory in &member.places.memory {
            let (device, inode) = memory.file;
            let at = rows.endpoint(Key::Memory(device, inode), || Endpoint::Memory { inode });
            rows.hold(at, Side::Reads, process);
            // Whoever maps it now adds nothing to that, and half of all processes may: glibc's cache of conversions is a file.
            if memory.is_named {
                rows.anybody(at, Side::Writes);
            } else {
                wanted.memory.insert(memory.file, at);
            }
        }
        traced(rows, member);
    }
    wanted
}

/// Enters that this process offers this.
fn serves(rows: &mut Rows<'_>, process: ProcessId, key: Key, endpoint: Endpoint) -> u32 {
    let at = rows.endpoint(key, || endpoint);
    rows.hold(at, Side::Serves, process);
    at
}

fn threads(rows: &Rows<'_>, process: ProcessId) -> Result<Vec<u32>, Errno> {
    rows.proc.identified(process)?.ok_or(Errno::SRCH)?.threads()
}

fn traced(rows: &mut Rows<'_>, member: &Member) {
    for thread in member.tracers.iter().copied() {
        let tracer = rows
            .proc
            .process(thread)
            .and_then(|dir| dir.leader())
            .and_then(|leader| rows.proc.process(leader));
        let at = match tracer {
            Ok(tracer) => serves(rows, tracer.id(), Key::Trace(tracer.id()), Endpoint::Trace),
            // The tracer has ended, and its tracing with it.
            Err(Errno::NOENT | Errno::SRCH) => continue,
            Err(_) => {
                let at = rows.endpoint(Key::Trace(ProcessId::new(thread, 0)), || Endpoint::Trace);
                rows.unreadable(at, Side::Serves);
                at
            }
        };
        rows.hold(at, Side::Depends, member.process);
    }
}

/// Enters who depends on what is wanted, of all tasks of the host.
fn ask_tasks(rows: &mut Rows<'_>, wanted: &Wanted, lines: &Lines, kernel: &KernelSide) {
    let all = wanted.depends();
    // /proc does not tell with whom a process is to end.
    if all.is_empty() && kernel.tasks.is_none() {
        return;
    }
    let list = match kernel.tasks(rows.proc) {
        Ok(list) => list,
        Err(why) => {
            for at in all {
                rows.unreadable(at, Side::Depends);
            }
            return rows.unread(None, why);
        }
    };
    enter_tasks(rows, wanted, lines, &list);
}

fn enter_tasks(rows: &mut Rows<'_>, wanted: &Wanted, lines: &Lines, list: &[TaskRow]) {
    let living = || list.iter().filter(|row| !row.dead);
    for (process, at) in &wanted.namespaces {
        let Some(first) = list.iter().find(|row| row.process == *process) else { continue };
        let inside = |row: &&TaskRow| row.process != *process && row.may_be_in_namespace_of(first);
        for row in living().filter(inside) {
            if row.namespace.inode == 0 {
                rows.unreadable(*at, Side::Depends);
            } else {
                rows.hold(*at, Side::Depends, row.process);
            }
        }
    }
    for (leader, at) in &wanted.leaders {
        let is_in_it =
            |row: &&TaskRow| row.session == leader.pid && row.terminal.is_some() && row.process != *leader;
        for row in living().filter(is_in_it) {
            rows.hold(*at, Side::Depends, row.process);
        }
    }
    for (number, (at, opener)) in &wanted.terminals {
        let works_there = |row: &&TaskRow| {
            row.process != *opener && row.pty() == Some(*number) && lines.may_have(*number, row.line)
        };
        for row in living().filter(works_there) {
            rows.hold(*at, Side::Depends, row.process);
        }
    }
    for row in living() {
        let at: BTreeSet<u32> =
            row.tracers.iter().filter_map(|tracer| wanted.debuggers.get(tracer)).copied().collect();
        for at in at {
            rows.hold(at, Side::Depends, row.process);
        }
        if let Some(parent) = row.ends_with.and_then(|pid| wanted.parents.get(&pid).copied()) {
            let at = serves(rows, parent, Key::ParentDeath(parent), Endpoint::ParentDeath);
            rows.hold(at, Side::Depends, row.process);
        }
    }
}

fn ask_maps(rows: &mut Rows<'_>, wanted: &Wanted) {
    if wanted.memory.is_empty() {
        return;
    }
    let pids = rows.proc.pids().unwrap_or_else(|error| {
        rows.unread(None, error.to_string());
        Vec::new()
    });
    for pid in pids {
        let found = rows.proc.process(pid).and_then(|dir| {
            let is_alive = !dir.stat().is_kernel_thread() && !dir.stat().has_begun_to_exit();
            // Some hosts hide the memory of their first process, which is nobody's fork.
            let shared =
                match dir.shared_memory(|memory| wanted.memory.contains_key(&memory.file), usize::MAX) {
                    _ if !is_alive => Vec::new(),
                    Err(Errno::ACCESS | Errno::PERM) if pid == 1 => Vec::new(),
                    shared => shared?,
                };
            Ok((dir.id(), shared))
        });
        match found {
            Ok((process, shared)) => {
                for at in shared.iter().filter_map(|memory| wanted.memory.get(&memory.file)) {
                    rows.hold(*at, Side::Writes, process);
                }
            }
            Err(Errno::NOENT | Errno::SRCH) => {}
            // It may have any of them.
            Err(_) => wanted.memory.values().for_each(|at| rows.unreadable(*at, Side::Writes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        process::{Command, Stdio as Std},
    };

    use super::*;
    use crate::{
        host::Proc,
        probe::tests::{Started, ourselves, subject},
        read::process,
    };
    use orphand_core::model::{Stdio, scene::Holder};

    /// Standard error is what all children share. Who is to end with nobody, or with somebody else, is not told.
    #[test]
    fn whoever_is_to_end_with_a_process_is_told_whatever_streams_they_share() {
        let (us, child) = (ourselves(), Started::sleeper(Std::null()));
        let stranger = Started::new(Command::new("sleep").arg("600").stdin(Std::null()));
        let (proc, asked, subject) =
            (Proc::system().unwrap(), BTreeSet::from([us]), subject(&[us], Stdio::Null));
        let streams = |process: ProcessId| proc.process(process.pid).unwrap().stdio();
        assert_eq!(streams(us)[2], streams(child.id())[2]);
        let ends_with =
            |started: &Started, ends_with| TaskRow { process: started.id(), ends_with, ..TaskRow::default() };
        let told = |list: &[TaskRow]| {
            let mut rows = Rows::new(&proc, &|_| None, &asked);
            let (members, _) = process::all(&mut rows, &[&subject.question]);
            let wanted = wanted(&mut rows, &members);
            enter_tasks(&mut rows, &wanted, &Lines::default(), list);
            let ends = rows.finish().scene.ends.into_iter();
            ends.filter(|end| end.side == Side::Depends).map(|end| end.holder).collect::<Vec<_>>()
        };
        let none = ends_with(&stranger, None);
        let other = ends_with(&stranger, Some(us.pid + 1));
        let own = ends_with(&child, Some(us.pid));
        assert_eq!(told(&[own, none.clone(), other.clone()]), [Holder::Process(child.id())]);
        assert_eq!(told(&[none, other]), []);
    }
}
