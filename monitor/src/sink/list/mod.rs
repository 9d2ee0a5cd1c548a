//! The list of servers: its rows, columns and words, which `ps` and `top` share, and the text of `ps`.
//!
//! One word for one state, one order (the worst first), one way to say what comes next. Pure.

mod rows;
mod text;
mod words;

use clap::ValueEnum;
use jiff::tz::TimeZone;
use strum::{IntoStaticStr, VariantArray};

use super::{status, wall_clock::WallClock};
use orphand_core::model::{
    BootTime, Mode, Report, State, Status,
    text::{clean, duration, sanitise},
};

pub use self::{
    rows::{Arrangement, Entry, Kind, Row, entries, leftover_entries, rows},
    text::{Layout, json, render, unseen},
    words::{command_line, cpu_time, from_before, reasons_to_stay, short, style, sum, why},
};

/// Leaves the servers in these states (all, if none is given) that belong to agents of this name or unit.
/// Returns whether anything is left.
pub fn narrow(report: &mut Report, states: &[State], agent: Option<&str>) -> bool {
    let stays = |state| states.is_empty() || states.contains(&state);
    for one in &mut report.agents {
        let is_named = agent.is_none_or(|name| one.agent.is_called(name));
        one.servers.retain(|server| stays(server.state) && (is_named || server.belongs_to(agent)));
    }
    let is_asked = |name: Option<&str>, one: &orphand_core::model::AgentReport| {
        !one.servers.is_empty() || (states.is_empty() && name.is_none_or(|name| one.agent.is_called(name)))
    };
    report.agents.retain(|one| is_asked(agent, one));
    report.unowned.retain(|server| stays(server.state) && server.belongs_to(agent));
    report.leftovers.retain(|one| {
        let is_named = agent.is_none_or(|name| one.agent.is_called(name) || one.run.is_called(name));
        stays(State::Leftover) && is_named
    });
    let has_leftovers = states.contains(&State::Leftover) && !report.leftovers.is_empty();
    report.runs.retain(|one| agent.is_none_or(|name| one.run.is_called(name)));
    !report.agents.is_empty() || !report.unowned.is_empty() || has_leftovers
}

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
        let mode = status::doing(status.mode, &status.standing, wall.timestamp(now), zone);
        let decided = status.standing.by().map(|_| format!("orphand {mode}."));
        let up = duration(std::time::Duration::from_millis(status.up_ms));
        let version = clean(&status.version);
        let source = format!("orphand {version}  {mode}  pid {}, up {up}", status.pid);
        let mut report = status.report;
        report.blind.extend(status.blind);
        Self { report, mode: Some(status.mode), decided, source, now, freed: None }
    }

    /// What /proc shows to who asks.
    pub fn of_proc(report: Report, why: &str, now: BootTime) -> Self {
        let source = format!("{}: looking through /proc, nobody ends orphans", sanitise(why));
        Self { report, mode: None, decided: None, source, now, freed: None }
    }
}

/// A column, from left to right, and what the list is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, VariantArray, IntoStaticStr)]
#[strum(serialize_all = "UPPERCASE")]
pub enum Column {
    /// The worst first, of those the largest.
    #[default]
    State,
    #[value(skip)]
    Server,
    #[value(skip)]
    Agent,
    #[value(skip)]
    #[strum(serialize = ">PID")]
    Pid,
    #[value(skip)]
    #[strum(serialize = ">P")]
    Processes,
    /// Resident memory, the most first.
    #[value(name = "mem")]
    #[strum(serialize = ">MEM")]
    Memory,
    /// CPU time, the most first.
    #[strum(serialize = ">CPU")]
    Cpu,
    /// The oldest first.
    #[strum(serialize = ">AGE")]
    Age,
    /// What happens next.
    #[value(skip)]
    Next,
}

impl Column {
    /// Its heading for a table.
    pub(super) fn title(self) -> &'static str {
        self.into()
    }

    pub fn heading(self) -> &'static str {
        self.title().trim_start_matches('>')
    }

    pub fn is_number(self) -> bool {
        self.title().starts_with('>')
    }

    /// The one `by` places to the right; it goes round.
    pub fn step(self, forward: bool) -> Self {
        let places = Self::VARIANTS.len();
        let there = self as usize + if forward { 1 } else { places - 1 };
        Self::VARIANTS.get(there % places).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::report::tests::report;

    #[test]
    fn what_was_asked_for_stays() {
        let left = |states: &[State], agent| {
            let mut report = report();
            let any = narrow(&mut report, states, agent);
            assert_eq!(any, report.servers().next().is_some() || !report.agents.is_empty());
            let states = report.servers().map(|(_, one)| one.state).collect::<Vec<_>>();
            (report.agents.len(), states)
        };
        assert_eq!(left(&[], None).1.len(), 6);
        assert_eq!(left(&[State::Orphan, State::Kept], None), (1, vec![State::Orphan, State::Kept]));
        assert_eq!(left(&[State::Orphan], Some("claude")), (1, vec![State::Orphan]));
        assert_eq!(left(&[], Some("bot.service")), (1, vec![]));
        assert_eq!(left(&[], Some("nobody")), (0, vec![]));
        assert_eq!(left(&[State::Ending], None), (0, vec![]));
    }
}
