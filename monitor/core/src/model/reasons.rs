//! The reasons of a verdict: evidence for an orphan, doubts that prevent the proof, guards that forbid a
//! kill. A contract with users.

use serde::{Deserialize, Serialize};

/// A fact that speaks for "orphan".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The owner's exit was witnessed, by this daemon or an earlier one of this boot.
    OwnerExited,
    /// Nobody outside of the server holds the other end of its standard input.
    StdinHangup,
    /// Its unit has been started again since.
    StaleInvocation,
    /// Its unit has been stopped.
    UnitStopped,
    /// The session that it was started for has expired: its key has been missing in the registry for the configured time.
    SessionExpired,
    /// It is a duplicate, and its owner's rule says that those are ended (`idle_duplicates`): for so long it did nothing, while a newer server
    /// of the same identity has worked.
    IdleDuplicate,
    /// Its manager released it: its own user said that it is done with it (`orphand release`).
    Released,
    /// The thread of its living owner that started it has ended. It proves something only where a rule for the owner says
    /// `thread_scoped`.
    SpawnerThreadExited,
    /// It was found without an owner. Alone this proves nothing.
    NoOwner,
    /// Its owner is alive and has abandoned it: the owner let go of both of its wires, or closed its standard input after the head of
    /// its launch chain was ended, and it has written nothing since.
    Abandoned,
}

/// What keeps a server from being an orphan: somebody may still use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// A process outside of the server has the other end of its standard input, and may speak to it at any time. Or somebody may have it
    /// whom nobody can see: it is on its way through a socket, `io_uring` keeps it, or only /proc could be asked.
    WireHeld,
    /// Likewise the other end of its standard output: somebody may wait for results.
    StdoutRead,
    /// It is not known who holds its wires. The other end cannot be asked for: a connection that nobody has accepted yet, a network
    /// namespace that is closed to orphand, an end of its own that the server may have hidden. Or five inspections have failed, for
    /// instance because a process could not be read.
    WireUnknown,
    /// Its owner is not known. Nobody saw who made its wires, or the maker had ended before it was known what it was, or another program
    /// made its standard output than its standard input. And nothing else proves that it was left behind.
    OwnerUnknown,
    /// A client from outside has a connection to one of its sockets or waits for one, or had one over TCP within the last ten minutes. Or
    /// nobody can tell: a unix socket that was ever connected to, datagrams, a port that it was told to serve at.
    Clients,
    /// A process outside of it, such as a debugger, traces one of its threads.
    Traced,
    /// Something that is no part of it would end or stop with it: who works in a terminal that it opened or in its PID namespace, the
    /// users of a file system or a device that it serves, a program that it debugs.
    DependedOn,
    /// It is known by its name alone: no message of the protocol to it was seen, no settings declare it, and it is no known package. And
    /// no rule knows the program that started it. It may be a job that is only called like a server.
    OnlyNamed,
    /// It was released, or its session has expired, and yet somebody may use it: since then it has read or written something, or has
    /// not been at rest for `abandoned_grace`. Or it is an idle duplicate that may owe an answer: a request waits to be read, a process that
    /// it started lives, it has a connection, or it waits for a time.
    Active,
    /// A tool that it started goes on with its work: it has used the processor, has read or written something, or has just begun.
    /// It has until `deadline` (`work_grace`).
    Working,
}

/// A fact that forbids ending an orphan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// A rule of the configuration exempts it.
    ExemptRule,
    /// `ORPHAND_OPT_OUT=1` is in the environment of one of its processes, or an environment cannot be read to its end.
    OptedOut,
    /// A terminal multiplexer (tmux, screen or the like) lives in it or below it.
    Multiplexer,
    /// It runs as another user than its owner.
    OtherUid,
    /// A live agent is below it.
    LiveAgentBelow,
    /// It was found without an owner in a systemd unit that is still running: it may be what the unit is for.
    OwnUnit,
    /// orphand was told to observe only.
    Observe,
    /// It was there before the first start of orphand on this host, and nobody saw how it came to be left behind. Only a person
    /// ends it (`orphand reap`), or the setting `found = "end"`.
    Found,
    /// It is the client of a container (`docker run`, `podman exec`). A signal would end the client alone, and the container would live
    /// on. Without its engine (`[containers]`) it cannot be stopped, or it is not certain which container it is. Or it was found in a
    /// container, without a client and an owner: its engine would know nothing of a signal. `container` has the command that a person
    /// can run.
    Container,
}

impl Guard {
    /// Whether `orphand reap` ends what stays because of this guard alone: a person decides.
    pub const fn yields_to_person(self) -> bool {
        matches!(self, Self::Observe | Self::Found)
    }
}
