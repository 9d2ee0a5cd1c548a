//! The host: runs an engine against the model kernel the way the daemon's loop does.
//!
//! Every question is answered from the model, every signal goes through the identity check, time is the model's.
//! It keeps a log of all that went in and out, and asks [`Truth`] about each signal at the moment it lands.

use std::{collections::BTreeSet, time::Duration};

use orphand_core::{
    engine::Engine,
    model::{About, BootTime, Effect, Input, Losses, Mode, Policy, ProcessId, Signal, SignalError, Snapshot},
};

use crate::{
    answers::describe,
    kernel::{Kernel, Process},
    log::{Log, Shot},
    truth::Truth,
};

/// What the laws are tested against: the engine, or a twin of it that is broken on purpose.
pub trait Core {
    fn handle(&mut self, now: BootTime, input: Input);
    fn poll_effect(&mut self) -> Option<Effect>;
    fn poll_timeout(&self) -> Option<BootTime>;
    /// How many orphans there are.
    fn orphans(&self) -> u64;
    /// What is wrong with its world.
    fn check(&self) -> Vec<String>;
}

impl Core for Engine {
    fn handle(&mut self, now: BootTime, input: Input) {
        Self::handle(self, now, input);
    }
    fn poll_effect(&mut self) -> Option<Effect> {
        Self::poll_effect(self)
    }
    fn poll_timeout(&self) -> Option<BootTime> {
        Self::poll_timeout(self)
    }
    fn orphans(&self) -> u64 {
        let [_, _, orphans] = self.counts();
        orphans
    }
    fn check(&self) -> Vec<String> {
        crate::invariants::broken(self)
    }
}

/// The longest time between two looks at what stays.
const LOOKS_APART: Duration = Duration::from_secs(600);

/// How the shell behaves; the twins change it.
#[derive(Clone, Copy, Debug)]
pub struct Manners {
    /// How long records wait in the ring at most.
    pub lag: Duration,
    /// Whether pidfds are looked at before the ring.
    pub gone_first: bool,
    /// Whether the identity is compared before a signal. Only a twin does not.
    pub compares: bool,
    /// Whether the target of every signal ends and its number is reused just before the signal.
    pub treacherous: bool,
    /// Whether each record is delivered twice.
    pub stutters: bool,
    /// Whether the system refuses every signal.
    pub refuses: bool,
    /// Whether the probes see nothing.
    pub blind: bool,
    /// Whether the kernel makes no passes over open files: then nobody can tell whether those seen are all.
    pub passless: bool,
    /// Every how manieth look fails; none if 0.
    pub stumbles: u8,
    /// How many milliseconds a look at a server waits at most before it is made; at once if 0.
    pub late: u16,
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            lag: Duration::from_millis(20),
            gone_first: false,
            compares: true,
            treacherous: false,
            stutters: false,
            refuses: false,
            blind: false,
            passless: false,
            stumbles: 0,
            late: 0,
        }
    }
}

/// Engine, kernel, truth and log.
pub struct Host {
    pub kernel: Kernel,
    pub core: Box<dyn Core>,
    pub truth: Truth,
    pub log: Log,
    pub manners: Manners,
    pub policy: Policy,
    /// What the engine was told to judge by at first.
    pub first_policy: Policy,
    pub drain_at: Option<BootTime>,
    pub pidfds: BTreeSet<ProcessId>,
    pub resync: bool,
    /// Questions that wait, and until when.
    pub waiting: Vec<(BootTime, u64, About)>,
    /// Looks so far.
    pub looks: u64,
    pub running: bool,
}

/// An engine that knows no process yet.
pub fn engine(policy: &Policy, truth: &Truth) -> Engine {
    Engine::new(policy.clone(), truth.ourselves.clone()).expect("no rules are rules")
}

impl Host {
    pub fn new(kernel: Kernel, truth: Truth, policy: Policy, manners: Manners) -> Self {
        Self {
            kernel,
            core: Box::new(engine(&policy, &truth)),
            truth,
            log: Log::default(),
            manners,
            first_policy: policy.clone(),
            policy,
            drain_at: None,
            pidfds: BTreeSet::new(),
            resync: false,
            waiting: Vec::new(),
            looks: 0,
            running: false,
        }
    }

    /// Attach, look at /proc, be ready.
    pub fn start(&mut self) {
        self.kernel.records.attached = true;
        self.running = true;
        self.truth.since = self.kernel.now();
        self.truth.partial = !self.truth.services.is_empty();
        for service in &mut self.truth.services {
            service.found_over = service.over;
            service.found_ownerless = service.owner.is_some_and(|o| !self.kernel.alive(o));
            // Who only listens to it is not known as its host.
            let [stdin, _] = service.wires;
            let outside = |p: &Process| !self.kernel.descends(p.id, service.head());
            let held = |end| self.kernel.in_flight.contains(&end) || self.kernel.holders(end).any(outside);
            let silent = !self.kernel.opposite(stdin).is_some_and(held);
            service.found_silent = silent && !self.truth.agents.contains(&service.maker);
        }
        self.enter_all();
        let ready =
            Input::Ready { kernel: "6.18.0".to_owned(), hooks: vec!["sched_process_exit".to_owned()] };
        self.give(ready);
        self.wake();
    }

    /// Called between system calls of the world: wakes the daemon if it is time.
    pub fn breathe(&mut self) {
        if !self.running {
            return;
        }
        let now = self.kernel.now();
        if !self.kernel.records.is_empty() && self.drain_at.is_none() {
            self.drain_at = Some(now + self.manners.lag);
        }
        let timer = self.core.poll_timeout().is_some_and(|t| t <= now);
        let late = self.next_late().is_some_and(|due| due <= now);
        if timer || late || self.kernel.records.wake || self.drain_at.is_some_and(|t| t <= now) {
            self.wake();
        }
    }

    /// Lets time pass, with all that happens by itself meanwhile.
    pub fn elapse(&mut self, time: Duration) {
        let end = self.kernel.now() + time;
        let mut still = 0;
        loop {
            let now = self.kernel.now();
            let timer = self.core.poll_timeout().filter(|_| self.running);
            let late = self.next_late().filter(|_| self.running);
            let next = [self.kernel.next_plan(), timer, late, self.drain_at].into_iter().flatten().min();
            let Some(next) = next.filter(|t| *t <= end) else { break };
            still = if next > now { 0 } else { still + 1 };
            assert!(still < 1000, "the engine wants to be called at {next:?} again and again");
            self.kernel.advance_to(next);
            self.kernel.run_plans();
            self.breathe();
        }
        self.kernel.advance_to(end);
        self.breathe();
    }

    /// Lets time pass until nothing is due any more, and whatever stays has been looked at again.
    pub fn settle(&mut self) {
        let rounds = self.policy.grace + self.policy.term_timeout * 8 + Duration::from_secs(60);
        self.elapse(rounds);
        self.wake();
        self.elapse(rounds + LOOKS_APART * 2);
    }

    /// One turn of the daemon's loop.
    pub fn wake(&mut self) {
        self.drain_at = None;
        let late = self.look_late();
        if self.manners.gone_first {
            self.tell_gone();
        }
        self.drain();
        self.tell_gone();
        for answered in late {
            self.give(answered);
        }
        let now = self.kernel.now();
        if self.core.poll_timeout().is_some_and(|t| t <= now) {
            self.give(Input::Timeout);
        }
        for _ in 0..4 {
            if !std::mem::take(&mut self.resync) {
                break;
            }
            self.look();
        }
    }

    fn next_late(&self) -> Option<BootTime> {
        self.waiting.iter().map(|(due, ..)| *due).min()
    }

    /// Makes the looks whose turn has come. What they find is handed in behind what is reported meanwhile.
    fn look_late(&mut self) -> Vec<Input> {
        let now = self.kernel.now();
        let (due, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(|(at, ..)| *at <= now);
        self.waiting = waiting;
        let due: Vec<(BootTime, u64, About)> = due;
        due.into_iter()
            .map(|(_, token, about)| Input::Answered { token, answer: self.answer(about) })
            .collect()
    }

    /// Until when this question waits, if it may: any time that differs between questions.
    fn delay(&self, token: u64, about: &About) -> Option<Duration> {
        let may_wait = matches!(about, About::Server(_) | About::HungUp(_));
        let most = u64::from(self.manners.late);
        (may_wait && most > 0).then(|| Duration::from_millis(token.wrapping_mul(2_654_435_761) % most))
    }

    fn drain(&mut self) {
        let (records, losses) = self.kernel.records.drain();
        self.kernel.drained();
        for event in records {
            if self.manners.stutters {
                self.give(Input::Process { event: event.clone() });
            }
            self.give(Input::Process { event });
        }
        if losses != Losses::default() {
            self.log.first_loss.get_or_insert(self.kernel.now());
            (self.truth.partial, self.truth.lossy) = (true, true);
            self.give(Input::Lost { losses });
        }
    }

    /// Drains, lets the tick end, then reads /proc: births are told in ticks, and of what was born in the
    /// horizon's own tick nothing is concluded, although its fork may have been lost before the drain.
    /// (The model's clock need not be moved for that: nothing happens meanwhile.)
    pub fn look(&mut self) {
        self.drain();
        let horizon = BootTime((self.kernel.now().ticks() + 1) * 10_000_000);
        self.log.first_look.get_or_insert(horizon);
        self.log.last_look = Some(horizon);
        self.truth.shows_parents(&self.kernel);
        let processes = self.kernel.living().map(describe).collect();
        self.give(Input::Snapshot { snapshot: Snapshot { horizon, processes, ..Snapshot::default() } });
    }

    fn tell_gone(&mut self) {
        let gone: Vec<ProcessId> = self.pidfds.iter().copied().filter(|p| !self.kernel.alive(*p)).collect();
        if !gone.is_empty() {
            // As the daemon does: what they did before they ended comes first.
            self.drain();
        }
        for process in gone {
            self.pidfds.remove(&process);
            self.give(Input::Gone { process });
        }
    }

    /// Another configuration: to act, or only to look.
    pub fn configure(&mut self, mode: Mode) {
        self.policy.mode = mode;
        let policy = self.policy.clone();
        self.wake();
        self.give(Input::Configured { policy });
        self.wake();
    }

    /// Hands something in and carries out what follows from it.
    pub fn give(&mut self, input: Input) {
        let now = self.kernel.now();
        self.log.given.push((now, input.clone()));
        self.core.handle(now, input);
        self.check();
        self.perform();
    }

    /// After every input: is the engine's world whole? What is wrong is kept, the first time.
    fn check(&mut self) {
        if self.log.broken.is_empty() {
            self.log.broken = self.core.check();
        }
    }

    /// Carries out effects in order. A question is answered before anything else is handed in.
    fn perform(&mut self) {
        let mut later = Vec::new();
        let mut effects = 0;
        while let Some(effect) = self.core.poll_effect() {
            effects += 1;
            assert!(effects < 100_000, "the engine never stops asking");
            let now = self.kernel.now();
            self.log.effects.push((now, effect.clone()));
            match effect {
                Effect::Ask { token, about, .. } => {
                    if let Some(delay) = self.delay(token, &about) {
                        self.waiting.push((now + delay, token, about));
                        continue;
                    }
                    let answer = self.answer(about);
                    let input = Input::Answered { token, answer };
                    self.log.given.push((now, input.clone()));
                    self.core.handle(now, input);
                    self.check();
                }
                Effect::Signal { process, signal, .. } => {
                    let error = self.shoot(process, signal);
                    later.push(Input::Signalled { process, signal, error });
                }
                // The shell looks whether the number still names the process, then enters it.
                Effect::Track { process, tracking } if self.kernel.alive(process) => {
                    self.kernel.records.track(process.pid, tracking);
                }
                Effect::Emit { notice, .. } => {
                    let wrong = self.truth.verdict_is_wrong(&self.kernel, &notice);
                    self.log.wrong_verdicts.extend(wrong.map(|why| (now, why)));
                }
                // Its end was told already: a look knew it alive.
                Effect::Track { process, .. } => {
                    if self.manners.late > 0 {
                        self.pidfds.insert(process);
                    }
                }
                Effect::Persist { .. } | Effect::FollowThread { .. } => {}
                Effect::Untrack { process } => self.kernel.records.untrack(process.pid),
                Effect::Resync => self.resync = true,
            }
        }
        for input in later {
            self.give(input);
        }
    }

    fn shoot(&mut self, meant: ProcessId, signal: Signal) -> Option<SignalError> {
        if self.manners.treacherous && self.kernel.alive(meant) {
            self.kernel.replace(meant);
        }
        let at = self.kernel.now();
        let lawful = match self.policy.mode {
            Mode::Enforce => self.truth.permits(&self.kernel, meant, self.policy.grace),
            Mode::Observe => Err("it was told to look only".to_owned()),
        };
        self.truth.begins_to_end(&self.kernel, meant);
        let mut shot = Shot { at, meant, signal, hit: None, wrong: None };
        let same = self.kernel.alive(meant);
        let error = if self.manners.refuses {
            Some(SignalError::System { errno: 1, message: "pidfd_send_signal: not permitted".to_owned() })
        } else if self.manners.compares && !same {
            Some(SignalError::Gone)
        } else {
            shot.hit = self.kernel.signal(meant.pid, signal);
            self.pidfds.extend(shot.hit);
            None
        };
        shot.wrong = match shot.hit {
            Some(hit) if hit != meant => Some(format!("meant {meant}, hit {hit}")),
            Some(_) => lawful.err(),
            None => None,
        };
        self.log.shots.push(shot);
        error
    }
}
