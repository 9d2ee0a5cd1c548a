//! The passes of the kernel over all descriptors and over all tasks, where this kernel allows them. Without them a look at
//! /proc has to do: no reason not to watch.

use std::sync::{Arc, Mutex, PoisonError};

use aya::{
    Ebpf,
    maps::{HashMap, MapData},
};

use super::{
    attach::CALL_HOOK,
    calls::Calls,
    holders::{self, Holders},
    iterator::Iterator,
    kernel_error::KernelError,
    layout::{LayoutError, MoreOffsets},
    tasks::{self, Tasks},
};

/// What makes passes. Each works as long as the kernel side is there.
#[derive(Debug, Default)]
pub struct Passes {
    /// Over all descriptors.
    pub holders: Option<Holders>,
    /// Over all tasks.
    pub tasks: Option<Tasks>,
    /// What tells who calls; no pass.
    pub calls: Option<Calls>,
}

impl Passes {
    /// Loads and proves them. `wanted`: the map of the inodes that a pass over all descriptors is about, with so much `room`.
    pub(super) fn open(
        programs: &Arc<Mutex<Ebpf>>,
        offsets: MoreOffsets,
        wanted: HashMap<MapData, u64, u8>,
        room: u32,
    ) -> Self {
        let weak = || Arc::downgrade(programs);
        let holders =
            load(programs, holders::PROGRAM, offsets.ends).and_then(|()| Holders::new(weak(), wanted, room));
        let tasks = load(programs, tasks::PROGRAM, offsets.tasks).and_then(|()| Tasks::new(weak()));
        Self {
            holders: told(
                holders,
                holders::PROGRAM,
                "who holds a wire is read from /proc, which does not show all",
            ),
            tasks: told(
                tasks,
                tasks::PROGRAM,
                "terminals, namespaces and debuggers are read from /proc, where a process may not answer",
            ),
            calls: None,
        }
    }

    /// Whether they can be used.
    pub(super) fn work(&mut self) -> bool {
        self.holders.as_mut().is_none_or(|holders| holders.prove().is_ok())
            && self.tasks.as_ref().is_none_or(|tasks| tasks.prove().is_ok())
    }

    /// The hooks in use.
    pub(super) fn hooks(&self) -> impl std::iter::Iterator<Item = String> {
        let holders = self.holders.as_ref().map(|_| holders::PROGRAM.hook);
        let tasks = self.tasks.as_ref().map(|_| tasks::PROGRAM.hook);
        let calls = self.calls.as_ref().map(|_| CALL_HOOK);
        holders.into_iter().chain(tasks).chain(calls).map(str::to_owned)
    }
}

fn load<T>(programs: &Mutex<Ebpf>, program: Iterator, offsets: Result<T, LayoutError>) -> Result<(), String> {
    let loaded = offsets.map_err(KernelError::from).and_then(|_| {
        // Nothing panics while it is locked.
        program.load(&mut programs.lock().unwrap_or_else(PoisonError::into_inner))
    });
    loaded.map_err(|error| error.to_string())
}

fn told<T>(opened: Result<T, String>, program: Iterator, without: &str) -> Option<T> {
    opened.inspect_err(|error| tracing::warn!("{}: {error}; going on without: {without}", program.hook)).ok()
}
