//! Ending servers without a daemon, on what /proc shows.

use std::time::Duration;

use anyhow::Context;

use super::{Backend, MARGIN, is_over};
use crate::{
    commands::offline::Offline,
    config::Config,
    host::Scope,
    os::clock::{self, Timer},
};
use orphand_core::model::{Input, ReapRequest, Report};

/// Between two readings of /proc, which find who ended without having been signalled.
const READ_AGAIN: Duration = Duration::from_millis(200);

/// An engine in this process.
pub(super) struct Alone {
    pub(super) offline: Offline,
    term_timeout: Duration,
}

impl Alone {
    /// Reads /proc and judges. Nothing is signalled until [`Backend::reap`].
    pub(super) fn inspect(config: &Config, scope: Option<Scope>) -> anyhow::Result<Self> {
        Ok(Self { offline: Offline::inspect(config, scope)?, term_timeout: config.term_timeout })
    }

    async fn end(&mut self, request: &ReapRequest) -> anyhow::Result<Report> {
        let offline = &mut self.offline;
        offline.arm()?;
        let timer = Timer::new()?;
        let patience = clock::now() + self.term_timeout + MARGIN;
        offline.handle(Input::Reap { request: request.clone() })?;
        loop {
            offline.read_again()?;
            let report = offline.report();
            let now = clock::now();
            if is_over(&report, request) || now >= patience {
                return Ok(report);
            }
            timer.set([Some(now + READ_AGAIN), offline.due()].into_iter().flatten().min())?;
            let ended = tokio::select! {
                process = offline.ended() => Some(process),
                expired = timer.expired() => expired.map(|()| None)?,
            };
            if let Some(process) = ended {
                offline.handle(Input::Gone { process })?;
            }
            // The engine inspects only some servers at a time.
            while clock::now() < patience && offline.pass_time(clock::now())? {}
        }
    }
}

impl Backend for Alone {
    fn report(&mut self) -> anyhow::Result<Report> {
        Ok(self.offline.report())
    }

    fn reap(&mut self, request: &ReapRequest) -> anyhow::Result<Report> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.context("cannot start the event loop")?.block_on(self.end(request))
    }
}
