//! End-to-end tests: the real daemon on the real kernel, with actors that tell their own truth.
//!
//! A test is a [`scene()`]: it has a folder, a cgroup that holds whatever the test starts, and the host to
//! itself (a lock across all test binaries: a reaping daemon of one test would end the orphans of another).
//! Nothing waits by sleeping: what must happen is waited for, with a deadline that means failure; what must
//! not happen is looked at after a barrier, [`Scene::barrier`]. When a scene ends, every daemon it started
//! is stopped, its sequence numbers are checked for gaps, and its recorded trace is replayed: the replay must
//! print the same bytes.
//!
//! Services are played on real systemd ([`Scene::boot`]): a [`Service`] is a unit, its agent and what that starts; each of their
//! processes tells the [`Truth`]. orphand as the service it is shipped as is an [`Install`].
//!
//! All situations in which orphand must judge right, side by side, are the [`judgement`] table.
#![forbid(unsafe_code)]

mod cast;
mod cgroup;
mod client;
mod daemon;
pub mod day;
mod event;
pub mod fixtures;
mod hook;
mod host;
mod install;
pub mod judgement;
pub mod neighbours;
mod number;
mod part;
pub mod root;
mod scene;
pub mod scrape;
mod service;
mod systemd;
mod truth;
mod twins;

pub use cast::Actor;
pub use client::{Client, Sdk};
pub use daemon::{Daemon, Launch, orphand};
pub use event::Event;
pub use hook::HookScript;
pub use host::{Identity, Innocent, output, reuse, within};
pub use install::{Install, UNIT};
pub use number::Number;
pub use part::Part;
pub use scene::{Scene, scene};
pub use service::{Child, SERVER, Service};
pub use systemd::{Layout, Manager, System, USER};
pub use truth::{Told, Truth, tell};
pub use twins::{Play, twins};
