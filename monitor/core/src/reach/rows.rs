//! The rows of a scene by process and by endpoint. `verdict` has further questions about them.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    ProcessId,
    scene::{End, Endpoint, Holder, ProcessRow, Scene, Side},
};

#[derive(Debug)]
pub struct Rows<'a> {
    pub scene: &'a Scene,
    processes: BTreeMap<ProcessId, &'a ProcessRow>,
    pub by_process: BTreeMap<ProcessId, Vec<&'a End>>,
    pub by_endpoint: BTreeMap<u32, Vec<&'a End>>,
    /// The first processes of PID namespaces.
    pub leaders: BTreeSet<ProcessId>,
}

impl<'a> Rows<'a> {
    pub fn new(scene: &'a Scene) -> Self {
        let mut by_process: BTreeMap<ProcessId, Vec<&End>> = BTreeMap::new();
        let mut by_endpoint: BTreeMap<u32, Vec<&End>> = BTreeMap::new();
        for end in &scene.ends {
            by_endpoint.entry(end.endpoint).or_default().push(end);
            if let Holder::Process(process) = end.holder {
                by_process.entry(process).or_default().push(end);
            }
        }
        let processes = scene.processes.iter().map(|row| (row.process, row)).collect();
        let leads = |end: &&End| {
            end.side == Side::Serves && scene.endpoint(end.endpoint) == Some(&Endpoint::PidNamespace)
        };
        let leaders = scene.ends.iter().filter(leads).filter_map(|end| end.holder.process()).collect();
        Self { scene, processes, by_process, by_endpoint, leaders }
    }

    pub fn row(&self, process: ProcessId) -> Option<&'a ProcessRow> {
        self.processes.get(&process).copied()
    }
}
