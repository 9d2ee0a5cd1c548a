//! Questions and requests from the control socket and the metrics server, answered between two drains of the ring.

use super::{Daemon, stuck_reads};
use crate::{
    control::{Answer, Query, Request},
    host::stuck,
    os::clock,
};
use orphand_core::model::{Input, SessionsStatus, Status};

impl Daemon {
    /// Answers one question. The asker may have gone: then the answer is dropped.
    pub(super) fn answer(&mut self, Query { request, user, reply }: Query) -> anyhow::Result<()> {
        let changes =
            !matches!(request, Request::Status { .. } | Request::Plan { .. } | Request::Explain { .. });
        // The client has gone and would not learn what was done: then nothing is.
        if changes && reply.is_closed() {
            return Ok(());
        }
        let engine = self.driver.engine();
        let answer = match request {
            Request::Status { .. } => Ok(Answer::Status { status: Box::new(self.status()) }),
            Request::Plan { request } => Ok(Answer::Plan { planned: engine.plan(&request) }),
            Request::Explain { process } => Ok(Answer::Explained { explained: engine.explain(&process) }),
            Request::Release { request } => {
                self.handle(Input::Release { request: request.clone(), user })?;
                let released = self.driver.engine().released(&request, user);
                released.map(|released| Answer::Released { released })
            }
            Request::Reload => {
                self.reload(Some(reply));
                return Ok(());
            }
            Request::Decide { decision, on_behalf_of } => {
                let decided = self.decide(&decision, &on_behalf_of.unwrap_or_default())?;
                decided.map(|decided| Answer::Decided { decided })
            }
            Request::Reap { request, on_behalf_of } => {
                let planned = engine.plan(&request);
                self.handle(Input::Reap { request, by: on_behalf_of.unwrap_or_default() })?;
                Ok(Answer::Plan { planned })
            }
            Request::History { .. } | Request::Events { .. } => Err("answered beside the loop".to_owned()),
        };
        drop(reply.send(answer));
        Ok(())
    }

    fn status(&self) -> Status {
        let (engine, outside) = (self.driver.engine(), &self.outside);
        let mut blind = outside.status.blind.clone();
        if outside.doubtful {
            blind.push("records of the kernel were lost and /proc has not been read again yet".to_owned());
        }
        blind.extend(outside.shares.blind().into_iter().chain(outside.descriptors.why.clone()));
        let mut sink_dropped = outside.stream.dropped();
        sink_dropped.insert("hook".to_owned(), outside.hooks.dropped());
        let (up, sessions) = (self.ready_at.map(|at| clock::now().since(at)), engine.session_counts());
        Status {
            up_ms: up.map_or(0, |up| u64::try_from(up.as_millis()).unwrap_or(u64::MAX)),
            blind,
            store_error: outside.store.trouble.clone(),
            stuck: stuck().into_iter().filter(stuck_reads::is_reported).collect(),
            report: engine.report(),
            processes: engine.processes() as u64,
            sink_dropped,
            not_asked: engine.not_asked(),
            hook_runs: outside.hooks.runs(),
            sessions: sessions.map(|states| SessionsStatus { states, errors: outside.registry.errors() }),
            kernel_errors: outside.kernel.errors().unwrap_or_default(),
            ..outside.status.clone()
        }
    }
}
