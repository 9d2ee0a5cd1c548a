//! Which owners in a report have series of their own, and whose share a server uses.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    OWNERS_OF_ALL, OWNERS_OF_USER,
    labels::{self, Labels},
};
use orphand_core::model::{AgentView, Report, ServerView, Share};

/// The user whose share a server uses.
pub(super) fn user(server: &ServerView) -> u32 {
    let of_run = || server.run.as_ref().and_then(|run| run.uid);
    server.processes.first().map(|process| process.uid).or_else(of_run).unwrap_or_default()
}

/// The name of an owner.
pub(super) fn name(owner: Option<&AgentView>) -> Option<&str> {
    owner.map(|owner| owner.name.as_str())
}

/// The owners that have series of their own.
#[derive(Debug, Default)]
pub(in crate::sink) struct OwnersWithSeries(BTreeSet<Labels>);

/// The rank of an owner: with live servers first, then with a live run, then the rest.
type Liveness = Reverse<u8>;

impl OwnersWithSeries {
    /// Chooses the owners: live ones first, a few per user, and one of each user before any user's second.
    pub(in crate::sink) fn of(report: &Report) -> Self {
        let mut owners: BTreeMap<Labels, (u32, Liveness)> = BTreeMap::new();
        let mut add = |labels: Labels, user: u32, liveness: u8| {
            let known = owners.entry(labels).or_insert((user, Reverse(liveness)));
            known.1 = known.1.min(Reverse(liveness));
        };
        for run in &report.runs {
            add(labels::owner(Some(&run.run), None), run.user, u8::from(run.alive));
        }
        for (owner, server) in report.servers() {
            add(labels::owner(server.server.run.as_ref(), name(owner)), user(&server.server), 2);
        }
        for agent in &report.agents {
            if let Some(left) = &agent.left_behind {
                let labels = labels::owner(left.server.run.as_ref(), name(Some(&agent.agent)));
                add(labels, user(&left.server), 2);
            }
        }
        let mut all: Vec<_> =
            owners.into_iter().map(|(labels, (user, liveness))| (liveness, labels, user)).collect();
        all.sort_unstable();
        let mut of_user: BTreeMap<u32, usize> = BTreeMap::new();
        let mut of_share: BTreeMap<Share, usize> = BTreeMap::new();
        let mut ranked = Vec::new();
        for (liveness, labels, user) in all {
            let of_user = of_user.entry(user).or_default();
            *of_user += 1;
            if *of_user <= OWNERS_OF_USER {
                let rank = of_share.entry(Share::of(user)).or_default();
                *rank += 1;
                ranked.push((*rank, liveness, labels));
            }
        }
        ranked.sort_unstable();
        Self(ranked.into_iter().take(OWNERS_OF_ALL).map(|(_, _, labels)| labels).collect())
    }

    pub(super) fn has(&self, owner: &Labels) -> bool {
        self.0.contains(owner)
    }

    pub(in crate::sink) fn or_other(&self, owner: Labels) -> Labels {
        if self.has(&owner) { owner } else { labels::other() }
    }
}
