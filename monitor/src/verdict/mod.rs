//! Verdicts: agents and their runs, servers and their owners, evidence and guards. Pure.
//!
//! Used by `engine` only.

mod agents;
mod guards;
mod left;
mod owner;
mod runs;
mod servers;
mod view;

pub use agents::{Agent, Agents, Newcomer};
pub use guards::{Finding, Looks, examine};
pub use left::{Left, LeftStage};
pub use owner::{Claim, Ownership, program_name, trace};
pub use runs::{Account, Runs, TopMost};
pub use servers::{Case, Server, Servers, Stage, State};
pub use view::{agent_as_server, agent_view, process_view, server_view};
