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
pub(crate) mod descriptors;
pub(crate) mod direction;
mod holders;
mod holdings;
pub(crate) mod index;
mod inet;
mod joints;
pub(crate) mod networks;
pub(crate) mod pipe;
mod process;
mod rows;
mod shared;
#[cfg(test)]
mod tests;
pub(crate) mod tracers;
mod unix;
pub(crate) mod unlisted;
pub(crate) mod unread;
pub(crate) mod waits;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use self::holdings::holdings;

use self::{joints::Joints, rows::Rows};
use crate::host::{Beside, Caller, OpenEnd, Proc, TaskRow};
use orphand_core::model::{
    ProcessId, Stdio, UnitFacts,
    scene::{Called, End, Scene, SceneQuestion, Side},
};

/// The most rounds. Who would be read in a further one is described in brief, and its descriptors are not looked at.
const ROUNDS: usize = 6;
/// After this round all that were asked about are read, joined or not.
const NEAR: usize = 3;

/// A pass over all descriptors of the host for these pipes and sockets, and what is asked beside; an error says why there is
/// none.
pub(crate) type Pass<'a> = dyn Fn(&[Stdio], &Beside) -> Result<Vec<OpenEnd>, String> + 'a;

/// All tasks of the host; an error says why they cannot be told.
pub(crate) type AllTasks<'a> = dyn Fn() -> Result<Vec<TaskRow>, String> + 'a;

/// What the readers read with.
pub(crate) struct Reader<'a> {
    /// The processes of the host.
    pub proc: &'a Proc,
    /// The passes of the kernel over all descriptors, if there are any.
    pub pass: Option<&'a Pass<'a>>,
    /// All tasks of the host, by the kernel's own pass if there is one.
    pub tasks: &'a AllTasks<'a>,
    /// Tells the unit of a process.
    pub unit: &'a dyn Fn(ProcessId) -> Option<UnitFacts>,
    /// Tells who called a TCP port lately at which a process listens.
    pub caller: &'a dyn Fn(u16, ProcessId) -> Caller,
}

impl Reader<'_> {
    /// The scene of the first of these servers (of all copies if there is no server), and of whoever of the others is
    /// joined with it, directly or through others: who is joined with none of them cannot reach it.
    pub fn scene(&self, question: &SceneQuestion) -> Scene {
        let all = Groups::of(question);
        let due = question.servers.first().map_or(&question.copies, |server| &server.processes);
        let mut asked: BTreeSet<ProcessId> = due.iter().copied().collect();
        let mut round = 1;
        loop {
            let (scene, children) = self.once(question, &asked);
            let mut next: BTreeSet<ProcessId> = children;
            next.extend(all.joined(&scene, &asked).filter(|process| !asked.contains(process)));
            if next.is_empty() || round == ROUNDS {
                return scene;
            }
            if round == NEAR {
                next.extend(all.all());
            }
            asked.extend(next);
            round += 1;
        }
    }

    /// The scene of these processes, and the descendants of them that hold an end and were not asked about.
    fn once(&self, question: &SceneQuestion, asked: &BTreeSet<ProcessId>) -> (Scene, BTreeSet<ProcessId>) {
        let mut rows = Rows::new(self.proc, self.unit, asked);
        let members = process::all(&mut rows, question);
        let mut joints = Joints::new(&members, question, asked);
        networks::read(&mut rows, &members, &mut joints, &|port, holders| {
            self.called(question, port, holders)
        });
        holders::enter(self, &mut rows, &members, &mut joints);
        dependents::enter(&mut rows, &members, self.tasks);
        rows.finish()
    }
}

impl Reader<'_> {
    /// Whether anybody called this TCP port lately who is no process of the same server as its holders.
    fn called(&self, question: &SceneQuestion, port: u16, holders: &[ProcessId]) -> Called {
        let is_own = |holder: ProcessId, caller: ProcessId| {
            let mut all = question.servers.iter().map(|server| &server.processes);
            all.any(|processes| processes.contains(&holder) && processes.contains(&caller))
        };
        let by = |holder: &ProcessId| match (self.caller)(port, *holder) {
            Caller::Nobody => Called::No,
            Caller::Process(caller) if is_own(*holder, caller) => Called::No,
            Caller::Process(_) | Caller::Anybody => Called::Yes,
            Caller::Unknown => Called::Unknown,
        };
        let all: Vec<Called> = holders.iter().map(by).collect();
        let is = |one: Called| all.contains(&one).then_some(one);
        is(Called::Yes).or(is(Called::Unknown)).unwrap_or(Called::No)
    }
}

/// What is read together: the processes of a server, and each copy for itself.
struct Groups<'q> {
    all: Vec<&'q [ProcessId]>,
    /// The group of each process, by its index.
    of: BTreeMap<ProcessId, usize>,
}

impl<'q> Groups<'q> {
    fn of(question: &'q SceneQuestion) -> Self {
        let servers = question.servers.iter().map(|server| &*server.processes);
        let all: Vec<_> = servers.chain(question.copies.iter().map(std::slice::from_ref)).collect();
        let of = all.iter().enumerate().flat_map(|(at, group)| group.iter().map(move |one| (*one, at)));
        Self { of: of.collect(), all }
    }

    fn all(&self) -> impl Iterator<Item = ProcessId> {
        self.of.keys().copied()
    }

    /// The groups of which a process has the other end of what an asked process has an end of, or an end of what no
    /// asked process has: a wire that was handed on. Who merely shares an end, as standard error is shared, is not
    /// joined.
    fn joined(&self, scene: &Scene, asked: &BTreeSet<ProcessId>) -> impl Iterator<Item = ProcessId> {
        let mut sides: BTreeMap<u32, BTreeSet<Side>> = BTreeMap::new();
        for end in
            scene.ends.iter().filter(|end| end.holder.process().is_some_and(|one| asked.contains(&one)))
        {
            sides.entry(end.endpoint).or_default().insert(end.side);
        }
        let is_opposite = |end: &&End| {
            sides.get(&end.endpoint).is_none_or(|sides| sides.iter().any(|side| *side != end.side))
        };
        let ends = scene.ends.iter().filter(is_opposite);
        let groups: BTreeSet<usize> = ends
            .filter_map(|end| end.holder.process())
            .filter_map(|one| self.of.get(&one))
            .copied()
            .collect();
        groups.into_iter().filter_map(|at| self.all.get(at).copied()).flatten().copied()
    }
}
