//! What is told of leftovers: only of an agent that has ended, after its grace, and never of a server or an agent.

use std::collections::{BTreeMap, BTreeSet};

use orphand_core::model::{BootTime, Notice, ProcessId};

use crate::host::Host;

/// Each event has a head that was not told before.
pub fn leftovers(host: &Host) -> Vec<String> {
    let mut found = Vec::new();
    let mut exited: BTreeMap<ProcessId, BootTime> = BTreeMap::new();
    let mut before: BTreeSet<ProcessId> = BTreeSet::new();
    let whole = !host.truth.lossy && !host.truth.partial && !host.manners.blind;
    for (at, told, notice) in host.log.notices() {
        match notice {
            Notice::AgentExited { agent, .. } => {
                exited.insert(ProcessId::new(agent.pid, agent.start), at);
            }
            Notice::LeftoversFound { agent, processes, .. } => {
                let id = ProcessId::new(agent.pid, agent.start);
                let mut wrong = |what: &str| found.push(format!("leftovers of {id} at {told:?}: {what}"));
                if exited.get(&id).is_none_or(|at| told < *at + host.policy.grace) {
                    wrong("its grace has not passed");
                }
                let heads: Vec<ProcessId> =
                    processes.iter().map(|one| ProcessId::new(one.process.pid, one.process.start)).collect();
                if heads.iter().filter(|head| before.insert(**head)).count() == 0 {
                    wrong("nothing is new");
                }
                for head in heads.into_iter().filter(|_| whole) {
                    let is_server = host.truth.services.iter().any(|one| !one.over && one.leaf() == head);
                    if is_server && host.kernel.alive(head) {
                        wrong(&format!("{head} is a server"));
                    }
                    if host.truth.agents.contains(&head) && host.kernel.alive(head) {
                        wrong(&format!("{head} is an agent"));
                    }
                }
            }
            _ => {}
        }
    }
    found
}
