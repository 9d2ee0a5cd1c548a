//! What the host says about branches of processes that an ended agent left.

use super::{Probe, ports};
use crate::host::{Lodging, slices, with_deadline};
use orphand_core::model::{Branch, ProcessId, SHOWN};

impl Probe {
    /// The branches whose heads are still there; the head of each comes first. Ports are read of the first 64, which
    /// are shown.
    pub(super) fn leftovers(&self, branches: &[Vec<ProcessId>]) -> Vec<Branch> {
        let one = |(at, branch): (usize, &Vec<ProcessId>)| self.branch(branch, at < SHOWN);
        branches.iter().enumerate().filter_map(one).collect()
    }

    fn branch(&self, processes: &[ProcessId], with_ports: bool) -> Option<Branch> {
        let head = *processes.first()?;
        let dir = self.proc.identified(head).ok()??;
        let place = dir.cgroup().ok().map(|cgroup| Lodging::place(&cgroup));
        let is_here = |process: &ProcessId| {
            *process == head || place.is_some() && self.lodging_of(*process).map(|(place, _)| place) == place
        };
        let (here, apart): (Vec<ProcessId>, Vec<ProcessId>) = processes.iter().partition(|one| is_here(one));
        let used = self.proc.used(&here);
        Some(Branch {
            head,
            parent: self.proc.ancestors(&dir).next().map(|parent| parent.id()),
            rss_bytes: used.iter().map(|one| one.rss_bytes).sum(),
            cpu_ms: used.iter().map(|one| one.cpu_ms).sum(),
            listens: if with_ports { ports(&self.proc, &here) } else { Vec::new() },
            place,
            apart,
        })
    }

    fn lodging_of(&self, process: ProcessId) -> Option<(String, Vec<String>)> {
        let cgroup = self.proc.identified(process).ok()??.cgroup().ok()?;
        Some((Lodging::place(&cgroup), slices(&cgroup)))
    }

    /// The place of this process among services and scopes, as text to be compared, and the slices above it; `None` if it cannot
    /// be read.
    pub fn place_of(&self, process: ProcessId) -> Option<(String, Vec<String>)> {
        let this = self.clone();
        with_deadline(move || this.lodging_of(process))
    }
}
