//! What an explicit clean-up means, and what became of it, for a person.

use super::{
    human,
    paint::{self, Paint},
    table, text,
};
use crate::model::Planned;

const COLUMNS: [table::Column; 7] = [
    ("SERVER", false),
    ("STATE", false),
    ("AGENT", false),
    ("PID", true),
    ("PROCESSES", true),
    ("MEMORY", true),
    ("", false),
];

/// The servers that are meant, and those among them that stay.
pub fn render(planned: &[Planned], paint: Paint) -> String {
    if planned.is_empty() {
        return "Nothing to end.\n".to_owned();
    }
    let rows: Vec<_> = planned.iter().map(row).collect();
    format!("{}\n{}\n", table::render(paint, &COLUMNS, &rows), sum(planned))
}

/// `2 servers to end (197 MB), 1 stays.`
fn sum(planned: &[Planned]) -> String {
    let (to_end, stay): (Vec<_>, Vec<_>) = planned.iter().partition(|one| one.guards.is_empty());
    let stays = match stay.len() {
        0 => String::new(),
        1 => ", 1 stays".to_owned(),
        more => format!(", {more} stay"),
    };
    format!("{} to end ({}){stays}.", servers(to_end.len()), text::size(bytes(&to_end)))
}

/// `2 servers ended, 197 MB freed.` and what stays, one line each.
pub fn outcome(ended: &[&Planned], stayed: &[&Planned], paint: Paint) -> String {
    let text = match ended.len() {
        0 => "Nothing was ended.".to_owned(),
        number => format!("{} ended, {} freed.", servers(number), text::size(bytes(ended))),
    };
    let mut out = paint.text(if stayed.is_empty() { paint::GOOD } else { paint::PLAIN }, text);
    out.push('\n');
    for one in stayed {
        let why = if one.guards.is_empty() { "it is still there".to_owned() } else { guards(one) };
        let line = format!("{} (pid {}) stays: {why}", text::sanitise(&one.server.name), pid(one));
        out.push_str(&paint.text(paint::WARNING, line));
        out.push('\n');
    }
    out
}

fn row(one: &Planned) -> (anstyle::Style, Vec<String>) {
    let run = one.server.run.as_ref();
    let agent = run.map_or_else(
        || "-".to_owned(),
        |run| {
            let number = run.generation.map_or_else(String::new, |number| format!(" #{number}"));
            format!("{}{number}", text::sanitise(&run.agent))
        },
    );
    let (style, note) = if one.guards.is_empty() {
        (paint::ALARM, String::new())
    } else {
        (paint::PLAIN, format!("stays: {}", guards(one)))
    };
    let cells = vec![
        text::sanitise(&one.server.name).into_owned(),
        text::sanitise(&one.state).into_owned(),
        agent,
        pid(one),
        one.server.processes.len().to_string(),
        one.server.rss_bytes.map_or_else(|| "-".to_owned(), text::size),
        note,
    ];
    (style, cells)
}

fn pid(one: &Planned) -> String {
    one.server.processes.first().map_or_else(|| "-".to_owned(), |process| process.pid.to_string())
}

fn guards(one: &Planned) -> String {
    let guards: Vec<&str> = one.guards.iter().copied().map(human::guard).collect();
    guards.join(", ")
}

fn servers(number: usize) -> String {
    text::count(u64::try_from(number).unwrap_or(u64::MAX), "server", "servers")
}

fn bytes(planned: &[&Planned]) -> u64 {
    planned.iter().map(|one| one.server.rss_bytes.unwrap_or_default()).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests;
