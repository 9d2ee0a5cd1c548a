//! Who can still reach a server: garbage collection of processes. Pure.
//!
//! A server is garbage if nothing that acts by itself can reach it. That is the mark phase of a garbage collector over
//! kernel objects. **Candidates** ([`Party`]) are the servers that have a cause, each with what belongs to it, and the
//! inert forked copies of a dead owner. **Roots** are all other processes, and *anybody*: whoever cannot be seen. An
//! **edge** leads to a candidate from whoever has the other end of something that the candidate has an end of
//! ([`Edge`]), unless it stands in the one table of edges that do not count (`exceptions`). [`mark()`] follows the
//! edges from the roots to the end. What it does not reach, nobody can use.
//!
//! Invariant: more rows of a scene can only reach more. A slow and obvious version stands beside the fast one as its
//! test (`tests/naive.rs`).
//!
//! Used by `verdict`, and by `engine` for the rows.

mod edges;
mod exceptions;
mod mark;
mod party;
mod rows;
#[cfg(test)]
mod tests;

pub use edges::{Edge, Source, Way};
pub use exceptions::{is_standard_error, waits_for_a_command};
pub use mark::{Reach, mark};
pub use party::{Kind, Party};
pub use rows::Rows;
