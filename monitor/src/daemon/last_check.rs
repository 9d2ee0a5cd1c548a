//! The last check before a signal: a pidfd is opened, then the ring is drained, then user and identity are compared, then the signal
//! is sent, and only if no record that was drained speaks against it. Of several that are sent together, all are aimed before the
//! first is sent, and what was drained for the later ones counts for the earlier ones as well.
//!
//! Several that get SIGKILL are stopped before the first gets it. One that has let go of its pipe, or of anything else, would be seen
//! by the others otherwise: who is woken preempts the sender, and milliseconds pass between two signals. They are listed from the
//! bottom up: of a process group that its last parent leaves the kernel continues the members that are stopped, with SIGHUP
//! for all (`kill_orphaned_pgrp()`); who has got SIGKILL is none of them.
//!
//! A pid that is used again within one clock tick has the same identity in /proc. But the exit of the first process was reported
//! before its pid was free (`do_exit()` calls the tracepoint, `release_task()` frees the pid): once the pidfd is open, that
//! record is in the ring, among the records that wait to be handed in, or it was handed in before. Records that are drained here
//! wait in their order; nothing later is handed in before them.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use crate::{
    actuator::reaper::{Aim, Reaper},
    driver::SignalRequest,
    source::{kernel::KernelSource, kernel_error::KernelError},
};
use orphand_core::model::{ProcessEvent, ProcessId, Signal, SignalError};

/// How long is waited until those are stopped that end together, and how long between two looks.
const HOLD: Duration = Duration::from_millis(50);
const LOOK: Duration = Duration::from_micros(200);

/// Records that were taken from the ring and have not been handed to the engine.
#[derive(Debug, Default)]
pub struct PendingRecords(VecDeque<ProcessEvent>);

impl PendingRecords {
    /// Takes what is in the ring. Returns how many records wait now.
    pub fn drain(&mut self, kernel: &mut KernelSource) -> usize {
        kernel.drain(|event| self.0.push_back(event));
        self.0.len()
    }

    /// These wait, too.
    pub fn extend(&mut self, events: impl IntoIterator<Item = ProcessEvent>) {
        self.0.extend(events);
    }

    pub fn pop(&mut self) -> Option<ProcessEvent> {
        self.0.pop_front()
    }

    /// Whether the exit of this very process waits to be handed in.
    pub fn has_exit(&self, of: ProcessId) -> bool {
        self.0.iter().any(|event| matches!(event, ProcessEvent::Exit { process, .. } if *process == of))
    }

    /// Whether it has run another program or made a session since. An exec does not hold up SIGKILL: what it forks is killed anyway.
    fn has_news(&self, of: ProcessId, signal: Signal) -> bool {
        self.0.iter().any(|event| match event {
            ProcessEvent::Exec { process, .. } => *process == of && signal == Signal::Term,
            ProcessEvent::Setsid { process, .. } => *process == of,
            ProcessEvent::Fork { .. }
            | ProcessEvent::Exit { .. }
            | ProcessEvent::ThreadExit { .. }
            | ProcessEvent::Signal { .. } => false,
        })
    }

    /// Aims at it, if it is there and who was meant. `doubtful`: records were lost. The outer error: the kernel side cannot be read.
    pub fn aim(
        &mut self,
        kernel: &mut KernelSource,
        reaper: &Reaper,
        doubtful: bool,
        request: SignalRequest,
    ) -> Result<Result<Aim, SignalError>, KernelError> {
        let SignalRequest { process, uid, .. } = request;
        let aim = match reaper.aim(process) {
            Ok(aim) => aim,
            Err(error) => return Ok(Err(error)),
        };
        let complete = kernel.catch_up(uid, |event| self.0.push_back(event))?;
        if self.has_exit(process) {
            return Ok(Err(SignalError::Gone));
        }
        if doubtful || !complete {
            return Ok(Err(unsure(process, "its end may be among records of the kernel that are lost")));
        }
        Ok(reaper.check(&aim, uid).map(|()| aim))
    }

    /// Sends the signals of one step, in this order.
    pub fn send_all(
        &mut self,
        kernel: &mut KernelSource,
        reaper: &Reaper,
        aimed: &[(SignalRequest, Result<Aim, SignalError>)],
    ) -> Vec<(SignalRequest, Option<SignalError>)> {
        let mut held = BTreeMap::new();
        for (request, aim) in aimed.iter().filter(|_| aimed.len() > 1) {
            let is_to_stop = request.signal == Signal::Kill && !reaper.is_stopped(request.process);
            held.extend(aim.as_ref().ok().filter(|_| is_to_stop).map(|aim| (request.process, aim)));
        }
        for aim in held.values() {
            aim.hold();
        }
        if !held.is_empty() {
            let until = Instant::now() + HOLD;
            for process in held.keys() {
                while !reaper.is_held(*process) && Instant::now() < until {
                    std::thread::sleep(LOOK);
                }
            }
            // Whatever they did before is known now.
            self.drain(kernel);
        }
        let mut outcomes = Vec::new();
        for (request, aim) in aimed {
            let sent = aim.as_ref().map_err(Clone::clone).and_then(|aim| self.send(aim, *request));
            if let Some(aim) = held.get(&request.process).filter(|_| sent.is_err()) {
                aim.release();
            }
            outcomes.push((*request, sent.err()));
        }
        outcomes
    }

    /// Sends it to whom it is aimed at, unless a record that was drained since it was judged speaks against that.
    pub fn send(&self, aim: &Aim, request: SignalRequest) -> Result<(), SignalError> {
        let SignalRequest { process, signal, .. } = request;
        if self.has_news(process, signal) {
            return Err(unsure(
                process,
                "it runs another program or is in another session since it was judged",
            ));
        }
        aim.send(signal)
    }
}

fn unsure(process: ProcessId, why: &str) -> SignalError {
    SignalError::Unsure { message: format!("{process}: {why}") }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::host::Proc;
    use orphand_core::model::BootTime;

    /// What the ring brings while the next one is aimed at.
    #[test]
    fn who_has_gone_on_since_he_was_aimed_at_gets_no_signal() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let process = Proc::system().unwrap().process(child.id()).unwrap().id();
        let aim = Reaper::new().unwrap().aim(process).unwrap();
        let request = SignalRequest { process, uid: None, signal: Signal::Kill };
        let mut pending = PendingRecords::default();
        pending.extend([ProcessEvent::Setsid { at: BootTime(1), process, sid: process.pid }]);
        assert!(matches!(pending.send(&aim, request), Err(SignalError::Unsure { .. })));
        assert_eq!(child.try_wait().unwrap(), None);
        pending.pop();
        assert_eq!(pending.send(&aim, request), Ok(()));
        child.wait().unwrap();
    }
}
