//! Why the engine asked the shell a question.

use super::{inspections, servers::Recognised};
use crate::{
    lineage::{AgentKey, Origin, ServerKey},
    model::{BootTime, ExitStatus, ProcessId},
    world::Look,
};

/// Why the engine asked the shell a question. It decides how the answer is used.
#[derive(Debug)]
pub(super) enum Purpose {
    /// An agent exited. Asks for the memory of its servers.
    AgentExit { agent: AgentKey, at: BootTime, status: Option<ExitStatus>, servers: Vec<ServerKey> },
    /// The main process of an agent exited. Asks what its forked copies do.
    Copies { agent: AgentKey, at: BootTime, status: Option<ExitStatus> },
    /// Asks for the session that a server was started for. `told_only`: no owner is known, so the id may have been
    /// inherited.
    Session { server: ServerKey, told_only: bool },
    /// Asks what is said first to a process, since this exec.
    FirstMessage { process: ProcessId, origin: Origin },
    /// Asks which container a living server works in.
    Container { server: ServerKey },
    /// Asks whether settings declare it as a server.
    Declared { process: ProcessId, origin: Origin },
    /// Has the container of a server stopped.
    Stop { server: ServerKey },
    /// Asks which of these servers, each with its main process, have a hung-up standard input.
    Wires { servers: Vec<(ServerKey, ProcessId)> },
    /// Asks what the processes of a server have done so far, because its living owner may still use it.
    Work { server: ServerKey, look: Look },
    /// Asks what the processes of a duplicate, and who uses it, have done so far.
    Duplicate { server: ServerKey, user: ProcessId },
    /// Asks about the branches that this agent left.
    Leftovers { agent: AgentKey },
    /// Asks for the memory of these servers.
    Measure { servers: Vec<ServerKey> },
    /// Asks what program the creator of a new server runs.
    Creator { creator: ProcessId, recognised: Recognised },
    /// Asks for the unit that this process, an agent, runs in.
    Unit { process: ProcessId, at: BootTime, name: String, implied: bool },
    /// Asks whether this process is the main process of a unit that a rule names.
    UnitRule { process: ProcessId, at: BootTime },
    /// Asks for the unit of an agent that has exited; its server, which it left, runs in the same unit.
    Account { recognised: Recognised, at: BootTime },
    /// The inspection of an agent that may have been left behind, and the state of the agent when it was asked for.
    InspectAgent { agent: AgentKey, observed: Option<Box<inspections::Observed>> },
    /// The inspection of a server, and the state of the server when it was asked for. The state is absent if the
    /// answer comes at once.
    Inspect { server: ServerKey, observed: Option<Box<inspections::Observed>> },
    /// Asks by what a person recognises a server.
    Hints { server: ServerKey },
    /// Asks where a server works, whose main process is this.
    Whereabouts { server: ServerKey, process: ProcessId },
}

impl Purpose {
    /// Whether it is asked what this agent left behind besides servers.
    pub(super) fn is_about_leftovers_of(&self, key: AgentKey) -> bool {
        matches!(self, Self::Leftovers { agent } if *agent == key)
    }
}
