//! Verdicts: what belongs to a server, evidence, doubts and guards. Pure.
//!
//! Used by `engine` only.

mod guards;
mod look;
mod membership;
mod proof;
mod wires;

pub use look::{Look, Makers};
pub use membership::{Members, members};
pub use proof::{Finding, examine};
