//! The list of servers: its rows, columns and words, which `ps` and `top` share, and the text of `ps`.
//!
//! One word for one state, one order (the worst first), one way to say what comes next. Pure.

mod rows;
mod text;

use std::time::Duration;

use anstyle::Style;
use clap::ValueEnum;
use jiff::tz::TimeZone;
use strum::{IntoStaticStr, VariantArray};

use super::{human, paint, status, wall_clock::WallClock};
use orphand_core::model::{
    AgentReport, BootTime, Mode, ProcessView, Report, ServerReport, State, Status, text as words,
};

pub use self::{
    rows::{Arrangement, Entry, Kind, Row, entries, leftover_entries, rows},
    text::{Layout, json, render, unseen},
};

/// Leaves the servers in these states (all, if none is given) that belong to agents of this name or unit. Who asks for orphans
/// gets those, too, that are being ended or kept: they are counted as orphans. Returns whether anything is left.
pub fn narrow(report: &mut Report, states: &[State], agent: Option<&str>) -> bool {
    let stays = |state| {
        let is_orphan = || matches!(state, State::Ending | State::Kept) && states.contains(&State::Orphan);
        states.is_empty() || states.contains(&state) || is_orphan()
    };
    for one in &mut report.agents {
        let is_named = agent.is_none_or(|name| one.agent.is_called(name));
        one.servers.retain(|server| stays(server.state) && (is_named || server.belongs_to(agent)));
        one.left_behind = one.left_behind.take().filter(|left| stays(left.state) && is_named);
    }
    let is_asked = |name: Option<&str>, one: &AgentReport| {
        !one.servers.is_empty()
            || one.left_behind.is_some()
            || (states.is_empty() && name.is_none_or(|name| one.agent.is_called(name)))
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
    /// Memory that was freed by ending orphans of the runs of the last day; in words; absent if it is not known.
    pub freed: Option<String>,
    /// What there is, in one line, where nothing of it is what was asked for.
    pub none_of: Option<String>,
}

impl Sample {
    pub fn of_daemon(status: Status, now: BootTime, wall: WallClock, zone: &TimeZone) -> Self {
        let mode = status::doing(status.mode, &status.standing, wall.timestamp(now), zone);
        let decided = status.standing.by().map(|_| format!("orphand {mode}."));
        let up = words::millis(status.up_ms);
        let version = words::clean(&status.version);
        let source = format!("orphand {version}  {mode}  pid {}, up {up}", status.pid);
        let mut report = status.report;
        report.blind.extend(status.blind);
        Self { report, mode: Some(status.mode), decided, source, now, freed: None, none_of: None }
    }

    /// What /proc shows to who asks.
    pub fn of_proc(report: Report, why: &str, now: BootTime) -> Self {
        let source = format!("{}: looking through /proc, nobody ends orphans", words::sanitise(why));
        Self { report, mode: None, decided: None, source, now, freed: None, none_of: None }
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

pub const fn style(state: State) -> Style {
    match state {
        State::Orphan | State::Ending => paint::ALARM,
        State::Kept | State::Unproven | State::Suspect | State::Leftover => paint::WARNING,
        State::Live => paint::PLAIN,
    }
}

/// In five columns: `42s`, `4m05`, `3h20`, `12d`.
pub fn short(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// CPU time in five columns: `0.4s`, `4m05`.
pub fn cpu_time(millis: u64) -> String {
    match millis {
        0..10_000 => format!("{}.{}s", millis / 1000, millis / 100 % 10),
        _ => short(Duration::from_millis(millis)),
    }
}

/// `1 agent, 3 servers (512 MB), 2 orphans (197 MB, 1 kept), 1 unproven (64 MB).`
pub fn sum(report: &Report, blind: &[String]) -> String {
    let sum = report.totals();
    let left = match report.left_agents().count() {
        0 => String::new(),
        left => format!(" ({left} left behind)"),
    };
    let agents = words::count(sum.agents, "agent", "agents") + &left;
    let shown = words::count(sum.servers, "server", "servers");
    let sees_all = blind.is_empty();
    let part = |number: u64, what: String, bytes: u64| {
        (number > 0).then(|| format!("{what} ({})", words::size(bytes)))
    };
    let leftovers = words::count(sum.leftovers, "leftover", "leftovers");
    let leftovers = part(sum.leftovers, leftovers, sum.leftover_rss_bytes);
    if sum.servers == 0 {
        let leftovers = leftovers.map(|what| format!(", {what}")).unwrap_or_default();
        return format!("{agents}, {shown}{}{leftovers}.", if sees_all { "" } else { " seen" });
    }
    let few = |number: u64, what: &str| (number > 0).then(|| format!("{number} {what}"));
    let none = if sees_all { "no orphans" } else { "no orphans seen" };
    let kept = match sum.kept {
        0 => String::new(),
        _ if sum.kept == sum.orphans => ", kept".to_owned(),
        some => format!(", {some} kept"),
    };
    let orphans = words::count(sum.orphans, "orphan", "orphans");
    let orphans =
        (sum.orphans > 0).then(|| format!("{orphans} ({}{kept})", words::size(sum.orphan_rss_bytes)));
    let duplicates = words::count(sum.duplicates, "duplicate", "duplicates");
    let parts = [
        Some(agents),
        part(sum.servers, shown, sum.rss_bytes),
        Some(orphans.unwrap_or_else(|| none.to_owned())),
        part(sum.unproven, format!("{} unproven", sum.unproven), sum.unproven_rss_bytes),
        few(sum.suspects, if sum.suspects == 1 { "suspect" } else { "suspects" }),
        part(sum.duplicates, duplicates, sum.duplicate_rss_bytes),
        few(sum.stale_binaries, "with a stale binary"),
        leftovers,
    ];
    format!("{}.", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// `14 servers from before, 2.1 GB, nobody can reach them: sudo orphand reap`: what only a person ends. Nothing if there is none.
pub fn from_before(report: &Report) -> Option<String> {
    let sum = report.totals();
    if sum.found > 0 {
        let (servers, bytes) =
            (words::count(sum.found, "server", "servers"), words::size(sum.found_rss_bytes));
        let them = if sum.found == 1 { "it" } else { "them" };
        return Some(format!("{servers} from before, {bytes}, nobody can reach {them}: sudo orphand reap"));
    }
    let suspects =
        report.servers().filter(|(_, one)| one.found && one.state == State::Suspect).count() as u64;
    let servers = words::count(suspects, "server", "servers");
    (suspects > 0).then(|| {
        format!("{servers} from before may have been left behind; only you end them: sudo orphand reap")
    })
}

/// Why it is judged so, and why it stays: `owner exited; stays: another process holds its stdin`.
pub fn why(report: &ServerReport) -> String {
    let evidence = report.evidence.iter().map(|one| one.reason().short.to_owned());
    let newest = report.duplicate_of.as_ref();
    let duplicate = newest.map(|newest| format!("duplicate of {}", human::pid_of(newest)));
    let stale = report.has_stale_binary().then(|| "stale binary".to_owned());
    let why: Vec<String> = evidence.chain(duplicate).chain(stale).collect();
    let stays = reasons_to_stay(report).map(|why| format!("stays: {why}"));
    let why = (!why.is_empty()).then(|| why.join(", "));
    why.into_iter().chain(stays).collect::<Vec<_>>().join("; ")
}

/// Why it is not ended: the doubts of an unproven server, the guards of an orphan.
pub fn reasons_to_stay(report: &ServerReport) -> Option<String> {
    let doubts = report.is_unproven().then(|| human::list_doubts(&report.doubts, &report.reached_by));
    let guards = (!report.guards.is_empty()).then(|| human::guards_of(&report.server, &report.guards));
    let why: Vec<String> = doubts.into_iter().chain(guards).collect();
    (!why.is_empty()).then(|| why.join(", "))
}

/// The arguments roughly as one would type them; without arguments, the executable.
pub fn command_line(process: &ProcessView) -> String {
    if process.argv.is_empty() {
        return words::clean(&process.exe);
    }
    let quoted = process.argv.iter().enumerate().map(|(n, argument)| {
        let argument = words::sanitise(argument);
        // A title of many words in argv[0] is not a name with blanks and gets no quotes.
        let plain = n == 0 || !(argument.is_empty() || argument.contains([' ', '"', '\'']));
        if plain { argument.into_owned() } else { words::in_quotes(&argument) }
    });
    let mut line = quoted.collect::<Vec<_>>().join(" ");
    if process.argv_truncated {
        line.push_str(" …");
    }
    line
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
        assert_eq!(left(&[State::Orphan], None), (1, vec![State::Orphan, State::Kept]));
        assert_eq!(left(&[State::Orphan], Some("claude")), (1, vec![State::Orphan]));
        assert_eq!(left(&[State::Kept], None).1, [State::Kept]);
        assert_eq!(left(&[], Some("bot.service")), (1, vec![]));
        assert_eq!(left(&[], Some("nobody")), (0, vec![]));
        assert_eq!(left(&[State::Ending], None), (0, vec![]));
    }

    #[test]
    fn times_fit_into_five_columns() {
        let told = |seconds: u64| short(Duration::from_secs(seconds));
        assert_eq!(
            [0, 59, 65, 3_599, 12_000, 86_399].map(told),
            ["0s", "59s", "1m05", "59m59", "3h20", "23h59"]
        );
        assert_eq!(told(86_400 * 400), "400d");
        assert_eq!([0, 440, 9_990, 10_000, 65_000].map(cpu_time), ["0.0s", "0.4s", "9.9s", "10s", "1m05"]);
    }
}
