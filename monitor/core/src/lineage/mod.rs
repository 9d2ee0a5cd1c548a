//! Lineage: who was created by whom, among the living processes that matter. Pure.
//!
//! Used by the modules above it only.

mod graph;
mod node;
mod reconcile;

pub use graph::Graph;
pub use node::{AgentKey, Maker, Node, Origin, Provenance, ServerKey, UnitSight};
pub use reconcile::{Difference, compare};
