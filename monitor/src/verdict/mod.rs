//! Verdicts: agents and their runs, servers and their owners, evidence and guards. Pure.
//!
//! Used by `engine` only.

mod agents;
mod guards;
mod owner;
mod servers;
mod view;

pub use agents::{Agent, Agents, Newcomer};
pub use guards::{Finding, Looks, examine};
pub use owner::{Claim, Ownership, program_name, trace};
pub use servers::{Case, Server, Servers, Stage, State};
pub use view::{agent_view, process_view, server_view};
