//! The readers: they find the rows of a [`Scene`] on the host, one file a source. No reader concludes anything. What it
//! cannot find out is a row of its own, of `Holder::Anybody` or `Holder::Unreadable`.
//!
//! Invariant: nothing is changed on the host, and the work is bounded: by [`descriptors::MOST`] descriptors of the
//! processes that were asked about, by the holders that are described ([`rows`]), and by [`ROUNDS`] passes over all
//! descriptors of the host. For `probe`.
//!
//! The processes of the server that is due tell their pipes and sockets. The tables of their network namespaces tell what the
//! sockets are, and the other ends. One pass of the kernel over all descriptors tells the holders of all these. If one
//! of them belongs to another server that was asked about, or descends from a process that was asked about and nobody had
//! heard of it, it is read like them in a further round.

pub(crate) mod activity;
mod dependents;
mod descriptors;
mod direction;
mod holders;
mod holdings;
mod inet;
mod joints;
mod networks;
mod part;
pub(crate) mod pipe;
mod process;
mod rows;
mod shared;
#[cfg(test)]
mod tests;
mod unix;
mod unlisted;
mod waits;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use self::holdings::{holdings, ports};

use self::{
    joints::Joints,
    rows::{ENDS, Found, Rows},
};
use crate::{
    host::{Proc, Room},
    source::kernel_side::KernelSide,
};
use orphand_core::model::{
    ProcessId, UnitFacts,
    scene::{End, Scene, SceneQuestion, Side},
};

/// The most rounds. Who would be read in a further one is described in brief, and its descriptors are not looked at.
const ROUNDS: usize = 6;
/// How many are read alone of those that could not be read whole together, each by [`ROUNDS`] passes at most.
const ALONE: usize = 4;
/// After this round all that were asked about are read, joined or not.
const NEAR: usize = 3;

pub(crate) struct Reader<'a> {
    pub proc: &'a Proc,
    pub kernel: &'a KernelSide,
    pub unit: &'a dyn Fn(ProcessId) -> Option<UnitFacts>,
}

impl Reader<'_> {
    /// One moment for all these questions, a scene for each: the first of its servers (all its copies if there is no server),
    /// and whoever of the others is joined with that, directly or through others. Who is joined with none of them cannot
    /// reach it.
    pub fn scenes(&self, questions: &[&SceneQuestion]) -> Vec<Scene> {
        let mut room = Room::default();
        let mut parts = self.parts(questions, true);
        parts
            .iter_mut()
            .flat_map(|part| &mut part.processes)
            .for_each(|row| room.fit(row.uid, &mut row.image));
        parts
    }

    /// `once_more`: what could not be read whole is read at a second moment, all of it together. The end of one process while its
    /// descriptors are read concerns all that are joined with it. What is not whole then is read alone, a few of it: another one's
    /// wire may have more holders than a pass tells.
    fn parts(&self, questions: &[&SceneQuestion], once_more: bool) -> Vec<Scene> {
        let Found { scene, is_full, .. } = self.moment(questions);
        if let [_] = questions {
            return vec![scene];
        }
        let (mut parts, mut torn, mut room) = (Vec::new(), Vec::new(), ENDS);
        for (at, question) in questions.iter().enumerate() {
            // All of them together may be the reason that there was no room.
            let alone = if is_full && room > 0 { self.parts(&[question], false).pop() } else { None };
            let part = alone.unwrap_or_else(|| part::of(&scene, question));
            let is_torn = !is_full && part.ends.len() <= room && !part::is_whole(&part);
            let part = part::fitted(part, &mut room);
            torn.extend(is_torn.then_some((at, *question)));
            parts.push(part);
        }
        if torn.is_empty() {
            return parts;
        }
        let (places, again): (Vec<usize>, Vec<&SceneQuestion>) = torn.into_iter().unzip();
        let again: Box<dyn Iterator<Item = Scene>> = if once_more {
            Box::new(self.parts(&again, false).into_iter())
        } else {
            Box::new(again.iter().take(ALONE).filter_map(|one| self.parts(&[one], false).pop()))
        };
        for (at, part) in places.into_iter().zip(again) {
            if let Some(torn) = parts.get_mut(at) {
                room += torn.ends.len();
                *torn = part::fitted(part, &mut room);
            }
        }
        parts
    }

    /// What there is of these, and of those who are joined with them.
    fn moment(&self, questions: &[&SceneQuestion]) -> Found {
        let all = Groups::of(questions);
        let mut asked: BTreeSet<ProcessId> = questions.iter().flat_map(|one| due(one)).collect();
        let mut round = 1;
        loop {
            let found = self.once(questions, &asked);
            let mut next = all.joined(found.scene.ends.iter(), &asked);
            next.extend(&found.children);
            if next.is_empty() || round == ROUNDS {
                return found;
            }
            if round == NEAR {
                next.extend(all.0.keys());
            }
            asked.extend(next);
            round += 1;
        }
    }

    /// The scene of these processes.
    fn once(&self, questions: &[&SceneQuestion], asked: &BTreeSet<ProcessId>) -> Found {
        let mut rows = Rows::new(self.proc, self.unit, asked);
        let (members, ports) = process::all(&mut rows, questions);
        let mut joints = Joints::new(&members, ports, questions, asked);
        networks::read(&mut rows, &members, &mut joints, self.kernel);
        let lines = holders::enter(self.kernel, &mut rows, &members, &mut joints);
        dependents::enter(&mut rows, &members, &lines, self.kernel);
        rows.finish()
    }
}

/// Who is due in this question.
fn due(question: &SceneQuestion) -> impl Iterator<Item = ProcessId> {
    let due = question.servers.first().map_or(&question.copies, |server| &server.processes);
    due.iter().copied()
}

/// What is read together, by each process of it: the processes of a server, and each copy for itself.
struct Groups<'q>(BTreeMap<ProcessId, &'q [ProcessId]>);

impl<'q> Groups<'q> {
    fn of(questions: &[&'q SceneQuestion]) -> Self {
        let groups = |question: &&'q SceneQuestion| {
            let servers = question.servers.iter().map(|server| &*server.processes);
            servers.chain(question.copies.iter().map(std::slice::from_ref))
        };
        let all = questions.iter().flat_map(groups);
        Self(all.flat_map(|group| group.iter().map(move |one| (*one, group))).collect())
    }

    /// The groups of which a process has the other end of what an asked process has an end of, or an end of what no
    /// asked process has: a wire that was handed on. Who merely shares an end, as standard error is shared, is not
    /// joined.
    fn joined<'e>(
        &self,
        ends: impl Iterator<Item = &'e End> + Clone,
        asked: &BTreeSet<ProcessId>,
    ) -> BTreeSet<ProcessId> {
        let mut sides: BTreeMap<u32, BTreeSet<Side>> = BTreeMap::new();
        let is_asked = |end: &&End| end.holder.process().is_some_and(|one| asked.contains(&one));
        for end in ends.clone().filter(is_asked) {
            sides.entry(end.endpoint).or_default().insert(end.side);
        }
        let is_opposite = |end: &&End| {
            sides.get(&end.endpoint).is_none_or(|sides| sides.iter().any(|side| *side != end.side))
        };
        let groups: BTreeMap<Option<&ProcessId>, &[ProcessId]> = ends
            .filter(is_opposite)
            .filter_map(|end| self.0.get(&end.holder.process()?))
            .map(|group| (group.first(), *group))
            .collect();
        let joined = groups.into_values().flatten().copied();
        joined.filter(|process| !asked.contains(process)).collect()
    }
}
