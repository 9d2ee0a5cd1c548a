//! The processes that were asked about, in full.

use std::collections::{BTreeSet, HashMap};

use rustix::io::Errno;

use super::{
    activity,
    descriptors::{Ends, MOST, OPT_OUT},
    due,
    rows::{Rows, in_brief},
    waits::{self, Places},
};
use crate::host::{FdTable, Proc, ProcessDir, UNANSWERED, slices};
use orphand_core::{
    model::{
        BootTime, ProcessId,
        scene::{ProcessRow, SceneQuestion, SceneServer, Wait},
    },
    recognise::{entry_names_port, entry_names_service, is_debugger},
};

/// A process that was asked about, and what joins it with others.
pub(super) struct Member {
    pub process: ProcessId,
    pub table: FdTable,
    pub ends: Ends,
    pub tracers: Vec<u32>,
    /// Its PID namespace, if it is the first process there.
    pub leads: Option<Vec<u8>>,
    pub leads_a_terminal: bool,
    pub is_debugger: bool,
    /// What it waits at that has no descriptor.
    pub places: Places,
}

impl Member {
    pub fn sockets(&self) -> impl Iterator<Item = u64> {
        self.table.sockets().chain(self.ends.in_rings.iter().copied())
    }
}

/// Of each process of these servers the oldest one of its server.
pub(super) fn oldest(questions: &[&SceneQuestion]) -> HashMap<ProcessId, ProcessId> {
    let servers = questions.iter().flat_map(|question| &question.servers);
    let of_server = |server: &SceneServer| {
        let oldest = server.processes.iter().copied().min_by_key(|process| process.start);
        server.processes.clone().into_iter().zip(oldest.into_iter().cycle())
    };
    servers.flat_map(of_server).collect()
}

/// Reads the processes that were asked about, and enters their rows. With the ports that their environments name.
pub(super) fn all(rows: &mut Rows<'_>, questions: &[&SceneQuestion]) -> (Vec<Member>, BTreeSet<u16>) {
    let copies: BTreeSet<ProcessId> =
        questions.iter().flat_map(|question| &question.copies).copied().collect();
    let waits: BTreeSet<ProcessId> =
        questions.iter().filter(|question| question.waits).flat_map(|question| due(question)).collect();
    let oldest = oldest(questions);
    let (mut members, mut ports, mut descriptors) = (Vec::new(), BTreeSet::new(), 0);
    for &process in rows.asked {
        if descriptors > MOST {
            rows.is_crowded = true;
            rows.unread(
                Some(process),
                "those that were asked about have more open files than orphand looks at",
            );
            continue;
        }
        // One process at a time, because there may be more than we may open descriptors.
        let found = rows.proc.identified(process).and_then(|dir| {
            let read = |dir: ProcessDir| {
                let parent = rows.parent(&dir);
                let since = oldest.get(&process).map(|oldest| oldest.born()).unwrap_or_default();
                read(
                    rows.proc,
                    &dir,
                    parent,
                    since,
                    [&copies, &waits].map(|all| all.contains(&process)),
                    &mut ports,
                )
            };
            dir.map(read).transpose()
        });
        match found {
            Ok(Some(Some((row, member)))) => {
                rows.full(row);
                if member.table.cut {
                    rows.unread(Some(process), "it has more open files than orphand looks at");
                }
                descriptors += member.table.fds.len();
                members.push(member);
            }
            Ok(None | Some(None)) | Err(Errno::NOENT | Errno::SRCH) => rows.gone(process),
            Err(UNANSWERED) => rows.unread(Some(process), "it does not answer"),
            Err(errno) => rows.unread(Some(process), format!("cannot read it in /proc: {errno}")),
        }
    }
    (members, ports)
}

/// The slices above a process. An exemption may be about them: what cannot be read holds the verdict back.
fn slices_above(dir: &ProcessDir) -> Result<Vec<String>, Errno> {
    match dir.cgroup() {
        Ok(text) => Ok(slices(&text)),
        // A kernel without control groups.
        Err(Errno::NOENT) if dir.still_alive() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// One process; `None` if it is exiting.
fn read(
    proc: &Proc,
    dir: &ProcessDir,
    parent: Option<ProcessId>,
    since: BootTime,
    [is_copy, asks_waits]: [bool; 2],
    ports: &mut BTreeSet<u16>,
) -> Result<Option<(ProcessRow, Member)>, Errno> {
    if dir.stat().has_begun_to_exit() {
        return Ok(None);
    }
    let process = dir.id();
    let table = dir.fd_table()?;
    let brief = in_brief(dir, parent)?;
    let waits = waits::calls(dir).and_then(|calls| {
        let rests = (is_copy || asks_waits) && waits::for_nothing_else(dir, &table, &calls);
        let reads = if is_copy { waits::inputs(dir, &calls)? } else { Vec::new() };
        let (child, takes_signals) = (waits::await_a_child(proc, dir, &calls)?, waits::take_signals(&calls));
        Ok((rests, reads, child, takes_signals, waits::places(dir, &table, &calls, since)?))
    });
    let (rests, reads, ([awaits_child, thread_awaits], awaited), takes_signals, places) = match waits {
        // One that could not be read is no inert copy.
        Err(_) if is_copy => (false, Vec::new(), ([false; 2], None), false, Places::default()),
        waits => waits?,
    };
    let used = dir.used().map_err(|_| Errno::SRCH)?;
    let mut names_service = |entry: &[u8]| {
        ports.extend(entry_names_port(entry));
        entry_names_service(entry)
    };
    let [opted_out, told_to_serve] = dir.environment_has([&mut |entry| entry == OPT_OUT, &mut names_service]);
    let row = ProcessRow {
        held: dir.is_held().unwrap_or_default(),
        slices: slices_above(dir)?,
        stdio: dir.stdio(),
        waits: if rests { Wait::Ends } else { Wait::Anything },
        reads,
        work: is_copy.then(|| activity::work(dir).ok()).flatten(),
        opted_out,
        told_to_serve,
        awaits_child,
        awaited,
        reaps: thread_awaits,
        catches_term: brief.catches_term || takes_signals,
        hears_of_ends: brief.hears_of_ends
            || takes_signals
            || table.fds.iter().any(|fd| fd.target.is_pidfd()),
        stale_binary: dir.has_stale_binary(),
        full: true,
        rss_bytes: used.rss_bytes,
        cpu_ms: used.cpu_ms,
        ..brief
    };
    // Process 1 of our own namespace is no server.
    let leads = (process.pid != 1 && dir.leads_namespace()?).then(|| dir.link("ns/pid")).transpose()?;
    let member = Member {
        process,
        ends: Ends::of(dir, &table)?,
        table,
        tracers: dir.tracers()?,
        leads,
        leads_a_terminal: dir.stat().sid == process.pid && dir.stat().tty != 0,
        is_debugger: is_debugger(&row.image),
        places,
    };
    Ok(Some((row, member)))
}
