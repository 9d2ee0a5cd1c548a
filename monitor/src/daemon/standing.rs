//! The mode in effect: what the configuration says, and what persons decided over the control socket.
//!
//! Invariant: a change is a change of the configuration to the engine, so everything that is known is inspected again, and
//! nothing is ended on an older verdict. `--observe` beats all of it.

use jiff::Timestamp;

use super::Daemon;
use crate::{config::Config, os::clock, sink::status::doing};
use orphand_core::model::{BootTime, Decided, Decision, Input, Mode, Policy, Standing};

#[derive(Clone, Debug)]
pub struct Decisions {
    pub standing: Standing,
    /// Whether the daemon was started with `--observe`.
    always_observes: bool,
    pub(super) due: Option<BootTime>,
}

impl Decisions {
    /// What earlier daemons were told. A pause may have ended meanwhile.
    pub fn new(mut standing: Standing, always_observes: bool) -> Self {
        standing.end_pause(Timestamp::now());
        let mut new = Self { standing, always_observes, due: None };
        new.set_due();
        new
    }

    /// The policy of a configuration with the mode in effect.
    pub fn policy(&self, config: &Config) -> Policy {
        let policy = config.policy();
        if self.always_observes {
            return Policy { mode: Mode::Observe, ..policy };
        }
        let (mode, by) = (self.standing.mode(policy.mode), self.standing.by());
        Policy { mode, decided_by: by.map(str::to_owned), ..policy }
    }

    /// The end of the pause on the clock of the timer. A step of the wall clock does not change it.
    fn set_due(&mut self) {
        let until = self.standing.pause.as_ref().and_then(|pause| pause.until);
        let left = until.map(|until| until.duration_since(Timestamp::now()).unsigned_abs());
        self.due = left.map(|left| clock::now() + left);
    }
}

impl Daemon {
    /// Takes a decision into effect. The error is one line for the person.
    pub(super) fn decide(
        &mut self,
        decision: &Decision,
        by: &str,
    ) -> anyhow::Result<Result<Decided, String>> {
        let enforce = Decision::Mode { mode: Some(Mode::Enforce) };
        if self.decisions.always_observes && *decision == enforce {
            let why = "it was started with --observe, which no decision beats: start it without that flag";
            return Ok(Err(why.to_owned()));
        }
        let before = self.policy();
        self.decisions.standing.decide(decision, by, Timestamp::now());
        self.decisions.set_due();
        self.change_mode(&before, Some(by))?;
        let (mode, standing) = (self.outside.status.mode, self.decisions.standing.clone());
        tracing::info!("orphand {}", doing(mode, &standing, Timestamp::now(), &clock::zone()));
        Ok(Ok(Decided { mode, standing, not_remembered: None }))
    }

    pub(super) fn end_pause(&mut self) -> anyhow::Result<()> {
        if self.decisions.due.is_none_or(|due| due > clock::now()) {
            return Ok(());
        }
        let before = self.policy();
        self.decisions.due = None;
        self.decisions.standing.pause = None;
        tracing::info!("the pause is over");
        self.change_mode(&before, None)
    }

    fn policy(&self) -> Policy {
        self.decisions.policy(&self.configuration.config)
    }

    /// What changes nothing, such as a pause of a daemon that only observes, is no change of the configuration. `by` is who
    /// asked for it now: of a pause that was taken back nobody's decision is left.
    fn change_mode(&mut self, before: &Policy, by: Option<&str>) -> anyhow::Result<()> {
        let mut policy = self.policy();
        self.outside.status.mode = policy.mode;
        self.outside.status.standing = self.decisions.standing.clone();
        if policy == *before {
            return Ok(());
        }
        policy.decided_by = by.map(str::to_owned).or(policy.decided_by);
        self.handle(Input::Configured { policy })
    }
}
