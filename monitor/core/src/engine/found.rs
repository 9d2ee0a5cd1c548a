//! What was there before the first start of orphand on this host. Nobody saw how it came to be left behind, so a person
//! decides: it is judged and reported like the rest, and the guard [`crate::model::Guard::Found`] holds.
//!
//! Invariant: this follows from two stored times, the birth of the process and the first start. So a daemon that is started
//! again says the same, and nothing has to be remembered of a single server.

use super::Engine;
use crate::{
    model::{BootTime, Found},
    world::{Agent, Server},
};

impl Engine {
    /// Whether only a person ends this server: it began before the first start, and no daemon saw its owner exit.
    pub(super) fn is_from_before(&self, server: &Server) -> bool {
        let owner = server.owner().and_then(|owner| self.world.agent(owner));
        self.settings.found == Found::Ask
            && self.first_start.is_some_and(|first| BootTime::of_ticks(server.id.start) < first)
            && owner.is_none_or(Agent::is_alive)
    }

    /// The same, of a server that may have been left behind.
    pub(super) fn waits_for_person(&self, server: &Server) -> bool {
        !server.phase.is_clear() && self.is_from_before(server)
    }
}
