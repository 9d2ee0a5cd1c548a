//! Servers that their manager released: it said that it is done with them (`orphand release`).
//!
//! Invariant: only the user to whom every process of a server belongs, or root, can release it. A request that names a
//! server of somebody else releases nothing at all.

use std::collections::BTreeSet;

use super::{Engine, released::is_released};
use crate::{
    case::{By, Phase, Reason, Stage, Wish},
    lineage::{Node, ServerKey},
    model::{Asked, BootTime, ReleaseRequest, Released},
    world::{Agent, Server},
};

/// The user who may release every server.
const ROOT: u32 = 0;

impl Engine {
    /// The servers that a request of this user selects, as they are now. The error is one line: it names a server of
    /// somebody else.
    pub fn released(&self, request: &ReleaseRequest, user: u32) -> Result<Vec<Released>, String> {
        let told = |key: ServerKey| {
            let server = self.world.server(key)?;
            let released = is_released(server, By::Manager);
            let deadline = server.phase.grace().filter(|_| released);
            Some(Released { server: self.world.view(key)?, state: server.phase.state(), released, deadline })
        };
        Ok(self.select_for_release(request, user)?.into_iter().filter_map(told).collect())
    }

    /// The servers that a request selects are released. Nothing happens to one that already is.
    pub(super) fn release_on_request(&mut self, now: BootTime, request: &ReleaseRequest, user: u32) {
        for key in self.select_for_release(request, user).unwrap_or_default() {
            if self.can_be_released(key) {
                self.world.change_server(key, |server| server.released_by = Some(user));
                self.release(now, key, By::Manager, now);
            }
        }
    }

    /// Anybody may ask as often as he likes, of a host with tens of thousands of processes: what is named is looked up.
    fn select_for_release(&self, request: &ReleaseRequest, user: u32) -> Result<Vec<ServerKey>, String> {
        let process = |target: &Asked| match target {
            Asked::Pid(pid) => self.world.graph().holder(*pid),
            Asked::Id(id) => Some(self.of_id(*id)),
            Asked::Name(_) => None,
        };
        // A server's own part on other wires, as a server behind a gateway, is not what somebody outside started.
        let of_chain = |node: &Node| {
            let is_link = |server: &Server| node.stdin() == server.stdin || node.id == server.main_process();
            let own = node.server.filter(|key| self.world.server(*key).is_some_and(is_link));
            own.or(node.wraps)
        };
        let nodes = request.targets.iter().filter_map(process).filter_map(|id| self.world.node(id));
        let mut selected: BTreeSet<ServerKey> = nodes.filter_map(of_chain).collect();
        let mut named = selected.iter().filter_map(|key| self.world.server(*key));
        if let Some(server) = named.find(|server| !self.is_of(server, user)) {
            return Err(format!(
                "refused: server {} does not belong to user {user}; release it as its own user, or as root",
                server.id
            ));
        }
        if request.session.is_some() {
            let is_of_session = |(key, server): &(&ServerKey, &Server)| {
                let shown = !self.sessions.told_only.contains(*key);
                shown && server.session_id == request.session && self.is_of(server, user)
            };
            selected.extend(self.world.servers().iter().filter(is_of_session).map(|(key, _)| *key));
        }
        Ok(selected.into_iter().collect())
    }

    /// Whether all processes of a server belong to this user, who then could end it himself.
    fn is_of(&self, server: &Server, user: u32) -> bool {
        let is_own = |process| self.world.node(process).is_some_and(|node| node.uid == user);
        user == ROOT || server.all().all(is_own)
    }

    /// Whether a release changes anything: the owner lives, and nothing better is known. One that was used since it was
    /// released can be released again.
    fn can_be_released(&self, key: ServerKey) -> bool {
        let Some(server) = self.world.server(key) else { return false };
        let owner_lives = self.world.owner(key).is_some_and(Agent::is_alive);
        let is_open = match &server.phase {
            Phase::Clear => true,
            Phase::Grace { cause, .. } => {
                cause.reason != Reason::Released(By::Manager) && cause.asked == Wish::None
            }
            Phase::Judged(verdict) if verdict.stage == Stage::Unproven => verdict.cause.asked == Wish::None,
            Phase::Judged(_) => false,
        };
        owner_lives && is_open && !server.seeks_owner
    }
}
