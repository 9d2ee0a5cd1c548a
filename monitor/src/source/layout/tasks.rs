//! Where the kernel keeps what the pass over all tasks reads. A kernel may lack it: then it is not made.

use monitor_common::TaskOffsets;

use super::{LayoutError, Names, POINTER};

/// The types that are looked for.
pub(super) const STRUCTS: [&str; 7] =
    ["sighand_struct", "k_sigaction", "sigaction", "tty_struct", "tty_driver", "pid_namespace", "ns_common"];

/// The offsets of the kernel whose types these are.
pub(super) fn offsets(kernel: &Names<'_>) -> Result<TaskOffsets, LayoutError> {
    let field = |record, field, size| kernel.offset(record, field, size);
    let sum = |record, field, parts: [u32; 2]| {
        let sum = parts.into_iter().try_fold(0u32, u32::checked_add);
        sum.ok_or(LayoutError::NoField(record, field))
    };
    let (common, _) = kernel.field("pid_namespace", "ns")?;
    Ok(TaskOffsets {
        task_pid: field("task_struct", "pid", 4)?,
        task_flags: field("task_struct", "flags", 4)?,
        task_ptrace: field("task_struct", "ptrace", 4)?,
        task_parent: field("task_struct", "parent", POINTER)?,
        task_pdeath_signal: field("task_struct", "pdeath_signal", 4)?,
        task_thread_pid: field("task_struct", "thread_pid", POINTER)?,
        task_sighand: field("task_struct", "sighand", POINTER)?,
        // SIGHUP is the first.
        sighand_hangup: kernel.first_handler()?,
        signal_tty: field("signal_struct", "tty", POINTER)?,
        tty_driver: field("tty_struct", "driver", POINTER)?,
        tty_index: field("tty_struct", "index", 4)?,
        driver_major: field("tty_driver", "major", 4)?,
        driver_minor_start: field("tty_driver", "minor_start", 4)?,
        pid_level: field("pid", "level", 4)?,
        pid_numbers: kernel.element("pid", "numbers", 0)?,
        upid_size: kernel.named("upid")?.size_or_type,
        upid_nr: field("upid", "nr", 4)?,
        upid_ns: field("upid", "ns", POINTER)?,
        namespace_inum: sum("ns_common", "inum", [common, field("ns_common", "inum", 4)?])?,
    })
}
