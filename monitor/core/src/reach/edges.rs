//! The edges of a scene that lead to candidates: whoever has the other end of something that a candidate has an end of.
//!
//! Through it somebody can make the candidate act (send), waits for what it produces (receive), may begin to (an open
//! listener), or would end with it (depend).

use std::collections::{BTreeMap, BTreeSet};

use super::{
    exceptions,
    party::{Kind, Party},
    rows::Rows,
};
use crate::{
    model::{
        ProcessId,
        scene::{Address, Called, End, Endpoint, Holder, ProcessRow, Side},
    },
    recognise::is_debugger,
};

/// An edge that counts, to a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    pub from: Source,
    /// To which candidate, by its index.
    pub to: usize,
    pub way: Way,
    /// Over which endpoint of the scene, by its index.
    pub endpoint: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A process that acts by itself.
    Root(ProcessId),
    /// A process of another candidate, which has this index.
    Party(usize, ProcessId),
    /// Whoever cannot be seen.
    Anybody,
    /// Whoever could not be read.
    Unreadable,
}

impl Source {
    pub const fn process(self) -> Option<ProcessId> {
        match self {
            Self::Root(process) | Self::Party(_, process) => Some(process),
            Self::Anybody | Self::Unreadable => None,
        }
    }

    /// The candidate, if it is one. Whoever is none acts by itself.
    pub const fn party(self) -> Option<usize> {
        match self {
            Self::Party(party, _) => Some(party),
            Self::Root(_) | Self::Anybody | Self::Unreadable => None,
        }
    }
}

/// What can be done over an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Write to its standard input.
    Input,
    /// Read its standard output.
    Output,
    /// Use it in any other way.
    Use,
    Trace,
    /// End or stop with it.
    Depend,
}

impl Edge {
    /// The kind of what joins the two (`stdin`, `stdout`, `connection`, `pipe`, `listener`, `terminal` ..), and what who is
    /// named first can do, in words that follow its name: the explanation for a person.
    pub const fn words(self, endpoint: Option<&Endpoint>) -> (&'static str, &'static str) {
        match (self.way, endpoint) {
            (Way::Input, _) => ("stdin", "can write to its standard input"),
            (Way::Output, _) => ("stdout", "reads its standard output"),
            (Way::Trace, _) => ("trace", "debugs it"),
            (Way::Depend, Some(Endpoint::Trace)) => ("trace", "is debugged by it"),
            (Way::Depend, Some(Endpoint::Terminal)) => ("terminal", "works in a terminal that it opened"),
            (Way::Depend, Some(Endpoint::PidNamespace)) => {
                ("pid_namespace", "would end with its PID namespace")
            }
            (Way::Depend, Some(Endpoint::ParentDeath)) => ("parent_death", "is to end with it, its parent"),
            (Way::Depend, _) => ("device", "uses a file system or a device that it serves"),
            (Way::Use, Some(Endpoint::Pipe { .. })) => ("pipe", "has the other end of a pipe of it"),
            (Way::Use, Some(Endpoint::Open { by, called, .. })) => calls(*by, *called),
            (Way::Use, Some(Endpoint::Shared)) => {
                ("open_file", "shares an open file with it, by which it can wake it")
            }
            (Way::Use, Some(Endpoint::Memory { .. })) => ("memory", "shares memory with it"),
            (Way::Use, Some(Endpoint::Call)) => {
                ("call", "called a port at which it listens, or wanted that for itself")
            }
            (Way::Use, _) => ("connection", "is connected with it"),
        }
    }
}

/// What whoever is not seen can do with what is open to calls.
const fn calls(by: Address, called: Called) -> (&'static str, &'static str) {
    let via = match (by, called) {
        (Address::Tcp, Called::Yes) => "called a TCP port of it within the last ten minutes",
        (Address::Tcp, Called::Unknown) => "may have called a TCP port of it",
        (Address::Unix, Called::Yes | Called::Unknown) => "may have called a unix socket of it",
        // Else it does not count.
        (Address::Tcp | Address::Unix, Called::No) => {
            "may call a socket at which it listens: it is told to serve there, or its owner lives"
        }
        (Address::Udp | Address::MulticastDns, _) => "may send to a UDP port of it",
        (Address::File, _) => "may write to the FIFO or the terminal at which it waits",
        (Address::Other, _) => {
            "may use a message queue of it, or a socket of which nobody can tell who calls"
        }
    };
    (if matches!(by, Address::File) { "file" } else { "listener" }, via)
}

/// One end of a candidate, and one that leads to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair<'a> {
    pub party: &'a Party,
    pub endpoint: &'a Endpoint,
    /// The candidate's end; its holder is not known if only the wire is.
    pub own: &'a End,
    pub own_row: Option<&'a ProcessRow>,
    pub from: Holder,
    pub other_row: Option<&'a ProcessRow>,
    /// Whether that is a debugger, where the candidate began the connection.
    pub dialled_debugger: bool,
    /// Whether that has a descriptor of it.
    pub is_open: bool,
}

impl Pair<'_> {
    /// Whether it is a wire of the server, on the side that the server has.
    pub fn is_wire(&self) -> bool {
        ways(self).iter().any(|way| matches!(way, Way::Input | Way::Output))
    }
}

/// The edges that count, in order, each once.
///
/// Thousands of processes may share one pipe. So whoever has an end is compared with others alone, and once for all ends of a
/// candidate that make no difference.
pub(super) fn edges(rows: &Rows<'_>, parties: &[Party]) -> BTreeSet<Edge> {
    let belonging = super::party::belonging(parties);
    let row = |holder: Holder| rows.row(holder.process()?);
    // Its command line is long if it likes, and the candidate may have thousands of connections to it.
    let mut debuggers: BTreeMap<ProcessId, bool> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for (at, ends) in &rows.by_endpoint {
        let Some(endpoint) = rows.scene.endpoint(*at) else { continue };
        let beyond: BTreeSet<Side> = ends.iter().filter(|end| end.beyond).map(|end| end.side).collect();
        let mut own_of: BTreeMap<usize, BTreeMap<_, &End>> = BTreeMap::new();
        for own in ends {
            // Of who has it, only what the table asks of his program makes a difference; who is not seen stays himself.
            let seen =
                own.holder.process().map(|_| row(own.holder).map(|row| exceptions::programs(&row.image)));
            let alike = (own.side, &own.numbers, seen.ok_or(own.holder));
            for to in holders(own, endpoint, &belonging, parties) {
                own_of.entry(to).or_default().entry(alike).or_insert(own);
            }
        }
        for (to, all) in own_of {
            let Some(party) = parties.get(to) else { continue };
            let sources = ends.iter().filter_map(|end| Some((source(end.holder, to, &belonging)?, *end)));
            let sources: Vec<(Source, &End)> = sources.collect();
            for own in all.into_values() {
                for (source, from, is_open) in others(own, endpoint, &sources, &beyond, party) {
                    let (own_row, other_row) = (row(own.holder), row(from));
                    let dialled = other_row.filter(|_| endpoint.was_begun_at(own.side));
                    let dialled_debugger = dialled.is_some_and(|row| {
                        *debuggers.entry(row.process).or_insert_with(|| is_debugger(&row.image))
                    });
                    let pair =
                        Pair { party, endpoint, own, own_row, from, other_row, dialled_debugger, is_open };
                    if exceptions::counts(&pair) {
                        let ways = ways(&pair).into_iter();
                        found.extend(ways.map(|way| Edge { from: source, to, way, endpoint: *at }));
                    }
                }
            }
        }
    }
    found
}

/// The candidates that have, or may have, this end: an end of a server's wire that nobody is seen to have may be the
/// server's.
fn holders(
    own: &End,
    endpoint: &Endpoint,
    belonging: &BTreeMap<ProcessId, usize>,
    parties: &[Party],
) -> Vec<usize> {
    match own.holder {
        Holder::Process(process) => belonging.get(&process).copied().into_iter().collect(),
        Holder::Anybody | Holder::Unreadable => {
            let is_pipe = matches!(endpoint, Endpoint::Pipe { .. });
            let may_be = |party: &Party| is_pipe && party.has_as_wire(endpoint, own.side);
            parties.iter().enumerate().filter(|(_, party)| may_be(party)).map(|(at, _)| at).collect()
        }
    }
}

/// Who may use this end of a candidate: whoever has an opposite end, and whoever may come without one. `ends`: those of
/// others. `beyond`: the sides of which an open file has more references than descriptors.
fn others(
    own: &End,
    endpoint: &Endpoint,
    ends: &[(Source, &End)],
    beyond: &BTreeSet<Side>,
    party: &Party,
) -> Vec<(Source, Holder, bool)> {
    let is_opposite = |side: Side| are_opposite(endpoint, own.side, side);
    let opposite = ends.iter().filter(|(_, other)| is_opposite(other.side));
    let mut found: Vec<_> =
        opposite.map(|(from, other)| (*from, other.holder, !other.numbers.is_empty())).collect();
    let is_own_wire = party.has_as_wire(endpoint, own.side);
    // What could not be read of the server's own end may be the other one.
    if is_own_wire && own.holder == Holder::Unreadable {
        found.push((Source::Unreadable, own.holder, false));
    }
    // A reference without a descriptor; and what has a name and is read, or is a wire, may be opened by the next client.
    let is_beyond = beyond.iter().any(|side| is_opposite(*side));
    let is_named = matches!(endpoint, Endpoint::Pipe { named: true, .. });
    let may_be_opened = is_named && (is_own_wire || own.side == Side::Reads || party.kind == Kind::Copy);
    if own.side == Side::Listens || may_be_opened || (is_own_wire && is_beyond) {
        found.push((Source::Anybody, Holder::Anybody, false));
    }
    found
}

/// Whether the holder of the second side can reach the holder of the first.
pub(super) fn are_opposite(endpoint: &Endpoint, own: Side, other: Side) -> bool {
    match (endpoint, own, other) {
        (Endpoint::Memory { .. }, Side::Writes, _) | (Endpoint::Call, Side::Far, _) => false,
        // A debugger can make the program act that it debugs. Who has the same listener handed it on, or was handed it, for those
        // who call there.
        (Endpoint::Trace, Side::Depends, Side::Serves)
        | (_, Side::Listens, Side::Listens)
        | (_, Side::Serves, Side::Depends) => true,
        _ => own.opposite() == Some(other),
    }
}

/// From whom an edge to this candidate comes; `None` if from itself.
fn source(from: Holder, to: usize, belonging: &BTreeMap<ProcessId, usize>) -> Option<Source> {
    match from {
        Holder::Anybody => Some(Source::Anybody),
        Holder::Unreadable => Some(Source::Unreadable),
        Holder::Process(process) => match belonging.get(&process) {
            Some(party) if *party == to => None,
            Some(party) => Some(Source::Party(*party, process)),
            None => Some(Source::Root(process)),
        },
    }
}

fn ways(pair: &Pair<'_>) -> Vec<Way> {
    let [input, output] = match pair.party.kind {
        Kind::Server => pair.party.is_wire(pair.endpoint),
        Kind::Copy => [false; 2],
    };
    let one = |is_it: bool, way| if is_it { vec![way] } else { vec![Way::Use] };
    match (pair.endpoint, pair.own.side) {
        (Endpoint::Trace, Side::Depends) => vec![Way::Trace],
        (
            Endpoint::Trace
            | Endpoint::Terminal
            | Endpoint::PidNamespace
            | Endpoint::ParentDeath
            | Endpoint::Device,
            _,
        ) => vec![Way::Depend],
        (Endpoint::Pipe { .. }, Side::Reads) => one(input, Way::Input),
        (Endpoint::Pipe { .. }, Side::Writes) => one(output, Way::Output),
        (Endpoint::Connection { .. }, _) if input || output => {
            let both = [(input, Way::Input), (output, Way::Output)];
            both.into_iter().filter(|(is_it, _)| *is_it).map(|(_, way)| way).collect()
        }
        _ => vec![Way::Use],
    }
}
