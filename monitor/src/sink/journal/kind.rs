//! What the journal knows each kind of event by. A contract with users: an id never changes, a new kind gets a fresh one
//! (`systemd-id128 new`). `cargo xtask docs` writes the ids into docs/events.md; a test compares them with
//! packaging/catalog.

use crate::os::journald::Priority;
use orphand_core::model::Notice;

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name in the stream.
    pub event: &'static str,
    /// Its `MESSAGE_ID`, `systemd.journal-fields(7)`.
    pub id: &'static str,
    /// How bad it is.
    pub priority: Priority,
}

impl Kind {
    const fn new(event: &'static str, id: &'static str, priority: Priority) -> Self {
        Self { event, id, priority }
    }
}

const READY: Kind = Kind::new("ready", "987abd36b79446ec9ec223d41003b20e", Priority::Info);
const AGENT_STARTED: Kind = Kind::new("agent_started", "70b53e9779504d509e81bc6161bb983b", Priority::Info);
const AGENT_EXITED: Kind = Kind::new("agent_exited", "ab88fa475b9e4636a1bafd4c1f3b0cba", Priority::Info);
const AGENTS_FOLDED: Kind = Kind::new("agents_folded", "b4c3641fdea54dc3b92bb7383b1ced2e", Priority::Notice);
const SERVER_STARTED: Kind = Kind::new("server_started", "c2123ff8fd3d439c80a8921b0b07864e", Priority::Info);
const SERVER_EXITED: Kind = Kind::new("server_exited", "b23accd599b04f7a9a26ffe6e0cc500f", Priority::Info);
const SERVER_DETACHED: Kind =
    Kind::new("server_detached", "e58068ce294c474c9482ef63587b9bad", Priority::Info);
const ORPHAN_SUSPECTED: Kind =
    Kind::new("orphan_suspected", "05c38f7ebaa542c7831215acc4cd6f0d", Priority::Info);
const ORPHAN_CLEARED: Kind = Kind::new("orphan_cleared", "4f2433a608f24b8eb51a7a7d53b33098", Priority::Info);
const ORPHAN_DETECTED: Kind =
    Kind::new("orphan_detected", "aa7494121c49484f9d30e06c8a0ec5ec", Priority::Warning);
const ORPHAN_SPARED: Kind = Kind::new("orphan_spared", "0becea1e3cb04956b2c0563dba9c92bc", Priority::Notice);
const ORPHAN_REAPED: Kind = Kind::new("orphan_reaped", "e19ba7cedd314746b2e95d6f1d09f21d", Priority::Notice);
const REAP_FAILED: Kind = Kind::new("reap_failed", "64fd4ee9ee7d409faf4be7deea2b7a1b", Priority::Error);
const ORPHAN_EXITED: Kind = Kind::new("orphan_exited", "604df02b8a22482c97f1f599a57f7690", Priority::Info);
const ORPHAN_UNPROVEN: Kind =
    Kind::new("orphan_unproven", "8b074c44edf1459883da523a22a54c31", Priority::Notice);
const LOST: Kind = Kind::new("lost", "6ad92e74444945119a9404186af287f7", Priority::Warning);
const RESYNCED: Kind = Kind::new("resynced", "4caefd620bc44b28a4501c4910c24443", Priority::Notice);
const ALERT: Kind = Kind::new("alert", "8f3e693acc304807845eb66b51678431", Priority::Warning);
const ALERT_RESOLVED: Kind =
    Kind::new("alert_resolved", "fe8f13ed21c44140bd1b826c05129135", Priority::Notice);
const RECONFIGURED: Kind = Kind::new("reconfigured", "2f13ec9f8e93427789edf8bf79013227", Priority::Notice);
const STOPPING: Kind = Kind::new("stopping", "ae6d031d4c784a3c943a1773bb941bd2", Priority::Info);

/// All of them.
pub const ALL: [Kind; 21] = [
    READY,
    AGENT_STARTED,
    AGENT_EXITED,
    AGENTS_FOLDED,
    SERVER_STARTED,
    SERVER_EXITED,
    SERVER_DETACHED,
    ORPHAN_SUSPECTED,
    ORPHAN_CLEARED,
    ORPHAN_DETECTED,
    ORPHAN_SPARED,
    ORPHAN_REAPED,
    REAP_FAILED,
    ORPHAN_EXITED,
    ORPHAN_UNPROVEN,
    LOST,
    RESYNCED,
    ALERT,
    ALERT_RESOLVED,
    RECONFIGURED,
    STOPPING,
];

/// The kind of a notice. A new notice does not compile until it has one here; put it into [`ALL`], too.
pub const fn kind(notice: &Notice) -> Kind {
    match notice {
        Notice::Ready { .. } => READY,
        Notice::AgentStarted { .. } => AGENT_STARTED,
        Notice::AgentExited { .. } => AGENT_EXITED,
        Notice::AgentsFolded { .. } => AGENTS_FOLDED,
        Notice::ServerStarted { .. } => SERVER_STARTED,
        Notice::ServerExited { .. } => SERVER_EXITED,
        Notice::ServerDetached { .. } => SERVER_DETACHED,
        Notice::OrphanSuspected { .. } => ORPHAN_SUSPECTED,
        Notice::OrphanCleared { .. } => ORPHAN_CLEARED,
        Notice::OrphanDetected { .. } => ORPHAN_DETECTED,
        Notice::OrphanUnproven { .. } => ORPHAN_UNPROVEN,
        Notice::OrphanSpared { .. } => ORPHAN_SPARED,
        Notice::OrphanReaped { .. } => ORPHAN_REAPED,
        Notice::ReapFailed { .. } => REAP_FAILED,
        Notice::OrphanExited { .. } => ORPHAN_EXITED,
        Notice::Lost { .. } => LOST,
        Notice::Resynced { .. } => RESYNCED,
        Notice::Alert { .. } => ALERT,
        Notice::AlertResolved { .. } => ALERT_RESOLVED,
        Notice::Reconfigured { .. } => RECONFIGURED,
        Notice::Stopping { .. } => STOPPING,
    }
}
