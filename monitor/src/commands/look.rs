//! One look at the host, for what lists servers: what the running daemon knows; without one, what /proc shows.

use jiff::tz::TimeZone;

use super::offline::Offline;
use crate::{
    config::Config,
    control::client::{Client, ClientError},
    host::Scope,
    os::clock,
    sink::list::Sample,
};

/// Looks once. With `no_daemon` none is asked.
pub(crate) fn look(config: &Config, below: Option<&Scope>, no_daemon: bool) -> anyhow::Result<Sample> {
    let alone = |why: &str| -> anyhow::Result<Sample> {
        let report = Offline::inspect(config, below.cloned())?.report();
        Ok(Sample::of_proc(report, why, clock::now()))
    };
    if no_daemon {
        return alone("no daemon asked");
    }
    match super::asked(Client::new(&config.socket).status(false))? {
        Ok(status) => Ok(Sample::of_daemon(status, clock::now(), super::wall_clock(), &TimeZone::system())),
        Err(error @ ClientError::Forbidden { .. }) => {
            let mut sample = alone("the daemon may not be asked")?;
            sample.report.blind.push(format!("what the daemon knows: {error}"));
            Ok(sample)
        }
        Err(_) => alone("no daemon answers"),
    }
}
