//! The memory that a queued notice takes, for queues that are bounded in bytes.

use super::{Container, Notice, ProcessView, ServerView};

/// The fixed part in bytes, which covers short texts.
const LEAST: usize = 256;

impl Notice {
    /// The approximate number of bytes in a queue. Only texts whose length others choose are counted in full.
    pub fn queued_bytes(&self) -> usize {
        let (server, let_go): (Option<&ServerView>, &[ProcessView]) = match self {
            Self::ServerStarted { server, .. }
            | Self::ServerDetached { server, .. }
            | Self::ServerDuplicated { server, .. }
            | Self::OrphanSuspected { server, .. }
            | Self::OrphanDetected { server, .. }
            | Self::OrphanUnproven { server, .. }
            | Self::OrphanSpared { server, .. }
            | Self::ReapFailed { server, .. } => (Some(server), &[]),
            Self::ServerExited { server, let_go, .. }
            | Self::OrphanCleared { server, let_go, .. }
            | Self::OrphanReaped { server, let_go, .. }
            | Self::OrphanExited { server, let_go, .. } => (Some(server), let_go),
            Self::LeftoversFound { processes, .. } => {
                return 2 * LEAST + processes.iter().map(|one| queued_bytes(&one.process)).sum::<usize>();
            }
            _ => (None, &[]),
        };
        let processes = server.into_iter().flat_map(|server| &server.processes).chain(let_go);
        let container = server.and_then(|server| server.container.as_ref());
        2 * LEAST + container.map_or(0, Container::queued_bytes) + processes.map(queued_bytes).sum::<usize>()
    }
}

fn queued_bytes(process: &ProcessView) -> usize {
    let arguments = process.argv.iter().map(|argument| argument.len() + size_of::<String>());
    LEAST / 2 + process.exe.len() + arguments.sum::<usize>()
}
