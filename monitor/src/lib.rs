//! orphand: finds MCP stdio servers that outlived the agent that started them.
//!
//! This is the shell around the pure core (package `orphand-core`): it reads the kernel and /proc, carries out what the
//! core's engine asks for, and reports. Dependencies go one way: `main -> commands -> daemon -> the other rooms`.
#![forbid(unsafe_code)]

pub mod actuator;
pub mod cli;
pub mod commands;
pub mod config;
pub mod control;
pub mod daemon;
pub mod driver;
pub mod events;
pub mod explain;
pub mod helper;
pub mod host;
pub mod os;
pub mod probe;
mod read;
pub mod sink;
pub mod source;
pub mod store;
pub mod top;
