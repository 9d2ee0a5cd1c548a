//! Who has series of its own, of those that a report names; and whose share something counts for.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    OWNERS_OF_ALL, OWNERS_OF_USER,
    labels::{self, Labels},
};
use orphand_core::model::{AgentView, Report, ServerView, Share};

/// The user whose share a server counts for.
pub(super) fn user(server: &ServerView) -> u32 {
    let of_run = || server.run.as_ref().and_then(|run| run.uid);
    server.processes.first().map(|process| process.uid).or_else(of_run).unwrap_or_default()
}

/// An owner by name.
pub(super) fn name(owner: Option<&AgentView>) -> Option<&str> {
    owner.map(|owner| owner.name.as_str())
}

/// The owners that have series of their own.
#[derive(Debug, Default)]
pub(super) struct Own(BTreeSet<Labels>);

/// How much of an owner lives: servers first, then runs, then what is over.
type Life = Reverse<u8>;

impl Own {
    /// Those of whom something lives come first; of each user a few, each share's first before anybody's second.
    pub(super) fn of(report: &Report) -> Self {
        let mut lives: BTreeMap<Labels, (u32, Life)> = BTreeMap::new();
        let mut meet = |labels: Labels, user: u32, life: u8| {
            let known = lives.entry(labels).or_insert((user, Reverse(life)));
            known.1 = known.1.min(Reverse(life));
        };
        for run in &report.runs {
            meet(labels::owner(Some(&run.run), None), run.user, u8::from(run.alive));
        }
        for (owner, server) in report.servers() {
            meet(labels::owner(server.server.run.as_ref(), name(owner)), user(&server.server), 2);
        }
        for agent in &report.agents {
            if let Some(left) = &agent.left_behind {
                let labels = labels::owner(left.server.run.as_ref(), name(Some(&agent.agent)));
                meet(labels, user(&left.server), 2);
            }
        }
        let mut all: Vec<_> = lives.into_iter().map(|(labels, (user, life))| (life, labels, user)).collect();
        all.sort_unstable();
        let mut of_user: BTreeMap<u32, usize> = BTreeMap::new();
        let mut of_share: BTreeMap<Share, usize> = BTreeMap::new();
        let mut ranked = Vec::new();
        for (life, labels, user) in all {
            let of_user = of_user.entry(user).or_default();
            *of_user += 1;
            if *of_user <= OWNERS_OF_USER {
                let rank = of_share.entry(Share::of(user)).or_default();
                *rank += 1;
                ranked.push((*rank, life, labels));
            }
        }
        ranked.sort_unstable();
        Self(ranked.into_iter().take(OWNERS_OF_ALL).map(|(_, _, labels)| labels).collect())
    }

    pub(super) fn has(&self, owner: &Labels) -> bool {
        self.0.contains(owner)
    }

    pub(super) fn or_other(&self, owner: Labels) -> Labels {
        if self.has(&owner) { owner } else { labels::other() }
    }
}
