//! What a person asks of the running daemon, answered between two looks into the ring.

use super::{Daemon, unanswered};
use crate::{control::Query, os::clock};
use orphand_core::model::{Input, Losses, ProcessEvent, Status};

impl Daemon {
    /// Answers one question. Whoever asked may be gone.
    pub(super) fn answer(&mut self, query: Query) -> anyhow::Result<()> {
        match query {
            Query::Status(reply) => drop(reply.send(self.status())),
            Query::Plan(request, reply) => drop(reply.send(self.engine.plan(&request))),
            Query::Reload(reply) => self.reload(Some(reply)),
            // Nobody is told of it any more: then it is not done either.
            Query::Reap(_, reply) if reply.is_closed() => {}
            Query::Reap(request, reply) => {
                let planned = self.engine.plan(&request);
                self.hand_in(Input::Reap { request })?;
                drop(reply.send(planned));
            }
        }
        Ok(())
    }

    fn status(&self) -> Status {
        let mut blind = self.standing.blind.clone();
        if self.doubtful {
            blind.push("records of the kernel were lost and /proc has not been read again yet".to_owned());
        }
        blind.extend(self.crowd.blind().into_iter().chain(self.want.blind()));
        Status {
            up_ns: self
                .ready_at
                .map_or(0, |at| u64::try_from(clock::now().since(at).as_nanos()).unwrap_or(u64::MAX)),
            blind,
            stuck: unanswered::told(),
            report: self.engine.report(),
            processes: self.engine.processes() as u64,
            sink_dropped: {
                let mut dropped = self.stream.dropped();
                dropped.insert("hook".to_owned(), self.hook.dropped());
                dropped
            },
            hook_runs: self.hook.runs(),
            kernel_errors: self.kernel.errors().unwrap_or_default(),
            ..self.standing.clone()
        }
    }
}

/// Counts a record.
pub(super) fn count(records: &mut Losses, event: &ProcessEvent) {
    match event {
        ProcessEvent::Fork { .. } => records.fork += 1,
        ProcessEvent::Exec { .. } => records.exec += 1,
        ProcessEvent::Exit { .. } => records.exit += 1,
        ProcessEvent::Setsid { .. } => records.setsid += 1,
    }
}

/// Adds losses up.
pub(super) fn add(sum: &mut Losses, more: &Losses) {
    sum.fork += more.fork;
    sum.exec += more.exec;
    sum.exit += more.exit;
    sum.setsid += more.setsid;
    sum.member += more.member;
}
