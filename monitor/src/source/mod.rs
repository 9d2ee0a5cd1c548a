//! The records of the kernel side, and recorded traces. A source knows the model and nothing of who consumes its events.

pub mod attach;
pub mod btf;
mod candidates;
pub mod completion;
pub mod decode;
pub mod ends;
pub mod holders;
pub mod kernel;
pub mod kernel_error;
pub mod layout;
mod log;
pub mod members;
mod produced;
pub mod selftest;
pub mod threads;
pub mod trace;
