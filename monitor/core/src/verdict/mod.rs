//! Verdicts: agents and their runs, servers and their owners, evidence and guards. Pure.
//!
//! Used by `engine` only.

mod agents;
mod guards;
mod left;
mod look;
mod membership;
mod owner;
mod proof;
mod runs;
mod servers;
mod view;
mod wires;

pub use agents::{Agent, Agents, Newcomer};
pub use left::{Left, LeftStage};
pub use look::{Look, Makers};
pub use membership::{Members, members};
pub use owner::{Claim, Ownership, program_name, trace};
pub use proof::{Finding, examine};
pub use runs::{Account, Held, Runs, TopMost};
pub use servers::{Asked, Case, Failure, Server, Servers, Stage, State};
pub use view::{agent_as_server, agent_view, process_view, server_view, short_view};
