//! The one table of edges that do not count, each with its reason. Nothing else is left out.
//!
//! Invariant: whether a line applies depends on this pair of ends alone, and on what is known of the candidate; so one
//! more row of a scene never takes an edge away.

use super::{edges::Pair, party::Kind};
use crate::{
    model::{
        Image, Stdio,
        scene::{Address, Began, Called, End, Endpoint, Holder, ProcessRow, Side},
    },
    recognise::{container_client, fork_server_listener, is_shell_of_a_person},
};

/// The edges that do not count.
const TABLE: [fn(&Pair<'_>) -> bool; 8] = [
    // The server began this connection itself, not to a debugger: it is the client.
    |pair| {
        let began_it = pair.endpoint.was_begun_at(pair.own.side);
        is_server(pair) && !pair.is_wire() && began_it && !is_from_family(pair) && !pair.dialled_debugger
    },
    // Nobody waits for what is written to standard error.
    |pair| is_server(pair) && !pair.is_wire() && is_standard_error(pair.endpoint, pair.own),
    // Nobody ever called this listener, or used this FIFO, and it was not told to serve.
    |pair| {
        let is_nobody = pair.from == Holder::Anybody;
        let is_silent = match pair.endpoint {
            // Who was handed a listener as its standard input shall serve there.
            Endpoint::Open { inode, .. } if pair.party.wires.contains(&Stdio::Socket(*inode)) => false,
            Endpoint::Open { by: Address::Tcp | Address::Unix | Address::File, called, .. } => {
                *called == Called::No
            }
            // Each browser has such a socket, and every host on the network is asked.
            Endpoint::Open { by: Address::MulticastDns, .. } => true,
            _ => false,
        };
        is_server(pair) && is_nobody && is_silent && !pair.party.told_to_serve && pair.party.owner.is_none()
    },
    // A fork server is called only by those who have its pipe.
    |pair| {
        let listener = || pair.own_row.and_then(|row| programs(&row.image).0);
        matches!(pair.endpoint, Endpoint::Open { by: Address::Unix, .. })
            && pair.party.owner.is_none()
            && listener().is_some_and(|number| pair.own.numbers == [number])
    },
    // The living owner has let the server go, and the server did nothing since.
    |pair| {
        let wires = pair.party.is_wire(pair.endpoint);
        let let_go = |(is_wire, released): (bool, bool)| !is_wire || released;
        is_from_owner(pair) && pair.is_wire() && wires.into_iter().zip(pair.party.released).all(let_go)
    },
    // What the client of a container is joined with belongs to the container.
    |pair| {
        matches!(pair.endpoint, Endpoint::Connection { began: Began::Pair, .. })
            && !pair.is_wire()
            && pair.own_row.is_some_and(|row| programs(&row.image).1)
    },
    // A shell that waits for a person's command, or what shall outlive its terminal and has left it, does not need it.
    |pair| {
        let is_free = |row: &ProcessRow| (row.ignores_hangup && !pair.is_open) || waits_for_a_command(row);
        matches!(pair.endpoint, Endpoint::Terminal) && pair.other_row.is_some_and(is_free)
    },
    // What a copy inherited as its output brings it nothing.
    |pair| {
        pair.party.kind == Kind::Copy
            && matches!(pair.own.side, Side::Writes | Side::Near | Side::Far)
            && matches!(pair.endpoint, Endpoint::Pipe { .. } | Endpoint::Connection { .. })
            && !pair.own.numbers.is_empty()
            && pair.own.numbers.iter().all(|number| [1, 2].contains(number))
    },
];

/// Whether it is a shell that leads the session of a terminal, and works when a person tells it to.
pub fn waits_for_a_command(row: &ProcessRow) -> bool {
    row.sid == row.process.pid && is_shell_of_a_person(&row.image)
}

/// Whether this end is standard error, with its duplicates, or the output of a helper that goes there. Not what is read, too, as
/// the connection on which inetd starts a program is, nor a call, or what is read, that got the number of a standard error that was
/// closed.
pub fn is_standard_error(endpoint: &Endpoint, own: &End) -> bool {
    let is_written = match endpoint {
        Endpoint::Pipe { .. } => own.side == Side::Writes,
        Endpoint::Connection { .. } => !own.side.opposite().is_some_and(|far| endpoint.was_begun_at(far)),
        _ => false,
    };
    is_written && own.numbers.contains(&2) && !own.numbers.contains(&0)
}

pub(super) fn counts(pair: &Pair<'_>) -> bool {
    !TABLE.iter().any(|applies| applies(pair))
}

fn is_server(pair: &Pair<'_>) -> bool {
    pair.party.kind == Kind::Server
}

fn is_from_owner(pair: &Pair<'_>) -> bool {
    matches!((pair.from, pair.party.owner), (Holder::Process(from), Some(owner)) if from == owner)
}

/// Whether the other end is the living owner's, or of somebody who works for it, or may be.
fn is_from_family(pair: &Pair<'_>) -> bool {
    is_from_owner(pair)
        || match pair.from {
            Holder::Process(from) => pair.party.family.contains(&from),
            Holder::Unreadable => pair.party.owner.is_some(),
            Holder::Anybody => false,
        }
}

/// What the table asks of the program that has an own end.
pub(super) fn programs(image: &Image) -> (Option<u32>, bool) {
    (fork_server_listener(image), container_client(image).is_some())
}
