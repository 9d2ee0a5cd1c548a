//! The words of the list, and its sums.

use std::time::Duration;

use anstyle::Style;

use super::super::{human, paint, text};
use orphand_core::model::{ProcessView, Report, ServerReport, State};

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

/// `1 agent, 3 servers (512 MB), 2 orphans (197 MB), 1 kept, 1 unproven (64 MB).`
pub fn sum(report: &Report) -> String {
    let sum = report.totals();
    let agents = text::count(sum.agents, "agent", "agents");
    let shown = text::count(sum.servers, "server", "servers");
    let sees_all = report.blind.is_empty();
    let part = |number: u64, what: String, bytes: u64| {
        (number > 0).then(|| format!("{what} ({})", text::size(bytes)))
    };
    let leftovers = text::count(sum.leftovers, "leftover", "leftovers");
    let leftovers = part(sum.leftovers, leftovers, sum.leftover_rss_bytes);
    if sum.servers == 0 {
        let leftovers = leftovers.map(|what| format!(", {what}")).unwrap_or_default();
        return format!("{agents}, {shown}{}{leftovers}.", if sees_all { "" } else { " seen" });
    }
    let few = |number: u64, what: &str| (number > 0).then(|| format!("{number} {what}"));
    let none = if sees_all { "no orphans" } else { "no orphans seen" };
    let orphans = part(sum.orphans, text::count(sum.orphans, "orphan", "orphans"), sum.orphan_rss_bytes);
    let duplicates = text::count(sum.duplicates, "duplicate", "duplicates");
    let parts = [
        Some(agents),
        part(sum.servers, shown, sum.rss_bytes),
        Some(orphans.unwrap_or_else(|| none.to_owned())),
        few(sum.kept, "kept"),
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
        let (servers, bytes) = (text::count(sum.found, "server", "servers"), text::size(sum.found_rss_bytes));
        let them = if sum.found == 1 { "it" } else { "them" };
        return Some(format!("{servers} from before, {bytes}, nobody can reach {them}: sudo orphand reap"));
    }
    let suspects =
        report.servers().filter(|(_, one)| one.found && one.state == State::Suspect).count() as u64;
    let servers = text::count(suspects, "server", "servers");
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
    let doubts = report.is_unproven().then(|| human::list_doubts(&report.doubts));
    let guards = (!report.guards.is_empty()).then(|| human::guards_of(&report.server, &report.guards));
    let why: Vec<String> = doubts.into_iter().chain(guards).collect();
    (!why.is_empty()).then(|| why.join(", "))
}

/// The arguments roughly as one would type them; without arguments, the executable.
pub fn command_line(process: &ProcessView) -> String {
    if process.argv.is_empty() {
        return text::clean(&process.exe);
    }
    let quoted = process.argv.iter().enumerate().map(|(n, argument)| {
        let argument = text::sanitise(argument);
        // A title of many words in argv[0] is not a name with blanks and gets no quotes.
        let plain = n == 0 || !(argument.is_empty() || argument.contains([' ', '"', '\'']));
        if plain { argument.into_owned() } else { text::in_quotes(&argument) }
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
