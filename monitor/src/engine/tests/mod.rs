//! Stories through [`Engine::handle`](super::Engine::handle), each for a path that rarely happens.

mod owners;
mod reaping;
mod story;
mod units;
mod verdicts;
