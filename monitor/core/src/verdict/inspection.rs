//! The input of a verdict: what was witnessed, and what the host reports now.

use std::collections::BTreeSet;

use crate::{
    case::By,
    lineage::Node,
    model::{Image, Policy, ProcessId, ServerFacts, UnitFacts, scene::ProcessRow, text::base},
    reach::Rows,
    recognise::{Rules, is_browser, is_told_to_be_driven},
    world::{Agent, Server, World},
};

use super::membership::Members;

#[derive(Clone, Copy, Debug)]
pub struct Inspection<'a> {
    pub world: &'a World,
    pub rules: &'a Rules,
    pub server: &'a Server,
    /// The other servers of its owner; those without an owner, if it has none.
    pub siblings: &'a [&'a Server],
    /// What the host reports about it, and the rows of that scene.
    pub facts: &'a ServerFacts,
    pub rows: &'a Rows<'a>,
    pub policy: &'a Policy,
    /// Whether it was there before the first start of orphand, and nobody saw how it came to be left behind; or not all of its past
    /// is known.
    pub found: bool,
}

impl<'a> Inspection<'a> {
    pub fn owner(&self) -> Option<&'a Agent> {
        self.world.owner_of(self.server)
    }

    pub fn living_owner(&self) -> Option<&'a Agent> {
        self.owner().filter(|owner| owner.is_alive())
    }

    pub fn dead_owner(&self) -> Option<&'a Agent> {
        self.owner().filter(|owner| !owner.is_alive())
    }

    /// Who said that the server is released, if somebody did, and the owner lives.
    pub fn released_in_words(&self) -> Option<By> {
        self.server.phase.released().filter(|by| by.in_words() && self.living_owner().is_some())
    }

    /// Whether the thread that started the server has ended, and its owner, to which the thread belonged, lives. The
    /// owner still holds the wires then.
    pub fn thread_has_ended(&self) -> bool {
        let owner = self.living_owner().map(Agent::main);
        let spawner = self.server.spawner.as_ref().filter(|spawner| spawner.ended.is_some());
        spawner.is_some_and(|spawner| owner == Some(spawner.process))
    }

    /// Whether the case was opened because the owner, which is alive, abandoned the server.
    pub fn is_abandoned(&self) -> bool {
        self.server.phase.released() == Some(By::Owner)
    }

    /// The rows of all processes that the server, or its launch chain, consists of, or that descend from them.
    pub fn rows_of_server(&self) -> impl Iterator<Item = &'a ProcessRow> {
        self.rows.full(self.server)
    }

    pub fn processes(&self, members: &Members) -> impl Iterator<Item = &'a ProcessRow> {
        self.rows_of_server().filter(|row| members.contains(row.process))
    }

    pub fn unit(&self) -> Option<&'a UnitFacts> {
        self.rows.unit(self.server)
    }

    pub fn node(&self, process: ProcessId) -> Option<&'a Node> {
        self.world.node(process)
    }

    pub fn main_image(&self) -> Option<&'a Image> {
        self.node(self.server.main_process()).and_then(Node::image)
    }

    /// Whether the process is a browser: one that nothing of the server has a channel to was opened for a person, too.
    pub(super) fn is_a_browser(&self, facts: &ProcessRow) -> bool {
        let name = self.rules.title(&facts.image);
        [name.as_str(), base(&facts.image.exe)].into_iter().any(is_browser)
    }

    /// Those of these processes that have windows for a person, and all below them that help: the programs that draw pages have none
    /// themselves. What a recognised process created is the server's own, and so are the windows of a browser that is driven.
    pub(super) fn with_windows(&self, all: &[&ProcessRow]) -> BTreeSet<ProcessId> {
        let (mut having, mut below) = (BTreeSet::new(), BTreeSet::new());
        let is_driven = |row: &ProcessRow| self.is_a_browser(row) && is_told_to_be_driven(&row.image);
        for row in all.iter().filter(|row| row.has_display && !is_driven(row)) {
            having.insert(row.process);
            if !self.server.recognised().contains(&row.process) && !below.contains(&row.process) {
                below.extend(self.world.graph().descendants(row.process));
            }
        }
        having.extend(below);
        having
    }
}
