//! Which processes started a server, and which are part of one. A verdict asks this about processes outside of the
//! server that it judges.

use super::Engine;
use crate::{model::ProcessId, verdict::Makers};

impl Makers for Engine {
    fn made_a_server(&self, process: ProcessId) -> bool {
        self.world.servers().all().any(|server| server.maker == Some(process))
    }
}
