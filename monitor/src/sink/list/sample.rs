//! One look at the host, whoever looked.

use jiff::tz::TimeZone;

use super::super::{standing, wall_clock::WallClock};
use orphand_core::model::{BootTime, Mode, Report, Status, text};

#[derive(Clone, Debug, Default)]
pub struct Sample {
    pub report: Report,
    /// Whether the daemon ends orphans; absent without a daemon.
    pub mode: Option<Mode>,
    /// What persons decided about that, in words; absent if nothing.
    pub decided: Option<String>,
    pub source: String,
    pub now: BootTime,
    /// Memory that was freed by ending orphans of the runs of the last day; absent if it is not known.
    pub freed: Option<u64>,
}

impl Sample {
    pub fn of_daemon(status: Status, now: BootTime, wall: WallClock, zone: &TimeZone) -> Self {
        let mode = standing::doing(status.mode, &status.standing, wall.timestamp(now), zone);
        let decided = status.standing.by().map(|_| format!("orphand {mode}."));
        let up = text::duration(std::time::Duration::from_millis(status.up_ms));
        let version = text::clean(&status.version);
        let source = format!("orphand {version}  {mode}  pid {}, up {up}", status.pid);
        let mut report = status.report;
        report.blind.extend(status.blind);
        Self { report, mode: Some(status.mode), decided, source, now, freed: None }
    }

    /// What /proc shows to who asks.
    pub fn of_proc(report: Report, why: &str, now: BootTime) -> Self {
        let source = format!("{}: looking through /proc, nobody ends orphans", text::sanitise(why));
        Self { report, mode: None, decided: None, source, now, freed: None }
    }
}
