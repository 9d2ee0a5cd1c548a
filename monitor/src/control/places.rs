//! Who is served at a time: so many connections of all, so many of each peer, and nobody by doing nothing.
//!
//! Invariant: a peer that sends its question at once is served, whatever others hold open. Who has not asked yet makes room for
//! who comes, the one that has waited for longest first: of the same peer where that has its share, else of whoever has most.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::task::{AbortHandle, JoinHandle};

/// Whether a connection's question has been read.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked(Arc<AtomicBool>);

impl Asked {
    /// It has.
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct Place<P> {
    peer: P,
    asked: Asked,
    task: AbortHandle,
}

/// The places of a door. `P` is who is told apart.
#[derive(Debug)]
pub(super) struct Places<P> {
    of_peer: usize,
    of_all: usize,
    /// Those who have asked are let go, too, the oldest first: they are not the peer's own business to wait for.
    may_cut: bool,
    taken: VecDeque<Place<P>>,
}

impl<P: Ord + Copy> Places<P> {
    /// So many of a peer, so many of all.
    pub(super) const fn new(of_peer: usize, of_all: usize, may_cut: bool) -> Self {
        Self { of_peer, of_all, may_cut, taken: VecDeque::new() }
    }

    /// Whether there is room for one more of this peer; if need be there is after somebody was let go.
    pub(super) fn make_room(&mut self, peer: P) -> bool {
        self.taken.retain(|place| !place.task.is_finished());
        let mut counts: BTreeMap<P, usize> = BTreeMap::from([(peer, 1)]);
        for place in &self.taken {
            *counts.entry(place.peer).or_default() += 1;
        }
        if counts.get(&peer).is_some_and(|count| *count > self.of_peer) {
            return self.let_go(peer);
        }
        if self.taken.len() < self.of_all {
            return true;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count).map(|(most, _)| most);
        most.is_some_and(|most| self.let_go(most))
    }

    /// The task that serves it has begun.
    pub(super) fn take(&mut self, peer: P, asked: Asked, task: &JoinHandle<()>) {
        self.taken.push_back(Place { peer, asked, task: task.abort_handle() });
    }

    fn let_go(&mut self, peer: P) -> bool {
        let of_peer = |place: &Place<P>| place.peer == peer;
        let waits = self.taken.iter().position(|place| of_peer(place) && !place.asked.get());
        let oldest = || self.taken.iter().position(of_peer).filter(|_| self.may_cut);
        let Some(place) = waits.or_else(oldest).and_then(|at| self.taken.remove(at)) else { return false };
        place.task.abort();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(places: &mut Places<u32>, peer: u32, has_asked: bool) -> Option<JoinHandle<()>> {
        places.make_room(peer).then(|| {
            let asked = Asked::default();
            if has_asked {
                asked.set();
            }
            let task = tokio::spawn(std::future::pending());
            places.take(peer, asked, &task);
            task
        })
    }

    #[tokio::test]
    async fn who_has_not_asked_makes_room() {
        let mut places = Places::new(4, 6, false);
        let first = taken(&mut places, 1, false).unwrap();
        for _ in 0..3 {
            taken(&mut places, 1, true).unwrap();
        }
        // Its own first one goes, and then there is nobody left who only waits.
        taken(&mut places, 1, true).unwrap();
        assert!(first.await.unwrap_err().is_cancelled());
        assert!(taken(&mut places, 1, true).is_none());
        // Others have room, until all is taken by those who have asked.
        assert!(taken(&mut places, 2, true).is_some());
        let waits = taken(&mut places, 2, false).unwrap();
        assert!(taken(&mut places, 3, false).is_none());
        assert!(!waits.is_finished());
    }

    #[tokio::test]
    async fn who_has_the_most_makes_room_for_others() {
        let mut places = Places::new(64, 64, true);
        let tasks: Vec<_> = (0..64).map(|_| taken(&mut places, 1, true).unwrap()).collect();
        assert!(taken(&mut places, 2, false).is_some());
        let mut tasks = tasks.into_iter();
        assert!(tasks.next().unwrap().await.unwrap_err().is_cancelled());
        assert!(tasks.all(|task| !task.is_finished()));
    }
}
