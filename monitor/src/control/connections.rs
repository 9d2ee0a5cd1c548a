//! Limits on connections: in total and per client.
//!
//! Invariant: a client that sends its request at once is served, whatever other connections are open. A
//! connection without a request is closed to make room for a new one, the oldest first: one of the same
//! client if that has reached its limit, otherwise one of the client with the most.

use std::{
    collections::{BTreeMap, VecDeque},
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use orphand_core::model::Share;
use tokio::{
    net::TcpStream,
    task::{AbortHandle, JoinHandle},
};

use crate::host::user_of_far_end;

/// The pause after a connection could not be accepted, for instance because no descriptor was free.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Who connected over TCP: a user of this host, or another host. A range of numbers is one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Client {
    User(Share),
    Host(IpAddr),
}

impl Client {
    pub(super) fn of(stream: &TcpStream, peer: SocketAddr) -> Self {
        let user = stream.local_addr().ok().and_then(|near| user_of_far_end(near, peer));
        user.map_or(Self::Host(peer.ip()), |user| Self::User(Share::of(user)))
    }
}

pub(super) type RequestRead = Arc<AtomicBool>;

#[derive(Debug)]
struct Connection<P> {
    peer: P,
    request_read: RequestRead,
    task: AbortHandle,
}

/// The open connections. `P` identifies a client.
#[derive(Debug)]
pub(super) struct Connections<P> {
    of_peer: usize,
    of_all: usize,
    /// Whether connections with a request may be closed, too, the oldest first.
    may_close_active: bool,
    open: VecDeque<Connection<P>>,
}

impl<P: Ord + Copy> Connections<P> {
    pub(super) const fn new(of_peer: usize, of_all: usize, may_close_active: bool) -> Self {
        Self { of_peer, of_all, may_close_active, open: VecDeque::new() }
    }

    /// Makes room for one more connection of this client, if need be by closing another one. Returns whether there is room.
    pub(super) fn make_room(&mut self, peer: P) -> bool {
        // A client that connects and leaves, again and again, costs little: those that are over are looked for when there is no room.
        if self.open.len() < self.of_peer.min(self.of_all) {
            return true;
        }
        self.open.retain(|connection| !connection.task.is_finished());
        let mut counts: BTreeMap<P, usize> = BTreeMap::from([(peer, 1)]);
        for connection in &self.open {
            *counts.entry(connection.peer).or_default() += 1;
        }
        if counts.get(&peer).is_some_and(|count| *count > self.of_peer) {
            return self.close_one(peer);
        }
        if self.open.len() < self.of_all {
            return true;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count).map(|(most, _)| most);
        most.is_some_and(|most| self.close_one(most))
    }

    pub(super) fn insert(&mut self, peer: P, request_read: RequestRead, task: &JoinHandle<()>) {
        self.open.push_back(Connection { peer, request_read, task: task.abort_handle() });
    }

    fn close_one(&mut self, peer: P) -> bool {
        let of_peer = |connection: &Connection<P>| connection.peer == peer;
        let is_idle = |one: &Connection<P>| of_peer(one) && !one.request_read.load(Ordering::Relaxed);
        let idle = self.open.iter().position(is_idle);
        let oldest = || self.open.iter().position(of_peer).filter(|_| self.may_close_active);
        let Some(connection) = idle.or_else(oldest).and_then(|at| self.open.remove(at)) else { return false };
        connection.task.abort();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(connections: &mut Connections<u32>, peer: u32, has_request: bool) -> Option<JoinHandle<()>> {
        connections.make_room(peer).then(|| {
            let request_read = RequestRead::default();
            if has_request {
                request_read.store(true, Ordering::Relaxed);
            }
            let task = tokio::spawn(std::future::pending());
            connections.insert(peer, request_read, &task);
            task
        })
    }

    #[tokio::test]
    async fn who_has_not_asked_makes_room() {
        let mut connections = Connections::new(4, 6, false);
        let first = open(&mut connections, 1, false).unwrap();
        for _ in 0..3 {
            open(&mut connections, 1, true).unwrap();
        }
        // The first one of the same client is closed; then no connection without a request is left.
        open(&mut connections, 1, true).unwrap();
        assert!(first.await.unwrap_err().is_cancelled());
        assert!(open(&mut connections, 1, true).is_none());
        // Others have room until all connections have sent a request.
        assert!(open(&mut connections, 2, true).is_some());
        let idle = open(&mut connections, 2, false).unwrap();
        assert!(open(&mut connections, 3, false).is_none());
        assert!(!idle.is_finished());
    }

    #[tokio::test]
    async fn who_has_the_most_makes_room_for_others() {
        let mut connections = Connections::new(64, 64, true);
        let tasks: Vec<_> = (0..64).map(|_| open(&mut connections, 1, true).unwrap()).collect();
        assert!(open(&mut connections, 2, false).is_some());
        let mut tasks = tasks.into_iter();
        assert!(tasks.next().unwrap().await.unwrap_err().is_cancelled());
        assert!(tasks.all(|task| !task.is_finished()));
    }
}
