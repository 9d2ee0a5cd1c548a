//! Servers that only their names show: a job may be called `mcp-backup`, too. What is said first to such a server confirms
//! it, and so do settings that declare it; until then the doubt `only_named` holds, unless a rule knows the host.
//! From then on its rule is [`PROTOCOL`], also for the next daemon. What an agent calls as a hook is no server.

use super::{
    Engine,
    awaited::{self, Awaited, Said},
    first_messages::PROTOCOL,
};
use crate::{
    lineage::{Node, Origin, ServerKey},
    model::{BootTime, ProcessId},
};

impl Engine {
    /// Whether nothing but its name says that this process is a server.
    pub(super) fn is_only_named(&self, id: ProcessId, rule: &str) -> bool {
        let image = self.world.node(id).and_then(Node::image);
        rule != PROTOCOL && image.is_some_and(|image| self.settings.rules.is_only_named(image))
    }

    /// A server that only its name shows has begun: asks what is said to it.
    pub(super) fn seek_confirmation(&mut self, key: ServerKey) {
        let Some(server) = self.world.server(key).filter(|server| server.only_named) else { return };
        let id = server.main_process();
        let Some(node) = self.world.node(id) else { return };
        if !self.settings.recognise_protocol
            || self.is_job(key)
            || self.first_messages.contains_key(&id)
            || !awaited::has_room_for(&self.first_messages, node.uid)
        {
            return;
        }
        let (awaited, found) = (Awaited::of(node, None), node.provenance.is_found());
        self.begin_to_look(id, awaited, found);
    }

    /// What was said to this process is for a hook: it may outlive its agent, and is no server by whatever name.
    pub(super) fn is_a_hook(&mut self, now: BootTime, id: ProcessId, origin: Origin) {
        let is_named = |key| self.world.server(key).is_some_and(|server| server.only_named);
        let node = self.world.node(id).filter(|node| node.origin() == origin);
        if node.and_then(|node| node.server).is_some_and(is_named) {
            self.leave_server(now, id);
        }
        self.is_no_server(id);
    }

    /// What was said to a server shows that it is not only called like one.
    pub(super) fn confirmed(&mut self, now: BootTime, key: ServerKey, id: ProcessId, said: Said) {
        self.stop_waiting(id);
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
