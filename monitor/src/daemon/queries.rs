//! Questions and requests from the control socket and the metrics server, answered between two drains of the ring.

use super::{Daemon, stuck_reads};
use crate::{control::Query, os::clock};
use orphand_core::model::{Input, SessionsStatus, Status};

impl Daemon {
    /// Answers one question. The asker may have gone: then the answer is dropped.
    pub(super) fn answer(&mut self, query: Query) -> anyhow::Result<()> {
        match query {
            Query::Status(reply) => drop(reply.send(self.status())),
            Query::Plan(request, reply) => drop(reply.send(self.driver.engine().plan(&request))),
            Query::Explain(asked, reply) => drop(reply.send(self.driver.engine().explain(&asked))),
            Query::Release(request, user, reply) => {
                self.handle(Input::Release { request: request.clone(), user })?;
                drop(reply.send(self.driver.engine().released(&request, user)));
            }
            Query::Reload(reply) => self.reload(Some(reply)),
            Query::Decide(_, _, reply) if reply.is_closed() => {}
            Query::Decide(decision, by, reply) => {
                let decided = self.decide(&decision, &by)?;
                drop(reply.send(decided));
            }
            // The client has gone and would not learn what was ended: then nothing is.
            Query::Reap(_, reply) if reply.is_closed() => {}
            Query::Reap(request, reply) => {
                let planned = self.driver.engine().plan(&request);
                self.handle(Input::Reap { request })?;
                drop(reply.send(planned));
            }
        }
        Ok(())
    }

    fn status(&self) -> Status {
        let (engine, outside) = (self.driver.engine(), &self.outside);
        let mut blind = outside.status.blind.clone();
        if outside.doubtful {
            blind.push("records of the kernel were lost and /proc has not been read again yet".to_owned());
        }
        blind.extend(outside.shares.blind().into_iter().chain(outside.descriptors.blind()));
        Status {
            up_ms: self
                .ready_at
                .map_or(0, |at| u64::try_from(clock::now().since(at).as_millis()).unwrap_or(u64::MAX)),
            blind,
            stuck: stuck_reads::reported(),
            report: engine.report(),
            processes: engine.processes() as u64,
            sink_dropped: {
                let mut dropped = outside.stream.dropped();
                dropped.insert("hook".to_owned(), outside.hooks.dropped());
                dropped
            },
            hook_runs: outside.hooks.runs(),
            sessions: engine
                .session_counts()
                .map(|states| SessionsStatus { states, errors: outside.registry.errors() }),
            kernel_errors: outside.kernel.errors().unwrap_or_default(),
            ..outside.status.clone()
        }
    }
}
