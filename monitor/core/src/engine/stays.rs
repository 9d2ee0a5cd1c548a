//! What stays because of a guard or a doubt, when somebody has ended for whose sake it may have stayed.

use super::{Engine, judge::LOOK_AGAIN};
use crate::{
    model::{BootTime, Guard},
    world::{Stage, State},
};

impl Engine {
    /// A guard or a doubt may have gone with the process that ended: what stays because of one is looked at again at once.
    /// Observation goes with nobody.
    ///
    /// At most once a [`LOOK_AGAIN`], however many end: whoever lets thousands of them end has nobody looked at without a pause.
    pub(super) fn look_again_at_what_stays(&mut self, now: BootTime) {
        if let Some(earliest) = self.looked_again.map(|at| at + LOOK_AGAIN).filter(|at| *at > now) {
            self.look_again_at = Some(earliest);
            return;
        }
        (self.looked_again, self.look_again_at) = (Some(now), None);
        for key in self.world.servers().keys() {
            let Some(server) = self.world.server(key) else { continue };
            let may_change = match &server.state {
                State::Unproven(_) => true,
                State::Orphan(case) => {
                    case.stage == Stage::Spared && case.guards.iter().any(|g| *g != Guard::Observe)
                }
                State::Live | State::Suspect { .. } => false,
            };
            if may_change {
                self.world.set_timer(key, Some(now));
            }
        }
    }
}
