//! All processes of the host, asked of the kernel: a BPF iterator over all tasks (`iter/task`, since Linux 5.8). Unlike
//! a reader of /proc it waits for no process.
//!
//! Invariant: a pass tells every process that lived from its beginning to its end, or it is an error.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use aya::{Btf, Ebpf};
use monitor_common::{TaskRecord, task_flags};

use super::{decode::id, iterator::Iterator, kernel_error::KernelError};
use crate::host::{PidNamespace, TaskRow, identity};

/// How it is called among the hooks.
pub const HOOK: &str = "iter:task";

/// Reads all processes as long as the kernel side is there.
#[derive(Debug)]
pub struct Tasks(Iterator<TaskRecord>);

impl Tasks {
    pub(super) fn open(programs: &Arc<Mutex<Ebpf>>, btf: &Btf) -> Result<Self, KernelError> {
        let tasks = Self(Iterator::load(programs, "task", btf)?);
        tasks.prove().map_err(KernelError)?;
        Ok(tasks)
    }

    /// The proof that passes work here: what is known of ourselves.
    pub(super) fn prove(&self) -> Result<(), String> {
        let pid = std::process::id();
        let own = self.tasks()?.into_iter().find(|row| row.process.pid == pid);
        let own = own.ok_or("it does not tell our own process")?;
        let known = identity::identity(pid).zip(identity::session());
        let place = PidNamespace { inode: own.namespace.inode, level: 0, number: pid };
        let is_right = known == Some((own.process, own.session))
            && own.uid == rustix::process::getuid().as_raw()
            && own.namespace == place
            && !own.dead;
        if is_right { Ok(()) } else { Err(format!("what it tells of our own process is wrong: {own:?}")) }
    }

    /// All processes. A pass takes less than a microsecond a thread.
    pub fn tasks(&self) -> Result<Vec<TaskRow>, String> {
        settle(&self.0.pass(None, usize::MAX)?)
    }
}

/// One row a process: a traced thread adds its tracer to that of its process. A thread whose process was not shown has
/// begun after the pass came by.
fn settle(records: &[TaskRecord]) -> Result<Vec<TaskRow>, String> {
    if records.iter().any(|record| record.flags & task_flags::UNREADABLE != 0) {
        return Err("the kernel side could not read a task".to_owned());
    }
    let mut rows: BTreeMap<_, TaskRow> = BTreeMap::new();
    for record in records {
        let row = rows.entry(id(record.tgid, record.start)).or_insert_with(|| row(record));
        row.dead &= record.flags & task_flags::DEAD != 0;
        row.tracers.extend((record.tracer != 0).then_some(record.tracer));
    }
    Ok(rows.into_values().collect())
}

fn row(record: &TaskRecord) -> TaskRow {
    let TaskRecord { namespace, level, inner, .. } = *record;
    TaskRow {
        process: id(record.tgid, record.start),
        uid: record.uid,
        session: record.sid,
        line: record.line,
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
        line: 0,
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
    }
}
