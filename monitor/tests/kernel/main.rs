//! The kernel side on the real kernel, against what the actors, /proc and wait(2) say. An actor is a Python script below
//! a root process that is followed before it runs; the root's exit record is the barrier, since records are in
//! causal order.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod births;
mod calls;
mod candidates;
mod ends;
mod filter;
mod holders;
mod images;
mod limits;
mod moment;
mod passes;
mod scene;
mod seekers;
mod sessions;
mod setup;
mod shares;
mod signals;
mod stage;
mod stand;
mod strangers;
mod tasks;
mod threads;
mod together;
mod wakeups;
