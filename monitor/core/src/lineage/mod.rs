//! Lineage: which process created which, among the living processes that matter. Pure.
//!
//! Used by the modules above it only.

mod graph;
mod node;
mod reconcile;

pub use graph::{Graph, NEAR, in_order};
pub use node::{AgentKey, Exec, Left, Maker, Node, ObservedUnit, Origin, Program, Provenance, ServerKey};
pub use reconcile::{Difference, compare};
