//! All servers by key, and the order in which they are inspected. The order is fair to all users.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    ops::Bound,
};

use rustc_hash::FxHashMap;

use super::{Asked, Server};
use crate::{lineage::ServerKey, model::BootTime};

/// How many inspections of one user's servers may be under way at a time: twice as many as are made together, so that there
/// is always work. A question about hundreds of servers is large.
const UNDER_WAY: usize = 256;

/// All servers that are alive.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    by_key: FxHashMap<ServerKey, Server>,
    /// Timers by user: when each server is inspected next.
    by_user: BTreeMap<u32, BTreeSet<(BootTime, ServerKey)>>,
    /// The number of inspections under way, by user.
    under_way: BTreeMap<u32, usize>,
    /// The user whose turn it was last.
    served: u32,
    last: Option<NonZeroU32>,
}

impl Servers {
    /// Enters a server.
    pub(super) fn start(&mut self, server: Server) -> ServerKey {
        let key = ServerKey(self.last.map_or(NonZeroU32::MIN, |last| last.saturating_add(1)));
        self.last = Some(key.0);
        self.by_key.insert(key, server);
        key
    }

    /// The server with this key.
    pub fn get(&self, key: ServerKey) -> Option<&Server> {
        self.by_key.get(&key)
    }

    /// The server with this key, mutable. Its timer must be changed through [`Servers::set_timer`] only.
    pub(super) fn get_mut(&mut self, key: ServerKey) -> Option<&mut Server> {
        self.by_key.get_mut(&key)
    }

    /// Removes a server.
    pub(super) fn remove(&mut self, key: ServerKey) -> Option<Server> {
        self.set_timer(key, None);
        self.end_inspection(key);
        self.by_key.remove(&key)
    }

    /// Sets when the server is inspected again.
    pub(super) fn set_timer(&mut self, key: ServerKey, at: Option<BootTime>) {
        let Some(server) = self.by_key.get_mut(&key) else { return };
        let old = std::mem::replace(&mut server.timer, at);
        if let Some(old) = old
            && let Some(own) = self.by_user.get_mut(&server.user)
        {
            own.remove(&(old, key));
            if own.is_empty() {
                self.by_user.remove(&server.user);
            }
        }
        if let Some(at) = at {
            self.by_user.entry(server.user).or_default().insert((at, key));
        }
    }

    /// Sets the user on whose turn the server is inspected.
    pub(super) fn set_user(&mut self, key: ServerKey, user: u32) {
        let timer = self.by_key.get(&key).and_then(|server| server.timer);
        self.set_timer(key, None);
        if let Some(server) = self.by_key.get_mut(&key) {
            server.user = user;
        }
        self.set_timer(key, timer);
    }

    /// Records that an inspection of the server is under way.
    pub(super) fn begin_inspection(&mut self, key: ServerKey, token: u64, since: BootTime) {
        self.end_inspection(key);
        let Some(server) = self.by_key.get_mut(&key) else { return };
        let user = server.user;
        server.inspection = Some(Asked { token, since, user });
        *self.under_way.entry(user).or_default() += 1;
    }

    /// Records that no inspection of the server is under way.
    pub(super) fn end_inspection(&mut self, key: ServerKey) {
        let Some(asked) = self.by_key.get_mut(&key).and_then(|server| server.inspection.take()) else {
            return;
        };
        if let Some(count) = self.under_way.get_mut(&asked.user) {
            *count -= 1;
            if *count == 0 {
                self.under_way.remove(&asked.user);
            }
        }
    }

    fn has_room(&self, user: u32) -> bool {
        self.under_way.get(&user).is_none_or(|count| *count < UNDER_WAY)
    }

    /// The next timer of the users that have not too many inspections under way.
    pub fn next_timer(&self) -> Option<BootTime> {
        let with_room = self.by_user.iter().filter(|(user, _)| self.has_room(**user));
        with_room.filter_map(|(_, own)| own.first()).map(|(at, _)| *at).min()
    }

    /// A server whose timer has run out; the timer is removed. It is the longest-waiting server of the next user
    /// that has one. So a user with thousands of servers delays the server of another user by one inspection.
    pub(super) fn due(&mut self, now: BootTime) -> Option<ServerKey> {
        self.next_timer().filter(|at| *at <= now)?;
        let after = (Bound::Excluded(self.served), Bound::Unbounded);
        let in_turn = self.by_user.range(after).chain(self.by_user.range(..=self.served));
        let in_turn = in_turn.filter(|(user, _)| self.has_room(**user));
        let mut first = in_turn.filter_map(|(user, own)| Some((*user, *own.first()?)));
        let (user, (_, key)) = first.find(|(_, (at, _))| *at <= now)?;
        self.served = user;
        self.set_timer(key, None);
        Some(key)
    }

    /// All keys, oldest first.
    pub fn keys(&self) -> Vec<ServerKey> {
        let mut keys: Vec<_> = self.by_key.keys().copied().collect();
        keys.sort_unstable();
        keys
    }

    /// All servers, in no particular order.
    pub fn all(&self) -> impl Iterator<Item = &Server> {
        self.by_key.values()
    }

    /// Broken invariants: the timers and inspections of each user are those of the user's servers.
    pub(super) fn check(&self) -> Vec<String> {
        let mut timers: BTreeMap<u32, BTreeSet<(BootTime, ServerKey)>> = BTreeMap::new();
        let mut under_way: BTreeMap<u32, usize> = BTreeMap::new();
        for (key, server) in &self.by_key {
            if let Some(at) = server.timer {
                timers.entry(server.user).or_default().insert((at, *key));
            }
            if let Some(asked) = server.inspection {
                *under_way.entry(asked.user).or_default() += 1;
            }
        }
        let mut broken = Vec::new();
        if timers != self.by_user {
            broken.push(format!("the timers of servers are {timers:?}, listed are {:?}", self.by_user));
        }
        if under_way != self.under_way {
            broken.push(format!("under way are {under_way:?}, counted are {:?}", self.under_way));
        }
        broken
    }

    /// The number of servers.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }
}
