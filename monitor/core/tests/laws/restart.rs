//! A daemon that is killed and started again, with the store between the two.

use orphand_core::model::{
    Effect, Fact, Input, Knowledge, RememberedOrphan, RememberedRun, RememberedServer,
};

use crate::{
    histories::Story,
    host::{Host, engine},
    log::Log,
    world::World,
};

impl Story {
    /// The same story with a daemon that is restarted after some of its acts.
    pub fn play_with_restarts(&self, after: &[u8]) -> World {
        let mut world = World::new(self.policy(), self.manners(), self.space);
        for act in &self.before {
            act.play(&mut world);
        }
        world.host.start();
        for (place, act) in self.acts.iter().enumerate() {
            act.play(&mut world);
            for _ in after.iter().filter(|n| usize::from(**n) % self.acts.len() == place) {
                world.host.restart();
            }
        }
        world.host.settle();
        world
    }

    /// The same story with a daemon that is started for the first time on this host, or that does not know all that was before.
    pub fn play_with_first_start(&self, is_incomplete: bool) -> World {
        let mut world = World::new(self.policy(), self.manners(), self.space);
        for act in &self.before {
            act.play(&mut world);
        }
        let now = Some(world.host.kernel.now());
        let knowledge = if is_incomplete {
            Knowledge { incomplete_before: now, ..Knowledge::default() }
        } else {
            Knowledge { first_start: now, ..Knowledge::default() }
        };
        world.host.give(Input::Remembered { knowledge });
        world.host.start();
        for act in &self.acts {
            act.play(&mut world);
        }
        world.host.settle();
        world
    }
}

impl Host {
    /// The first look, as the daemon takes it: the second one finds what belongs to whom the first one found.
    pub fn enter_all(&mut self) {
        self.look();
        self.look();
    }

    /// The daemon is killed, and the next one reads the store and /proc.
    pub fn restart(&mut self) {
        let watched_until = Some(self.kernel.now());
        let knowledge = Knowledge { watched_until, ..knowledge(&self.log) };
        self.core = Box::new(engine(&self.policy, &self.truth));
        self.truth.restarted = true;
        for service in &mut self.truth.services {
            service.found_over = service.over;
        }
        self.kernel.records.forget();
        self.waiting.clear();
        self.pidfds.clear();
        (self.drain_at, self.resync) = (None, false);
        self.give(Input::Remembered { knowledge });
        self.enter_all();
        self.give(Input::Ready { kernel: "6.18.0".to_owned(), hooks: Vec::new() });
        self.wake();
    }
}

/// What the store makes of all facts so far.
fn knowledge(log: &Log) -> Knowledge {
    let mut known = Knowledge { restarted: true, ..Knowledge::default() };
    let facts = log.effects.iter().filter_map(|(_, effect)| match effect {
        Effect::Persist { fact, .. } => Some(&**fact),
        _ => None,
    });
    for fact in facts {
        let of = |known: &mut Knowledge, id| known.servers.iter().position(|one| one.server.id == id);
        match fact {
            Fact::Run { run } => {
                known.runs.retain(|one| (&one.run.key, one.run.generation) != (&run.key, run.generation));
                known.runs.push(RememberedRun { run: run.clone(), this_boot: true });
            }
            Fact::Forgotten { key } => known.runs.retain(|one| one.run.key != *key),
            Fact::Server { server } => match of(&mut known, server.id) {
                Some(place) => known.servers[place].server = server.clone(),
                None => known.servers.push(RememberedServer { server: server.clone(), orphan: None }),
            },
            Fact::Reaping { server, .. } => {
                if let Some(place) = of(&mut known, *server) {
                    let orphan = RememberedOrphan { reaping: true, ..RememberedOrphan::default() };
                    known.servers[place].orphan = Some(orphan);
                }
            }
            Fact::Ended { server, .. } => known.servers.retain(|one| one.server.id != *server),
            _ => {}
        }
    }
    known
}
