//! The rows of a scene by process and by endpoint, and what follows from them without judgement.

use std::collections::BTreeSet;

use super::membership::Members;
use crate::{
    lineage::Graph,
    model::{
        ProcessId, Stdio, UnitFacts,
        scene::{Address, End, Endpoint, Holder, ProcessRow, Side},
    },
    reach::{Rows, is_standard_error},
    world::Server,
};

/// Ends that processes have: an endpoint, by its index, and a side of it.
pub type Sides = BTreeSet<(u32, Side)>;

/// The most levels that are climbed from a process.
const LEVELS: usize = 64;

impl<'a> Rows<'a> {
    fn of(&self, process: ProcessId) -> impl Iterator<Item = (&'a Endpoint, &'a End)> {
        let ends = self.by_process.get(&process).into_iter().flatten();
        ends.filter_map(|end| Some((self.scene.endpoint(end.endpoint)?, *end)))
    }

    fn opposite(&self, end: &End) -> impl Iterator<Item = &'a End> {
        let other = end.side.opposite();
        let ends = self.by_endpoint.get(&end.endpoint).into_iter().flatten().copied();
        ends.filter(move |one| Some(one.side) == other)
    }

    fn any(&self, process: ProcessId, is: impl Fn(&Endpoint, &End) -> bool) -> bool {
        self.of(process).any(|(at, end)| is(at, end))
    }

    /// Whether a process of a server, which has these ends, has the other end of such an end of this process.
    fn joins(&self, process: ProcessId, held: &Sides, is: impl Fn(&Endpoint, &End) -> bool) -> bool {
        self.any(process, |at, end| is_opposed(end, held) && is(at, end))
    }

    /// Who has an end, other than to read, of something that this process reads and waits at.
    pub fn writers_to(&self, copy: &ProcessRow) -> impl Iterator<Item = ProcessId> {
        let is_read = |at: &Endpoint| copy.reads.iter().any(|read| at.is(*read));
        let read = self.of(copy.process).filter(move |(at, _)| is_read(at));
        let ends = read.flat_map(|(_, end)| self.by_endpoint.get(&end.endpoint).into_iter().flatten());
        ends.filter(|end| end.side != Side::Reads).filter_map(|end| end.holder.process())
    }

    pub fn sides(&self, process: ProcessId) -> impl Iterator<Item = (u32, Side)> {
        self.by_process.get(&process).into_iter().flatten().map(|end| (end.endpoint, end.side))
    }

    pub fn sides_of(&self, processes: impl Iterator<Item = ProcessId>) -> Sides {
        processes.flat_map(|process| self.sides(process)).collect()
    }

    /// The rows of the processes that a server, or its launch chain, consists of, or that descend from them.
    pub fn full(&self, server: &Server) -> impl Iterator<Item = &'a ProcessRow> {
        let all: BTreeSet<ProcessId> = server.all().collect();
        all.into_iter().filter_map(|process| self.row(process)).filter(|row| row.full)
    }

    /// The unit of a server: that of one of its processes whose invocation is known, or else of any.
    pub fn unit(&self, server: &Server) -> Option<&'a UnitFacts> {
        let units = || self.full(server).filter_map(|row| row.unit.as_ref());
        units().find(|unit| unit.invocation_id.is_some()).or_else(|| units().next())
    }

    /// Whether the process has a socket that is open to others, or waits at a file that is.
    pub fn listens(&self, process: ProcessId) -> bool {
        self.any(process, |_, end| end.side == Side::Listens)
    }

    /// Whether it is the first process of a PID namespace: what is left below it becomes its child.
    pub fn leads_a_namespace(&self, process: ProcessId) -> bool {
        self.leaders.contains(&process)
    }

    /// Whether it has such a socket.
    pub fn has_listener(&self, process: ProcessId) -> bool {
        self.any(process, |at, _| matches!(at, Endpoint::Open { by, .. } if *by != Address::File))
    }

    pub fn is_at_a_chosen_port(&self, process: ProcessId) -> bool {
        self.any(process, |at, _| matches!(at, Endpoint::Open { chosen: true, .. }))
    }

    /// Whether this process of a server has a connection to somebody else, beside its wires and standard error.
    pub fn is_connected(&self, process: ProcessId, wires: [Stdio; 2], members: &Members) -> bool {
        let is_wire =
            |near: u64, far: u64| [near, far].iter().any(|one| wires.contains(&Stdio::Socket(*one)));
        self.any(process, |at, end| match at {
            Endpoint::Connection { near, far, .. } => {
                !is_wire(*near, *far)
                    && !is_standard_error(at, end)
                    && self.opposite(end).any(|other| !is_held_by(other, members))
            }
            _ => false,
        })
    }

    /// Whether it has called somebody who is none of these and no process of the server, and is connected still.
    pub fn has_called(&self, process: ProcessId, step: &[ProcessId], members: &Members) -> bool {
        let is_of_step = |end: &End| end.holder.process().is_some_and(|process| step.contains(&process));
        self.any(process, |at, end| {
            at.is_call()
                && !end.side.opposite().is_some_and(|far| at.was_begun_at(far))
                && self.opposite(end).any(|other| !is_of_step(other) && !is_held_by(other, members))
        })
    }

    /// The ends of those who have called this process and are none of these.
    pub fn other_callers(
        &self,
        process: ProcessId,
        is_one: impl Fn(ProcessId) -> bool,
    ) -> impl Iterator<Item = &End> {
        let calls = self.of(process).filter(|(at, end)| at.is_call() && !at.was_begun_at(end.side));
        let others = calls.flat_map(|(_, end)| self.opposite(end));
        others.filter(move |end| !end.holder.process().is_some_and(&is_one))
    }

    /// Whether a process of a server, which has these ends, is connected with a socket of this process.
    pub fn is_called_by(&self, process: ProcessId, held: &Sides) -> bool {
        self.joins(process, held, |at, _| matches!(at, Endpoint::Connection { .. }))
    }

    /// Whether the process has a channel to a process of a server, which has these ends: its end of a connection, or a pipe that it
    /// alone reads. What somebody inherited by accident, the server has as well, and a pipe is read by others, too. Its standard
    /// input is none, unless it is what another writes as its output (`exec > >(cat)`).
    pub fn has_a_channel(&self, process: ProcessId, held: &Sides) -> bool {
        let is_another = |end: &&End| end.side == Side::Reads && end.holder.process() != Some(process);
        let is_read_by_others =
            |end: &End| self.by_endpoint.get(&end.endpoint).into_iter().flatten().any(is_another);
        let is_output = |end: &End| end.numbers.iter().any(|number| matches!(number, 1 | 2));
        let is_input = |end: &End| end.numbers == [0] && !self.opposite(end).any(is_output);
        self.joins(process, held, |at, end| match at {
            _ if is_input(end) => false,
            Endpoint::Connection { .. } => !held.contains(&(end.endpoint, end.side)),
            Endpoint::Pipe { named: false, .. } => end.side == Side::Reads && !is_read_by_others(end),
            _ => false,
        })
    }

    /// Whether its standard input is all that joins the process with anything else, and leads to a process of a server, which has
    /// these ends. Many a runtime has pipes to itself (node).
    pub fn has_input_alone(&self, process: ProcessId, held: &Sides) -> bool {
        let is_own = |end: &&End| end.holder == Holder::Process(process);
        let is_joined = |end: &End| {
            !matches!(self.scene.endpoint(end.endpoint), Some(Endpoint::Pipe { named: false, .. }))
                || !self.by_endpoint.get(&end.endpoint).into_iter().flatten().all(is_own)
        };
        let mut ends = self.of(process).filter(|(_, end)| is_joined(end)).peekable();
        ends.peek().is_some() && ends.all(|(_, end)| end.numbers == [0] && is_opposed(end, held))
    }

    /// Whether the process waits for callers, and has no connection that a process of a server, which has these ends, began.
    pub fn serves_beyond(&self, process: ProcessId, held: &Sides) -> bool {
        let is_open = |at: &Endpoint| matches!(at, Endpoint::Open { by: Address::Tcp | Address::Unix, .. });
        self.any(process, |at, _| is_open(at))
            && !self.joins(process, held, |at, end| at.is_call() && !at.was_begun_at(end.side))
    }

    /// Whether others have the other end of this stream of the process, and no process of a server, which has these ends.
    pub fn is_read_elsewhere(&self, process: ProcessId, stream: Stdio, held: &Sides) -> bool {
        // Who was dialled on another host has no end here.
        let is_read =
            |at: &Endpoint, end: &End| at.was_begun_at(end.side) || self.opposite(end).next().is_some();
        self.any(process, |at, end| at.is(stream) && is_read(at, end) && !is_opposed(end, held))
    }

    /// Whether this stream of the process is a connection that was not begun on its side, and no pair of sockets.
    pub fn was_called_on(&self, process: ProcessId, stream: Stdio) -> bool {
        self.any(process, |at, end| at.is(stream) && at.is_call() && !at.was_begun_at(end.side))
    }

    /// Whether a process of a server, which has these ends, has the other end of one of these `streams` of this process.
    pub fn is_joined(&self, process: ProcessId, held: &Sides, streams: impl Fn(usize) -> bool) -> bool {
        let is_stream = |number: &u32| usize::try_from(*number).is_ok_and(&streams);
        self.joins(process, held, |at, end| at.is_nameless() && end.numbers.iter().any(is_stream))
    }

    /// Whether a process of a server, which has these ends, has the other end of a pipe, a pair of sockets or a connection of
    /// this process that the process did not begin itself, the server's wires apart.
    pub fn is_driven_by(&self, process: ProcessId, wires: [Stdio; 2], held: &Sides) -> bool {
        let is_wire = |at: &Endpoint| wires.into_iter().any(|wire| at.is(wire));
        self.joins(process, held, |at, end| at.is_nameless() && !is_wire(at) && !at.was_begun_at(end.side))
    }

    pub fn parent(&self, row: &ProcessRow) -> Option<&'a ProcessRow> {
        self.row(row.parent?)
    }

    pub fn parents(&self, row: &ProcessRow) -> impl Iterator<Item = ProcessId> {
        std::iter::successors(row.parent, |parent| self.row(*parent)?.parent).take(LEVELS)
    }

    /// The processes below these that no record has told of, each with the nearest of these above it.
    pub fn new_below(
        &self,
        members: &BTreeSet<ProcessId>,
        graph: &Graph,
    ) -> impl Iterator<Item = (ProcessId, ProcessId)> {
        let new = self.scene.processes.iter().filter(|row| graph.get(row.process).is_none());
        new.filter_map(|row| Some((row.process, self.parents(row).find(|parent| members.contains(parent))?)))
    }

    /// These processes, and those below them that no record has told of yet. What somebody started in a PID namespace from outside
    /// (nsenter(1)) becomes a child of the first process there, which never made it.
    pub fn with_new_children(&self, mut members: BTreeSet<ProcessId>, graph: &Graph) -> BTreeSet<ProcessId> {
        let new = self.new_below(&members, graph).filter(|(_, above)| !self.leads_a_namespace(*above));
        let new: Vec<ProcessId> = new.map(|(process, _)| process).collect();
        members.extend(new);
        members
    }

    /// The server's own ends of a wire: those that read standard input, or write standard output.
    fn own_ends(&self, wire: Stdio, reads: bool) -> impl Iterator<Item = &'a End> {
        let own = move |end: &End| self.scene.endpoint(end.endpoint)?.side_of(wire, reads);
        self.scene.ends.iter().filter(move |end| own(end) == Some(end.side))
    }

    /// Whether a process of the server has one of these wires as a standard stream, and no row tells of it: the rows are
    /// not of one moment.
    pub fn lack_an_end_of(&self, wires: [Stdio; 2], members: &Members) -> bool {
        let has =
            |wire: Stdio| members.all().filter_map(|one| self.row(one)).any(|row| row.stdio.contains(&wire));
        let is_told =
            |wire| [true, false].into_iter().any(|reads| self.own_ends(wire, reads).next().is_some());
        wires.into_iter().any(|wire| wire.is_wire() && has(wire) && !is_told(wire))
    }

    /// Whether one of these processes of the server still has its own end of this wire.
    pub fn has_own_end(&self, wire: Stdio, reads: bool, is_one: impl Fn(ProcessId) -> bool) -> bool {
        self.own_ends(wire, reads).any(|end| end.holder.process().is_some_and(&is_one))
    }

    /// Who has the other end of this wire, beside processes of the server.
    pub fn others_at(&self, wire: Stdio, reads: bool, members: &BTreeSet<ProcessId>) -> Vec<Holder> {
        let is_outside =
            |holder: &Holder| !matches!(holder, Holder::Process(process) if members.contains(process));
        // If somebody else has the same end, it is not the server's.
        let is_another = |own: &&End| own.holder.process().is_some() && is_outside(&own.holder);
        let mut found = BTreeSet::new();
        for own in self.own_ends(wire, reads).filter(|own| !is_another(own)) {
            let is_named =
                matches!(self.scene.endpoint(own.endpoint), Some(Endpoint::Pipe { named: true, .. }));
            let others: Vec<&End> = self.opposite(own).collect();
            let is_open = is_named || others.iter().any(|other| other.beyond);
            found.extend(is_open.then_some(Holder::Anybody));
            found.extend((own.holder == Holder::Unreadable).then_some(own.holder));
            found.extend(others.iter().map(|other| other.holder).filter(is_outside));
        }
        found.into_iter().collect()
    }

    /// Whether the process has its end of this wire, a nameless pipe or a pair of sockets, and nobody has the other, itself included.
    pub fn is_over(&self, process: ProcessId, wire: Stdio, reads: bool) -> bool {
        let is_own = |at: &Endpoint, end: &End| at.side_of(wire, reads) == Some(end.side);
        let mut own = self.of(process).filter(|(at, end)| is_own(at, end)).peekable();
        let is_alone = |at: &Endpoint, end: &End| {
            at.is_nameless() && !at.is_call() && self.opposite(end).next().is_none()
        };
        own.peek().is_some() && own.all(|(at, end)| is_alone(at, end))
    }

    /// Whether nobody outside of the server has the other end of this wire.
    pub fn is_hung_up(&self, wire: Stdio, reads: bool, members: &Members) -> bool {
        wire.is_wire() && self.others_at(wire, reads, &members.all().collect()).is_empty()
    }
}

fn is_opposed(end: &End, held: &Sides) -> bool {
    end.side.opposite().is_some_and(|side| held.contains(&(end.endpoint, side)))
}

fn is_held_by(end: &End, members: &Members) -> bool {
    matches!(end.holder, Holder::Process(process) if members.contains(process))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::scene::{Began, Scene};

    /// A pair of sockets that a server has for itself, and its end of a pair to a helper, as a job inherits them. The twin is the
    /// other end of a pair.
    #[test]
    fn what_the_server_has_as_well_is_no_channel() {
        let [server, job] = [1, 2].map(|pid| ProcessId::new(pid, 1));
        for (of_server, of_job, is_one) in [
            (&[Side::Near, Side::Far][..], &[Side::Near, Side::Far][..], false),
            (&[Side::Near], &[Side::Near], false),
            (&[Side::Near], &[Side::Far], true),
        ] {
            let end = |process, side: &Side| End {
                endpoint: 0,
                holder: Holder::Process(process),
                side: *side,
                numbers: vec![7],
                beyond: false,
            };
            let ends = of_server.iter().map(|side| end(server, side));
            let scene = Scene {
                endpoints: vec![Endpoint::Connection { near: 1, far: 2, began: Began::Pair }],
                ends: ends.chain(of_job.iter().map(|side| end(job, side))).collect(),
                ..Scene::default()
            };
            let rows = Rows::new(&scene);
            let held = rows.sides(server).collect();
            assert_eq!(rows.has_a_channel(job, &held), is_one, "{of_server:?} {of_job:?}");
        }
    }
}
