//! The mark phase: from the roots over the edges into the candidates, to the end.

use std::collections::{BTreeSet, VecDeque};

use super::{
    edges::{Edge, edges},
    party::{Party, is_root},
    rows::Rows,
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    edges: BTreeSet<Edge>,
    marks: Vec<Mark>,
}

/// Whether and how a candidate was reached first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// Nothing that acts by itself reaches it.
    Unreached,
    Root,
    By(Edge),
}

/// Marks all candidates that something reaches which acts by itself. Linear in the edges.
pub fn mark(rows: &Rows<'_>, parties: &[Party]) -> Reach {
    let edges = edges(rows, parties);
    let mut marks = vec![Mark::Unreached; parties.len()];
    let mut onward: Vec<Vec<Edge>> = vec![Vec::new(); parties.len()];
    let mut next = VecDeque::new();
    let reach = |marks: &mut Vec<Mark>, next: &mut VecDeque<usize>, to: usize, mark| {
        if let Some(found) = marks.get_mut(to).filter(|found| **found == Mark::Unreached) {
            *found = mark;
            next.push_back(to);
        }
    };
    for (at, party) in parties.iter().enumerate() {
        if is_root(rows.scene, party) {
            reach(&mut marks, &mut next, at, Mark::Root);
        }
    }
    for edge in &edges {
        match edge.from.party() {
            Some(from) => onward.get_mut(from).into_iter().for_each(|all| all.push(*edge)),
            None => reach(&mut marks, &mut next, edge.to, Mark::By(*edge)),
        }
    }
    while let Some(party) = next.pop_front() {
        for edge in onward.get(party).into_iter().flatten() {
            reach(&mut marks, &mut next, edge.to, Mark::By(*edge));
        }
    }
    Reach { edges, marks }
}

impl Reach {
    /// Whether something that acts by itself can reach this candidate.
    pub fn is_reached(&self, party: usize) -> bool {
        self.marks.get(party).is_none_or(|mark| *mark != Mark::Unreached)
    }

    /// The marked edges to this candidate: those that come from something that acts by itself, or that is reached.
    pub fn edges_to(&self, party: usize) -> impl Iterator<Item = &Edge> {
        let is_marked = |edge: &&Edge| edge.from.party().is_none_or(|from| self.is_reached(from));
        self.edges.iter().filter(move |edge| edge.to == party).filter(is_marked)
    }

    /// The way from a root to this candidate over as few edges as possible; empty if it acts by itself, or is not
    /// reached.
    pub fn path_to(&self, party: usize) -> Vec<Edge> {
        let (mut at, mut path) = (party, Vec::new());
        while let Some(Mark::By(edge)) = self.marks.get(at)
            && path.len() <= self.marks.len()
        {
            path.push(*edge);
            let Some(from) = edge.from.party() else { break };
            at = from;
        }
        path.reverse();
        path
    }
}
