//! The last moment before a signal: pidfd opened, then the ring drained, then user and identity compared, then signalled, and
//! only if nothing of what was drained speaks against it.
//!
//! A number that is handed on within one clock tick has the same identity in /proc. But the exit of the first one was reported
//! before its number was free (`do_exit()` calls the tracepoint, `release_task()` frees the number): once the pidfd is open,
//! it is in the ring, among the records that wait to be handed in, or it was handed in before. Records that are drained here
//! wait in their order; nothing later is handed in before them.

use std::collections::VecDeque;

use crate::{
    actuator::reaper::Reaper,
    source::{kernel::KernelSource, kernel_error::KernelError},
};
use orphand_core::model::{ProcessEvent, ProcessId, Signal, SignalError};

/// The signal that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Shot {
    /// To whom.
    pub process: ProcessId,
    /// Its real user, if anybody knows.
    pub uid: Option<u32>,
    /// Which.
    pub signal: Signal,
}

/// Records that were taken from the ring and have not been handed to the engine.
#[derive(Debug, Default)]
pub struct Waiting(VecDeque<ProcessEvent>);

impl Waiting {
    /// Takes what is in the ring. How many wait now.
    pub fn drain(&mut self, kernel: &mut KernelSource) -> usize {
        kernel.drain(|event| self.0.push_back(event));
        self.0.len()
    }

    /// The oldest one, to be handed in.
    pub fn take(&mut self) -> Option<ProcessEvent> {
        self.0.pop_front()
    }

    /// Whether the end of this very process waits: it will be told by its record.
    pub fn has_exit(&self, of: ProcessId) -> bool {
        self.0.iter().any(|event| matches!(event, ProcessEvent::Exit { process, .. } if *process == of))
    }

    /// Whether this process has become something else since it was judged. What a process that is being killed forks is killed
    /// whatever it runs.
    fn has_news(&self, of: ProcessId, signal: Signal) -> bool {
        self.0.iter().any(|event| match event {
            ProcessEvent::Exec { process, .. } => *process == of && signal == Signal::Term,
            ProcessEvent::Setsid { process, .. } => *process == of,
            ProcessEvent::Fork { .. } | ProcessEvent::Exit { .. } => false,
        })
    }

    /// Signals a process, unless anything speaks against it. `doubtful`: records were lost, and /proc has not been read since. The
    /// outer error is that the kernel side is out of order.
    pub fn signal(
        &mut self,
        kernel: &mut KernelSource,
        reaper: &mut Reaper,
        doubtful: bool,
        shot: Shot,
    ) -> Result<Result<(), SignalError>, KernelError> {
        let Shot { process, uid, signal } = shot;
        let aim = match reaper.aim(process) {
            Ok(aim) => aim,
            Err(error) => return Ok(Err(error)),
        };
        if !aim.is_held() {
            let complete = kernel.catch_up(|event| self.0.push_back(event))?;
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
        }
        Ok(reaper.fire(aim, uid, signal))
    }
}
