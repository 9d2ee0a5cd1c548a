//! The pure core of orphand. It is total, synchronous and deterministic: no I/O, no clock, no threads, no log.
//!
//! The shell (package `orphand`) passes in what happened and carries out the effects that come back, see [`engine`].
//! Dependencies go one way: `engine -> verdict -> reach, world -> case, lineage -> recognise -> model`.
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as orphand_core;
#[cfg(test)]
#[path = "../tests/laws/invariants.rs"]
mod invariants;

pub mod case;
pub mod engine;
pub mod lineage;
pub mod model;
pub mod reach;
pub mod recognise;
pub mod verdict;
pub mod world;
