//! The slow, obvious version of the mark phase, as the test of the fast one: every pair of ends is looked at, again and
//! again, until no further candidate is reached.

use std::collections::BTreeSet;

use crate::model::scene::{End, Endpoint, Holder, Scene, Side};
use crate::reach::{
    edges::{Pair, are_opposite},
    exceptions,
    party::{Kind, Party},
};
use crate::recognise::is_debugger;

/// The candidates that something reaches which acts by itself.
pub fn reached(scene: &Scene, parties: &[Party]) -> BTreeSet<usize> {
    let mut reached: BTreeSet<usize> = BTreeSet::new();
    loop {
        let more: BTreeSet<usize> =
            (0..parties.len()).filter(|at| is_reached(scene, parties, &reached, *at)).collect();
        if more == reached {
            return reached;
        }
        reached = more;
    }
}

fn is_reached(scene: &Scene, parties: &[Party], reached: &BTreeSet<usize>, at: usize) -> bool {
    let party = &parties[at];
    if party.acts || scene.unread.iter().any(|u| u.process.is_none_or(|p| member_of(parties, p) == Some(at)))
    {
        return true;
    }
    let acts = |holder: Holder| match holder {
        Holder::Anybody | Holder::Unreadable => true,
        Holder::Process(process) => match member_of(parties, process) {
            Some(other) => other != at && reached.contains(&other),
            None => true,
        },
    };
    scene.ends.iter().any(|own| {
        let endpoint = &scene.endpoints[usize::try_from(own.endpoint).unwrap()];
        let wire = party.has_as_wire(endpoint, own.side);
        let is_seen = matches!(own.holder, Holder::Process(p) if member_of(parties, p) == Some(at));
        let is_pipe = matches!(own.side, Side::Reads | Side::Writes);
        if !is_seen && (matches!(own.holder, Holder::Process(_)) || !wire || !is_pipe) {
            return false;
        }
        let counts = |from: Holder, is_open: bool| {
            let row = |holder: Holder| scene.row(holder.process()?);
            let (own_row, other_row) = (row(own.holder), row(from));
            let dialled = other_row.filter(|_| endpoint.was_begun_at(own.side));
            let dialled_debugger = dialled.is_some_and(|row| is_debugger(&row.image));
            let pair = Pair { party, endpoint, own, own_row, from, other_row, dialled_debugger, is_open };
            acts(from) && exceptions::counts(&pair)
        };
        let opposite =
            |other: &&End| other.endpoint == own.endpoint && are_opposite(endpoint, own.side, other.side);
        let beyond = scene.ends.iter().filter(opposite).any(|other| other.beyond);
        let named = matches!(endpoint, Endpoint::Pipe { named: true, .. });
        scene.ends.iter().filter(opposite).any(|other| counts(other.holder, !other.numbers.is_empty()))
            || (own.side == Side::Listens && counts(Holder::Anybody, false))
            || (((wire && (named || beyond || own.holder == Holder::Unreadable))
                || (named && (own.side == Side::Reads || party.kind == Kind::Copy)))
                && counts(Holder::Anybody, false))
    })
}

fn member_of(parties: &[Party], process: crate::model::ProcessId) -> Option<usize> {
    parties.iter().position(|party| party.members.contains(&process))
}
