//! Verdicts: what belongs to a server, and which evidence, doubts and guards there are. Pure.
//!
//! Used by `engine` only.

mod container;
mod guards;
mod inspection;
mod membership;
mod proof;
mod rest;
mod spawner;
mod wires;

pub use container::is_certain;
pub use inspection::{Inspection, Makers};
pub use membership::{Members, members};
pub use proof::{Finding, examine};
pub use spawner::is_thread_scoped;
