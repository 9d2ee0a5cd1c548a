//! The candidates: who acts only if somebody reaches it.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    ProcessId, Stdio,
    scene::{Endpoint, Scene, Side},
};

/// A candidate: one that acts only if somebody reaches it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Party {
    pub kind: Kind,
    /// The processes that belong to it. What it let go does not.
    pub members: BTreeSet<ProcessId>,
    /// Standard input and output of a server: the pipes or sockets that carry requests and answers.
    pub wires: [Stdio; 2],
    /// Its owner, if that lives and let it go: it knows the sockets at which the server listens.
    pub owner: Option<ProcessId>,
    /// Others of the living owner: its copies, and what it started. What a server called there may use it.
    pub family: BTreeSet<ProcessId>,
    /// Which ends of the wires do not count where that owner has them: those of standard input, and of output. It has
    /// let go of the server, which did nothing since.
    pub released: [bool; 2],
    /// Whether its command line or its environment says that it shall serve others, or nothing says that it shall not.
    pub told_to_serve: bool,
    /// Whether it acts by itself nevertheless, because it stays whatever happens (it opted out), or is not known well
    /// enough. Then it is a root.
    pub acts: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A server with a cause.
    #[default]
    Server,
    /// An inert forked copy of a dead owner, or who was let go and is only fed. It is never signalled.
    Copy,
}

impl Party {
    /// Which wires of the server this is: standard input, standard output.
    pub(super) fn is_wire(&self, endpoint: &Endpoint) -> [bool; 2] {
        self.wires.map(|wire| endpoint.is(wire))
    }

    /// Whether this side of it is the server's own end of a wire.
    pub(super) fn has_as_wire(&self, endpoint: &Endpoint, side: Side) -> bool {
        let [input, output] = self.is_wire(endpoint);
        match side {
            Side::Reads => input,
            Side::Writes => output,
            Side::Near | Side::Far => input || output,
            Side::Listens | Side::Serves | Side::Depends => false,
        }
    }
}

/// Which candidate each process belongs to. One that seems to belong to several belongs to the first.
pub(super) fn belonging(parties: &[Party]) -> BTreeMap<ProcessId, usize> {
    let mut found = BTreeMap::new();
    for (at, party) in parties.iter().enumerate() {
        for member in &party.members {
            found.entry(*member).or_insert(at);
        }
    }
    found
}

/// Whether this candidate acts by itself as far as anybody knows: it stays, or something that concerns it could not be
/// read.
pub(super) fn is_root(scene: &Scene, party: &Party) -> bool {
    let concerns =
        |process: Option<ProcessId>| process.is_none_or(|process| party.members.contains(&process));
    party.acts || scene.unread.iter().any(|unread| concerns(unread.process))
}
