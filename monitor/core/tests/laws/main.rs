//! The laws of the engine, tested against a model kernel.
//!
//! `kernel`, `files`, `records` are the model kernel and the kernel side of orphand; `programs` and `world` are
//! the actors on it; `host` runs an engine there like the daemon's loop; `truth` knows what is true without
//! asking the engine; `laws` compares the two, and `invariants` says what always holds in the engine. `scenarios` are stories written by hand, `histories` plays lists of
//! acts, `strategies` makes such at random, `properties` and `garbage` check the laws on them, `twins` shows that each check can fail.
//!
//! Every run plays the same random stories; `ORPHAND_LAWS_SEED=any` plays others and tells their seed. `ORPHAND_LAWS=N` plays N for
//! each law. What broke a law is written as a trace for `orphand replay`.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test says so when it fails")]

mod answers;
mod doings;
mod files;
mod garbage;
mod histories;
mod host;
mod invariants;
mod kernel;
mod launch;
mod laws;
mod leftovers;
mod log;
mod order;
mod programs;
mod properties;
mod records;
mod replay;
mod restart;
mod rows;
mod scenarios;
mod signals;
mod strategies;
mod ties;
mod trace;
mod transcript;
mod truth;
mod twins;
mod uses;
mod using;
mod wires;
mod world;
