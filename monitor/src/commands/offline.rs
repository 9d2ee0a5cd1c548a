//! The engine without a daemon: in this process, on readings of /proc, without a kernel side. Of the store it reads the numbers of
//! runs and nothing else. `ps`, `explain`, `doctor`, `reap` and `top` use it where no daemon is asked.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Context as _;

use crate::{
    actuator::reaper::Reaper,
    cli::Places,
    config::Config,
    control::client::{Client, ClientError},
    driver::{Driver, EffectHandler, read_proc},
    host::{Proc, Scope, boot_id, stuck},
    os::clock,
    probe::Probe,
    sink::list::Sample,
    source::attach,
    store::{self, StoreError},
};
use orphand_core::{
    engine::Engine,
    model::{
        About, Answer, Asked, BootTime, Effect, Explained, Input, Knowledge, Mode, Policy, ReapRequest,
        Report, ServerReport, SignalError, text,
    },
    recognise::Rules,
};

/// Between two readings of /proc, which find who has ended.
const READ_AGAIN: Duration = Duration::from_millis(200);

/// Of so many servers the settings are read: that takes milliseconds each, and somebody waits.
const HINTED: usize = 64;

pub(crate) struct Offline {
    driver: Driver,
    host: Host,
    term_timeout: Duration,
}

struct Host {
    rules: Rules,
    scope: Option<Scope>,
    procfs: Proc,
    probe: Probe,
    /// Nothing is signalled before there is one.
    reaper: Option<Reaper>,
    /// Why servers could not be inspected. A reason that repeats at once is there once.
    blind: Vec<String>,
    /// Whether the numbers of runs are those that daemons gave.
    numbered: bool,
    /// Of how many servers it was asked by what a person recognises them.
    hinted: usize,
}

impl Offline {
    /// Reads /proc and judges, without any grace. By itself this engine only observes. With a scope it judges and signals nothing else.
    pub(crate) fn inspect(places: &Places) -> anyhow::Result<Self> {
        attach::require_host_namespaces()?;
        Self::with(&places.load()?, places)
    }

    pub(super) fn with(config: &Config, places: &Places) -> anyhow::Result<Self> {
        let scope = places.below.clone();
        let rules = config.rules();
        let (procfs, probe) = (Proc::system()?, Probe::new()?);
        let policy = Policy {
            mode: Mode::Observe,
            grace: Duration::ZERO,
            abandoned_grace: Duration::ZERO,
            work_grace: Duration::ZERO,
            term_timeout: config.term_timeout,
            other_uids: config.other_uids,
            rules: rules.source(),
            ..Policy::default()
        };
        let engine = Engine::new(policy, procfs.ourselves()?).context("cannot read the rules back")?;
        let driver = Driver::new(engine, None).within(scope.clone());
        let host =
            Host { rules, scope, procfs, probe, reaper: None, blind: Vec::new(), numbered: true, hinted: 0 };
        let mut offline = Self { driver, host, term_timeout: config.term_timeout };
        offline.number_runs(places.state_dir())?;
        offline.handle(offline.host.read()?)?;
        // The owners are known: now servers without one are judged, some at a time, and those that a living one abandoned.
        offline.driver.tell(Engine::watch_wires_at_once);
        // The second time is for the cases that the first one opened.
        for _ in 0..2 {
            let now = clock::now();
            while offline.pass_time(now)? {}
        }
        offline.driver.tell(Engine::measure);
        offline.driver.perform(&mut offline.host)?;
        Ok(offline)
    }

    /// Takes over the numbers that daemons gave to runs. Where they cannot be read, no run has one.
    fn number_runs(&mut self, state_dir: &std::path::Path) -> anyhow::Result<()> {
        match store::history::runs(state_dir, &boot_id()?) {
            Ok(runs) => {
                self.handle(Input::Remembered { knowledge: Knowledge { runs, ..Knowledge::default() } })
            }
            Err(StoreError::Absent { .. }) => Ok(()),
            Err(error) => {
                tracing::debug!("runs have no numbers: {error}");
                self.host.numbered = false;
                Ok(())
            }
        }
    }

    /// All that was found, and what could not be seen. Whether this engine may signal says nothing: the guard `observe` is not shown.
    pub(crate) fn report(&self) -> Report {
        let mut report = self.driver.engine().report();
        report.lift_for_person();
        for one in report.servers_mut() {
            (one.next, one.deadline) = (None, None);
        }
        if !self.host.numbered {
            report.forget_numbers();
        }
        report.blind.clone_from(&self.host.blind);
        if !rustix::process::geteuid().is_root() {
            let why = "not root: what other users' processes run and hold could be seen in part only";
            report.blind.push(why.to_owned());
        }
        let stuck = stuck();
        if !stuck.is_empty() {
            report.blind.push(text::unanswered(&stuck));
        }
        report.blind.dedup();
        report
    }

    /// What is known of these processes. What only a daemon does says nothing here: the guard `observe`, and what comes next.
    pub(super) fn explain(&self, asked: &Asked) -> Vec<Explained> {
        let mut found = self.driver.engine().explain(asked);
        for one in &mut found {
            if let Some(report) = &mut one.report {
                report.lift_for_person();
                (report.next, report.deadline) = (None, None);
            }
            (one.next, one.due, one.observes) = (None, None, false);
        }
        found
    }

    pub(super) fn plan(&self, request: &ReapRequest) -> Vec<ServerReport> {
        let mut planned = self.driver.engine().plan(request);
        for one in &mut planned {
            (one.next, one.deadline) = (None, None);
        }
        planned
    }

    /// Ends what a request selects, and waits until it is over by the report, for the term timeout and so much longer at most. From now
    /// on signals are sent.
    pub(super) fn reap(
        &mut self,
        request: ReapRequest,
        margin: Duration,
        is_over: impl Fn(&Report) -> bool,
    ) -> anyhow::Result<Report> {
        let until = clock::now() + self.term_timeout + margin;
        self.host.reaper = Some(Reaper::new()?.within(self.host.scope.clone()));
        self.handle(Input::Reap { request, by: String::new() })?;
        loop {
            // What was forked meanwhile, and who has ended.
            self.handle(self.host.read()?)?;
            let (report, now) = (self.report(), clock::now());
            if is_over(&report) || now >= until {
                return Ok(report);
            }
            let next = self.driver.due().map_or(READ_AGAIN, |due| due.since(now).min(READ_AGAIN));
            std::thread::sleep(next);
            while clock::now() < until && self.pass_time(clock::now())? {}
        }
    }

    fn handle(&mut self, input: Input) -> anyhow::Result<()> {
        self.driver.handle(&mut self.host, input)
    }

    /// Has the engine do what is due at `until`: some of it, if that is much. Returns whether there was anything.
    fn pass_time(&mut self, until: BootTime) -> anyhow::Result<bool> {
        let passed = self.driver.pass_time(until);
        self.driver.perform(&mut self.host)?;
        Ok(passed)
    }
}

impl EffectHandler for Host {
    fn carry_out(&mut self, driver: &mut Driver, effect: Effect) -> anyhow::Result<()> {
        match effect {
            Effect::Ask { token, about, .. } => {
                let answer = self.answer(&about);
                driver.feed(Input::Answered { token, answer });
            }
            Effect::Signal { process, signal, uid } => {
                let Some(reaper) = &self.reaper else { return Ok(()) };
                let error = reaper.signal(process, uid, signal).err();
                let gone = error == Some(SignalError::Gone);
                driver.feed(Input::Signalled { process, signal, error });
                if gone {
                    driver.feed(Input::Gone { process });
                }
            }
            Effect::Resync => {
                driver.feed(self.read()?);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Host {
    fn read(&self) -> anyhow::Result<Input> {
        let snapshot = read_proc(&self.procfs, &self.probe, &self.rules, BTreeMap::new())?;
        Ok(Input::Snapshot { snapshot })
    }

    fn answer(&mut self, about: &About) -> Answer {
        if matches!(about, About::Hints { .. }) {
            self.hinted += 1;
        }
        let answer = match about {
            About::Hints { .. } if self.hinted > HINTED => Answer::Hints { found: None },
            _ => self.probe.answer(about),
        };
        if let (Answer::Server { facts }, About::Server(subject)) = (&answer, about)
            && let Some(why) = facts.scene.blind(|one| subject.processes.contains(&one))
            && self.blind.last().map(String::as_str) != Some(why)
        {
            self.blind.push(why.to_owned());
        }
        answer
    }
}

/// Looks once. With `no_daemon` none is asked.
pub(crate) fn look(places: &Places, no_daemon: bool) -> anyhow::Result<Sample> {
    let told = if no_daemon { Err(None) } else { ask(places)?.map_err(Some) };
    told.or_else(|why| Ok(Sample { report: alone(places, why.as_ref())?, ..without(why.as_ref()) }))
}

/// What the daemon says. Inside: why there is none, or may not be asked.
pub(crate) fn ask(places: &Places) -> anyhow::Result<Result<Sample, ClientError>> {
    let told = super::asked(Client::new(places.socket()).status(false))?;
    Ok(told.map(|status| Sample::of_daemon(status, clock::now(), super::wall_clock(), &clock::zone())))
}

/// Looks through /proc.
pub(crate) fn alone(places: &Places, why: Option<&ClientError>) -> anyhow::Result<Report> {
    let mut report = Offline::inspect(places)?.report();
    if let Some(error @ ClientError::Forbidden { .. }) = why {
        report.blind.push(format!("what the daemon knows: {error}"));
    }
    Ok(report)
}

/// What is known before that look: why no daemon tells.
pub(crate) fn without(why: Option<&ClientError>) -> Sample {
    let why = match why {
        None => "no daemon asked",
        Some(ClientError::Forbidden { .. }) => "the daemon may not be asked",
        Some(_) => "no daemon answers",
    };
    Sample::of_proc(Report::default(), why, clock::now())
}
