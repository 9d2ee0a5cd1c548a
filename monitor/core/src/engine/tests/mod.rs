//! Tests that play histories through [`Engine::handle`](super::Engine::handle), each for a path that rarely happens.

mod abandoned;
mod alerts;
mod bursts;
mod configuration;
mod container_reports;
mod container_stops;
mod containers;
mod containers_late;
mod daemons;
mod duplicates;
mod first_messages;
mod late;
mod launchers;
mod memory;
mod owners;
mod proof;
mod proof_by_laws;
mod proof_of_use;
mod reaping;
mod requests;
mod sessions;
mod spawners;
mod story;
mod story_answers;
mod units;
mod verdicts;
