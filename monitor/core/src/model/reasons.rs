//! The reasons of a verdict: what speaks for "orphan", what keeps it from being proven, what forbids a kill. A contract with users.

use serde::{Deserialize, Serialize};

/// A fact that speaks for "orphan".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The owner's exit was witnessed.
    OwnerExited,
    /// Nobody holds the other end of the wire.
    StdinHangup,
    /// It belongs to an earlier invocation of its unit.
    StaleInvocation,
    /// Its unit is stopped.
    UnitStopped,
    /// Its session has expired.
    SessionExpired,
    /// The thread that started it is gone.
    SpawnerThreadExited,
    /// It was found without an owner (weak).
    NoOwner,
}

/// What keeps a server from being an orphan: somebody may use it still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// An outside process holds the other end of its standard input.
    WireHeld,
    /// An outside process holds the other end of its standard output.
    StdoutRead,
    /// Who holds a wire could not be found out.
    WireUnknown,
    /// Who made its wires is not known.
    OwnerUnknown,
    /// A client is connected to it, or was a moment ago.
    Clients,
    /// A process outside of it traces one of its processes.
    Traced,
}

/// A fact that forbids a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// A rule of the configuration exempts it.
    ExemptRule,
    /// Its environment asks to be left alone.
    OptedOut,
    /// A terminal multiplexer lives in it.
    Multiplexer,
    /// It belongs to another user than its owner.
    OtherUid,
    /// An agent lives below it.
    LiveAgentBelow,
    /// systemd manages it as a unit of its own.
    OwnUnit,
    /// orphand was told to look only.
    Observe,
}
