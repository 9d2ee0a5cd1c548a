//! All processes of the host, asked of the kernel: a BPF iterator over all tasks (`iter/task`, since Linux 5.8). Unlike
//! a reader of /proc it waits for no process.
//!
//! Invariant: a pass tells every process that lived from its beginning to its end, or it is an error.

use std::{
    collections::BTreeMap,
    mem::offset_of,
    sync::{Mutex, Weak},
};

use aya::Ebpf;
use monitor_common::{TaskRecord, task_flags};

use super::{
    decode::{process, u32_at, u64_at},
    iterator::Iterator,
};
use crate::host::{PidNamespace, TaskRow, Tasks as Reader, identity};

/// The program.
pub(super) const PROGRAM: Iterator = Iterator { program: "every_task", kind: "task", hook: "iter:task" };

/// Reads all processes as long as the kernel side is there.
pub struct Tasks {
    programs: Weak<Mutex<Ebpf>>,
}

impl std::fmt::Debug for Tasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tasks").finish_non_exhaustive()
    }
}

impl Tasks {
    /// Of programs that were loaded.
    pub(super) fn new(programs: Weak<Mutex<Ebpf>>) -> Result<Self, String> {
        let tasks = Self { programs };
        tasks.prove().map(|()| tasks)
    }

    /// The proof that passes work here: what is known of ourselves.
    pub(super) fn prove(&self) -> Result<(), String> {
        let pid = std::process::id();
        let own = self.rows()?.into_iter().find(|row| row.process.pid == pid);
        let own = own.ok_or("it does not tell our own process")?;
        let known = identity::identity(pid).zip(identity::session());
        let place = PidNamespace { inode: own.namespace.inode, level: 0, number: pid };
        let is_right = known == Some((own.process, own.session))
            && own.uid == rustix::process::getuid().as_raw()
            && own.namespace == place
            && !own.dead;
        if is_right { Ok(()) } else { Err(format!("what it tells of our own process is wrong: {own:?}")) }
    }

    fn rows(&self) -> Result<Vec<TaskRow>, String> {
        let mut records = Vec::new();
        PROGRAM.pass(&self.programs, |bytes| {
            let chunks = bytes.chunks_exact(size_of::<TaskRecord>());
            let rest = chunks.remainder().len();
            records.extend(chunks.filter_map(record));
            rest
        })?;
        settle(&records)
    }
}

impl Reader for Tasks {
    fn tasks(&mut self) -> Result<Vec<TaskRow>, String> {
        self.rows()
    }
}

fn record(b: &[u8]) -> Option<TaskRecord> {
    Some(TaskRecord {
        start: u64_at(b, offset_of!(TaskRecord, start))?,
        tgid: u32_at(b, offset_of!(TaskRecord, tgid))?,
        tid: u32_at(b, offset_of!(TaskRecord, tid))?,
        uid: u32_at(b, offset_of!(TaskRecord, uid))?,
        sid: u32_at(b, offset_of!(TaskRecord, sid))?,
        terminal: u32_at(b, offset_of!(TaskRecord, terminal))?,
        namespace: u32_at(b, offset_of!(TaskRecord, namespace))?,
        level: u32_at(b, offset_of!(TaskRecord, level))?,
        inner: u32_at(b, offset_of!(TaskRecord, inner))?,
        tracer: u32_at(b, offset_of!(TaskRecord, tracer))?,
        flags: u32_at(b, offset_of!(TaskRecord, flags))?,
        ends_with: u32_at(b, offset_of!(TaskRecord, ends_with))?,
        pad: 0,
    })
}

/// One row a process: a traced thread adds its tracer to that of its process. A thread whose process was not shown has
/// begun after the pass came by.
fn settle(records: &[TaskRecord]) -> Result<Vec<TaskRow>, String> {
    if records.iter().any(|record| record.flags & task_flags::UNREADABLE != 0) {
        return Err("the kernel side could not read a task".to_owned());
    }
    let mut rows: BTreeMap<_, TaskRow> = BTreeMap::new();
    for record in records {
        let row = rows.entry(process(record.tgid, record.start)).or_insert_with(|| row(record));
        row.dead &= record.flags & task_flags::DEAD != 0;
        row.tracers.extend((record.tracer != 0).then_some(record.tracer));
    }
    Ok(rows.into_values().collect())
}

fn row(record: &TaskRecord) -> TaskRow {
    let TaskRecord { namespace, level, inner, .. } = *record;
    TaskRow {
        process: process(record.tgid, record.start),
        uid: record.uid,
        session: record.sid,
        terminal: Some(record.terminal).filter(|terminal| *terminal != 0),
        // The number of a thread is not that of its process.
        namespace: PidNamespace { inode: namespace, level, number: inner },
        tracers: Vec::new(),
        ends_with: Some(record.ends_with).filter(|pid| *pid != 0),
        dead: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orphand_core::model::ProcessId;

    const RECORD: TaskRecord = TaskRecord {
        start: 70_000_000,
        tgid: 40,
        tid: 40,
        uid: 1000,
        sid: 30,
        terminal: 136 << 20 | 3,
        namespace: 9,
        level: 1,
        inner: 1,
        tracer: 0,
        flags: 0,
        ends_with: 0,
        pad: 0,
    };

    #[test]
    fn threads_that_are_traced_belong_to_their_process() {
        let thread = TaskRecord { tid: 41, inner: 2, tracer: 77, ..RECORD };
        let dead = TaskRecord { tgid: 50, tid: 50, terminal: 0, flags: task_flags::DEAD, ..RECORD };
        let rows = settle(&[RECORD, thread, dead]).unwrap();
        let [one, other] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((one.process, one.tracers.as_slice()), (ProcessId::new(40, 7), &[77][..]));
        assert_eq!((one.pty(), one.namespace.number, one.dead), (Some(3), 1, false));
        assert_eq!((other.process.pid, other.pty(), other.dead), (50, None, true));
    }

    #[test]
    fn what_could_not_be_read_is_no_answer() {
        assert!(settle(&[RECORD, TaskRecord { flags: task_flags::UNREADABLE, ..RECORD }]).is_err());
        assert_eq!(record(&[0; size_of::<TaskRecord>()]), Some(TaskRecord::default()));
        assert_eq!(record(&[0; size_of::<TaskRecord>() - 5]), None);
    }
}
