//! orphand: finds MCP stdio servers that outlived the agent that started them.
//!
//! The library is a pure core ([`model`], [`lineage`], [`recognise`], [`verdict`], [`engine`]) in a thin
//! shell ([`source`], [`probe`], [`sink`], [`front`]). Dependencies go one way only:
//! `main -> daemon -> {source, probe, sink, engine}`, `engine -> verdict -> recognise -> lineage -> model`.
#![forbid(unsafe_code)]

pub mod cli;
pub mod clock;
pub mod commands;
pub mod config;
pub mod daemon;
pub mod descriptors;
pub mod duration;
pub mod engine;
pub mod exit_code;
pub mod front;
pub mod host;
pub mod instance;
pub mod journal;
pub mod lineage;
mod log_stream;
pub mod logging;
pub mod model;
pub mod names;
pub mod notify;
pub mod privilege;
pub mod probe;
pub mod readable;
pub mod recognise;
pub mod replay;
pub mod sink;
pub mod source;
pub mod store;
pub mod trust;
pub mod verdict;
