//! The daemon: a loop that waits for the ring, the timer and signals, tells the engine what happened, and has its
//! effects carried out.
//!
//! What feeds the loop: `records` (the ring and /proc), [`inspections`] (answers found beside it), `queries` (the control
//! socket), [`reload`] (the configuration), [`standing`] (what persons decide). What it feeds: the [`environment`], by the one [`Driver`]. What it sees to by
//! itself: [`member_shares`], [`descriptor_shortage`], [`stuck_reads`].
//!
//! One task, no lock, no channel before the engine: the ring is the queue. Every question of the engine is answered before
//! anything else is handed in, but for inspections of servers, which may take seconds: those answers are handed in when they
//! come, after what the ring had by then. Whatever stalls behind the engine (a reader of stdout, a full disk, a scraper, a
//! client of the control socket) never delays it.

pub mod descriptor_shortage;
pub mod environment;
pub mod inspections;
pub mod last_check;
pub mod member_shares;
mod queries;
pub mod records;
pub mod reload;
pub mod standing;
pub mod stuck_reads;

use std::{collections::VecDeque, os::fd::AsFd, time::Duration};

use anyhow::Context;
use nix::libc;
use rustix::system::uname;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};

use self::environment::Environment;
use crate::{
    control::Query,
    driver::Driver,
    host::Proc,
    os::{
        clock::{self, Timer},
        readable,
        systemd_notify::Notify,
    },
    sink::human::counts,
};
use orphand_core::model::{Answer, BootTime, Input, Knowledge, Mode, ProcessEvent};

/// Between two drains while records flow. A record that matters at once wakes the daemon at once.
const DRAIN: Duration = Duration::from_millis(20);

/// For how long answers are handed in between two drains: what is said first to a new server waits for some milliseconds only.
const ANSWERS: Duration = Duration::from_millis(2);

/// The most drains before the engine is told that a deadline has come: a storm of records must not keep it from that.
const CATCH_UP: usize = 4;

/// For how long the first inspections may delay `ready`.
const FIRST_INSPECTIONS: Duration = Duration::from_secs(2);

/// Once told to stop, the daemon runs the hook this long for events that it has not seen.
const LAST_RUNS: Duration = Duration::from_secs(3);

pub struct Daemon {
    pub driver: Driver,
    pub outside: Environment,
    pub configuration: reload::Configuration,
    pub decisions: standing::Decisions,
    pub notify: Notify,
    pub queries: mpsc::Receiver<Query>,
    pub ready_at: Option<BootTime>,
}

impl Daemon {
    /// `knowledge` is what earlier daemons knew; `early` are the records of the self-test. Runs until it is told to stop.
    pub async fn run(mut self, knowledge: Knowledge, early: Vec<ProcessEvent>) -> anyhow::Result<()> {
        // Asked before there is a handler.
        let has_terminal = lives_with_its_terminal(&self.outside.procfs, std::process::id());
        let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
        let mut hangup = signal(SignalKind::hangup()).context("cannot wait for SIGHUP")?;
        let ring = self.outside.kernel.as_fd().try_clone_to_owned();
        let ring = readable(ring.context("cannot duplicate the ring's descriptor")?);
        let ring = ring.context("cannot wait for the kernel's records")?;
        let timer = Timer::new()?;

        self.start(&timer, knowledge, early).await?;
        let mut late = VecDeque::new();
        loop {
            let busy = self.turn(&mut late)?;
            timer.set(if late.is_empty() { self.wake_up(busy) } else { Some(clock::now()) })?;
            tokio::select! {
                biased;
                () = received(&mut terminate) => break,
                () = received(&mut interrupt) => break,
                () = received(&mut hangup) => if has_terminal { break } else { self.reload(None) },
                ready = ring.readable() => ready.context("cannot wait for the kernel's records")?.clear_ready(),
                expired = timer.expired() => expired?,
                Some(answered) = self.outside.inspections.answers.recv() => late.push_back(answered),
                Some(seen) = self.outside.registry.news.recv() => self.outside.registry.pending.push(seen),
                loaded = reload::Configuration::loaded(&mut self.configuration.loading) => self.loaded(loaded)?,
                // The last: even a client that asks without end gets one answer between two drains. The other side never ends first.
                Some(query) = self.queries.recv() => self.answer(query)?,
            }
        }
        self.stop()
    }

    /// The kernel side is attached already: what happens from now on is reported.
    async fn start(
        &mut self,
        timer: &Timer,
        knowledge: Knowledge,
        early: Vec<ProcessEvent>,
    ) -> anyhow::Result<()> {
        self.handle(Input::Remembered { knowledge })?;
        for event in early {
            self.handle(Input::Process { event })?;
        }
        self.outside.enter_all(&mut self.driver)?;
        self.first_inspections(timer).await?;
        let kernel = uname().release().to_string_lossy().into_owned();
        let hooks = self.outside.kernel.hooks();
        self.outside.status.kernel.clone_from(&kernel);
        self.outside.status.hooks.clone_from(&hooks);
        self.ready_at = Some(clock::now());
        self.handle(Input::Ready { kernel, hooks })?;
        self.notify.ready(&self.summary());
        monitor_common::forget_code();
        Ok(())
    }

    /// Waits for the inspections of what was found: `ready` tells how many servers are left from before. Users decide how many there are:
    /// what takes longer is told later.
    async fn first_inspections(&mut self, timer: &Timer) -> anyhow::Result<()> {
        let until = clock::now() + FIRST_INSPECTIONS;
        while self.driver.engine().is_inspecting() && clock::now() < until {
            timer.set(Some(clock::now() + DRAIN))?;
            let answered = tokio::select! {
                answered = self.outside.inspections.answers.recv() => answered,
                expired = timer.expired() => expired.map(|()| None)?,
            };
            self.drain()?;
            self.answered(answered)?;
        }
        Ok(())
    }

    fn answered(&mut self, answers: impl IntoIterator<Item = (u64, Answer)>) -> anyhow::Result<()> {
        for (token, answer) in answers {
            self.outside.answered(&mut self.driver, token, answer);
            self.driver.perform(&mut self.outside)?;
        }
        Ok(())
    }

    /// One turn of the loop: all that has happened is handed in, in an order in which nothing runs ahead of the records of the ring.
    /// `late` are answers of inspections, those left that find no time. Returns whether there is more to expect at once.
    fn turn(&mut self, late: &mut VecDeque<(u64, Answer)>) -> anyhow::Result<bool> {
        let gone = std::mem::take(&mut self.outside.gone);
        while let Ok(answered) = self.outside.inspections.answers.try_recv() {
            late.push_back(answered);
        }
        let busy = self.drain()?;
        // What they did before they ended has been handed in.
        for process in gone {
            self.handle(Input::Gone { process })?;
        }
        let until = clock::now() + ANSWERS;
        while clock::now() < until
            && let Some(answered) = late.pop_front()
        {
            self.answered([answered])?;
        }
        for seen in std::mem::take(&mut self.outside.registry.pending) {
            self.handle(Input::Sessions { seen })?;
        }
        self.outside.retry_descriptors(&mut self.driver)?;
        self.outside.retry_shares(&mut self.driver)?;
        self.end_pause()?;
        self.pass_time()?;
        self.outside.retry_stuck(&mut self.driver, clock::now())?;
        self.outside.status.blind = self.outside.store.blind().into_iter().collect();
        if self.notify.is_due(clock::now()) {
            self.notify.alive(clock::now(), &self.summary());
        }
        // Before it sleeps for good the daemon asks for a wake-up and drains once more.
        let idle = !busy && late.is_empty() && self.outside.gone.is_empty() && {
            self.outside.kernel.set_idle(true)?;
            !self.drain()?
        };
        if idle {
            self.driver.flush_trace();
        }
        let engine = self.driver.engine();
        self.outside.registry.follow(engine.session_ids());
        Ok(!idle)
    }

    /// When to wake up though nothing happens.
    fn wake_up(&self, busy: bool) -> Option<BootTime> {
        let now = clock::now();
        let outside = &self.outside;
        let dues = [
            busy.then(|| now + DRAIN),
            self.driver.due(),
            self.notify.due(),
            self.decisions.due,
            outside.stuck.due(now),
            outside.shares.due,
            outside.descriptors.due,
            outside.store.retry,
        ];
        dues.into_iter().flatten().min()
    }

    /// Tells the engine that a time it waited for has come: only up to the last drain, so that no verdict runs ahead of records in the ring.
    /// Time never goes back: after inputs with later times the ring is drained again, at most [`CATCH_UP`] times.
    fn pass_time(&mut self) -> anyhow::Result<()> {
        for _ in 0..CATCH_UP {
            let is_due = self.driver.due().is_some_and(|due| due <= self.outside.seen_until);
            if !is_due || self.driver.last() <= self.outside.seen_until {
                break;
            }
            self.drain()?;
        }
        self.driver.pass_time(self.outside.seen_until);
        self.driver.perform(&mut self.outside)
    }

    fn stop(mut self) -> anyhow::Result<()> {
        self.notify.stopping();
        self.drain()?;
        self.handle(Input::Stop)?;
        if let Err(error) = self.outside.store.record_stop(clock::now()) {
            tracing::warn!("{error}");
        }
        self.driver.flush_trace();
        self.outside.stream.finish(Duration::from_secs(1));
        self.outside.hooks.finish(LAST_RUNS);
        Ok(())
    }

    fn drain(&mut self) -> anyhow::Result<bool> {
        self.outside.drain(&mut self.driver)
    }

    fn handle(&mut self, input: Input) -> anyhow::Result<()> {
        self.driver.handle(&mut self.outside, input)
    }

    /// One line for `systemctl status`.
    fn summary(&self) -> String {
        let doing = match self.outside.status.mode {
            Mode::Enforce => "watching",
            Mode::Observe => "observing",
        };
        format!("{doing}: {}", counts(self.driver.engine().counts()))
    }
}

/// Whether this process was started at a terminal, and nobody said that it shall outlive it (nohup(1)): then SIGHUP says that the
/// terminal is gone.
fn lives_with_its_terminal(procfs: &Proc, pid: u32) -> bool {
    procfs.process(pid).is_ok_and(|dir| {
        let ignores_hangup = dir.signals().is_ok_and(|signals| signals.ignores(libc::SIGHUP));
        dir.stat().tty != 0 && !ignores_hangup
    })
}

async fn received(signal: &mut Signal) {
    if signal.recv().await.is_none() {
        // The runtime is going down; there is nothing to wait for any more.
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader},
        process::{Command, Stdio},
    };

    use super::*;

    #[test]
    fn a_terminal_is_lived_with_unless_told_otherwise() {
        // Who is asked about sleeps in `cat`, with a terminal or without one.
        let script = "import os, pty, signal, sys\n\
            pid = pty.fork()[0] if 't' in sys.argv[1] else os.fork()\n\
            if pid == 0:\n\
            \x20 signal.signal(signal.SIGHUP, signal.SIG_IGN if 'n' in sys.argv[1] else signal.SIG_DFL)\n\
            \x20 't' in sys.argv[1] or os.setsid()\n\
            \x20 os.execvp('sleep', ['sleep', '60'])\n\
            while open(f'/proc/{pid}/comm').read() != 'sleep\\n': pass\n\
            print(pid, flush=True)\n\
            sys.stdin.read()\n\
            os.kill(pid, 9)";
        for (how, expected) in [("t", true), ("tn", false), ("", false), ("n", false)] {
            let mut command = Command::new("python3");
            command.args(["-c", script, how]).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut parent = command.spawn().unwrap();
            let mut line = String::new();
            BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
            let pid = line.trim().parse().unwrap();
            let found = lives_with_its_terminal(&Proc::system().unwrap(), pid);
            drop(parent.stdin.take());
            parent.wait().unwrap();
            assert_eq!(found, expected, "{how}");
        }
    }
}
