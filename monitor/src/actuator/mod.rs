//! What acts on the host: signals to processes, and the alert hook.

pub mod hook;
pub mod reaper;
