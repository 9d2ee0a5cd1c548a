//! Where facts about processes come from: the kernel's records, /proc, recorded traces. Sources know the
//! model and nothing of each other's consumers.

pub mod attach;
pub mod birth;
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
pub mod procfs;
pub mod selftest;
pub mod trace;
