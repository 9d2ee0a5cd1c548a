//! What is told in which order: about servers, and about agents.

use std::collections::{BTreeMap, BTreeSet};

use orphand_core::model::{BootTime, Notice, ProcessId};

use crate::{
    host::Host,
    laws::{server_of, weak},
};

/// What may follow what: a verdict follows a suspicion with its whole grace between, a reap follows a verdict.
pub fn order(host: &Host) -> Vec<String> {
    let mut found = Vec::new();
    let mut suspected: BTreeMap<&str, BootTime> = BTreeMap::new();
    let mut judged: BTreeSet<&str> = BTreeSet::new();
    let mut abandoned: BTreeSet<&str> = BTreeSet::new();
    let mut begun: BTreeSet<&str> = BTreeSet::new();
    for (_, told, notice) in host.log.notices() {
        let Some(view) = server_of(notice) else { continue };
        let id = view.id.as_str();
        let mut wrong = |what: &str| found.push(format!("server {id} at {told:?}: {what}"));
        match notice {
            Notice::ServerStarted { .. } if !begun.insert(id) => wrong("started twice"),
            Notice::ServerStarted { .. } => {}
            // What is left of it may turn out to be a server again when the graph is repaired.
            Notice::ServerExited { .. } if host.truth.partial => drop(begun.remove(id)),
            Notice::OrphanCleared { reason, .. }
                if host.truth.lossy && reason == "exited" && suspected.remove(id).is_some() =>
            {
                begun.remove(id);
            }
            _ if !begun.contains(id) => wrong("spoken of before it started"),
            // A host that the repair knows again takes its suspects back without a word.
            // The exit of an owner that had abandoned it is another reason.
            Notice::OrphanSuspected { deadline, owner, .. } => {
                let before = suspected.insert(id, *deadline).is_some();
                let again = before && !abandoned.contains(id) && !host.truth.lossy;
                if owner.as_ref().is_some_and(|owner| owner.alive) {
                    abandoned.insert(id);
                }
                if again {
                    wrong("suspected twice");
                }
            }
            // One without a known owner is looked at without a word.
            Notice::OrphanUnproven { .. } => drop(suspected.entry(id).or_insert(told)),
            // A server found without an owner is looked at without a word until somebody turns out to host it.
            Notice::OrphanCleared { reason, .. } if reason == "owner_found" => drop(suspected.remove(id)),
            Notice::OrphanCleared { .. } if suspected.remove(id).is_none() => wrong("cleared, not suspected"),
            Notice::OrphanDetected { .. } => {
                let deadline = suspected.get(id);
                if !weak(notice) && deadline.is_none_or(|d| told < *d) {
                    wrong("judged before its grace had passed");
                }
                judged.insert(id);
            }
            Notice::OrphanSpared { .. } | Notice::OrphanReaped { .. } | Notice::OrphanExited { .. }
                if !judged.contains(id) =>
            {
                wrong("treated as an orphan without a verdict");
            }
            _ => {}
        }
    }
    found
}

/// At most one agent lives under a number; each starts once and exits once.
pub fn agents(host: &Host) -> Vec<String> {
    let mut found = Vec::new();
    let (mut alive, mut nameless) = (BTreeMap::<u32, u64>::new(), BTreeSet::new());
    for (_, told, notice) in host.log.notices() {
        match notice {
            Notice::AgentStarted { agent, .. } => {
                // It ended before anybody could ask what it was, and the kernel side may have let go of it by then.
                nameless.extend(Some(agent.pid).filter(|_| agent.name.is_empty()));
                if let Some(old) = alive.insert(agent.pid, agent.start) {
                    found.push(format!(
                        "agents {0}@{old} and {0}@{1} at once at {told:?}",
                        agent.pid, agent.start
                    ));
                }
            }
            Notice::AgentExited { agent, .. } if alive.remove(&agent.pid) != Some(agent.start) => {
                found.push(format!("agent {}@{} exited without having started", agent.pid, agent.start));
            }
            _ => {}
        }
    }
    for (pid, start) in alive {
        if !nameless.contains(&pid) && !host.kernel.alive(ProcessId::new(pid, start)) {
            found.push(format!("agent {pid}@{start} is gone and its exit was not told"));
        }
    }
    found
}
