//! Labels of series, and which owners have series of their own. Empty labels are left out. Names that processes chose are
//! sanitised, because a terminal may show them.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{OWNERS_OF_ALL, OWNERS_OF_USER};
use orphand_core::model::{AgentView, Class, Report, RunView, ServerView, Share, text::sanitise};

pub(in crate::sink) type Labels = Vec<(&'static str, String)>;

/// The owner of a server: the agent of its run, otherwise the owner's name, otherwise `none`.
pub(in crate::sink) fn owner(run: Option<&RunView>, owner: Option<&str>) -> Labels {
    let harmless = |name: &str| sanitise(name).into_owned();
    let Some(run) = run else { return vec![("agent", harmless(owner.unwrap_or("none")))] };
    let mut labels = vec![("agent", harmless(&run.agent))];
    if let Some(unit) = &run.unit {
        labels.push(("unit", harmless(unit)));
        let manager = run.manager.iter().filter(|manager| !manager.is_empty());
        labels.extend(manager.map(|manager| ("manager", harmless(manager))));
    } else if let Some(uid) = run.uid.filter(|uid| *uid != 0) {
        labels.push(("uid", uid.to_string()));
    }
    labels
}

pub(super) fn owner_of(server: &ServerView, agent: Option<&AgentView>) -> Labels {
    owner(server.run.as_ref(), agent.map(|agent| agent.name.as_str()))
}

pub(super) fn other() -> Labels {
    vec![("agent", "other".to_owned())]
}

pub(super) fn with(labels: &Labels, name: &'static str, value: impl Into<String>) -> Labels {
    [labels.as_slice(), &[(name, value.into())]].concat()
}

/// The class of agents that were left behind; servers have none.
pub(super) fn of_class(class: Class) -> Labels {
    if class == Class::Agent { vec![("class", "agent".to_owned())] } else { Labels::new() }
}

pub(super) fn user(server: &ServerView) -> u32 {
    let of_run = || server.run.as_ref().and_then(|run| run.uid);
    server.processes.first().map(|process| process.uid).or_else(of_run).unwrap_or_default()
}

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
            add(owner(Some(&run.run), None), run.user, u8::from(run.alive));
        }
        for (agent, server) in report.servers().chain(report.left_agents()) {
            add(owner_of(&server.server, agent), user(&server.server), 2);
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
        if self.has(&owner) { owner } else { other() }
    }
}
