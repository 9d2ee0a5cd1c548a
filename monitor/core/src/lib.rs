//! The pure core of orphand: total, synchronous, deterministic. No I/O, no clock, no threads, no log.
//!
//! The shell (package `orphand`) hands in what happened and carries out the effects that come back, see [`engine`].
//! Dependencies go one way: `engine -> verdict -> world -> lineage -> recognise -> model`.
#![forbid(unsafe_code)]

pub mod engine;
pub mod lineage;
pub mod model;
pub mod recognise;
pub mod verdict;
pub mod world;
