//! The daemon judges.

use std::{
    rc::Rc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use super::{
    line::{Fates, Line},
    play::{self, Judging, Situation},
    said::Said,
    script::Script,
    shared::Shared,
    stated::{GroundTruth, When},
};
use crate::{
    binary::orphand,
    daemon::{Daemon, Launch},
    event::Event,
    host::{Identity, PATIENCE},
    scene::Scene,
};

/// The grace period of the daemon.
const GRACE: &str = "6s";

/// For how long it lets tools work.
const WORK_GRACE: &str = "8s";

/// What the daemon is told of programs of the situations.
const RULES: &str = r#"
[[agent]]
name = "threaded-gateway"
program = "threaded-gateway"
thread_scoped = true
[[agent]]
name = "tidy-gateway"
program = "tidy-gateway"
idle_duplicates = "5s"
[[agent]]
name = "job-daemon"
program = "job-daemon"
daemon = true
"#;

/// Between two restarts of the daemon while situations are built, at least.
const RESTARTS: Duration = Duration::from_secs(2);

/// Between two looks at what the daemon says about a decoy.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// The daemon, which may be restarted again and again while situations are built.
pub struct ByDaemon<'a> {
    scene: &'a Scene,
    shared: &'a Shared,
    launch: Launch,
    daemons: Vec<Rc<Daemon>>,
    restarts: bool,
    restarted: Instant,
    decoy: Option<Decoy>,
}

/// A plain orphan that was made after what is to be judged: it is judged after that, too.
struct Decoy {
    id: Identity,
    made: Instant,
    looked: Instant,
}

impl<'a> ByDaemon<'a> {
    pub fn new(scene: &'a Scene, shared: &'a Shared, restarts: bool) -> Result<Self> {
        // Checked first, so that a missing daemon is noticed before everything is built.
        orphand()?;
        let (sessions, daemons, restarted) = (shared.config(), Vec::new(), Instant::now());
        let config =
            format!("abandoned_grace = \"{GRACE}\"\nwork_grace = \"{WORK_GRACE}\"\n{sessions}{RULES}");
        let launch = Launch { grace: GRACE, config, ..Launch::default() };
        Ok(Self { scene, shared, launch, daemons, restarts, restarted, decoy: None })
    }

    /// Plays all of them, those first that are there before the daemon, and those last that are over when their orphans are:
    /// the others stand for a minute. Containers and published software start slowly: they begin before the rest.
    pub fn play(mut self, scripts: &[Script]) -> Result<Vec<Line>> {
        let (before, mut watched): (Vec<_>, Vec<_>) =
            scripts.iter().cloned().partition(|script| script.stated.when == When::Before);
        watched.sort_by_key(|Script { stated, .. }| {
            (stated.truth == GroundTruth::Orphan && stated.cost.is_none(), stated.needs.is_empty())
        });
        let before = play::build(self.scene, &before, self.shared)?;
        self.start()?;
        let lines = play::play(self.scene, &watched, self.shared, before, &mut self)?;
        eprintln!("judgement: all have been judged by {} daemons", self.daemons.len());
        Ok(lines)
    }

    fn start(&mut self) -> Result<()> {
        self.daemons.push(self.scene.daemon_with(&self.launch)?);
        self.launch.state = "../daemon0/state";
        self.restarted = Instant::now();
        Ok(())
    }
}

impl Judging for ByDaemon<'_> {
    fn meanwhile(&mut self, all_built: bool) -> Result<()> {
        if self.restarts && (all_built || self.restarted.elapsed() >= RESTARTS) {
            if let Some(daemon) = self.daemons.last() {
                daemon.kill()?;
            }
            self.start()?;
            self.restarts = !all_built;
        }
        Ok(())
    }

    fn waits_for_ends(&self) -> bool {
        true
    }

    fn ask(&mut self) -> Result<()> {
        let now = Instant::now();
        self.decoy = Some(Decoy { id: self.scene.decoy()?.id, made: now, looked: now });
        Ok(())
    }

    fn has_answered(&mut self) -> Result<bool> {
        let Some(decoy) = self.decoy.as_mut().filter(|decoy| decoy.looked.elapsed() >= LOOK_AGAIN) else {
            return Ok(false);
        };
        decoy.looked = Instant::now();
        if decoy.made.elapsed() > PATIENCE {
            let daemon = self.daemons.last().context("no daemon")?;
            bail!("a plain orphan, {}, was not ended\n{}", decoy.id, daemon.account());
        }
        let id = decoy.id;
        Ok(self.daemons.iter().any(|daemon| daemon.has_said("orphan_reaped", id)))
    }

    fn result(&mut self, plays: &[Situation]) -> Vec<(Fates, Said)> {
        let events: Vec<_> = self.daemons.iter().flat_map(|daemon| daemon.events()).collect();
        let results = plays.iter().map(|play| (play.fates(), Said::about(&play.cast, &events)));
        let results: Vec<_> = results.collect();
        let harmed = results.iter().filter(|(fates, _)| !fates.harmed.is_empty());
        for event in harmed.flat_map(|(fates, _)| told(fates, &events)) {
            eprintln!("{event:?}");
        }
        results
    }
}

/// All that the daemon said about this situation.
fn told<'a>(fates: &Fates, events: &'a [Event]) -> impl Iterator<Item = &'a Event> {
    let cast: Vec<_> = fates.cast.all().collect();
    events.iter().filter(move |event| event.has_any(&cast))
}
