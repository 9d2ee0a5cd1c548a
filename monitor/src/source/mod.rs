//! The records of the kernel side, and recorded traces. A source knows the model and nothing of who consumes its events.

pub mod attach;
pub mod btf;
pub mod calls;
pub mod completion;
pub mod decode;
pub mod ends;
pub mod holders;
mod iterator;
pub mod kernel;
pub mod kernel_error;
pub mod kernel_side;
pub mod layout;
mod log;
mod maps;
pub mod members;
mod misses;
pub mod selftest;
pub mod tasks;
pub mod threads;
pub mod trace;
