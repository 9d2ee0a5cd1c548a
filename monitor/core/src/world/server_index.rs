//! All servers by key.

use std::num::NonZeroU32;

use rustc_hash::FxHashMap;

use super::Server;
use crate::lineage::ServerKey;

/// All servers that are alive.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    by_key: FxHashMap<ServerKey, Server>,
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

    pub(super) fn get_mut(&mut self, key: ServerKey) -> Option<&mut Server> {
        self.by_key.get_mut(&key)
    }

    /// Removes a server.
    pub(super) fn remove(&mut self, key: ServerKey) -> Option<Server> {
        self.by_key.remove(&key)
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

    /// The number of servers.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }
}
