//! The last check before a signal: a pidfd is opened, then the ring is drained, then user and identity are compared, then the signal
//! is sent, and only if no record that was drained speaks against it.
//!
//! A pid that is used again within one clock tick has the same identity in /proc. But the exit of the first process was reported
//! before its pid was free (`do_exit()` calls the tracepoint, `release_task()` frees the pid): once the pidfd is open, that
//! record is in the ring, among the records that wait to be handed in, or it was handed in before. Records that are drained here
//! wait in their order; nothing later is handed in before them.

use std::collections::VecDeque;

use crate::{
    actuator::reaper::{Aim, Reaper},
    driver::SignalRequest,
    source::{kernel::KernelSource, kernel_error::KernelError},
};
use orphand_core::model::{ProcessEvent, ProcessId, Signal, SignalError};

/// Records that were taken from the ring and have not been handed to the engine.
#[derive(Debug, Default)]
pub struct PendingRecords(VecDeque<ProcessEvent>);

impl PendingRecords {
    /// Takes what is in the ring. Returns how many records wait now.
    pub fn drain(&mut self, kernel: &mut KernelSource) -> usize {
        kernel.drain(|event| self.0.push_back(event));
        self.0.len()
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

    /// Aims at it, unless anything speaks against that. `doubtful`: records were lost. The outer error: the kernel side cannot be read.
    pub fn aim(
        &mut self,
        kernel: &mut KernelSource,
        reaper: &Reaper,
        doubtful: bool,
        request: SignalRequest,
    ) -> Result<Result<Aim, SignalError>, KernelError> {
        let SignalRequest { process, uid, signal } = request;
        let aim = match reaper.aim(process) {
            Ok(aim) => aim,
            Err(error) => return Ok(Err(error)),
        };
        let complete = kernel.catch_up(uid, |event| self.0.push_back(event))?;
        if self.has_exit(process) {
            return Ok(Err(SignalError::Gone));
        }
        let unsure = |why: &str| Ok(Err(SignalError::Unsure { message: format!("{process}: {why}") }));
        if doubtful || !complete {
            return unsure("its end may be among records of the kernel that are lost");
        }
        if self.has_news(process, signal) {
            return unsure("it runs another program or is in another session since it was judged");
        }
        Ok(reaper.check(&aim, uid).map(|()| aim))
    }
}
