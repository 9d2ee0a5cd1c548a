//! Where the kernel keeps what the hook on signals reads. A kernel may lack it: then who sends a signal is not known.

use monitor_common::SignalOffsets;

use super::{LayoutError, Names, POINTER};

/// The types that are looked for; [`super::tasks`] has those of handlers.
pub(super) const STRUCTS: [&str; 1] = ["kernel_siginfo"];
pub(super) const TYPEDEF: &str = "btf_trace_signal_generate";

/// The offsets of the kernel whose types these are.
pub(super) fn offsets(kernel: &Names<'_>) -> Result<SignalOffsets, LayoutError> {
    kernel.tracepoint("signal_generate", TYPEDEF, 5)?;
    let first = kernel.element("sighand_struct", "action", 0)?;
    Ok(SignalOffsets {
        siginfo_code: kernel.offset("kernel_siginfo", "si_code", 4)?,
        task_sighand: kernel.offset("task_struct", "sighand", POINTER)?,
        sighand_first_handler: kernel.first_handler()?,
        action_size: kernel.element("sighand_struct", "action", 1)? - first,
        signal_oom_mm: kernel.offset("signal_struct", "oom_mm", POINTER)?,
    })
}
