//! End-to-end tests: the real daemon on the real kernel, with actors that report what they are.
//!
//! A test is a [`scene()`]. It has a folder, and a cgroup for everything that it starts. Its daemons judge and signal
//! nothing outside of that cgroup (`--below`): neither what belongs to a person at this machine, nor what belongs to a
//! test beside it. A test that storms the host has it for itself ([`scene_alone()`]): a lock across all test binaries.
//!
//! No test sleeps. What must happen is waited for, with a timeout that means failure. What must not happen is
//! checked after a barrier, [`Scene::barrier`]. At the end of a scene every daemon is stopped, its sequence
//! numbers are checked for gaps, and its trace is replayed: the replay must print the same bytes.
//!
//! Services run under real systemd ([`Scene::boot`]): a [`Service`] is a unit, its agent and the agent's
//! children; each process reports itself to the [`Truth`]. An [`Install`] is orphand as the packaged service.
//!
//! The [`judgement`] table plays all situations in which orphand must judge correctly, side by side.
#![deny(unsafe_code)]

mod binary;
mod cast;
mod cgroup;
mod client;
mod daemon;
pub mod day;
pub mod engine;
mod event;
pub mod fixtures;
mod hook;
mod host;
mod install;
pub mod jobs;
pub mod judgement;
pub mod neighbours;
mod number;
mod pace;
mod part;
mod redis;
pub mod root;
mod scene;
pub mod schema;
pub mod scrape;
mod service;
mod systemd;
mod terminal;
mod truth;

pub use binary::orphand;
pub use cast::Actor;
pub use client::{Client, Sdk};
pub use daemon::{Daemon, Launch};
pub use event::Event;
pub use hook::HookScript;
pub use host::{Bystander, Identity, as_user, output, reuse, told, within};
pub use install::{Install, UNIT};
pub use number::Number;
pub use pace::in_time;
pub use part::Part;
pub use redis::Redis;
pub use scene::{Scene, scene, scene_alone};
pub use service::{Child, SERVER, Service};
pub use systemd::{Layout, Manager, System, USER};
pub use terminal::Terminal;
pub use truth::{Told, Truth, report_self};
