//! Verdicts: what belongs to a server, evidence, doubts and guards. Pure.
//!
//! Used by `engine` only.

mod guards;
mod inspection;
mod membership;
mod proof;
mod wires;

pub use inspection::{Inspection, Makers};
pub use membership::{Members, members};
pub use proof::{Finding, examine};
