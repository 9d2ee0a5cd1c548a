//! What the journal knows each kind of event by. A contract with users: an id never changes, a new kind gets a fresh one
//! (`systemd-id128 new`). `cargo xtask docs` writes the ids into docs/events.md; a test compares
//! them with packaging/catalog.

use crate::os::journald::Priority;
use orphand_core::model::EventKind;

/// The properties that all entries of one kind share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The `MESSAGE_ID`, `systemd.journal-fields(7)`.
    pub id: &'static str,
    /// Its severity.
    pub priority: Priority,
}

/// The id and the priority of this kind of event.
pub const fn message(kind: EventKind) -> Message {
    let (id, priority) = match kind {
        EventKind::Ready => ("987abd36b79446ec9ec223d41003b20e", Priority::Info),
        EventKind::AgentStarted => ("70b53e9779504d509e81bc6161bb983b", Priority::Info),
        EventKind::AgentExited => ("ab88fa475b9e4636a1bafd4c1f3b0cba", Priority::Info),
        EventKind::AgentsFolded => ("b4c3641fdea54dc3b92bb7383b1ced2e", Priority::Notice),
        EventKind::ServerStarted => ("c2123ff8fd3d439c80a8921b0b07864e", Priority::Info),
        EventKind::ServerExited => ("b23accd599b04f7a9a26ffe6e0cc500f", Priority::Info),
        EventKind::ServerDetached => ("e58068ce294c474c9482ef63587b9bad", Priority::Info),
        EventKind::ServerDuplicated => ("2120014f1cf44be28d8c0c076caf3456", Priority::Notice),
        EventKind::OrphanSuspected => ("05c38f7ebaa542c7831215acc4cd6f0d", Priority::Info),
        EventKind::OrphanCleared => ("4f2433a608f24b8eb51a7a7d53b33098", Priority::Info),
        EventKind::OrphanDetected => ("aa7494121c49484f9d30e06c8a0ec5ec", Priority::Warning),
        EventKind::OrphanSpared => ("0becea1e3cb04956b2c0563dba9c92bc", Priority::Notice),
        EventKind::OrphanReaped => ("e19ba7cedd314746b2e95d6f1d09f21d", Priority::Notice),
        EventKind::ReapFailed => ("64fd4ee9ee7d409faf4be7deea2b7a1b", Priority::Error),
        EventKind::OrphanExited => ("604df02b8a22482c97f1f599a57f7690", Priority::Info),
        EventKind::OrphanUnproven => ("8b074c44edf1459883da523a22a54c31", Priority::Notice),
        EventKind::LeftoversFound => ("3c1de7a0b5f64e7f9a0b64c2d8e15f37", Priority::Notice),
        EventKind::Lost => ("6ad92e74444945119a9404186af287f7", Priority::Warning),
        EventKind::Resynced => ("4caefd620bc44b28a4501c4910c24443", Priority::Notice),
        EventKind::Alert => ("8f3e693acc304807845eb66b51678431", Priority::Warning),
        EventKind::AlertResolved => ("fe8f13ed21c44140bd1b826c05129135", Priority::Notice),
        EventKind::Reconfigured => ("2f13ec9f8e93427789edf8bf79013227", Priority::Notice),
        EventKind::Stopping => ("ae6d031d4c784a3c943a1773bb941bd2", Priority::Info),
    };
    Message { id, priority }
}
