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
        Report, ServerReport, SignalError, Subject, text,
    },
    recognise::Rules,
};

/// Between two readings of /proc, which find who has ended.
const READ_AGAIN: Duration = Duration::from_millis(200);

/// So many servers are inspected by one reading of /proc.
const TOGETHER: usize = 128;

/// In so many passes it is found out who is whose duplicate; each asks about some servers.
const COMPARED: usize = 8;

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
    /// Why servers could not be inspected, each reason once.
    blind: Vec<String>,
    /// Whether the numbers of runs are those that daemons gave.
    numbered: bool,
    /// Of how many servers it was asked by what a person recognises them.
    hinted: usize,
    /// The servers that are to be inspected, each with its question.
    due: Vec<(u64, Subject)>,
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
        let (reaper, blind, numbered, hinted, due) = (None, Vec::new(), true, 0, Vec::new());
        let host = Host { rules, scope, procfs, probe, reaper, blind, numbered, hinted, due };
        let mut offline = Self { driver, host, term_timeout: config.term_timeout };
        offline.number_runs(places.state_dir())?;
        offline.handle(offline.host.read()?)?;
        // The owners are known: now servers without one are judged, and those that a living one abandoned.
        offline.driver.tell(Engine::watch_wires_at_once);
        // The second time is for the cases that the first one opened.
        for _ in 0..2 {
            let now = clock::now();
            offline.pass_time(now)?;
        }
        for _ in 0..COMPARED {
            offline.driver.tell(Engine::compare_at_once);
            offline.pass_time(clock::now())?;
        }
        offline.driver.tell(Engine::measure);
        offline.perform()?;
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
            self.pass_time(clock::now().min(until))?;
        }
    }

    fn handle(&mut self, input: Input) -> anyhow::Result<()> {
        self.driver.feed(input);
        self.perform()
    }

    /// Has the engine do all that is due at `until`. It asks for some inspections at a time: all of them are made together.
    fn pass_time(&mut self, until: BootTime) -> anyhow::Result<()> {
        loop {
            while self.driver.pass_time(until) {
                self.driver.perform(&mut self.host)?;
            }
            if self.host.due.is_empty() {
                return self.perform();
            }
            self.perform()?;
        }
    }

    /// Has effects carried out, and servers inspected, until neither is left.
    fn perform(&mut self) -> anyhow::Result<()> {
        self.driver.perform(&mut self.host)?;
        while !self.host.due.is_empty() {
            for (token, answer) in self.host.inspect() {
                self.driver.handle(&mut self.host, Input::Answered { token, answer })?;
            }
        }
        Ok(())
    }
}

impl EffectHandler for Host {
    fn carry_out(&mut self, driver: &mut Driver, effect: Effect) -> anyhow::Result<()> {
        match effect {
            Effect::Ask { token, about: About::Server(subject), .. } => self.due.push((token, subject)),
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
            if self.hinted > HINTED {
                return Answer::Hints { found: None };
            }
        }
        self.probe.answer(about)
    }

    /// Inspects servers that are due: all of them by one reading of /proc, which costs the same for one. Where signals are sent, one
    /// server: what its end rests on is read right before it.
    fn inspect(&mut self) -> Vec<(u64, Answer)> {
        let most = if self.reaper.is_some() { 1 } else { TOGETHER };
        let (tokens, subjects): (Vec<_>, Vec<_>) = self.due.drain(..most.min(self.due.len())).unzip();
        let mut answers = self.probe.answer_together(subjects.clone());
        for (answer, subject) in answers.iter_mut().zip(&subjects) {
            let Answer::Server { facts } = answer else { continue };
            // It waits for nothing: one on which a signal rests is handed in at once.
            facts.began = None;
            if let Some(why) = facts.scene.blind(|one| subject.processes.contains(&one))
                && !self.blind.iter().any(|known| known == why)
            {
                self.blind.push(why.to_owned());
            }
        }
        tokens.into_iter().zip(answers).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        Host {
            rules: Rules::default(),
            scope: None,
            procfs: Proc::system().unwrap(),
            probe: Probe::new().unwrap(),
            reaper: None,
            blind: Vec::new(),
            numbered: true,
            hinted: 0,
            due: (0..300).map(|token| (token, Subject::default())).collect(),
        }
    }

    fn tokens(host: &mut Host) -> Vec<u64> {
        let answered = host.inspect().into_iter();
        let token = |(token, answer)| match answer {
            Answer::Server { facts } if facts.began.is_none() => token,
            other => panic!("{other:?} may be too old"),
        };
        answered.map(token).collect()
    }

    #[test]
    fn servers_that_are_due_are_inspected_together() {
        let mut host = host();
        assert_eq!(tokens(&mut host), (0..128).collect::<Vec<_>>());
        assert_eq!(tokens(&mut host), (128..256).collect::<Vec<_>>());
        assert_eq!(tokens(&mut host), (256..300).collect::<Vec<_>>());
        assert_eq!(tokens(&mut host), [0; 0]);
    }

    #[test]
    fn where_signals_are_sent_each_is_inspected_by_itself() {
        let mut host = Host { reaper: Some(Reaper::new().unwrap()), ..host() };
        assert_eq!((tokens(&mut host), tokens(&mut host)), (vec![0], vec![1]));
    }
}
