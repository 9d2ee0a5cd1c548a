//! Verdicts: what belongs to a server, and which evidence, doubts and guards there are. Pure.
//!
//! Used by `engine` only.

mod aftermath;
mod candidates;
mod container;
mod guards;
mod inspection;
mod jobs;
mod membership;
mod owner;
mod proof;
mod rest;
mod rows;
mod uses;

pub use aftermath::beside;
pub use candidates::rule_of;
pub use container::{change, is_certain};
pub use inspection::Inspection;
pub use membership::{Members, members};
pub use owner::seek;
pub use proof::{Finding, examine};
pub use uses::{at_work, is_cut_off, is_used};
