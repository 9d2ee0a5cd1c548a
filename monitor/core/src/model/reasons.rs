//! The reasons of a verdict: evidence for an orphan, doubts that prevent the proof, guards that forbid a
//! kill. A contract with users.

use serde::{Deserialize, Serialize};

/// A fact that speaks for "orphan".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The exit of the owner was witnessed.
    OwnerExited,
    /// No process holds the other end of its standard input.
    StdinHangup,
    /// It belongs to an earlier invocation of its unit.
    StaleInvocation,
    /// Its unit has been stopped.
    UnitStopped,
    /// Its session has expired.
    SessionExpired,
    /// The thread that started it has exited.
    SpawnerThreadExited,
    /// It was found without an owner. This alone is weak evidence.
    NoOwner,
}

/// What prevents the proof that a server is an orphan: somebody may still use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// A process outside of the server holds the other end of its standard input.
    WireHeld,
    /// A process outside of the server holds the other end of its standard output.
    StdoutRead,
    /// It could not be found out who holds a wire.
    WireUnknown,
    /// It is not known who created its wires.
    OwnerUnknown,
    /// A client is connected to it, or was shortly before.
    Clients,
    /// A process outside of the server traces one of its processes.
    Traced,
}

/// A fact that forbids ending an orphan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// A rule of the configuration exempts it.
    ExemptRule,
    /// Its environment has the variable that opts out.
    OptedOut,
    /// A terminal multiplexer is one of its processes.
    Multiplexer,
    /// It runs as another user than its owner.
    OtherUid,
    /// A live agent is below it.
    LiveAgentBelow,
    /// systemd manages it as a unit of its own.
    OwnUnit,
    /// orphand runs in observe mode.
    Observe,
}
