//! Servers of hosts that no rule knows, which only their names show: a job may be called `mcp-backup`, too. What is said
//! first to such a server confirms it, and so do settings that declare it; until then the doubt `only_named` holds.
//! From then on its rule is [`PROTOCOL`], also for the next daemon.

use super::{
    Engine,
    awaited::{self, Awaited, Said},
    first_messages::PROTOCOL,
};
use crate::{
    lineage::{Node, ServerKey},
    model::{BootTime, ProcessId},
};

impl Engine {
    /// Whether nothing but its name says that this process is a server.
    pub(super) fn is_only_named(&self, id: ProcessId, rule: &str) -> bool {
        let image = self.world.node(id).and_then(Node::image);
        rule != PROTOCOL && image.is_some_and(|image| self.settings.rules.is_only_named(image))
    }

    /// A server that only its name shows has begun: asks what is said to it, unless a rule knows its owner.
    pub(super) fn seek_confirmation(&mut self, key: ServerKey) {
        let by_known_agent = self.world.owner(key).is_some_and(|owner| !owner.implied);
        let Some(server) = self.world.server(key).filter(|server| server.only_named) else { return };
        let id = server.main_process();
        let Some(node) = self.world.node(id) else { return };
        if !self.settings.recognise_protocol
            || by_known_agent
            || self.is_job(key)
            || self.first_messages.contains_key(&id)
            || !awaited::has_room_for(&self.first_messages, node.uid)
        {
            return;
        }
        let (awaited, found) = (Awaited::of(node, None), node.provenance.is_found());
        self.begin_to_look(id, awaited, found);
    }

    /// What was said to a server shows that it is not only called like one.
    pub(super) fn confirmed(&mut self, now: BootTime, key: ServerKey, id: ProcessId, said: Said) {
        self.first_messages.remove(&id);
        let Some(server) = self.world.server_mut(key) else { return };
        server.only_named = false;
        server.name_by(id, server.name.clone(), PROTOCOL.to_owned());
        if let Said::Message(client) = said {
            server.client = server.client.take().or(client);
        }
        self.compare(now, key);
        self.remember_server(now, key);
    }
}
